// Folders, processes and units that the tests of tuner/jit share.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/file.h"
#include "tuner/jit/jit.h"

namespace tuner::testing {

/// A folder of the test's own, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tuner-jit-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A process that runs `body` and exits with what it returns (99 where it throws).
inline pid_t start_process(const std::function<int()>& body) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  int code = 99;
  try {
    code = body();
  } catch (...) {
  }
  ::_exit(code);
}

/// Exit code, or minus the signal that ended it.
inline int end_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Exit codes of `count` processes that ran `body(index)` side by side.
inline std::vector<int> run_processes(int count, const std::function<int(int)>& body) {
  std::vector<pid_t> processes;
  for (int i = 0; i < count; ++i) processes.push_back(start_process([&] { return body(i); }));
  std::vector<int> ends;
  for (const pid_t process : processes) ends.push_back(end_of(process));
  return ends;
}

inline CompilerOptions nvrtc_options(const std::filesystem::path& cache, std::string arch = "sm_90a") {
  CompilerOptions options;
  options.arch = std::move(arch);
  options.cache = cache;
  options.program = TUNER_PROGRAM;
  return options;
}

/// A small kernel that needs registers, shared memory and a barrier. Device code, two instances.
inline CompileUnit small_unit(const std::string& prologue = {}) {
  CompileUnit unit;
  unit.source = prologue +
                "template <int N> __global__ void reverse(float* data) {\n"
                "  __shared__ float kept[N];\n"
                "  kept[threadIdx.x] = data[threadIdx.x];\n"
                "  __syncthreads();\n"
                "  data[threadIdx.x] = kept[N - 1 - threadIdx.x];\n"
                "}\n";
  unit.kernels = {"reverse<32>", "reverse<64>"};
  return unit;
}

inline double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tuner::testing
