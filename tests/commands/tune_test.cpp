// The main job without a GPU, end to end: its files against the contract, its table, its flags.
#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "tests/commands/program.h"
#include "tuner/core/json.h"
#include "tuner/core/result.h"

namespace tuner {
namespace {

using testing::HasSubstr;

/// One run that tests of its files share.
struct TinyRun {
  TemporaryFolder folder;
  Ended ended = run_tiny(folder.path());
  Json result = ended.code == 0 ? read_json(folder.path() / "tiny/result.json") : Json();
  Json best = ended.code == 0 ? read_json(folder.path() / "tiny/best.json") : Json();
};

const TinyRun& tiny() {
  static const TinyRun run;
  return run;
}

class TuneOffline : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(tiny().ended.code, 0) << tiny().ended.err; }

  static const Json& first_class(std::size_t problem) { return tiny().result["problems"][problem]["classes"][0]; }
};

std::vector<std::string> missing(const Json& object, const std::vector<std::string>& keys) {
  std::vector<std::string> lacks;
  for (const std::string& key : keys)
    if (!object.contains(key)) lacks.push_back(key);
  return lacks;
}

bool has_key_anywhere(const Json& json, const std::string& key) {
  if (json.is_object() && json.contains(key)) return true;
  return json.is_structured() &&
         std::any_of(json.begin(), json.end(), [&](const Json& member) { return has_key_anywhere(member, key); });
}

bool is_sha256(const Json& value) { return std::regex_match(value.get<std::string>(), std::regex("[0-9a-f]{64}")); }

std::vector<std::string> ids_of(const Json& result) {
  std::vector<std::string> ids;
  for (const Json& problem : result["problems"])
    for (const Json& record : problem["classes"])
      for (const Json& variant : record["variants"]) ids.push_back(variant["id"]);
  return ids;
}

std::vector<std::string> ids_in(const fs::path& out) { return ids_of(read_json(out / "tiny/result.json")); }

TEST_F(TuneOffline, ResultStatesToolConfigAndEnvironment) {
  const Json& result = tiny().result;
  EXPECT_THAT(
      missing(result, {"schema_version", "tool", "config", "config_hash", "environment", "measured", "problems"}),
      testing::IsEmpty());
  EXPECT_EQ(result["schema_version"], 1);
  EXPECT_FALSE(result["tool"]["version"].get<std::string>().empty());
  EXPECT_FALSE(result["tool"]["commit"].get<std::string>().empty());
  EXPECT_EQ(result["config"], read_json(data_file("tiny.json")));
  EXPECT_TRUE(is_sha256(result["config_hash"]));
  EXPECT_EQ(result["measured"], false);
  const Json& environment = result["environment"];
  EXPECT_THAT(missing(environment, {"gpu", "uuid", "sm_count", "arch", "driver", "cuda", "nvrtc", "cudnn", "cublas",
                                    "power_limit_w", "clocks", "other_processes", "warnings"}),
              testing::IsEmpty());
  EXPECT_TRUE(environment["gpu"].is_null());
  EXPECT_EQ(environment["arch"], "sm_90a");
  EXPECT_EQ(environment["sm_count"], 132);
  EXPECT_THAT(environment["nvrtc"].get<std::string>(), HasSubstr("NVRTC"));
  EXPECT_TRUE(environment["warnings"].is_array());
}

TEST_F(TuneOffline, ProblemsStateLengthWorkAndBytes) {
  const Json& problems = tiny().result["problems"];
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0]["name"], "same-rate");
  EXPECT_EQ(problems[0]["problem"]["in_channels"], 12);
  EXPECT_EQ(problems[0]["length_out"], 200);
  EXPECT_EQ(problems[0]["flop"], 2 * 2 * 12 * 10 * (200 + 2 * 199));  // the outer taps miss one position each
  EXPECT_EQ(problems[0]["min_bytes"], 4 * (2 * 12 * 200 + 12 * 10 * 3 + 2 * 10 * 200));
  EXPECT_EQ(problems[1]["length_out"], 180);
  EXPECT_EQ(problems[2]["flop"], 0);
  for (const Json& problem : problems)
    for (const Json& record : problem["classes"]) {
      EXPECT_THAT(missing(record, {"class", "reference_error_of_plain_sum", "bound", "variants", "baselines"}),
                  testing::IsEmpty());
      EXPECT_EQ(record["class"], "fp32");
    }
}

