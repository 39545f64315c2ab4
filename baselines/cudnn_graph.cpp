// ConvolutionGraph's other half: the operation graph, its plans and their execution.
#include "baselines/cudnn_engines.h"

#ifdef TUNER_CUDNN_HEADERS
#include <algorithm>
#include <utility>

namespace tuner {
namespace {

// Where a plan for a target without a device states the properties.
#if CUDNN_VERSION >= 91100
constexpr std::optional kPlanProperties{CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP};
#else
constexpr std::optional<cudnnBackendAttributeName_t> kPlanProperties;
#endif

enum Id : std::int64_t { kImage = 1, kFilter, kResponse, kBias, kSum };

cudnnDataType_t data_type(Element element) {
  switch (element) {
    case Element::f16:
      return CUDNN_DATA_HALF;
    case Element::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Element::f32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

/// Alignment that a pointer has which is `bytes` past a 256-byte boundary: cuDNN asks no more than 16.
std::int64_t alignment_at(std::int64_t bytes) { return bytes == 0 ? 16 : std::min<std::int64_t>(16, bytes & -bytes); }

std::int64_t bytes_of(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

}  // namespace

ConvolutionGraph::ConvolutionGraph(std::shared_ptr<CudnnTarget> target, const ConvolutionPlan& plan, Element element,
                                   BiasWay bias)
    : target_(std::move(target)), type_(data_type(element)), fused_(bias == BiasWay::fused) {
  image_offset_bytes_ = plan.image.offset * bytes_of(type_);
  const Id result = plan.backward_data ? kImage : kResponse;
  const TensorShape& y = plan.backward_data ? plan.image : plan.response;
  // A fused graph's convolution writes a virtual fp32 tensor, which the addition turns into y.
  const auto end_of = [&](Id id, const TensorShape& shape) {
    return id == result && fused_ ? tensor(kSum, shape, CUDNN_DATA_FLOAT, true) : tensor(id, shape, type_);
  };
  const CudnnDescriptor image = end_of(kImage, plan.image), response = end_of(kResponse, plan.response);
  std::vector<CudnnDescriptor> operations;
  operations.push_back(convolution_operation(plan, image, response, bias == BiasWay::initial ? 1.0f : 0.0f));
  if (fused_) {
    CudnnDescriptor addition = descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    addition.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    addition.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    addition.finalize();
    const std::int64_t channels = y.extents[1];
    CudnnDescriptor operation = descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, addition);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, plan.backward_data ? image : response);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                  tensor(kBias, {{1, channels, 1, 1}, {channels, 1, 1, 1}}, type_));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(result, y, type_));
    operation.finalize();
    operations.push_back(std::move(operation));
  }
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& operation : operations) handles.push_back(operation.get());
  graph_ = descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  target_->give(*graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, std::nullopt);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()),
              handles.data());
  graph_->finalize();
}

CudnnDescriptor ConvolutionGraph::tensor(std::int64_t id, const TensorShape& shape, cudnnDataType_t type,
                                         bool is_virtual) const {
  CudnnDescriptor made = descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment_at(shape.offset * bytes_of(type)));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.extents);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
  if (is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  made.finalize();
  return made;
}

CudnnDescriptor ConvolutionGraph::convolution_operation(const ConvolutionPlan& plan, const CudnnDescriptor& image,
                                                        const CudnnDescriptor& response, float beta) const {
  CudnnDescriptor convolution = descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, plan.pre_padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, plan.post_padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, plan.stride);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, plan.dilation);
  convolution.finalize();
  const CudnnDescriptor filter = tensor(kFilter, plan.filter, type_);
  const float alpha = 1.0f;  // a float also for 16-bit tensors: the type of the computation
  CudnnDescriptor operation =
      descriptor(plan.backward_data ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                                    : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  if (plan.backward_data) {
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, filter);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, response);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, image);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
  } else {
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filter);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, image);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, response);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
  }
  operation.finalize();
  return operation;
}

CudnnDescriptor ConvolutionGraph::build(const EngineChoice& choice) const {
  CudnnDescriptor plan = descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target_->give(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, kPlanProperties);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice.config);
  plan.finalize();
  return plan;
}

CudnnDescriptor ConvolutionGraph::pack(const ConvolutionPointers& pointers, void* workspace) const {
  std::vector<std::int64_t> ids{kImage, kFilter, kResponse};
  std::vector<void*> addresses{static_cast<char*>(pointers.image) + image_offset_bytes_, pointers.filter,
                               pointers.response};
  if (fused_) {
    ids.push_back(kBias);
    addresses.push_back(pointers.bias);
  }
  CudnnDescriptor pack = descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses.size()),
           addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  return pack;
}

void ConvolutionGraph::execute(const CudnnDescriptor& plan, const CudnnDescriptor& pack) const {
  TUNER_CUDNN(target_->library(), execute(target_->handle(), plan.get(), pack.get()));
}

}  // namespace tuner
#endif
