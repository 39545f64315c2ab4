// Vendor routes to the same result: cuDNN's transposed convolution and cuBLAS "one GEMM per tap, shift and add".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/device/device.h"

namespace tuner {

struct BaselineOptions {
  /// cuDNN's first choices for the seed problem in class tf32 take 4 GiB and 256 KiB: they copy x and y to another
  /// layout. PyTorch sets no limit.
  std::size_t workspace_bytes = std::size_t{16} << 30;
  bool deterministic = false;
  std::optional<std::string> only;  // routes of this name alone: the others cost time to enumerate
};

/// The part of a route that a note times: the library's work between conversions to its layout and back.
class InnerRunnable : public Runnable {
 public:
  /// Turns what the last launch left in the library's layout into y, so that it can be checked.
  virtual Expected<bool> deliver() = 0;
};

/// One way a library can compute the problem (an engine, an algorithm, a direction), ready to be verified and timed.
struct BaselineRoute {
  std::string route;   // "backward-data", "forward, flipped kernel", "strided-batched GEMM a tap"
  std::string engine;  // as the library names it: engine number and numerical notes; compute type and math mode
  std::string knobs;   // route, engine and knobs together identify a route within one baseline
  std::size_t workspace_bytes = 0;
  /// Through the steps of the route, each step's operands once; what a library moves within a step is not known.
  double traffic_bytes = 0;
  bool deterministic = true;
  /// Builds the library's plan at bind. What the library refuses then (or was refused before: the options, the class)
  /// is bind's Failure, so that every route leaves a record. Routes of one routes() call share one workspace: they run
  /// one after another on the device's stream.
  std::unique_ptr<Runnable> runnable;
  /// Where x and y are converted: the same without conversions. Its time is a note beside the route's, never compared:
  /// it starts and ends with other data than the problem's. Uses `runnable`, which must outlive it.
  std::unique_ptr<InnerRunnable> inner;
};

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::string_view name() const = 0;
  /// Version of the library, or why it is not available (outcome rejected).
  virtual Expected<std::string> version() = 0;
  /// All routes that apply, the library's own first choice first. `kernels` is baseline_unit() compiled for the device.
  /// An empty batch gives one route that does nothing, and the library is not even loaded. Failure: why there is none.
  virtual Expected<std::vector<BaselineRoute>> routes(Device& device, const Problem& problem, Accuracy accuracy,
                                                      const BaselineOptions& options, const CompiledUnit& kernels) = 0;
};

/// Helper kernels of the baselines (packing, initial values, gathering, bias), to be compiled like any other unit.
CompileUnit baseline_unit();

/// What NVIDIA_TF32_OVERRIDE, set to `value`, does to a class, where that contradicts what the class says; nothing
/// where it does not. An unset variable is nullopt. Only the command line reads the environment.
std::optional<std::string> tf32_override_warning(std::optional<std::string_view> value, Accuracy accuracy);

/// "cudnn", "cublas_shift_add"; nullptr for other names. Libraries are loaded at first use, never linked.
Baseline* find_baseline(std::string_view name);
std::vector<std::string_view> baseline_names();

/// Hash of the sources that list the routes and walk them: records of another list are not those of this one.
std::string_view baseline_sources();

}  // namespace tuner
