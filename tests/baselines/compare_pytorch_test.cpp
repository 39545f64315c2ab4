// scripts/compare_pytorch.py without a GPU: what it refuses, its protocol over a stand-in for PyTorch, its table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/core/temporary_folder.h"
#include "tuner/core/json.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kConfig = R"({"classes": ["fp32", "tf32"], "problems": [
    {"name": "short", "in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 8, "bias": true}]})";

class ComparePytorch : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text).string();
  }

  /// Exit code and all that was printed. `torch` is the folder in which Python looks for it first.
  std::pair<int, std::string> run(const std::string& arguments, const std::string& torch,
                                  const std::string& environment = {}) const {
    const std::string command = environment + " PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + torch +
                                "' python3 '" TUNER_SOURCE_DIR "/scripts/compare_pytorch.py' " + arguments + " 2>&1";
    std::string text;
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return {-1, "cannot be started"};
    std::array<char, 4096> piece{};
    while (std::fgets(piece.data(), static_cast<int>(piece.size()), pipe) != nullptr) text += piece.data();
    return {WEXITSTATUS(pclose(pipe)), text};
  }

  std::string without_torch() const {
    std::filesystem::create_directories(folder_.path() / "none");
    write("none/torch.py", "raise ImportError('no module named torch, for this test')\n");
    return (folder_.path() / "none").string();
  }

  const std::string stand_in_ = TUNER_SOURCE_DIR "/tests/baselines/torch_stand_in";
  TemporaryFolder folder_;
};

TEST_F(ComparePytorch, RefusesWrongArgumentsAndFilesInOneLine) {
  const std::string config = write("config.json", kConfig);
  for (const auto& [arguments, words] : {
           std::pair<std::string, std::string>{"", "give a result or config, or --show FILE"},
           {config + " --show " + config, "give a result or config, or --show FILE"},
           {config + " --class fp64", "--class"},
           {config + " --rounds many", "--rounds"},
           {config + " --rounds 1", "--rounds: at least 2"},
           {config + " --bogus", "--bogus"},
           {config + " --problem other", "no such problem or class"},
           {"/nowhere/result.json", "/nowhere/result.json: cannot be read: No such file"},
           {write("broken.json", "{"), "not JSON"},
           {write("list.json", "[]"), "neither a result nor a config"},
           {write("empty.json", "{}"), "neither a result nor a config"},
           {write("lacks.json", R"({"problems": [{"in_channels": 1}]})"), "lacks out_channels"},
           {"--show " + config, "not written by this script"},
       }) {
    const auto [code, text] = run(arguments, stand_in_);
    EXPECT_EQ(code, 2) << arguments;
    EXPECT_THAT(text, AllOf(StartsWith("compare_pytorch.py: "), HasSubstr(words), MatchesRegex("[^\n]*\n")))
        << arguments;
  }
}

TEST_F(ComparePytorch, SaysInOneLineThatThereIsNoPytorchOrNoGpu) {
  const std::string config = write("config.json", kConfig);
  const auto missing = run(config, without_torch());
  EXPECT_EQ(missing.first, 3);
  EXPECT_EQ(missing.second, "compare_pytorch.py: PyTorch is not available: no module named torch, for this test\n");
  const auto blind = run(config, stand_in_, "STAND_IN_HAS_NO_GPU=1");
  EXPECT_EQ(blind.first, 3);
  EXPECT_EQ(blind.second, "compare_pytorch.py: PyTorch sees no CUDA GPU\n");
}

