// inspect, report, compare and emit over a result that the program itself wrote without a GPU.
#include <gmock/gmock.h>

#include "kernels/common/geometry.h"
#include "tests/commands/program.h"
#include "tuner/commands/target.h"
#include "tuner/core/hash.h"
#include "tuner/core/json.h"

namespace tuner {
namespace {

using testing::HasSubstr;

class Results : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(run_tiny(run_->path(), {"--family", "direct", "--budget", "2evals"}).code, 0);
  }
  static void TearDownTestSuite() { run_.reset(); }

  static std::string result() { return run_->path() / "tiny/result.json"; }
  static fs::path run_folder() { return run_->path(); }
  static Json variant() { return read_json(result())["problems"][0]["classes"][0]["variants"][0]; }
  static std::string id() { return variant()["id"]; }
  std::string file(const std::string& name) const { return folder_.path() / name; }
  std::string content(const std::string& name) const { return TemporaryFolder::content_of(folder_.path() / name); }

  /// The result with its first variant changed.
  std::string doctored(const std::function<void(Json&)>& change) const {
    Json json = read_json(result());
    change(json["problems"][0]["classes"][0]["variants"][0]);
    return folder_.write("doctored.json", json.dump());
  }

  TemporaryFolder folder_;

 private:
  static std::unique_ptr<TemporaryFolder> run_;
};
std::unique_ptr<TemporaryFolder> Results::run_;

