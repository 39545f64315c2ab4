// cuDNN's transposed convolution, by every engine that applies (convolution_plan.h, cudnn_engines.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "baselines/cudnn_engines.h"
#include "baselines/route.h"
#include "baselines/support_kernels.h"
#include "tuner/device/cuda_device.h"

namespace tuner {

#ifdef TUNER_CUDNN_HEADERS
namespace {

constexpr std::uint32_t kPoison = 0xFFFFFFFF;  // NaN: whatever reads what nobody wrote shows

/// What the routes of one routes() call share.
struct Session {
  Session(Device& on, const BaselineOptions& limits)
      : device(on), options(limits), workspace(on, limits.workspace_bytes) {}
  Device& device;
  BaselineOptions options;
  SharedWorkspace workspace;
  std::shared_ptr<CudnnTarget> target;
  std::shared_ptr<SupportKernels> kernels;
};

struct Direction {
  Axis axis = Axis::width;
  ConvolutionPlan plan;
  BiasWay bias = BiasWay::none;
};

std::string name_of(const Direction& direction) {
  switch (direction.bias) {
    case BiasWay::after:
      return direction.plan.route + ", bias added after";
    case BiasWay::initial:
      return direction.plan.route + ", added to bias";
    case BiasWay::fused:
      return direction.plan.route + ", bias fused";
    case BiasWay::none:
      break;
  }
  return direction.plan.route;
}

class CudnnRoute : public Runnable {
 public:
  CudnnRoute(std::shared_ptr<Session> session, std::shared_ptr<ConvolutionGraph> graph, Direction direction,
             const Problem& problem, Accuracy accuracy, EngineChoice choice)
      : session_(std::move(session)),
        graph_(std::move(graph)),
        direction_(std::move(direction)),
        problem_(problem),
        accuracy_(accuracy),
        choice_(std::move(choice)) {}

  std::string name() const override {
    return fmt::format("cudnn: {}, {} {}", name_of(direction_), choice_.engine, choice_.knobs);
  }
  Work work() const override { return vendor_work(problem_, accuracy_, choice_.transforms()); }

  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    try {
      if (!plan_) {
        plan_ = graph_->build(choice_);
        workspace_bytes_ = static_cast<std::size_t>(plan_->integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      }
      if (workspace_bytes_ > session_->options.workspace_bytes)
        return Failure{Outcome::rejected, "needs more workspace than cudnn.workspace_mib allows", {}};
      if (workspace_bytes_ > 0) workspace_ = session_->workspace.request(workspace_bytes_);
      if (workspace_) workspace_->fill(kPoison);
      if (direction_.plan.packed && !packed_)
        packed_ = session_->device.allocate(static_cast<std::size_t>(problem_.w_count() * element_bytes()));
      pack_ = graph_->pack(pointers(), workspace_ ? workspace_->data() : nullptr);
    } catch (const CudnnError& error) {
      return Failure{Outcome::launch_failed, error.what(), {}};
    } catch (const std::bad_alloc&) {
      return Failure{
          Outcome::launch_failed, fmt::format("no device memory for {} bytes of workspace", workspace_bytes_), {}};
    }
    if (auto prepared = prepare(); !prepared) return prepared;
    return true;
  }

  Expected<bool> prepare() override {
    if (!direction_.plan.packed) return false;
    auto arguments = direction_.plan.packing;
    arguments.source = tensors_.w;
    arguments.target = packed_->data();
    return session_->kernels->permute(element_of(accuracy_), arguments);
  }

  Expected<bool> launch() override {
    const std::int64_t rows = problem_.batch * problem_.out_channels, length = problem_.length_out();
    const Element element = element_of(accuracy_);
    if (direction_.bias == BiasWay::initial) {
      const ct1d::baseline::FillArguments fill{tensors_.y, tensors_.bias, rows,   problem_.out_channels,
                                               length,     length,        length, length};
      if (auto filled = session_->kernels->fill(element, fill); !filled) return filled;
    }
    try {
      graph_->execute(*plan_, *pack_);
    } catch (const CudnnError& error) {
      return Failure{Outcome::launch_failed, error.what(), {}};
    }
    if (direction_.bias != BiasWay::after) return true;
    return session_->kernels->add_bias(element,
                                       {tensors_.y, tensors_.bias, rows, problem_.out_channels, length, length});
  }

  std::size_t guard_violations() override {
    return (workspace_ ? workspace_->guard_violations() : 0) + (packed_ ? packed_->guard_violations() : 0);
  }

