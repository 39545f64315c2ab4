#include "baselines/cudnn_engines.h"

#ifdef TUNER_CUDNN_HEADERS
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace tuner {
namespace {

// Where a target without a device states its properties.
#if CUDNN_VERSION >= 91100
constexpr std::optional kHeuristicProperties{CUDNN_ATTR_ENGINEHEUR_DEVICEPROP};
constexpr std::optional kEngineProperties{CUDNN_ATTR_ENGINE_DEVICEPROP};
constexpr std::optional kPlanProperties{CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP};
#else
constexpr std::optional<cudnnBackendAttributeName_t> kHeuristicProperties, kEngineProperties, kPlanProperties;
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

std::string note_name(cudnnBackendNumericalNote_t note) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return "TENSOR_CORE";
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      return "DOWN_CONVERT_INPUTS";
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return "REDUCED_PRECISION_REDUCTION";
    case CUDNN_NUMERICAL_NOTE_FFT:
      return "FFT";
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return "NONDETERMINISTIC";
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      return "WINOGRAD";
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      return "WINOGRAD_TILE_4x4";
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      return "WINOGRAD_TILE_6x6";
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      return "WINOGRAD_TILE_13x13";
    default:
      return fmt::format("note {}", static_cast<int>(note));
  }
}

std::string knob_name(cudnnBackendKnobType_t knob) {
  switch (knob) {
    case CUDNN_KNOB_TYPE_SWIZZLE:
      return "SWIZZLE";
    case CUDNN_KNOB_TYPE_TILE_SIZE:
      return "TILE_SIZE";
    case CUDNN_KNOB_TYPE_EDGE:
      return "EDGE";
    case CUDNN_KNOB_TYPE_MULTIPLY:
      return "MULTIPLY";
    case CUDNN_KNOB_TYPE_SPLIT_K_BUF:
      return "SPLIT_K_BUF";
    case CUDNN_KNOB_TYPE_TILEK:
      return "TILEK";
    case CUDNN_KNOB_TYPE_STAGES:
      return "STAGES";
    case CUDNN_KNOB_TYPE_REDUCTION_MODE:
      return "REDUCTION_MODE";
    case CUDNN_KNOB_TYPE_SPLIT_K_SLC:
      return "SPLIT_K_SLC";
    case CUDNN_KNOB_TYPE_IDX_MODE:
      return "IDX_MODE";
    case CUDNN_KNOB_TYPE_SPECFILT:
      return "SPECFILT";
    case CUDNN_KNOB_TYPE_KERNEL_CFG:
      return "KERNEL_CFG";
    case CUDNN_KNOB_TYPE_WORKSPACE:
      return "WORKSPACE";
    case CUDNN_KNOB_TYPE_TILE_CGA_M:
      return "TILE_CGA_M";
    case CUDNN_KNOB_TYPE_TILE_CGA_N:
      return "TILE_CGA_N";
    case CUDNN_KNOB_TYPE_BLOCK_SIZE:
      return "BLOCK_SIZE";
    case CUDNN_KNOB_TYPE_OCCUPANCY:
      return "OCCUPANCY";
    default:
      return fmt::format("k{}", static_cast<int>(knob));
  }
}

/// Alignment that a pointer has which is `bytes` past a 256-byte boundary: cuDNN asks no more than 16.
std::int64_t alignment_at(std::int64_t bytes) { return bytes == 0 ? 16 : std::min<std::int64_t>(16, bytes & -bytes); }

std::int64_t bytes_of(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

}  // namespace

bool EngineChoice::has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

