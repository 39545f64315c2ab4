// Vendor routes to the same result: cuDNN's transposed convolution and cuBLAS "one GEMM per tap, shift and add".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/device/device.h"

namespace tuner {

struct BaselineOptions {
  std::size_t workspace_bytes = std::size_t{4} << 30;
  bool deterministic = false;
};

/// One way a library can compute the problem (an engine, an algorithm, a direction), ready to be verified and timed.
struct BaselineRoute {
  std::string route;   // "backward-data", "forward, flipped kernel", "strided-batched GEMM a tap"
  std::string engine;  // as the library names it: "eng 1, k2=3"; algorithm name; math mode
  std::string knobs;
  std::size_t workspace_bytes = 0;
  bool deterministic = true;
  std::unique_ptr<Runnable> runnable;
};

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::string_view name() const = 0;
  /// Version of the library, or why it is not available (outcome rejected).
  virtual Expected<std::string> version() = 0;
  /// All routes that apply. Never calls the library for an empty batch. Failure: why there is none.
  virtual Expected<std::vector<BaselineRoute>> routes(Device& device, const Problem& problem, Accuracy accuracy,
                                                      const BaselineOptions& options) = 0;
};

/// "cudnn", "cublas_shift_add"; nullptr for other names. Libraries are loaded at first use, never linked.
Baseline* find_baseline(std::string_view name);
std::vector<std::string_view> baseline_names();

}  // namespace tuner
