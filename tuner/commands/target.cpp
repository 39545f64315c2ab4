#include "tuner/commands/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "baselines/baseline.h"
#include "tuner/commands/interrupt.h"

namespace tuner {
namespace {

constexpr const char* kDefaultProfile = "h200";

/// The profile that a machine without a GPU stands in for.
DeviceFacts offline_facts(const TargetOptions& options) {
  const std::string &profile = options.profile, &target = options.target;
  if (!options.device.profile.empty()) return read_profile(options.device.profile);
  if (!profile.empty()) {
    DeviceFacts facts = read_profile(profile);
    if (!target.empty()) facts.arch = target;
    return facts;
  }
  if (!target.empty()) {
    for (const std::string& name : profile_names())
      if (const DeviceFacts facts = read_profile(name); facts.arch == target) return facts;
    throw UsageError(fmt::format("{}target {}: no profile of configs/devices has this arch; give a profile",
                                 options.config.empty() ? "" : options.config + ": $.device.target: ", target));
  }
  return read_profile(kDefaultProfile);
}

std::unique_ptr<Compiler> nvrtc_for(const std::string& arch, const TargetOptions& target, const Settings& settings) {
  CompilerOptions options;
  options.arch = arch;
  options.cache = settings.cache;
  options.jobs = target.jobs;
  options.limits = limits_of(target.compile);
  return make_nvrtc_compiler(options);
}

CompiledUnit compile_support(Compiler& compiler, const CompileUnit& unit, const char* what) {
  auto compiled = compiler.compile(unit).get();
  if (!compiled)
    throw EnvironmentError(fmt::format("the {} kernels do not compile: {}", what, compiled.failure().reason));
  return *compiled;
}

std::unique_ptr<Worker> worker_for(const TargetOptions& target, const Settings& settings) {
  WorkerOptions options;
  options.device = fmt::format("cuda:{}", target.device.index);
  if (target.diagnose) options.compute_sanitizer = settings.compute_sanitizer;
  options.interrupted = [] { return interrupt_signal() != 0; };
  return start_worker(options);
}

}  // namespace

bool nvidia_device_visible() {
  std::error_code ignored;
  for (const char* folder : {"/dev", "/proc/driver/nvidia/gpus"})
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool device_file = name.rfind("nvidia", 0) == 0 && name.size() > 6 &&
                               std::all_of(name.begin() + 6, name.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (device_file || name == "dxg" || std::string_view(folder) != "/dev") return true;
    }
  return false;
}

int job_count(int jobs) { return jobs > 0 ? jobs : std::max(1u, std::thread::hardware_concurrency()); }

CompileLimits limits_of(const CompileConfig& config) {
  return {config.seconds, static_cast<std::size_t>(config.memory_mib) << 20};
}

Target open_target(const TargetOptions& options, const Settings& settings) {
  const DeviceChoice& choice = options.device;
  using Kind = DeviceChoice::Kind;
  Target opened;
  if (choice.kind == Kind::offline) {
    opened.why_offline = "--device offline";
  } else if (!nvidia_device_visible()) {
    if (choice.kind == Kind::cuda)
      throw EnvironmentError(fmt::format("--device cuda:{}: no NVIDIA GPU is visible on this machine", choice.index));
    opened.why_offline = "no NVIDIA GPU is visible";
  } else {
    try {
      opened.worker = worker_for(options, settings);
    } catch (const NoDevice& none) {
      if (choice.kind == Kind::cuda) throw;
      opened.why_offline = none.what();
    }
  }
  if (opened.worker) {
    opened.environment = opened.worker->environment();
    opened.nvrtc = nvrtc_for(opened.environment.device.arch, options, settings);
    opened.worker->support(compile_support(*opened.nvrtc, verify_unit(), "verification"),
                           compile_support(*opened.nvrtc, baseline_unit(), "baselines'"),
                           compile_support(*opened.nvrtc, measure_unit(), "timing"));
  } else {
    opened.environment.device = offline_facts(options);
    opened.nvrtc = nvrtc_for(opened.environment.device.arch, options, settings);
  }
  opened.environment.nvrtc = opened.nvrtc->identity();
  for (const std::string& warning : opened.nvrtc->warnings()) opened.environment.warnings.push_back(warning);
  return opened;
}

}  // namespace tuner