 private:
  std::int64_t element_bytes() const { return bytes_of(element_of(accuracy_)); }
  ConvolutionPointers pointers() const {
    if (direction_.plan.backward_data) return {tensors_.y, tensors_.w, tensors_.x, tensors_.bias};
    return {tensors_.x, packed_->data(), tensors_.y, tensors_.bias};
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<ConvolutionGraph> graph_;
  Direction direction_;
  Problem problem_;
  Accuracy accuracy_;
  EngineChoice choice_;
  Tensors tensors_;
  std::optional<CudnnDescriptor> plan_, pack_;
  std::size_t workspace_bytes_ = 0;
  std::shared_ptr<Buffer> workspace_;
  std::unique_ptr<Buffer> packed_;
};

std::vector<Direction> directions(const Problem& problem, Accuracy accuracy) {
  std::vector<BiasWay> ways{BiasWay::none};
  // Adding the bias to a 16-bit y would round twice, beyond what the classes allow.
  if (problem.bias && element_of(accuracy) == Element::f32) ways = {BiasWay::after, BiasWay::fused};
  if (problem.bias && element_of(accuracy) != Element::f32) ways = {BiasWay::initial, BiasWay::fused};
  std::vector<Direction> found;
  for (const Axis axis : {Axis::width, Axis::height}) {
    for (const BiasWay way : ways) {
      if (axis == Axis::height && way == BiasWay::fused) continue;
      found.push_back({axis, plan_backward_data(problem, axis), way});
      if (auto forward = plan_flipped_forward(problem, axis)) found.push_back({axis, std::move(*forward), way});
    }
  }
  return found;
}

BaselineRoute refused_route(const Direction& direction, Failure failure, std::string engine = "none") {
  BaselineRoute route;
  route.route = name_of(direction);
  route.engine = std::move(engine);
  route.runnable = make_refused("cudnn: " + route.route, std::move(failure));
  return route;
}

/// Heuristics' first choices that the second layout adds: it has the same engines and rarely another order.
constexpr int kMostOfSecondLayout = 8;

void append_routes(std::vector<BaselineRoute>& routes, const std::shared_ptr<Session>& session,
                   const Direction& direction, const Problem& problem, Accuracy accuracy) {
  try {
    auto graph =
        std::make_shared<ConvolutionGraph>(session->target, direction.plan, element_of(accuracy), direction.bias);
    std::vector<EngineChoice> choices = graph->engines(accuracy == Accuracy::fp32 && direction.axis == Axis::width);
    if (choices.empty())
      routes.push_back(refused_route(direction, {Outcome::rejected, "no engine of cuDNN supports it", {}}));
    std::map<std::string, std::string> refused;  // reason -> engines
    int taken = 0;
    for (EngineChoice& choice : choices) {
      if (std::string why = refusal(choice, accuracy, session->options); !why.empty()) {
        refused[why] += fmt::format("{} {} {} bytes of workspace\n", choice.engine, choice.knobs,
                                    choice.workspace_bytes.value_or(0));
        continue;
      }
      if (direction.axis == Axis::height && ++taken > kMostOfSecondLayout) break;
      BaselineRoute route;
      route.route = name_of(direction);
      route.engine = choice.engine;
      route.knobs = choice.knobs;
      route.workspace_bytes = static_cast<std::size_t>(choice.workspace_bytes.value_or(0));
      route.deterministic = !choice.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
      route.runnable = std::make_unique<CudnnRoute>(session, graph, direction, problem, accuracy, std::move(choice));
      routes.push_back(std::move(route));
    }
    for (const auto& [why, engines] : refused) {
      const auto count = std::count(engines.begin(), engines.end(), '\n');
      routes.push_back(
          refused_route(direction, {Outcome::rejected, why, engines}, fmt::format("{} of cuDNN's plans", count)));
    }
  } catch (const CudnnError& error) {
    routes.push_back(refused_route(direction, {Outcome::rejected, error.what(), {}}));
  }
}

class CudnnBaseline : public Baseline {
 public:
  std::string_view name() const override { return "cudnn"; }

  Expected<std::string> version() override {
    if (!cudnn()) return cudnn().failure();
    return cudnn()->version;
  }

  Expected<std::vector<BaselineRoute>> routes(Device& device, const Problem& problem, Accuracy accuracy,
                                              const BaselineOptions& options, const CompiledUnit& kernels) override {
    std::vector<BaselineRoute> routes;
    if (problem.batch == 0) {
      routes.push_back(empty_batch_route(name()));
      return routes;
    }
    auto* cuda = dynamic_cast<CudaDevice*>(&device);
    if (!cuda) return Failure{Outcome::rejected, "needs a CUDA device", {}};
    if (!cudnn()) return cudnn().failure();
    auto session = std::make_shared<Session>(device, options);
    try {
      session->target = std::make_shared<CudnnTarget>(*cudnn(), cuda->stream());
    } catch (const CudnnError& error) {
      return Failure{Outcome::rejected, error.what(), {}};
    }
    auto loaded = SupportKernels::load(device, kernels);
    if (!loaded) return loaded.failure();
    session->kernels = *loaded;
    for (const Direction& direction : directions(problem, accuracy))
      append_routes(routes, session, direction, problem, accuracy);
    return routes;
  }
};

}  // namespace

#else
namespace {

class CudnnBaseline : public Baseline {
 public:
  std::string_view name() const override { return "cudnn"; }
  Expected<std::string> version() override { return without_headers(); }
  Expected<std::vector<BaselineRoute>> routes(Device&, const Problem& problem, Accuracy, const BaselineOptions&,
                                              const CompiledUnit&) override {
    if (problem.batch > 0) return without_headers();
    std::vector<BaselineRoute> routes;
    routes.push_back(empty_batch_route(name()));
    return routes;
  }

 private:
  static Failure without_headers() { return {Outcome::rejected, "built without cuDNN's headers (cudnn.h)", {}}; }
};

}  // namespace
#endif

Baseline& cudnn_baseline() {
  static CudnnBaseline baseline;
  return baseline;
}

}  // namespace tuner
