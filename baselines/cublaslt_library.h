// cublasLt, opened at run time: the algorithms that its heuristics name for the products of a plan.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "baselines/cublas_library.h"
#include "baselines/shift_add_plan.h"
#include "tuner/core/accuracy.h"
#include "tuner/core/failure.h"

namespace tuner {

/// An algorithm for each different product of a plan (gemm_shape).
struct CublasLtWay {
  std::string engine;  // algorithm, tile, stages as cublasLt numbers them; compute type
  std::string knobs;   // where the heuristics had it
  std::size_t workspace_bytes = 0;
  std::shared_ptr<GemmCalls> calls;
};

/// How many algorithms the heuristics are asked for, a product.
inline constexpr int kMostLtAlgorithms = 8;
/// Plans of more different products than this have no cublasLt route: asking for each takes longer than it can win.
inline constexpr std::size_t kMostLtProducts = 256;

class CublasLt {
 public:
  virtual ~CublasLt() = default;
  /// The heuristics' first choice for every product, their second, and so on; a product with fewer keeps its last.
  virtual Expected<std::vector<CublasLtWay>> ways(const ShiftAddPlan& plan) = 0;
};

/// `workspace` is the caller's and stays valid.
Expected<std::shared_ptr<CublasLt>> make_cublaslt(cudaStream_t stream, Accuracy accuracy, void* workspace,
                                                  std::size_t workspace_bytes);

}  // namespace tuner
