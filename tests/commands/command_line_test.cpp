// Wrong command lines, wrong files, unwritable outputs: exit codes, one line on stderr, nothing left behind.
#include <gmock/gmock.h>

#include "tests/commands/program.h"
#include "tuner/commands/target.h"

namespace tuner {
namespace {

using testing::HasSubstr;

/// A refusal is one line that starts with the program's name, and nothing on stdout.
void expect_refusal(const Ended& ended, int code, const std::string& words) {
  EXPECT_EQ(ended.code, code) << ended.err;
  EXPECT_EQ(ended.out, "");
  const auto lines = lines_of(ended.err);
  ASSERT_EQ(lines.size(), 1u) << ended.err;
  EXPECT_EQ(lines[0].rfind("tuner: ", 0), 0u) << lines[0];
  EXPECT_THAT(lines[0], HasSubstr(words));
  EXPECT_LT(lines[0].size(), 500u);
}

std::string tiny_config() { return data_file("tiny.json").string(); }

TEST(CommandLine, WrongUsageIsExitCodeTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{}, "--config"},
      {{"--nope"}, "--nope"},
      {{"frobnicate"}, "not expected: frobnicate ("},
      {{"reprot", "x"}, "not expected: reprot x; did you mean report? ("},
      {{"--confg", "x.json"}, "not expected: --confg x.json; did you mean --config? ("},
      {{"report", "x.json", "--fromat", "junit"}, "did you mean --format?"},
      {{"doctor", "reprot"}, "not expected: reprot ("},
      {{"--config"}, "--config"},
      {{"--config", tiny_config(), "--config", tiny_config()}, "--config"},
      {{"--config", tiny_config(), "stray"}, "stray"},
      {{"--config", tiny_config(), "list", "families"}, "--config"},
      {{"--config", tiny_config(), "--quiet", "--verbose"}, "--quiet"},
      {{"list"}, "WHAT"},
      {{"list", "kernels"}, "kernels"},
      {{"describe"}, "FAMILY"},
      {{"describe", "nope"}, "depthwise, direct, mma, tiled, wgmma, wgmma_fused, wgmma_packed, wgmma_shared, winograd"},
      {{"doctor", "stray"}, "stray"},
      {{"verify", "--device", "gpu"}, "gpu"},
      {{"verify", "--family", "nope", "--device", "offline"}, "nope"},
      {{"verify", "--class", "fp64", "--device", "offline"}, "fp64"},
      {{"report"}, "RESULT"},
      {{"compare", "one.json"}, "NEW"},
      {{"--config", tiny_config(), "--out", ""}, "--out"},
      {{"compare", "one.json", "two.json", "--fail-slower", "nan"}, "nan"},
      {{"emit", "one.json"}, "--out"},
      {{"inspect", "one.json"}, "VARIANT"},
  };
  for (const auto& [arguments, words] : wrong) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    expect_refusal(run_to_end(arguments), 2, words);
  }
}

TEST(CommandLine, FlagsOutOfRangeAreRefusedAndNothingIsWritten) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--device", "gpu"}, "auto, cuda"},
      {{"--device", "cuda:"}, "cuda:N"},
      {{"--device", "cuda:-1"}, "cuda:N"},
      {{"--device", "cuda:99999999999"}, "cuda:N"},
      {{"--device", "offline:"}, "offline:PROFILE"},
      {{"--device", "offline:nope"}, "h200"},
      {{"--device", "offline:./nope.json"}, "nope.json"},
      {{"--budget", "0evals"}, "above 0"},
      {{"--budget", "-5s"}, "above 0"},
      {{"--budget", "nans"}, "above 0"},
      {{"--budget", "10"}, "300s"},
      {{"--budget", "1e99999s"}, "300s"},
      {{"--budget", "99999999999999999999evals"}, "200evals"},
      {{"--budget", "1evals", "--budget", "2evals"}, "twice"},
      {{"--budget", "1s", "--budget", "1evals", "--budget", "2s"}, "twice"},
      {{"--seed", ""}, "from 0 to"},
      {{"--jobs", ""}, "from 0 to 4096"},
      {{"--seed", "-1"}, "from 0 to"},
      {{"--seed", "9223372036854775808"}, "from 0 to"},
      {{"--seed", "1.5"}, "from 0 to"},
      {{"--jobs", "-1"}, "from 0 to 4096"},
      {{"--jobs", "4097"}, "from 0 to 4096"},
      {{"--jobs", "two"}, "from 0 to 4096"},
      {{"--problem", "nope"}, "same-rate, upsample"},
      {{"--family", "nope"}, "direct, tiled"},
      {{"--class", "fp64"}, "fp32, tf32"},
  };
  TemporaryFolder folder;
  for (const auto& [flags, words] : wrong) {
    SCOPED_TRACE(testing::PrintToString(flags));
    std::vector<std::string> arguments{"--config", tiny_config(), "--out", folder.path() / "out"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    expect_refusal(run_to_end(arguments), 2, words);
    EXPECT_FALSE(fs::exists(folder.path() / "out"));
  }
}

