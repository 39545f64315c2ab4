// Compiling units: NVRTC in a fresh child process each, or the system's C++ compiler for Host execution; cached by
// content.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/device/device.h"
#include "tuner/family/program.h"

namespace tuner {

/// The files of kernels/ that this program carries within itself: path from the repository root -> content.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_sources();
/// Content of an embedded file; empty if there is none of that path.
std::string_view embedded_source(std::string_view path);

struct CompileLimits {
  double seconds = 60;
  std::size_t memory_bytes = std::size_t{4} << 30;
};

/// Compiles units on up to `jobs` processes at a time. Safe to call from several threads.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Compiler's name and version, part of the cache key: "NVRTC 13.0".
  virtual std::string identity() const = 0;
  /// Hash of everything that affects the unit's code: source, all it includes, options, target, compiler.
  virtual std::string key(const CompileUnit& unit) const = 0;
  /// Starts a compile; the future never throws. A hit in the cache is ready at once. Destroying the compiler kills what
  /// still runs.
  virtual std::future<Expected<CompiledUnit>> compile(const CompileUnit& unit) = 0;
  /// The unit's PTX, compiled anew and kept nowhere. Host execution has none.
  virtual Expected<std::string> ptx(const CompileUnit& unit);
  /// What a result's `environment.warnings` should say about this compiler; more may come while it compiles.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// The library that a process must preload to load what this compiler makes (a sanitizer's runtime); mostly empty.
  virtual std::string preload() const { return {}; }
};

struct CompilerOptions {
  std::string arch;             // "sm_90a"; unused by the host compiler
  std::filesystem::path cache;  // cubins/, hosts/ below it; shared safely by processes
  int jobs = 1;
  CompileLimits limits;
  bool address_sanitizer = true;                     // host compiler only
  std::filesystem::path program = "/proc/self/exe";  // executable that implements `__zygote`
  std::vector<std::string> nvrtc;                    // libraries to try; empty: where they usually are
};

/// NVRTC found at run time in a zygote process. Throws EnvironmentError (what was looked for, where) if there is none,
/// or if it does not know `arch` (naming both lists).
std::unique_ptr<Compiler> make_nvrtc_compiler(const CompilerOptions& options);
/// The system's C++ compiler: `compiler` ($CXX's value) or, where that is empty, the first of c++, g++, clang++ on
/// PATH. Nothing if there is none.
std::unique_ptr<Compiler> make_host_compiler(const CompilerOptions& options, std::string compiler = {});

/// Entry of the zygote process (`tuner __zygote`), started by make_nvrtc_compiler. Returns an exit code.
int zygote_main(int socket);

}  // namespace tuner
