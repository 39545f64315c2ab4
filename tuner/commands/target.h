// Where a run takes place: a GPU behind a worker process, or nowhere (offline: compiled for a target, timed on
// nothing).
#pragma once

#include <memory>
#include <string>

#include "tuner/commands/command_line.h"
#include "tuner/core/config.h"
#include "tuner/core/device_facts.h"
#include "tuner/jit/jit.h"
#include "tuner/worker/worker.h"

namespace tuner {

struct Target {
  Environment environment;          // of the GPU, or the profile's facts
  std::unique_ptr<Worker> worker;   // null offline
  std::unique_ptr<Compiler> nvrtc;  // for environment.device.arch
  std::string why_offline;          // "no NVIDIA GPU is visible"; empty on a GPU

  bool measured() const { return worker != nullptr; }
};

/// True when the machine shows an NVIDIA device file; asks no driver.
bool nvidia_device_visible();

struct TargetOptions {
  DeviceChoice device;
  std::string profile = {}, target = {};  // the config's, for a machine without a GPU
  int jobs = 1;
  CompileConfig compile = {};
  std::string config = {};  // the file that `profile` and `target` are from, for messages
  bool diagnose = false;    // what is blamed on a GPU runs under compute-sanitizer once more
};

/// Opens what `options.device` names. On a GPU the support units are compiled and handed to the worker. Throws
/// UsageError for an unknown profile, EnvironmentError where a GPU was demanded or is visible and cannot be used, or
/// where NVRTC is missing.
Target open_target(const TargetOptions& options, const Settings& settings);

CompileLimits limits_of(const CompileConfig& config);

/// `jobs`, or the number of cores where it is 0.
int job_count(int jobs);

}  // namespace tuner