/// Each fault of a config file, by the words that its one line must hold.
TEST(CommandLine, UnreadableConfigsAreRefusedAndNothingIsWritten) {
  const std::string good = TemporaryFolder::content_of(tiny_config());
  const std::string deep(100'000, '[');
  const auto with = [](const std::string& member) {
    return R"({"problems": [{"in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 16}], )" + member + "}";
  };
  TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> faulty{
      {"", "line 1"},
      {"{", "line 1"},
      {good.substr(0, good.size() / 2), "line"},
      {good + "x", "line"},
      {"[]", "object"},
      {"{\"problems\": [], \"problems\": []}", "problems"},
      {"{\"name\": \"\xff\xfe\"}", "UTF-8"},
      {std::string("\xff\xfe{\0}\0", 6), "UTF-8"},
      {deep, "deep"},
      {deep + std::string(100'000, ']'), "deep"},
      {"{\"a\":" + deep + std::string(100'000, ']') + "}", "deep"},
      {"{\"problems\": [{\"in_channels\": 1}]}", "problems[0]"},
      {with(R"("restrict": ["T > 1", "T = 1"])"), "$.restrict[1]: restrict: \"T = 1\": "},
      {with(R"("device": {"target": "sm_999"})"), "$.device.target: "},
      {with(R"("restrict": ["T\u0000\u001b"])"), "$.restrict[0]: restrict: \"T\\x00\\x1b\": unexpected character"},
      {with(R"("families": {"direct": {"T": [64, 0]}})"), "$.families.direct.T[1]: 0 is not allowed: expected a whole"},
      {with(R"("families": {"tiled": {"run": [2147483647]}})"), "$.families.tiled.run[0]: 2147483647 is not allowed"},
      {std::string(100'000'000, ' '), "limit"},
      {"[" + std::string(50'000'000, '1') + "," + std::string(50'000'000, '1') + "]", "limit"},
  };
  for (const auto& [content, words] : faulty) {
    SCOPED_TRACE(content.substr(0, 40));
    const fs::path config = folder.write("config.json", content);
    const Ended ended = run_to_end({"--config", config, "--device", "offline", "--out", folder.path() / "out"});
    expect_refusal(ended, 2, words);
    EXPECT_THAT(ended.err, HasSubstr("config.json"));
    EXPECT_FALSE(fs::exists(folder.path() / "out"));
  }
}

TEST(CommandLine, MissingFilesAndFoldersInPlaceOfFilesAreRefused) {
  TemporaryFolder folder;
  const std::string here = folder.path(), missing = folder.path() / "missing.json";
  const std::string out = folder.path() / "out";
  for (const std::string& path : {here, missing}) {
    SCOPED_TRACE(path);
    expect_refusal(run_to_end({"--config", path, "--out", out}), 2, path);
    expect_refusal(run_to_end({"report", path}), 2, path);
    expect_refusal(run_to_end({"compare", path, path}), 2, path);
    expect_refusal(run_to_end({"emit", path, "-o", out}), 2, path);
    expect_refusal(run_to_end({"inspect", path, "x", "-o", out}), 2, path);
    expect_refusal(run_to_end({"verify", "--cases", path, "--device", "offline"}), 2, path);
  }
  EXPECT_FALSE(fs::exists(out));
  expect_refusal(run_to_end({"report", tiny_config()}), 2, "tiny.json");
}

TEST(CommandLine, ADemandedDeviceThatIsNotThereIsExitCodeThree) {
  if (nvidia_device_visible()) GTEST_SKIP() << "an NVIDIA device is visible here";
  TemporaryFolder folder;
  expect_refusal(run_to_end({"--config", tiny_config(), "--device", "cuda", "--out", folder.path() / "out"}), 3,
                 "no NVIDIA GPU is visible");
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  expect_refusal(run_to_end({"verify", "--device", "cuda:1"}), 3, "no NVIDIA GPU is visible");
}

TEST(CommandLine, OutputThatCannotBeWrittenIsExitCodeThree) {
  TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  expect_refusal(run_tiny(file), 3, "file");
  expect_refusal(run_tiny(file + "/below"), 3, "file/below");
  ASSERT_EQ(run_tiny(folder.path(), {"--budget", "1evals"}).code, 0);
  const std::string result = folder.path() / "tiny/result.json";
  for (const std::string name : {"result.json", "best.json"}) {
    TemporaryFolder other;
    fs::create_directories(other.path() / "tiny" / name);
    expect_refusal(run_tiny(other.path()), 3, name + ": Is a directory");  // at once, before anything is compiled
  }
  for (const std::string& json : {file + "/v.json", folder.path().string(), (folder.path() / "no/v.json").string()})
    expect_refusal(run_to_end({"verify", "--device", "offline", "--json", json}), 3, json);
  EXPECT_FALSE(fs::exists(folder.path() / "no"));
  expect_refusal(run_to_end({"report", result, "-o", "/dev/full"}), 3, "/dev/full");
  expect_refusal(run_to_end({"report", result, "-o", file + "/report.txt"}), 3, "report.txt");
  expect_refusal(run_to_end({"report", result, "-o", folder.path()}), 3, folder.path());
  expect_refusal(run_to_end({"emit", result, "--unmeasured", "-o", "/dev/full"}), 3, "/dev/full");
}

TEST(CommandLine, AFullStandardOutputIsExitCodeThreeAndAFullLogIsIgnored) {
  TemporaryFolder folder;
  ProgramOptions full;
  full.out = "/dev/full";
  const std::vector<std::vector<std::string>> commands{
      {"--help"}, {"--version"}, {"list", "families"}, {"list", "problems"}, {"describe", "tiled"}, {"doctor"}};
  for (const auto& arguments : commands) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    expect_refusal(run_to_end(arguments, full), 3, "standard output");
  }
  const Ended tuned = run_tiny(folder.path(), {"--budget", "1evals", "--quiet"}, full);
  expect_refusal(tuned, 3, "standard output");
  EXPECT_TRUE(fs::exists(folder.path() / "tiny/result.json")) << "the result must survive";
  ProgramOptions no_log;
  no_log.err = "/dev/full";
  EXPECT_EQ(run_tiny(folder.path(), {"--budget", "1evals", "--verbose"}, no_log).code, 0);
}

