// cuBLAS, opened at run time, behind the one call that the baseline makes.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baselines/shift_add_plan.h"
#include "tuner/core/accuracy.h"
#include "tuner/core/failure.h"

namespace tuner {

/// What libcublas or libcublasLt may be called, that of the CUDA built against first.
std::vector<std::string> cublas_file_names(std::string_view library);

/// "13.0.2 (libcublas.so.13)", or why it is not available.
Expected<std::string> cublas_version();

/// A library's way to compute the products of a plan, on one stream in one class's arithmetic.
class GemmCalls {
 public:
  virtual ~GemmCalls() = default;
  /// Enqueues the step. `a` and `b` hold the class's elements; `c` holds them too or, in 16-bit classes, fp32.
  virtual Expected<bool> gemm(const GemmStep& step, const void* a, const void* b, void* c) = 0;
};

/// A cuBLAS handle, which chooses algorithms by itself.
class CublasHandle : public GemmCalls {
 public:
  /// Compute type, math mode as read back from the library, and algorithm choice, in words.
  virtual const std::string& mode() const = 0;
};
/// The handle uses `workspace` alone, which the caller keeps, so that its calls can be captured and repeat bit by bit.
Expected<std::unique_ptr<CublasHandle>> make_cublas_handle(cudaStream_t stream, Accuracy accuracy, void* workspace,
                                                           std::size_t workspace_bytes);

}  // namespace tuner