/// In the stand-in eager takes 4 ms, conv1d 3, three products 6 each, channels-last 2 but wrong; torch.compile fails.
TEST_F(ComparePytorch, TimesEveryWayInRoundsAndJudgesThemByTheirErrors) {
  const std::string out = (folder_.path() / "out.json").string();
  const auto [code, text] = run(write("config.json", kConfig) + " --rounds 8 -o " + out, stand_in_);
  ASSERT_EQ(code, 0) << text;
  const Json report = read_json(out);
  EXPECT_EQ(report["provenance"]["gpu"], "stand-in");
  EXPECT_EQ(report["provenance"]["protocol"]["rounds"], 8);
  const Json& classes = report["problems"][0]["classes"];
  ASSERT_EQ(classes.size(), 2u);
  std::map<std::string, Json> rows;
  for (const Json& row : classes[0]["rows"]) rows[row["name"].get<std::string>()] = row;
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows.at("eager")["median"], 4.0);
  EXPECT_EQ(rows.at("eager")["samples"].size(), 8u);
  EXPECT_EQ(rows.at("CUDA graph of eager")["median"], 4.0);
  EXPECT_EQ(rows.at("conv1d, flipped kernel")["median"], 3.0);
  EXPECT_EQ(rows.at("shift-add by baddbmm_")["median"], 18.0);
  EXPECT_TRUE(rows.at("conv1d, flipped kernel")["comparable"].get<bool>());
  EXPECT_FALSE(rows.at("channels-last")["comparable"].get<bool>());
  EXPECT_FALSE(rows.at("eager, PyTorch's default (TF32)")["comparable"].get<bool>());
  EXPECT_EQ(classes[0]["missing"][0]["why"], "RuntimeError: no compiler");
  EXPECT_EQ(classes[1]["rows"].size(), 7u);  // TF32 is the class itself
  EXPECT_THAT(text, HasSubstr("PyTorch conv1d, flipped kernel"));
  EXPECT_THAT(text, HasSubstr("PyTorch torch.compile: not available: RuntimeError: no compiler"));
  EXPECT_THAT(text, HasSubstr("not comparable: error 0.5, not of class fp32"));
}

/// A result's vendor routes stand beside: here cuDNN's best is 10 % slower than what PyTorch gets from it.
TEST_F(ComparePytorch, HoldsVendorRoutesAgainstPytorchAndFailsWhereAsked) {
  const std::string result = write("result.json", R"({"measured": true, "problems": [{"name": "short",
      "problem": {"in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 8}, "classes": [{"class": "tf32",
      "variants": [], "baselines": [
        {"name": "cudnn", "route": "forward", "engine": "engine 1", "knobs": "", "outcome": "ok", "best_of_its_name": true,
         "time_ms": {"median": 3.3, "low": 3.2, "high": 3.4}},
        {"name": "cudnn", "route": "channels-last, conversions not counted", "engine": "engine 2", "knobs": "",
         "outcome": "ok", "not_comparable": true, "time_ms": {"median": 1.1, "low": null, "high": null}},
        {"name": "cudnn", "route": "slow", "engine": "engine 3", "knobs": "", "outcome": "ok",
         "time_ms": {"median": 9, "low": 9, "high": 9}}]}]}]})");
  const auto [code, text] = run(result + " --rounds 4", stand_in_);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(text, HasSubstr("cudnn is +10.0 % against PyTorch's best by the same library (conv1d, flipped kernel), "
                              "recorded, another sitting"));
  EXPECT_THAT(text, HasSubstr("not comparable: conversions not counted"));
  EXPECT_THAT(text, Not(HasSubstr("cudnn: slow")));
  EXPECT_EQ(run(result + " --rounds 4 --fail-slower 3", stand_in_).first, 1);
  EXPECT_EQ(run(result + " --rounds 4 --fail-slower 11", stand_in_).first, 0);
}

TEST_F(ComparePytorch, ShowsARecordedFileWithOursAndItsIntervals) {
  const std::string file =
      write("recorded.json", R"({"provenance": {"gpu": "NVIDIA H200", "torch": "2.9", "cuda": "13.0",
      "cudnn": 91400, "taken": "2026-01-01T00:00:00+00:00"}, "problems": [{"name": "seed", "classes": [{"class": "fp32",
      "missing": [], "rows": [
        {"kind": "pytorch", "name": "eager", "library": "cudnn", "comparable": true, "how": "interleaved here",
         "median": 10.0, "low": 9.9, "high": 10.1, "samples": [10, 10, 10, 10, 10, 10]},
        {"kind": "ours", "name": "tiled-1", "library": "ours", "comparable": true, "how": "interleaved here",
         "median": 5.0, "low": 4.9, "high": 5.1, "samples": [5, 5, 5, 5, 5, 5]},
        {"kind": "vendor", "name": "cudnn: forward", "library": "cudnn", "comparable": true, "how": "recorded",
         "median": 9.8, "low": null, "high": null}]}]}]})");
  const auto [code, text] = run("--show " + file, without_torch());
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text, R"(NVIDIA H200, PyTorch 2.9, CUDA 13.0, cuDNN 91400, 2026-01-01T00:00:00+00:00

seed, fp32
                  ms [95 %]             ours is faster by
  ours: tiled-1   5.000 [4.900, 5.100]                        interleaved here
  cudnn: forward  9.800                 ~1.960                recorded
  PyTorch eager   10.00 [9.900, 10.10]  2.000 [2.000, 2.000]  interleaved here
  cudnn is -2.0 % against PyTorch's best by the same library (eager), recorded
)");
}

}  // namespace
}  // namespace tuner
