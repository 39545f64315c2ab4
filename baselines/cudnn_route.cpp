#include "baselines/cudnn_route.h"

#ifdef TUNER_CUDNN_HEADERS
#include <fmt/format.h>

#include <new>
#include <utility>

#include "baselines/route.h"

namespace tuner {
namespace {

constexpr std::uint32_t kPoison = 0xFFFFFFFF;  // NaN: whatever reads what nobody wrote shows

bool converts(const CudnnDirection& direction) { return direction.plan.memory == Memory::channels_last; }

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t bytes_in(std::int64_t elements, Accuracy accuracy) {
  return static_cast<std::size_t>(elements * bytes_of(element_of(accuracy)));
}

class CudnnRoute : public Runnable {
 public:
  CudnnRoute(std::shared_ptr<CudnnSession> session, std::shared_ptr<ConvolutionGraph> graph, CudnnDirection direction,
             const Problem& problem, Accuracy accuracy, EngineChoice choice)
      : session_(std::move(session)),
        graph_(std::move(graph)),
        direction_(std::move(direction)),
        problem_(problem),
        accuracy_(accuracy),
        element_(element_of(accuracy)),
        choice_(std::move(choice)) {}

  std::string name() const override {
    return fmt::format("cudnn: {}, {} {}", direction_.name(), choice_.engine, choice_.knobs);
  }
  Work work() const override { return vendor_work(problem_, accuracy_, choice_.transforms()); }

  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    try {
      if (auto placed = place(); !placed) return placed;
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
    return session_->kernels->permute(element_, arguments);
  }

  Expected<bool> launch() override {
    if (auto taken = take(); !taken) return taken;
    if (auto convolved = convolve(); !convolved) return convolved;
    return deliver();
  }

  std::size_t guard_violations() override {
    return (workspace_ ? workspace_->guard_violations() : 0) + (packed_ ? packed_->guard_violations() : 0);
  }

  /// x into the layout that the plan takes.
  Expected<bool> take() {
    if (!converts(direction_)) return true;
    return session_->kernels->to_channels_last(
        element_, {tensors_.x, problem_.batch, problem_.in_channels, problem_.length}, x());
  }

  /// The plan, from x to y as they lie.
  Expected<bool> convolve() {
    if (direction_.bias == BiasWay::initial)
      if (auto filled = fill(); !filled) return filled;
    try {
      graph_->execute(*plan_, *pack_);
    } catch (const CudnnError& error) {
      return Failure{Outcome::launch_failed, error.what(), {}};
    }
    return true;
  }

  /// What the plan left in its layout, into y, with the bias where it comes last.
  Expected<bool> deliver() {
    const bool bias = direction_.bias == BiasWay::after;
    if (converts(direction_))
      return session_->kernels->to_channels_first(element_,
                                                  {y(), problem_.batch, problem_.out_channels, problem_.length_out()},
                                                  tensors_.y, bias ? tensors_.bias : nullptr);
    if (!bias) return true;
    return session_->kernels->add_bias(element_, {tensors_.y, tensors_.bias, problem_.batch * problem_.out_channels,
                                                  problem_.out_channels, problem_.length_out(), problem_.length_out()});
  }

