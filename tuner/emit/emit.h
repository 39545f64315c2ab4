// Results to one self-contained C++17 header for nvcc: the chosen kernels' source, the table of what was tuned, and an
// API. Needs no GPU and no NVRTC, here or where the header is used.
#pragma once

#include <string>
#include <vector>

#include "tuner/core/result.h"

namespace tuner {

struct EmitOptions {
  std::string name_space = "conv_transpose1d";  // may be nested: "audio::kernels"
  bool unmeasured = false;                      // accept results that hold no times; the banner says so
  std::string command;                          // for the banner
};

/// The same results and options give the same bytes. Throws UsageError: no results, a namespace that is no C++ name,
/// unmeasured results without `unmeasured`, a result that holds nothing valid, a family or tunable unknown here.
std::string emit_header(const std::vector<RunResult>& results, const EmitOptions& options);

}  // namespace tuner