TEST_F(Results, InspectWritesSourcePtxCubinLogAndFacts) {
  const Ended ended = run_to_end({"inspect", result(), id(), "-o", file("look")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(content("look/source.cu"),
              testing::AllOf(HasSubstr("kernels/direct/kernel.cuh"), HasSubstr("__global__")));
  EXPECT_THAT(content("look/kernel.ptx"), HasSubstr(".target sm_90a"));
  EXPECT_EQ(sha256(content("look/kernel.cubin")), variant()["cubin_sha256"]);
  EXPECT_THAT(content("look/compile.log"), HasSubstr("registers"));
  EXPECT_NE(content("look/kernel.sass"), "");
  const Json launches = Json::parse(content("look/launches.json"));
  const Json& run = launches.at("launches").back();
  EXPECT_EQ(run.at("step"), "run");
  EXPECT_THAT(content("look/kernel.ptx"), HasSubstr(run.at("symbol").get<std::string>()));
  EXPECT_EQ(run.at("arguments").get<std::string>().size(), 2 * sizeof(ct1d::RunArguments));
  EXPECT_EQ(run.at("pointers").at("y"), offsetof(ct1d::RunArguments, y));
  const std::string facts = content("look/facts.txt");
  EXPECT_THAT(facts, HasSubstr(id()));
  EXPECT_THAT(facts, HasSubstr("registers " + variant()["registers"].dump()));
  EXPECT_THAT(facts, HasSubstr("(as recorded)"));
  EXPECT_THAT(facts, HasSubstr("recorded outcome: ok"));
  EXPECT_THAT(ended.out, HasSubstr("tuner inspect " + result() + " " + id() + " --run"));
}

TEST_F(Results, InspectRunsAVariantAloneAndUsesItsIdAsFolder) {
  ProgramOptions here;
  here.folder = folder_.path();
  const Ended ended = run_to_end({"inspect", result(), id(), "--run"}, here);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Run on "));
  EXPECT_THAT(ended.out, HasSubstr("ok"));
  EXPECT_TRUE(fs::exists(folder_.path() / id() / "facts.txt"));
}

TEST_F(Results, InspectRefusesAnUnknownVariant) {
  for (const std::string unknown : {"direct-0000000000", "tiled", ""}) {
    const Ended ended = run_to_end({"inspect", result(), unknown, "-o", file("look")});
    EXPECT_EQ(ended.code, 2) << unknown;
    EXPECT_EQ(lines_of(ended.err).size(), 1u) << ended.err;
    EXPECT_FALSE(fs::exists(file("look")));
  }
}

TEST_F(Results, InspectTakesTheVariantOfAProblemAndClass) {
  const Json first = read_json(result())["problems"][0];
  const std::string problem = first["name"], accuracy = first["classes"][0]["class"];
  const Ended ended =
      run_to_end({"inspect", result(), id(), "--problem", problem, "--class", accuracy, "-o", file("look")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("problem " + problem));
  EXPECT_THAT(ended.out, HasSubstr("class " + accuracy));
  for (const auto& [option, value] : {std::pair("--problem", "no such"), std::pair("--class", "bf16")}) {
    const Ended refused = run_to_end({"inspect", result(), id(), option, value, "-o", file("other")});
    EXPECT_EQ(refused.code, 2) << option;
    EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(value));
    EXPECT_FALSE(fs::exists(file("other")));
  }
}

TEST_F(Results, ReportHasThreeFormatsAndWritesThemToAFile) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> formats{
      {"table", {"No GPU: nothing was timed.", "proven"}},
      {"markdown", {"| ---", "No GPU: nothing was timed.", "proven"}},
      {"junit", {"<?xml", "<testsuite", "</testsuites>", "same-rate"}}};
  for (const auto& [format, words] : formats) {
    SCOPED_TRACE(format);
    const Ended shown = run_to_end({"report", result(), "--format", format});
    EXPECT_EQ(shown.code, 0) << shown.err;
    for (const std::string& word : words) EXPECT_THAT(shown.out, HasSubstr(word));
    EXPECT_EQ(run_to_end({"report", result(), "--format", format, "-o", file("report")}).code, 0);
    EXPECT_EQ(content("report"), shown.out);
  }
  EXPECT_EQ(run_to_end({"report", result(), "--format", "pdf"}).code, 2);
}

TEST_F(Results, ComparedWithItselfNothingRegressed) {
  const Ended ended = run_to_end({"compare", result(), result()});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Nothing was timed in either"));
}

TEST_F(Results, CompareLiveNeedsTimesAndAGpu) {
  const Ended unmeasured = run_to_end({"compare", "--live", result(), result()});
  EXPECT_EQ(unmeasured.code, 2);
  EXPECT_THAT(unmeasured.err, HasSubstr("measured on a GPU"));
  const std::string measured = TUNER_SOURCE_DIR "/results/h200/seed/result.json";
  const Ended none = run_to_end({"compare", "--live", measured, measured, "--class", "fp64"});
  EXPECT_EQ(none.code, 2) << none.err;
  if (nvidia_device_visible()) GTEST_SKIP() << "there is an NVIDIA device";
  const Ended no_gpu = run_to_end({"compare", "--live", measured, measured});
  EXPECT_EQ(no_gpu.code, 3) << no_gpu.err;
  EXPECT_EQ(lines_of(no_gpu.err).size(), 1u) << no_gpu.err;
  EXPECT_EQ(run_to_end({"compare", measured, measured, "--json", file("live.json")}).code, 2);
}

TEST_F(Results, CompareTakesOnlyTheProblemsAndClassesNamed) {
  const std::string measured = TUNER_SOURCE_DIR "/results/h200/seed-earlier/result.json";
  const Ended ended = run_to_end({"compare", measured, measured, "--class", "tf32", "--problem", "seed"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("0 of 1 comparison regressed"));
  EXPECT_EQ(run_to_end({"compare", measured, measured, "--class", "fp16"}).code, 2);
}

TEST_F(Results, CompareFindsWorseCompileFactsAndLostCorrectness) {
  const std::vector<std::function<void(Json&)>> changes{
      [](Json& variant) {
        variant["registers"] = 255;
        variant["occupancy"] = 0.0625;
      },
      [](Json& variant) { variant["spill_bytes"] = 4096; },
      [](Json& variant) { variant["outcome"] = "wrong_result"; },
  };
  for (const auto& change : changes) {
    const std::string worse = doctored(change);
    const Ended ended = run_to_end({"compare", result(), worse});
    EXPECT_EQ(ended.code, 4) << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("direct"));
    EXPECT_EQ(run_to_end({"compare", worse, result()}).code, 0) << "better is no regression";
  }
}

TEST_F(Results, EmitTakesAnUnmeasuredResultOnlyWhenTold) {
  const Ended refused = run_to_end({"emit", result(), "-o", file("tuned.h")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--unmeasured"));
  EXPECT_FALSE(fs::exists(file("tuned.h")));
  const Ended ended = run_to_end({"emit", result(), "--unmeasured", "--namespace", "audio::up", "-o", file("tuned.h")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Header: " + file("tuned.h")));
  const std::string header = content("tuned.h");
  EXPECT_THAT(header, HasSubstr("namespace audio::up"));
  EXPECT_THAT(header, HasSubstr("tuner emit " + result() + " --unmeasured"));
  EXPECT_THAT(header, HasSubstr("__global__"));
  EXPECT_EQ(run_to_end({"emit", result(), "--unmeasured", "--namespace", "not a name", "-o", file("other.h")}).code, 2);
  EXPECT_FALSE(fs::exists(file("other.h")));
}

TEST_F(Results, ReadmesOwnShapeIsTunedAndEmitted) {
  const std::string readme = TemporaryFolder::content_of(fs::path(TUNER_SOURCE_DIR) / "README.md");
  const std::string fence = "```json\n";
  const std::size_t begin = readme.find(fence) + fence.size();
  const fs::path config = folder_.write("up8.json", readme.substr(begin, readme.find("```", begin) - begin));
  const Ended tuned = run_to_end({"--config", config, "--device", "offline", "--out", folder_.path(), "--class", "fp32",
                                  "--family", "winograd", "--budget", "1evals"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Ended ended =
      run_to_end({"emit", file("up8/result.json"), "-o", file("conv.h"), "--namespace", "audio", "--unmeasured"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(content("conv.h"), HasSubstr("ct1d::winograd::kernel<"));
}

TEST_F(Results, ReportOfTheSmallFileNamesTheOtherOne) {
  const Ended ended = run_to_end({"report", run_folder() / "tiny/best.json"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("this is a best.json; give the result.json beside it"));
}

}  // namespace
}  // namespace tuner