 private:
  /// Plan, memory and addresses. Throws CudnnError, std::bad_alloc.
  Expected<bool> place() {
    const std::size_t layouts = layout_bytes(direction_, problem_, accuracy_);
    if (!plan_) {
      plan_ = graph_->build(choice_);
      workspace_bytes_ = layouts + static_cast<std::size_t>(plan_->integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    }
    if (workspace_bytes_ > session_->options.workspace_bytes)
      return Failure{Outcome::rejected, "needs more workspace than cudnn.workspace_mib allows", {}};
    if (workspace_bytes_ > 0) workspace_ = session_->workspace.request(workspace_bytes_);
    if (workspace_) workspace_->fill(kPoison);
    if (direction_.plan.packed && !packed_)
      packed_ = session_->device.allocate(bytes_in(problem_.w_count(), accuracy_));
    pack_ = graph_->pack(pointers(), workspace_bytes_ > layouts ? at(layouts) : nullptr);
    return true;
  }

  Expected<bool> fill() {
    if (converts(direction_))
      return session_->kernels->fill_last(element_, y(), tensors_.bias, problem_.out_channels, problem_.y_count());
    const std::int64_t length = problem_.length_out();
    return session_->kernels->fill(element_, {y(), tensors_.bias, problem_.batch * problem_.out_channels,
                                              problem_.out_channels, length, length, length, length});
  }

  void* at(std::size_t offset) const { return static_cast<char*>(workspace_->data()) + offset; }
  // x and y as the plan sees them; converted ones lie at the workspace's beginning.
  void* x() const { return converts(direction_) ? at(0) : tensors_.x; }
  void* y() const { return converts(direction_) ? at(aligned(bytes_in(problem_.x_count(), accuracy_))) : tensors_.y; }
  ConvolutionPointers pointers() const {
    void* filter = direction_.plan.packed ? packed_->data() : tensors_.w;
    if (direction_.plan.backward_data) return {y(), filter, x(), tensors_.bias};
    return {x(), filter, y(), tensors_.bias};
  }

  std::shared_ptr<CudnnSession> session_;
  std::shared_ptr<ConvolutionGraph> graph_;
  CudnnDirection direction_;
  Problem problem_;
  Accuracy accuracy_;
  Element element_;
  EngineChoice choice_;
  Tensors tensors_;
  std::optional<CudnnDescriptor> plan_, pack_;
  std::size_t workspace_bytes_ = 0;  // conversions and the plan's own
  std::shared_ptr<Buffer> workspace_;
  std::unique_ptr<Buffer> packed_;
};

/// A route's convolution without the conversions around it.
class CudnnInner : public InnerRunnable {
 public:
  explicit CudnnInner(CudnnRoute& route) : route_(route) {}
  std::string name() const override { return route_.name() + ", conversions not counted"; }
  Work work() const override { return route_.work(); }
  Expected<bool> bind(const Tensors& tensors) override {
    if (auto bound = route_.bind(tensors); !bound) return bound;
    return route_.take();
  }
  Expected<bool> launch() override { return route_.convolve(); }
  Expected<bool> deliver() override { return route_.deliver(); }
  std::size_t guard_violations() override { return route_.guard_violations(); }

 private:
  CudnnRoute& route_;
};

}  // namespace

std::string CudnnDirection::name() const {
  switch (bias) {
    case BiasWay::after:
      return plan.route + ", bias added after";
    case BiasWay::initial:
      return plan.route + ", added to bias";
    case BiasWay::fused:
      return plan.route + ", bias fused";
    case BiasWay::none:
      break;
  }
  return plan.route;
}

std::size_t layout_bytes(const CudnnDirection& direction, const Problem& problem, Accuracy accuracy) {
  if (!converts(direction)) return 0;
  return aligned(bytes_in(problem.x_count(), accuracy)) + aligned(bytes_in(problem.y_count(), accuracy));
}

double traffic_bytes(const CudnnDirection& direction, const Problem& problem, Accuracy accuracy) {
  const double x = static_cast<double>(problem.x_count()), y = static_cast<double>(problem.y_count());
  double elements = x + static_cast<double>(problem.w_count()) + y;
  if (converts(direction)) elements += 2 * x + 2 * y;
  if (direction.bias == BiasWay::initial) elements += 2 * y;  // written, and read by the convolution
  if (direction.bias == BiasWay::after && !converts(direction)) elements += 2 * y;
  return elements * bytes_of(element_of(accuracy));
}

void set_runnables(BaselineRoute& route, std::shared_ptr<CudnnSession> session, std::shared_ptr<ConvolutionGraph> graph,
                   const CudnnDirection& direction, const Problem& problem, Accuracy accuracy, EngineChoice choice) {
  auto runnable = std::make_unique<CudnnRoute>(std::move(session), std::move(graph), direction, problem, accuracy,
                                               std::move(choice));
  if (converts(direction)) route.inner = std::make_unique<CudnnInner>(*runnable);
  route.runnable = std::move(runnable);
}

}  // namespace tuner
#endif