bool EngineChoice::transforms() const {
  return std::any_of(notes.begin(), notes.end(), [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_FFT ||
           (note >= CUDNN_NUMERICAL_NOTE_WINOGRAD && note <= CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  });
}

std::string refusal(const EngineChoice& choice, Accuracy accuracy, const BaselineOptions& options) {
  if (options.deterministic && choice.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return "not deterministic, and the config asks for determinism";
  if (choice.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "converts its inputs to a narrower type";
  if (accuracy == Accuracy::fp32 && choice.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
    return "multiplies in TF32 on tensor cores, which class fp32 does not allow";
  if (choice.workspace_bytes.value_or(0) > static_cast<std::int64_t>(options.workspace_bytes))
    return fmt::format("needs more workspace than cudnn.workspace_mib allows ({} MiB)", options.workspace_bytes >> 20);
  return {};
}

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

std::vector<EngineChoice> ConvolutionGraph::engines(bool sweep_plain) const {
  std::vector<EngineChoice> found;
  std::set<std::string> seen;  // engine and knobs
  std::set<std::int64_t> indices, plain;
  const auto add = [&](EngineChoice choice) {
    indices.insert(choice.index);
    if (!choice.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) plain.insert(choice.index);
    if (seen.insert(choice.engine + choice.knobs.substr(0, choice.knobs.find('('))).second)
      found.push_back(std::move(choice));
  };
  for (const auto& [mode, name] :
       {std::pair{CUDNN_HEUR_MODE_A, "heuristic A"}, std::pair{CUDNN_HEUR_MODE_B, "heuristic B"},
        std::pair{CUDNN_HEUR_MODE_FALLBACK, "fallback"}})
    for (EngineChoice& choice : from_heuristic(mode, name)) add(std::move(choice));
  const std::int64_t count = graph_->integer(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  for (std::int64_t index = 0; index < count; ++index)
    if (!indices.count(index))
      if (auto choice = with_knobs(index, {}, "default")) add(std::move(*choice));
  if (!sweep_plain) return found;
  for (const std::int64_t index : std::set(plain))
    for (const Knobs& knobs : knob_settings(index))
      if (auto choice = with_knobs(index, knobs, "sweep")) add(std::move(*choice));
  return found;
}

std::vector<EngineChoice> ConvolutionGraph::from_heuristic(cudnnBackendHeurMode_t mode, const char* name) const {
  std::vector<EngineChoice> found;
  try {
    CudnnDescriptor heuristic = descriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    target_->give(heuristic, std::nullopt, kHeuristicProperties);
    heuristic.finalize();
    std::int64_t count = 0;
    const Cudnn& library = target_->library();
    TUNER_CUDNN(library, get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                       &count, nullptr));
    std::vector<CudnnDescriptor> configs;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::int64_t i = 0; i < count; ++i) {
      configs.push_back(descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
      handles.push_back(configs.back().get());
    }
    count = heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, handles.data());
    for (std::int64_t i = 0; i < count; ++i)
      found.push_back(describe(std::move(configs[static_cast<std::size_t>(i)]), fmt::format("{} #{}", name, i + 1)));
  } catch (const CudnnError&) {
    // A mode that knows nothing about the graph leaves the others.
  }
  return found;
}

CudnnDescriptor ConvolutionGraph::engine(std::int64_t index) const {
  CudnnDescriptor made = descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  made.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_);
  made.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  target_->give(made, std::nullopt, kEngineProperties);
  made.finalize();
  return made;
}

std::optional<EngineChoice> ConvolutionGraph::with_knobs(std::int64_t index, const Knobs& knobs,
                                                         const char* origin) const {
  try {
    CudnnDescriptor config = descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine(index));
    std::vector<CudnnDescriptor> choices;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const auto& [type, value] : knobs) {
      CudnnDescriptor knob = descriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
      knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
      knob.finalize();
      handles.push_back(knob.get());
      choices.push_back(std::move(knob));
    }
    if (!handles.empty())
      config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 static_cast<std::int64_t>(handles.size()), handles.data());
    config.finalize();
    EngineChoice choice = describe(std::move(config), origin);
    if (!knobs.empty()) build(choice);  // only a plan tells which settings exist
    return choice;
  } catch (const CudnnError&) {
    return std::nullopt;
  }
}

std::vector<ConvolutionGraph::Knobs> ConvolutionGraph::knob_settings(std::int64_t index) const {
  constexpr std::size_t kMost = 64;  // engines with more knobs than that have their heuristics' choices alone
  const CudnnDescriptor of = engine(index);
  std::vector<CudnnDescriptor> infos;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    infos.push_back(descriptor(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR));
    handles.push_back(infos.back().get());
  }
  const std::int64_t count =
      of.read(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, handles.data());
  std::vector<Knobs> settings;
  for (std::int64_t i = 0; i < count; ++i) {
    const CudnnDescriptor& info = infos[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    info.read(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    const std::int64_t last = info.integer(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE);
    const std::int64_t step = std::max<std::int64_t>(1, info.integer(CUDNN_ATTR_KNOB_INFO_STRIDE));
    std::vector<Knobs> longer;
    for (const Knobs& knobs : settings.empty() ? std::vector<Knobs>{{}} : settings) {
      for (std::int64_t value = info.integer(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE); value <= last; value += step) {
        longer.push_back(knobs);
        longer.back().emplace_back(type, value);
        if (longer.size() > kMost) return {};
      }
    }
    settings = std::move(longer);
  }
  return settings;
}

EngineChoice ConvolutionGraph::describe(CudnnDescriptor config, const std::string& origin) const {
  EngineChoice choice{0, {}, {}, {}, {}, std::move(config)};
  CudnnDescriptor engine = descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t engine_handle = engine.get();
  choice.config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine_handle);
  choice.index = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  choice.notes = engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::string notes;
  for (const auto note : choice.notes) notes += (notes.empty() ? "" : ", ") + note_name(note);
  choice.engine =
      fmt::format("engine {}{}{}{}", choice.index, notes.empty() ? "" : " [", notes, notes.empty() ? "" : "]");

  std::vector<CudnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.push_back(descriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    handles.push_back(knobs.back().get());
  }
  const std::int64_t count = choice.config.read(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                CUDNN_KNOB_TYPE_COUNTS, handles.data());
  for (std::int64_t i = 0; i < count; ++i) {
    const CudnnDescriptor& knob = knobs[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    knob.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    choice.knobs += fmt::format("{}={} ", knob_name(type), knob.integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  choice.knobs += fmt::format("({})", origin);
  try {
    choice.workspace_bytes = choice.config.integer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
  } catch (const CudnnError&) {
    // Older libraries tell it of a built plan only.
  }
  return choice;
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