TEST_F(TuneOffline, VariantsHoldCompileFactsAndProofs) {
  std::set<std::string> ids;
  for (const std::size_t problem : {0, 1}) {
    ids.clear();
    for (const Json& variant : first_class(problem)["variants"]) {
      EXPECT_THAT(missing(variant, {"family", "tunables", "id", "outcome", "registers", "spill_bytes", "shared_bytes",
                                    "occupancy", "cubin_sha256", "compile_ms", "errors", "model"}),
                  testing::IsEmpty());
      const auto id = variant["id"].get<std::string>();
      EXPECT_TRUE(ids.insert(id).second) << id << " twice";
      EXPECT_EQ(id.rfind(variant["family"].get<std::string>() + "-", 0), 0u) << id;
      EXPECT_EQ(variant["outcome"], "ok") << variant["reason"];
      EXPECT_GT(variant["registers"], 0);
      EXPECT_GT(variant["shared_bytes"], 0);
      EXPECT_GT(variant["occupancy"], 0.0);
      EXPECT_LE(variant["occupancy"], 1.0);
      EXPECT_TRUE(is_sha256(variant["cubin_sha256"]));
      EXPECT_GT(variant["model"]["lower_bound_ms"], 0.0);
      EXPECT_THAT(variant["log"].get<std::string>(), HasSubstr("registers"));
      for (const char* bound : {"element", "row"}) {
        EXPECT_GT(variant["errors"][bound], 0.0) << "exact in every element: was it compared?";
        EXPECT_LE(variant["errors"][bound], 1.0);
      }
    }
    EXPECT_FALSE(ids.empty());
    EXPECT_GT(first_class(problem)["reference_error_of_plain_sum"], 0.0);
  }
}

TEST_F(TuneOffline, NothingIsTimedAndBaselinesAreNotRun) {
  for (const char* key : {"time_ms", "best", "tie", "ratios", "predicted_ms"})
    EXPECT_FALSE(has_key_anywhere(tiny().result, key)) << key;
  for (const char* key : {"median_ms", "best", "ratios"}) EXPECT_FALSE(has_key_anywhere(tiny().best, key)) << key;
  std::vector<std::string> names;
  for (const Json& baseline : first_class(0)["baselines"]) {
    names.push_back(baseline["name"]);
    EXPECT_EQ(baseline["outcome"], "not run");
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("cudnn", "cublas_shift_add"));
}

TEST_F(TuneOffline, TheShortlistIsOrderedByTheModelAndProven) {
  for (const std::size_t problem : {0, 1}) {
    const Json& record = first_class(problem);
    ASSERT_TRUE(record.contains("shortlist"));
    ASSERT_FALSE(record["shortlist"].empty());
    double last = 0;
    for (const Json& id : record["shortlist"]) {
      const auto& variants = record["variants"];
      const auto variant =
          std::find_if(variants.begin(), variants.end(), [&](const Json& each) { return each["id"] == id; });
      ASSERT_NE(variant, variants.end()) << id;
      EXPECT_EQ((*variant)["outcome"], "ok");
      EXPECT_TRUE(variant->contains("proven_on"));
      EXPECT_GE((*variant)["model"]["lower_bound_ms"], last);
      last = (*variant)["model"]["lower_bound_ms"];
    }
  }
}

