// `tuner doctor`: what this machine has, what is missing, and what each lack means.
#include <fmt/format.h>

#include "baselines/baseline.h"
#include "tuner/commands/command_line.h"
#include "tuner/commands/host_proof.h"
#include "tuner/commands/target.h"
#include "tuner/commands/version.h"
#include "tuner/family/family.h"
#include "tuner/jit/process.h"

namespace tuner {
namespace {

void line(bool good, const std::string& what, const std::string& text) {
  fmt::print("{:<3} {:<16} {}\n", good ? "ok" : "--", what, text);
}

/// The GPU's line; true unless one is visible and cannot be used.
bool check_gpu() {
  if (!nvidia_device_visible()) {
    line(false, "GPU", "none visible: runs are offline (compiled and proven on the CPU, nothing timed)");
    return true;
  }
  try {
    WorkerOptions options;
    options.device = "cuda:0";
    const Environment environment = start_worker(options)->environment();
    line(true, "GPU",
         fmt::format("{} ({}), {} SMs, driver {}, power limit {:.0f} W", environment.device.name,
                     environment.device.arch, environment.device.sm_count, environment.driver,
                     environment.power_limit_w));
    for (const std::string& warning : environment.warnings) line(false, "GPU", warning);
    return true;
  } catch (const NoDevice& none) {
    line(false, "GPU", none.what());
    return true;
  } catch (const EnvironmentError& error) {
    line(false, "GPU", error.what());
    return false;
  }
}

bool check_nvrtc(const Settings& settings) {
  try {
    CompilerOptions options;
    options.arch = "sm_90a";
    options.cache = settings.cache;
    const auto compiler = make_nvrtc_compiler(options);
    line(true, "NVRTC", compiler->identity());
    for (const std::string& warning : compiler->warnings()) line(false, "NVRTC", warning);
    return true;
  } catch (const EnvironmentError& error) {
    line(false, "NVRTC", std::string(error.what()) + ": nothing can be compiled for a GPU");
    return false;
  }
}

void check_tool(const char* name, const char* without) {
  const ProcessEnd end = run_program({10, std::size_t{4} << 30}, -1, {name, "--version"});
  line(end.success(), name, end.success() ? "found" : without);
}

}  // namespace

int doctor(const Settings& settings) {
  fmt::print("{}\n", version_line());
  const bool gpu = check_gpu();
  const bool nvrtc = check_nvrtc(settings);
  HostProver prover(settings, 1, 1);
  line(prover.available(), "C++ compiler",
       prover.available() ? prover.compiler().identity()
                          : "none (c++, g++, clang++ or CXX): Host execution cannot prove variants");
  if (prover.available())
    for (const std::string& warning : prover.compiler().warnings()) line(false, "C++ compiler", warning);
  for (const std::string_view name : baseline_names()) {
    const auto version = find_baseline(name)->version();
    line(bool(version), std::string(name), version ? *version : version.failure().reason);
  }
  check_tool("ncu", "not on PATH: `tuner inspect` prints a profiler's command line that will not run here");
  check_tool("cuobjdump", "not on PATH: `tuner inspect` writes no SASS unless nvdisasm is there");
  line(true, "cache", settings.cache.string());
  std::string names;
  for (const Family* family : families()) names += (names.empty() ? "" : ", ") + std::string(family->name());
  line(!names.empty(), "families", names);
  return gpu && nvrtc ? 0 : 3;
}

}  // namespace tuner
