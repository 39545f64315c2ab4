// Emitted headers through nvcc, as a user's build takes them. Without nvcc these skip.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/emit/sample_results.h"
#include "tuner/emit/emit.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

/// A folder of this test's own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "emit_test.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  void write(const std::string& name, const std::string& content) const { std::ofstream(path_ / name) << content; }

 private:
  fs::path path_;
};

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string nvcc() {
  for (const char* candidate : {"nvcc", "/usr/local/cuda/bin/nvcc"})
    if (std::system((std::string(candidate) + " --version > /dev/null 2>&1").c_str()) == 0) return candidate;
  return "";
}

constexpr const char* kWarnings = " -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wconversion,-Werror";

class EmittedHeader : public testing::Test {
 protected:
  void SetUp() override {
    if (nvcc().empty()) GTEST_SKIP() << "no nvcc in PATH or /usr/local/cuda/bin";
  }

  void write_check(const RunResult& upsampling = upsampling_result()) {
    folder_.write("tuned.hpp", emit_header({seed_result(), direct_result(), strided_result(), upsampling}, {}));
    const std::string source = content_of(fs::path(TUNER_SOURCE_DIR) / "tests/emit/emitted_check.cu.in");
    folder_.write("check.cu", replaced(replaced(source, "@HEADER@", "tuned.hpp"), "@NAMESPACE@", "conv_transpose1d"));
  }

  /// nvcc over files of the folder, into the program `check`.
  int build(const std::string& options, const std::vector<std::string>& files) {
    std::string command = nvcc() + " " + options + " -o " + (folder_ / "check").string();
    for (const std::string& file : files) command += " " + (folder_ / file).string();
    return run(command);
  }

  /// Runs a command with its output kept; the exit status.
  int run(const std::string& command) {
    const int status = std::system((command + " > " + (folder_ / "log").string() + " 2>&1").c_str());
    log_ = content_of(folder_ / "log");
    return status;
  }

  Folder folder_;
  std::string log_;
};

TEST_F(EmittedHeader, HasNoWarningsAsCpp17ForSm80AndAnswersWithoutADevice) {
  write_check();
  ASSERT_EQ(build(std::string("-std=c++17 -arch=sm_80") + kWarnings, {"check.cu"}), 0) << log_;
  EXPECT_EQ(log_, "");
  EXPECT_EQ(run((folder_ / "check").string() + " host"), 0) << log_;
}

TEST_F(EmittedHeader, HasNoWarningsAsCpp20ForSm90a) {
  write_check();
  ASSERT_EQ(build(std::string("-std=c++20 -arch=sm_90a") + kWarnings, {"check.cu"}), 0) << log_;
  EXPECT_EQ(log_, "");
}

TEST_F(EmittedHeader, HasNoWarningsWithClustersForSm90a) {
  write_check(clusters_result());
  EXPECT_NE(content_of(folder_ / "tuned.hpp").find("wgmma_packed::kernel<64, 128, 3, 4, 2, 132, 2,"),
            std::string::npos);
  ASSERT_EQ(build(std::string("-std=c++17 -gencode arch=compute_90a,code=sm_90a") + kWarnings, {"check.cu"}), 0)
      << log_;
  EXPECT_EQ(log_, "");
}

TEST_F(EmittedHeader, HasNoWarningsWithFusedConversionForSm90a) {
  write_check(fused_result());
  EXPECT_NE(content_of(folder_ / "tuned.hpp").find("wgmma_fused::kernel<64, 128, 3, 8, 8, 144, 4, 3, 132, 2, 1, 8, 1,"),
            std::string::npos);
  ASSERT_EQ(build(std::string("-std=c++17 -gencode arch=compute_90a,code=sm_90a") + kWarnings, {"check.cu"}), 0)
      << log_;
  EXPECT_EQ(log_, "");
  EXPECT_EQ(run((folder_ / "check").string() + " host"), 0) << log_;
}

TEST_F(EmittedHeader, MayBeIncludedInSeveralFilesAndBesideAnother) {
  folder_.write("tuned.hpp", emit_header({direct_result()}, {}));
  EmitOptions options;
  options.name_space = "other::kernels";
  folder_.write("other.hpp", emit_header({direct_result()}, options));
  folder_.write(
      "first.cu",
      "#include \"other.hpp\"\n#include \"tuned.hpp\"\n#include \"tuned.hpp\"\n"
      "using namespace conv_transpose1d;\nPlan second();\n"
      "int main() {\n"
      "  const bool same = second().status().code() == Status::Code::invalid_problem;\n"
      "  const auto another = other::kernels::make_plan({}, other::kernels::Accuracy::fp32, 0);\n"
      "  return same && another.status().code() == other::kernels::Status::Code::invalid_problem ? 0 : 1;\n}\n");
  folder_.write("second.cu",
                "#include \"tuned.hpp\"\nusing namespace conv_transpose1d;\n"
                "Plan second();\nPlan second() { return make_plan(Problem{}, Accuracy::fp32, 0); }\n");
  ASSERT_EQ(build(std::string("-std=c++17 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a") +
                      kWarnings,
                  {"first.cu", "second.cu"}),
            0)
      << log_;
  EXPECT_EQ(log_, "");
  EXPECT_EQ(run((folder_ / "check").string()), 0) << log_;
}

TEST_F(EmittedHeader, ComputesWhatTheReferenceSaysOnGpu) {
  if (std::system("nvidia-smi > /dev/null 2>&1") != 0) GTEST_SKIP() << "no NVIDIA GPU";
  write_check();
  ASSERT_EQ(build("-std=c++17 -O2 -arch=native", {"check.cu"}), 0) << log_;
  EXPECT_EQ(run((folder_ / "check").string()), 0) << log_;
}

TEST_F(EmittedHeader, LaunchesClustersOnGpu) {
  if (std::system("nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | grep -q '^NVIDIA H200'") != 0)
    GTEST_SKIP() << "no NVIDIA H200, whose result the header holds";
  write_check(clusters_result());
  ASSERT_EQ(build("-std=c++17 -O2 -gencode arch=compute_90a,code=sm_90a", {"check.cu"}), 0) << log_;
  EXPECT_EQ(run((folder_ / "check").string()), 0) << log_;
}

TEST_F(EmittedHeader, ConvertsXInTheBlockThatMultipliesItOnGpu) {
  if (std::system("nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | grep -q '^NVIDIA H200'") != 0)
    GTEST_SKIP() << "no NVIDIA H200, whose result the header holds";
  write_check(fused_result());
  ASSERT_EQ(build("-std=c++17 -O2 -gencode arch=compute_90a,code=sm_90a", {"check.cu"}), 0) << log_;
  EXPECT_EQ(run((folder_ / "check").string()), 0) << log_;
}

}  // namespace
}  // namespace tuner
