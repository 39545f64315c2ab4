// Compiles small kernels for Host execution and launches them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/temporary_folder.h"
#include "tuner/device/host_device.h"
#include "tuner/device/host_sanitizer.h"
#include "tuner/jit/jit.h"

namespace tuner::host_test {

/// "#include" lines that every kernel of these tests starts with, then `kernel(a)` with `body`.
inline std::string kernel_source(const std::string& body, const std::string& before = {}) {
  return "#include \"kernels/common/geometry.h\"\n#include \"kernels/common/async_copy.cuh\"\n" + before +
         "__global__ void kernel(const CT1D_GRID_CONSTANT ct1d::RunArguments a) {\n" +
         "  const float* x = static_cast<const float*>(a.x);\n  float* y = static_cast<float*>(a.y);\n" +
         "  const int t = static_cast<int>(threadIdx.x);\n  (void)x; (void)y; (void)t;\n" + body + "}\n";
}

/// The compiler must be there, as it built this test.
class Kernels {
 public:
  explicit Kernels(bool address_sanitizer) {
    CompilerOptions options;
    options.cache = folder_.path();
    options.address_sanitizer = address_sanitizer;
    compiler_ = make_host_compiler(options);
  }
  Expected<CompiledUnit> compile(const CompileUnit& unit) { return compiler_->compile(unit).get(); }
  std::string preload() const { return compiler_->preload(); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Compiler> compiler_;
};

/// One a process and kind, so that no source is compiled twice.
inline Kernels& kernels(bool address_sanitizer) {
  if (address_sanitizer) {
    static Kernels sanitized(true);
    return sanitized;
  }
  static Kernels plain(false);
  return plain;
}

/// One device, one unit whose kernel is `name`, and the launch of it over x and y given as vectors.
class LoadedKernel {
 public:
  LoadedKernel(const CompileUnit& unit, HostOptions options, bool address_sanitizer = false)
      : device_(make_host_device(options)), name_(unit.kernels.front()) {
    const auto compiled = kernels(address_sanitizer).compile(unit);
    if (!compiled) {
      ADD_FAILURE() << compiled.failure().reason << "\n" << compiled.failure().log;
      return;
    }
    auto module = device_->load(*compiled);
    if (!module) {
      ADD_FAILURE() << module.failure().reason;
      return;
    }
    module_ = std::move(*module);
  }
  explicit LoadedKernel(const std::string& source, std::uint64_t seed = 1)
      : LoadedKernel(CompileUnit{source, {"kernel"}, {}}, HostOptions{seed, 2}) {}

  /// Returns y, filled with poison before; the failure of the launch otherwise.
  Expected<std::vector<float>> operator()(ct1d::LaunchShape shape, const std::vector<float>& x, std::size_t outputs) {
    if (!module_) return Failure{Outcome::compile_failed, "not loaded", {}};
    const auto x_memory = device_->allocate(x.size() * sizeof(float));
    const auto y_memory = device_->allocate(outputs * sizeof(float));
    x_memory->upload(x.data(), x.size() * sizeof(float));
    ct1d::RunArguments arguments{};
    arguments.geometry.length = static_cast<long long>(x.size());
    arguments.geometry.length_out = static_cast<long long>(outputs);
    arguments.x = x_memory->data();
    arguments.y = y_memory->data();
    const auto launched = module_->launch({name_, shape}, arguments);
    if (!launched) return launched.failure();
    violations = y_memory->guard_violations();
    std::vector<float> y(outputs);
    y_memory->download(y.data(), outputs * sizeof(float));
    return y;
  }

  Device& device() { return *device_; }
  std::size_t violations = 0;  // of y's guards, after the last launch

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Module> module_;
  std::string name_;
};

inline ct1d::LaunchShape shape_of(unsigned blocks, unsigned threads, unsigned shared_bytes = 0) {
  return {blocks, 1, 1, threads, 1, 1, shared_bytes, 1};
}

inline std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021) - 300.0f;
  return values;
}

struct ChildEnd {
  int status = 0;
  std::string output;
};

/// `text` with the n-th occurrence of `what` replaced.
inline std::string replaced(std::string text, const std::string& what, const std::string& by, int occurrence = 0) {
  std::size_t at = text.find(what);
  while (occurrence-- > 0 && at != std::string::npos) at = text.find(what, at + 1);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// Set in the process that run_under_sanitizer starts.
inline bool under_sanitizer() { return std::getenv("CT1D_HOST_TEST_CHILD") != nullptr; }

/// Runs the current test again in a process that has the sanitizer's runtime; there, under_sanitizer() holds.
inline ChildEnd run_under_sanitizer() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string preload = kernels(true).preload();
  EXPECT_FALSE(preload.empty()) << "the C++ compiler has no shared address sanitizer runtime";
  const std::string command = "CT1D_HOST_TEST_CHILD=1 LD_PRELOAD='" + preload +
                              "' ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 '" +
                              std::filesystem::read_symlink("/proc/self/exe").string() + "' --gtest_filter='" +
                              test->test_suite_name() + "." + test->name() + "' 2>&1";
  ChildEnd end;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk;
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe)) end.output.append(chunk.data(), got);
  end.status = pclose(pipe);
  return end;
}

}  // namespace tuner::host_test