TEST_F(TuneOffline, AnEmptyBatchIsAnEmptyResult) {
  EXPECT_EQ(first_class(2)["variants"], Json::array());
  TemporaryFolder folder;
  const Ended alone = run_tiny(folder.path(), {"--problem", "empty"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(ids_in(folder.path()), testing::IsEmpty());
}

TEST_F(TuneOffline, TheProgramsOwnReaderTakesTheResult) {
  const RunResult result = read_result(tiny().folder.path() / "tiny/result.json");
  EXPECT_FALSE(result.measured);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.problems.size(), 3u);
}

TEST_F(TuneOffline, BestIsSmallAndSaysHowToReproduceIt) {
  const Json& best = tiny().best;
  EXPECT_EQ(best["measured"], false);
  EXPECT_EQ(best["config_hash"], tiny().result["config_hash"]);
  EXPECT_EQ(best["reproduce"], "tuner --config " + data_file("tiny.json").string() + " --device offline --out " +
                                   tiny().folder.path().string());
  ASSERT_EQ(best["problems"].size(), 3u);
  const Json& first = best["problems"][0]["classes"][0]["shortlist"][0];
  EXPECT_EQ(first["id"], first_class(0)["shortlist"][0]);
  EXPECT_THAT(missing(first, {"family", "tunables", "cubin_sha256", "lower_bound_ms", "outcome"}), testing::IsEmpty());
  EXPECT_LT(fs::file_size(tiny().folder.path() / "tiny/best.json"),
            fs::file_size(tiny().folder.path() / "tiny/result.json"));
}

TEST_F(TuneOffline, TheTableSaysWhatWasDoneAndWhereTheFilesAre) {
  const auto count = ids_of(tiny().result).size();
  EXPECT_THAT(tiny().ended.out, HasSubstr("No GPU: nothing was timed. Compiled " + std::to_string(count) +
                                          " for sm_90a, " + std::to_string(count) + " proven on the CPU"));
  EXPECT_THAT(tiny().ended.out, HasSubstr("tuner report results/h200/"));
  for (const char* file : {"tiny/result.json", "tiny/best.json"})
    EXPECT_THAT(tiny().ended.out, HasSubstr((tiny().folder.path() / file).string()));
  EXPECT_THAT(tiny().ended.out, HasSubstr(tiny().best["reproduce"].get<std::string>()));
  EXPECT_THAT(tiny().ended.err, HasSubstr("Offline (--device offline): compiling for sm_90a"));
  EXPECT_EQ((tiny().ended.out + tiny().ended.err).find('\x1b'), std::string::npos) << "colours, but no terminal";
}

TEST_F(TuneOffline, TheSameSeedTriesTheSameVariantsAndAnotherSeedOthers) {
  TemporaryFolder same, other;
  ASSERT_EQ(run_tiny(same.path(), {"--jobs", "1"}).code, 0);
  ASSERT_EQ(run_tiny(other.path(), {"--seed", "2"}).code, 0);
  EXPECT_EQ(ids_in(same.path()), ids_of(tiny().result));
  EXPECT_NE(ids_in(other.path()), ids_of(tiny().result));
  EXPECT_EQ(read_json(same.path() / "tiny/result.json")["problems"][0]["classes"][0]["variants"][0]["cubin_sha256"],
            first_class(0)["variants"][0]["cubin_sha256"]);
}

TEST(Tune, ABudgetOfEvaluationsCoversTheWholeRun) {
  for (const std::size_t budget : {1, 3}) {
    TemporaryFolder folder;
    ASSERT_EQ(run_tiny(folder.path(), {"--budget", std::to_string(budget) + "evals"}).code, 0);
    EXPECT_EQ(ids_in(folder.path()).size(), budget);
  }
}

TEST(Tune, ABudgetMayBeAsLargeAsANumberCanBe) {
  TemporaryFolder folder;
  ASSERT_EQ(run_tiny(folder.path(), {"--budget", "9223372036854775807evals", "--family", "direct"}).code, 0);
  const Json result = read_json(folder.path() / "tiny/result.json");
  for (const std::size_t problem : {0, 1}) {
    const Json& record = result["problems"][problem]["classes"][0];
    EXPECT_EQ(record["variants"].size(), 8u);
    EXPECT_EQ(record["space_size"], 8);
  }
}

TEST(Tune, ProblemFamilyAndClassNarrowTheRun) {
  TemporaryFolder folder;
  const Ended ended =
      run_tiny(folder.path(), {"--problem", "upsample", "--family", "tiled", "--class", "tf32", "--budget", "2evals"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json result = read_json(folder.path() / "tiny/result.json");
  ASSERT_EQ(result["problems"].size(), 1u);
  EXPECT_EQ(result["problems"][0]["name"], "upsample");
  ASSERT_EQ(result["problems"][0]["classes"].size(), 1u);
  EXPECT_EQ(result["problems"][0]["classes"][0]["class"], "tf32");
  for (const std::string& id : ids_of(result)) EXPECT_EQ(id.rfind("tiled-", 0), 0u) << id;
}

TEST(Tune, AnotherProfileIsCompiledForAsItsArch) {
  TemporaryFolder folder;
  const Ended ended = run_tiny(folder.path(), {"--device", "offline:a100", "--budget", "1evals"});
  EXPECT_EQ(ended.code, 2) << "--device twice";
  const Ended once = run_to_end(
      {"--config", data_file("tiny.json"), "--device", "offline:a100", "--budget", "1evals", "--out", folder.path()});
  ASSERT_EQ(once.code, 0) << once.err;
  const Json environment = read_json(folder.path() / "tiny/result.json")["environment"];
  EXPECT_EQ(environment["arch"], "sm_80");
  EXPECT_EQ(environment["sm_count"], 108);
  EXPECT_THAT(once.out, HasSubstr("for sm_80"));
}

TEST(Tune, NothingValidIsExitCodeOneWithTheReasonsCounted) {
  TemporaryFolder folder;
  Json config = read_json(data_file("tiny.json"));
  config["restrict"] = {"T > 100000"};
  const Ended ended = run_to_end({"--config", folder.write("tiny.json", config.dump()), "--device", "offline", "--out",
                                  folder.path(), "--problem", "same-rate"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  const Json record = read_json(folder.path() / "tiny/result.json")["problems"][0]["classes"][0];
  EXPECT_EQ(record["variants"], Json::array());
  EXPECT_THAT(record["rejections"].dump(), HasSubstr("T > 100000"));
  EXPECT_THAT(ended.out, testing::AllOf(HasSubstr("T > 100000"), HasSubstr("no configuration is valid; all reasons:")));
}

TEST(Tune, FamiliesThatAConditionDoesNotTouchAreNamedAtTheStart) {
  TemporaryFolder folder;
  Json config = read_json(data_file("tiny.json"));
  config["restrict"] = {"warp_t == 8", "T == 64"};
  const Ended ended = run_to_end({"--config", folder.write("tiny.json", config.dump()), "--device", "offline", "--out",
                                  folder.path(), "--problem", "same-rate", "--budget", "1evals"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("restrict \"warp_t == 8\" does not touch direct: no such tunables there\n"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("\"T == 64\" does not"))) << "the config has no family without T";
}

TEST(Tune, AProblemThatTheTargetCannotHoldIsWarnedOf) {
  TemporaryFolder folder;
  Json config = read_json(data_file("tiny.json"));
  config["problems"][0] = {{"name", "same-rate"},
                           {"in_channels", 8},
                           {"out_channels", 8},
                           {"kernel_size", 3},
                           {"length", 1'000'000'000'000}};
  const Ended ended = run_to_end({"--config", folder.write("tiny.json", config.dump()), "--device", "offline", "--out",
                                  folder.path(), "--problem", "same-rate", "--family", "direct", "--budget", "1evals"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::string words = "needs 64 TB for x, w and y and 128 TB for the float64 reference; NVIDIA H200 has ";
  EXPECT_THAT(ended.err, HasSubstr("warning: same-rate fp32: "));
  EXPECT_THAT(ended.err, HasSubstr(words));
  EXPECT_THAT(ended.out, HasSubstr(words)) << "the table has it, too";
  const Json warnings = read_json(folder.path() / "tiny/result.json")["problems"][0]["classes"][0]["warnings"];
  EXPECT_THAT(warnings.dump(), HasSubstr(words));
}

TEST(Tune, QuietIsSilentOnStandardErrorAndVerboseNamesEachVariant) {
  TemporaryFolder folder;
  const Ended quiet = run_tiny(folder.path(), {"--quiet", "--budget", "1evals"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.err, "");
  EXPECT_THAT(quiet.out, HasSubstr("No GPU: nothing was timed."));
  const Ended verbose = run_tiny(folder.path(), {"--verbose", "--budget", "1evals"});
  EXPECT_THAT(verbose.err, HasSubstr("  " + ids_in(folder.path()).front()));
}

/// A C++ compiler that does `instead` where it is asked for a trial of the sanitizer.
ProgramOptions compiler_without(const std::string& instead, const TemporaryFolder& folder) {
  const fs::path compiler = folder.write(
      "compiler", "#!/bin/bash\nif [[ \"$*\" == *trial.cpp* ]]; then " + instead + "; fi\nexec c++ \"$@\"\n");
  fs::permissions(compiler, fs::perms::owner_all);
  ProgramOptions options;
  options.variables["CXX"] = compiler.string();
  return options;
}

TEST(Tune, ProofsWithoutTheSanitizerAreSaidToBe) {
  for (const auto& [instead, words] :
       {std::pair("exit 1", " has no AddressSanitizer: Host execution ran without it"),
        std::pair("kill -9 $$", " died of signal 9 (Killed) when asked for AddressSanitizer")}) {
    TemporaryFolder folder;
    const ProgramOptions options = compiler_without(instead, folder);
    const Ended ended =
        run_tiny(folder.path(), {"--budget", "1evals", "--problem", "same-rate", "--family", "direct"}, options);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err, testing::AllOf(HasSubstr("warning: "), HasSubstr(words)));
    const Json result = read_json(folder.path() / "tiny/result.json");
    EXPECT_THAT(result["environment"]["warnings"].dump(), HasSubstr(words));
    EXPECT_EQ(result["problems"][0]["classes"][0]["variants"][0]["outcome"], "ok");
  }
  TemporaryFolder folder;
  const std::string once = "[[ -e " + (folder.path() / "was").string() + " ]] || { touch " +
                           (folder.path() / "was").string() + "; kill -9 $$; }";
  const Ended ended =
      run_tiny(folder.path(), {"--budget", "1evals", "--problem", "same-rate"}, compiler_without(once, folder));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(fs::exists(folder.path() / "was"));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("AddressSanitizer"))) << "it was asked again";
}

TEST(Tune, ACacheThatCannotBeWrittenIsAWarning) {
  TemporaryFolder folder, cache;
  for (const std::string kind : {"cubins", "hosts"}) cache.write("tuner/" + kind + "/objects", "no folder");
  ProgramOptions options;
  options.cache = cache.path();
  const Ended ended = run_tiny(folder.path(), {"--budget", "2evals", "--problem", "same-rate"}, options);
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json result = read_json(folder.path() / "tiny/result.json");
  ASSERT_EQ(result["environment"]["warnings"].size(), 2u) << result["environment"]["warnings"];
  for (const Json& warning : result["environment"]["warnings"]) {
    EXPECT_THAT(warning.get<std::string>(), HasSubstr("cache of compiled kernels cannot be written"));
    EXPECT_THAT(ended.err, HasSubstr("warning: " + warning.get<std::string>()));
  }
  for (const Json& variant : result["problems"][0]["classes"][0]["variants"]) EXPECT_EQ(variant["outcome"], "ok");
}

TEST(Tune, WithoutACompilerTheShortlistStaysUnproven) {
  TemporaryFolder folder;
  ProgramOptions options;
  options.variables["PATH"] = folder.path().string();
  const Ended ended = run_tiny(folder.path(), {"--budget", "1evals"}, options);
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json record = read_json(folder.path() / "tiny/result.json")["problems"][0]["classes"][0];
  ASSERT_EQ(record["shortlist"].size(), 1u);
  EXPECT_EQ(record["variants"][0]["outcome"], "unproven");
  EXPECT_THAT(record["variants"][0]["reason"].get<std::string>(), HasSubstr("no C++ compiler"));
  EXPECT_THAT(ended.out, HasSubstr("0 proven on the CPU"));
}

}  // namespace
}  // namespace tuner
