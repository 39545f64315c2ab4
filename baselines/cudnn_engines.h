// One convolution as cuDNN sees it, and every engine that says it can compute it.
#pragma once

#include "baselines/cudnn_library.h"

#ifdef TUNER_CUDNN_HEADERS
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baselines/baseline.h"
#include "baselines/convolution_plan.h"
#include "tuner/core/accuracy.h"

namespace tuner {

/// How the bias joins: not at all; by a kernel that adds it to y afterwards, as PyTorch does; as the initial content of
/// y, to which the convolution is added (beta 1), rounding 16-bit y once; by a pointwise addition fused into the graph.
enum class BiasWay { none, after, initial, fused };

/// An engine with its knobs, not yet built into a plan.
struct EngineChoice {
  std::int64_t index = 0;
  std::string engine;  // "engine 23 [TENSOR_CORE]"
  std::string knobs;   // "TILE_SIZE=5 STAGES=2 (heuristic A #1)"
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::optional<std::int64_t> workspace_bytes;  // where cuDNN tells before the plan is built
  CudnnDescriptor config;

  bool has(cudnnBackendNumericalNote_t note) const;
  /// Fewer multiplications than the definition has: Winograd or FFT.
  bool transforms() const;
};

/// Why an engine may not compete in a class or under the options; empty if it may.
std::string refusal(const EngineChoice& choice, Accuracy accuracy, const BaselineOptions& options);

/// Device addresses of a convolution's tensors.
struct ConvolutionPointers {
  void* image = nullptr;
  void* filter = nullptr;
  void* response = nullptr;
  void* bias = nullptr;
};

/// An operation graph: the convolution and, if fused, the addition of the bias. Throws CudnnError.
class ConvolutionGraph {
 public:
  ConvolutionGraph(std::shared_ptr<CudnnTarget> target, const ConvolutionPlan& plan, Element element, BiasWay bias);

  /// Engines as heuristics A, B, instant and fallback choose them, then every engine with its default knobs; none
  /// twice. `sweep_plain` adds every knob setting of the engines that use no tensor core: the heuristics take TF32 for
  /// granted and name few settings of those that class fp32 is left with.
  std::vector<EngineChoice> engines(bool sweep_plain) const;
  /// Builds the plan, which may compile kernels.
  CudnnDescriptor build(const EngineChoice& choice) const;
  CudnnDescriptor pack(const ConvolutionPointers& pointers, void* workspace) const;
  void execute(const CudnnDescriptor& plan, const CudnnDescriptor& pack) const;

 private:
  CudnnDescriptor descriptor(cudnnBackendDescriptorType_t type) const { return {target_->library(), type}; }
  CudnnDescriptor tensor(std::int64_t id, const TensorShape& shape, cudnnDataType_t type,
                         bool is_virtual = false) const;
  CudnnDescriptor convolution_operation(const ConvolutionPlan& plan, const CudnnDescriptor& image,
                                        const CudnnDescriptor& response, float beta) const;
  std::vector<EngineChoice> from_heuristic(cudnnBackendHeurMode_t mode, const char* name) const;
  using Knobs = std::vector<std::pair<cudnnBackendKnobType_t, std::int64_t>>;
  CudnnDescriptor engine(std::int64_t index) const;
  /// Nothing where the engine does not support the graph or the knobs. Empty knobs: the engine's defaults.
  std::optional<EngineChoice> with_knobs(std::int64_t index, const Knobs& knobs, const char* origin) const;
  std::vector<Knobs> knob_settings(std::int64_t index) const;
  EngineChoice describe(CudnnDescriptor config, const std::string& origin) const;

  std::shared_ptr<CudnnTarget> target_;
  cudnnDataType_t type_;
  bool fused_ = false;
  std::int64_t image_offset_bytes_ = 0;
  std::optional<CudnnDescriptor> graph_;
};

}  // namespace tuner
#endif
