// cuDNN's transposed convolution, by every engine that applies (convolution_plan.h, cudnn_engines.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "baselines/cudnn_route.h"
#include "baselines/route.h"
#include "tuner/device/cuda_device.h"

namespace tuner {

#ifdef TUNER_CUDNN_HEADERS
namespace {

std::vector<CudnnDirection> directions(const Problem& problem, Accuracy accuracy) {
  std::vector<BiasWay> ways{BiasWay::none};
  // Adding the bias to a 16-bit y would round twice, beyond what the classes allow.
  if (problem.bias && element_of(accuracy) == Element::f32) ways = {BiasWay::after, BiasWay::fused};
  if (problem.bias && element_of(accuracy) != Element::f32) ways = {BiasWay::initial, BiasWay::fused};
  std::vector<CudnnDirection> found;
  const auto add = [&](Axis axis, Memory memory, BiasWay way) {
    found.push_back({axis, plan_backward_data(problem, axis, memory), way});
    if (auto forward = plan_flipped_forward(problem, axis, memory)) found.push_back({axis, std::move(*forward), way});
  };
  for (const BiasWay way : ways) add(Axis::width, Memory::channels_first, way);
  for (const BiasWay way : ways) add(Axis::width, Memory::channels_last, way);
  for (const BiasWay way : ways)
    if (way != BiasWay::fused) add(Axis::height, Memory::channels_first, way);
  return found;
}

BaselineRoute refused_route(const CudnnDirection& direction, Failure failure, std::string engine = "none") {
  BaselineRoute route;
  route.route = direction.name();
  route.engine = std::move(engine);
  route.runnable = make_refused("cudnn: " + route.route, std::move(failure));
  return route;
}

/// Heuristics' first choices that the second layout adds: it has the same engines and rarely another order.
constexpr int kMostOfSecondLayout = 8;

void append_routes(std::vector<BaselineRoute>& routes, const std::shared_ptr<CudnnSession>& session,
                   const CudnnDirection& direction, const Problem& problem, Accuracy accuracy) {
  try {
    auto graph =
        std::make_shared<ConvolutionGraph>(session->target, direction.plan, element_of(accuracy), direction.bias);
    const bool sweep =
        accuracy == Accuracy::fp32 && direction.axis == Axis::width && direction.plan.memory == Memory::channels_first;
    std::vector<EngineChoice> choices = graph->engines(sweep);
    if (choices.empty())
      routes.push_back(refused_route(direction, {Outcome::rejected, "no engine of cuDNN supports it", {}}));
    std::map<std::string, std::string> refused;  // reason -> engines
    const auto layouts = static_cast<std::int64_t>(layout_bytes(direction, problem, accuracy));
    int taken = 0;
    for (EngineChoice& choice : choices) {
      if (choice.workspace_bytes) *choice.workspace_bytes += layouts;
      if (std::string why = refusal(choice, accuracy, session->options); !why.empty()) {
        refused[why] += fmt::format("{} {} {} bytes of workspace\n", choice.engine, choice.knobs,
                                    choice.workspace_bytes.value_or(0));
        continue;
      }
      if (direction.axis == Axis::height && ++taken > kMostOfSecondLayout) break;
      BaselineRoute route;
      route.route = direction.name();
      route.engine = choice.engine;
      route.knobs = choice.knobs;
      route.workspace_bytes = static_cast<std::size_t>(choice.workspace_bytes.value_or(layouts));
      route.traffic_bytes = traffic_bytes(direction, problem, accuracy);
      route.deterministic = !choice.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
      set_runnables(route, session, graph, direction, problem, accuracy, std::move(choice));
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
    auto session = std::make_shared<CudnnSession>(device, options);
    try {
      session->target = std::make_shared<CudnnTarget>(*cudnn(), cuda->stream());
    } catch (const CudnnError& error) {
      return Failure{Outcome::rejected, error.what(), {}};
    }
    auto loaded = SupportKernels::load(device, kernels);
    if (!loaded) return loaded.failure();
    session->kernels = *loaded;
    std::vector<std::vector<BaselineRoute>> by_direction;
    for (const CudnnDirection& direction : directions(problem, accuracy))
      if (!options.only || *options.only == direction.name())
        append_routes(by_direction.emplace_back(), session, direction, problem, accuracy);
    // the first choices of all directions, then the second ones: time may end before the list does
    for (std::size_t rank = 0, left = 1; left > 0; ++rank) {
      left = 0;
      for (std::vector<BaselineRoute>& of_one : by_direction) {
        if (rank < of_one.size()) routes.push_back(std::move(of_one[rank]));
        left += rank + 1 < of_one.size() ? 1 : 0;
      }
    }
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
