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
#else
constexpr std::optional<cudnnBackendAttributeName_t> kHeuristicProperties, kEngineProperties;
#endif

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

std::vector<EngineChoice> ConvolutionGraph::engines(bool sweep_plain) const {
  std::vector<EngineChoice> found;
  std::set<std::string> seen;  // engine and knobs
  std::set<std::int64_t> plain;
  const auto add = [&](EngineChoice choice) {
    if (!choice.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) plain.insert(choice.index);
    if (seen.insert(choice.engine + choice.knobs.substr(0, choice.knobs.find('('))).second)
      found.push_back(std::move(choice));
  };
  for (const auto& [mode, name] :
       {std::pair{CUDNN_HEUR_MODE_A, "heuristic A"}, std::pair{CUDNN_HEUR_MODE_B, "heuristic B"},
        std::pair{CUDNN_HEUR_MODE_INSTANT, "heuristic instant"}, std::pair{CUDNN_HEUR_MODE_FALLBACK, "fallback"}})
    for (EngineChoice& choice : from_heuristic(mode, name)) add(std::move(choice));
  const std::int64_t count = graph_->integer(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  for (std::int64_t index = 0; index < count; ++index)
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

}  // namespace tuner
#endif