TEST(CommandLine, ColoursOnlyOnATerminalWithoutNoColor) {
  TemporaryFolder folder;
  ASSERT_EQ(run_tiny(folder.path(), {"--budget", "1evals"}).code, 0);
  const std::vector<std::string> report{"report", folder.path() / "tiny/result.json"};
  ProgramOptions terminal;
  terminal.terminal = true;
  terminal.variables["TERM"] = "xterm";
  EXPECT_THAT(run_to_end(report, terminal).out, HasSubstr("\x1b["));
  terminal.variables["NO_COLOR"] = "1";
  const Ended plain = run_to_end(report, terminal);
  EXPECT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, HasSubstr("tiny"));
  EXPECT_EQ(plain.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run_to_end(report).out.find('\x1b'), std::string::npos);
}

TEST(CommandLine, HelpNamesWhatWorksAndVersionNamesTheCommit) {
  const Ended help = run_to_end({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"--config", "--device", "--budget", "--resume", "--diagnose", "verify", "inspect", "report",
                           "compare", "emit", "list", "describe", "doctor", "Exit codes"})
    EXPECT_THAT(help.out, HasSubstr(word));
  EXPECT_EQ(help.out.find("replay"), std::string::npos) << "replay does not work yet";
  for (const char* command : {"verify", "inspect", "report", "compare", "emit", "list", "describe", "doctor"})
    EXPECT_EQ(run_to_end({command, "--help"}).code, 0) << command;
  const Ended version = run_to_end({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::ContainsRegex("^tuner [0-9]+\\.[0-9]+\\.[0-9]+ \\(.+\\)\n$"));
}

TEST(CommandLine, ListsAndDescriptionsNameWhatThereIs) {
  EXPECT_THAT(run_to_end({"list", "families"}).out, testing::AllOf(HasSubstr("direct"), HasSubstr("tiled")));
  EXPECT_THAT(run_to_end({"list", "strategies"}).out, testing::AllOf(HasSubstr("exhaustive"), HasSubstr("random")));
  EXPECT_THAT(run_to_end({"list", "devices"}).out, testing::AllOf(HasSubstr("NVIDIA H200"), HasSubstr("sm_80")));
  EXPECT_THAT(run_to_end({"list", "problems"}).out,
              testing::AllOf(HasSubstr("configs/quick.json"), HasSubstr("upsample-2")));
  const Ended direct = run_to_end({"describe", "direct"});
  EXPECT_EQ(direct.code, 0);
  for (const char* word : {"IC_TILE", "block", "OC_TILE must be a multiple of block.y", "Default:"})
    EXPECT_THAT(direct.out, HasSubstr(word));
}

TEST(CommandLine, DoctorSaysWhatIsThereAndWhatALackMeans) {
  const Ended doctor = run_to_end({"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  for (const char* word : {"GPU", "NVRTC", "C++ compiler", "cudnn", "cublas_shift_add", "cache",
                           "depthwise, direct, mma, tiled, wgmma, wgmma_fused, wgmma_packed, wgmma_shared, winograd"})
    EXPECT_THAT(doctor.out, HasSubstr(word));
  TemporaryFolder empty;
  ProgramOptions no_tools;
  no_tools.variables["PATH"] = empty.path();
  EXPECT_THAT(run_to_end({"doctor"}, no_tools).out, HasSubstr("Host execution cannot prove variants"));
}

}  // namespace
}  // namespace tuner
