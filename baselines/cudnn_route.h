// One plan of cuDNN as a Runnable, with what it needs around it: packed weights, bias, conversions to channels-last.
#pragma once

#include "baselines/cudnn_engines.h"

#ifdef TUNER_CUDNN_HEADERS
#include <memory>
#include <string>

#include "baselines/baseline.h"
#include "baselines/convolution_plan.h"
#include "baselines/support_kernels.h"

namespace tuner {

/// What the routes of one routes() call share.
struct CudnnSession {
  CudnnSession(Device& on, const BaselineOptions& limits)
      : device(on), options(limits), workspace(on, limits.workspace_bytes) {}
  Device& device;
  BaselineOptions options;
  SharedWorkspace workspace;
  std::shared_ptr<CudnnTarget> target;
  std::shared_ptr<SupportKernels> kernels;
};

/// A convolution that gives y, and how the bias joins it.
struct CudnnDirection {
  Axis axis = Axis::width;
  ConvolutionPlan plan;
  BiasWay bias = BiasWay::none;

  std::string name() const;
};

/// Bytes that x and y take in the workspace where a direction needs them channels-last; 0 where it does not.
std::size_t layout_bytes(const CudnnDirection& direction, const Problem& problem, Accuracy accuracy);
/// Bytes through the steps of a route, each operand once: the convolution's tensors, conversions, a pass for the bias.
/// Those that cuDNN moves within the convolution are not known.
double traffic_bytes(const CudnnDirection& direction, const Problem& problem, Accuracy accuracy);

/// Fills in `runnable` and, where x and y are converted, `inner`.
void set_runnables(BaselineRoute& route, std::shared_ptr<CudnnSession> session, std::shared_ptr<ConvolutionGraph> graph,
                   const CudnnDirection& direction, const Problem& problem, Accuracy accuracy, EngineChoice choice);

}  // namespace tuner
#endif
