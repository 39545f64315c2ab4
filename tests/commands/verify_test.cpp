// `tuner verify` by Host execution: golden cases, and each way in which a check must not pass. The whole golden file is
// the ctest entry `verify_golden_cases`.
#include <gmock/gmock.h>

#include "tests/commands/program.h"
#include "tuner/core/json.h"

namespace tuner {
namespace {

using testing::HasSubstr;

/// The golden cases of these names, in a file.
fs::path some_cases(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  const Json golden = read_json(data_file("conv_transpose1d_golden.json"));
  Json cases = Json::array();
  for (const Json& item : golden["cases"])
    if (std::find(names.begin(), names.end(), item["name"]) != names.end()) cases.push_back(item);
  EXPECT_EQ(cases.size(), names.size());
  return folder.write("cases.json", Json{{"cases", cases}}.dump());
}

Ended verify_offline(std::vector<std::string> more, const ProgramOptions& options = {}) {
  more.insert(more.begin(), {"verify", "--device", "offline"});
  return run_to_end(more, options);
}

TEST(Verify, ASubsetOfTheGoldenCasesPassesAndIsListedInJson) {
  const std::vector<std::string> names{"seed-small",     "kernel-2",      "length-1",    "stride-wider-than-kernel",
                                       "depthwise",      "upsample-16-8", "dilated",     "group-boundary-inside-tile",
                                       "exact-integers", "wide-range",    "tiny-values", "random-1-06"};
  TemporaryFolder folder;
  const fs::path json = folder.path() / "outcomes.json";
  const Ended ended = verify_offline({"--cases", some_cases(folder, names), "--family", "direct", "--json", json});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Verifying 12 cases on the CPU (Host execution)"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("family +passed +failed +rejected\ndirect +[0-9]+ +0 +0\n"));
  std::vector<std::string> verified;
  const Json outcomes = read_json(json);
  for (const Json& row : outcomes["verified"]) {
    EXPECT_EQ(row["family"], "direct");
    EXPECT_EQ(row["class"], "fp32");
    EXPECT_EQ(row["outcome"], "ok");
    EXPECT_LE(row["errors"]["element"], 1.0);
    if (verified.empty() || verified.back() != row["case"]) verified.push_back(row["case"]);
  }
  EXPECT_THAT(verified, testing::UnorderedElementsAreArray(names));
}

TEST(Verify, EveryFamilyRunsEveryCase) {
  TemporaryFolder folder;
  const Ended ended = verify_offline({"--cases", some_cases(folder, {"kernel-2", "length-1"})});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, testing::ContainsRegex("direct +[2-9] +0 +0\n"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("tiled +[2-9] +0 +0\n"));
}

TEST(Verify, ACaseThatIsZeroThroughoutProvesNothing) {
  TemporaryFolder folder;
  const auto case_of = [&](const std::string& name, double weight, double output, const Json& bias) {
    const Json item{
        {"name", name},
        {"problem",
         {{"in_channels", 1}, {"out_channels", 1}, {"kernel_size", 1}, {"length", 3}, {"bias", !bias.is_null()}}},
        {"input", {1, 1, 1}},
        {"weight", {weight}},
        {"bias", bias},
        {"output", {output, output, output}}};
    return folder.write(name + ".json", Json{{"cases", {item}}}.dump());
  };
  const Ended zeros = verify_offline({"--cases", case_of("zeros", 0, 0, nullptr)});
  EXPECT_EQ(zeros.code, 2) << zeros.out;
  EXPECT_EQ(lines_of(zeros.err).size(), 1u) << zeros.err;
  EXPECT_THAT(zeros.err, testing::AllOf(HasSubstr("zeros.json: case zeros: "), HasSubstr("zero throughout")));
  const Ended bias = verify_offline({"--cases", case_of("bias", 0, 2, {2}), "--family", "direct"});
  EXPECT_EQ(bias.code, 0) << bias.out << bias.err;
}

TEST(Verify, ACaseThatContradictsTheReferenceIsAWrongFile) {
  TemporaryFolder folder;
  const fs::path path = some_cases(folder, {"kernel-2", "length-1"});
  Json cases = read_json(path);
  Json& wrong = cases["cases"][1]["output"][2];
  wrong = wrong.get<double>() + 0.001;
  folder.write("cases.json", cases.dump());
  const Ended ended = verify_offline({"--cases", path, "--json", folder.path() / "outcomes.json"});
  EXPECT_EQ(ended.code, 2) << ended.out;
  ASSERT_EQ(lines_of(ended.err).size(), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("cases.json: case length-1: output[2] is"));
  EXPECT_FALSE(fs::exists(folder.path() / "outcomes.json"));
}

TEST(Verify, NothingRunIsAFailedCheck) {
  TemporaryFolder folder;
  Json cases = read_json(some_cases(folder, {"kernel-2"}));
  Json& item = cases["cases"][0];
  item["problem"]["batch"] = 0;
  item["input"] = item["output"] = Json::array();
  const Ended ended = verify_offline({"--cases", folder.write("cases.json", cases.dump())});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("rejected: an empty batch"));
  EXPECT_THAT(ended.out, HasSubstr("Nothing was run."));
}

/// A compiler that says who it is and then fails: what it cannot build is a failure of the check, with the reason.
TEST(Verify, AKernelThatDoesNotCompileFailsTheCheck) {
  TemporaryFolder folder, cache;
  const fs::path compiler = folder.write("c++",
                                         "#!/bin/sh\ncase \"$*\" in *--version*) echo 'c++ (broken) 12.0.0';; *) echo "
                                         "'unit:3:1: error: out of luck' >&2; exit 1;; esac\n");
  fs::permissions(compiler, fs::perms::owner_all);
  ProgramOptions options;
  options.cache = cache.path();
  options.variables["CXX"] = compiler;
  const Ended ended = verify_offline({"--cases", some_cases(folder, {"kernel-2"}), "--family", "direct"}, options);
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("FAILED direct"));
  EXPECT_THAT(ended.out, HasSubstr("compile_failed: unit:3:1: error: out of luck\n"));
}

TEST(Verify, WithoutACompilerThereIsNothingToVerifyWith) {
  TemporaryFolder folder;
  ProgramOptions options;
  options.variables["PATH"] = folder.path();
  const Ended ended = verify_offline({}, options);
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, HasSubstr("no C++ compiler"));
}

}  // namespace
}  // namespace tuner
