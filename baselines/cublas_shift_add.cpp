// cuBLAS as a way to compute the transposed convolution: products by the library, shifts by pointers
// (shift_add_plan.h).
#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "baselines/cublas_library.h"
#include "baselines/cublaslt_library.h"
#include "baselines/route.h"
#include "baselines/support_kernels.h"
#include "tuner/device/cuda_device.h"

namespace tuner {
namespace {

constexpr std::size_t kHandleWorkspace = std::size_t{32} << 20;  // what NVIDIA recommends on Hopper
constexpr std::uint32_t kPoison = 0xFFFFFFFF;                    // NaN: whatever reads what nobody wrote shows
constexpr std::size_t kL2Share = 2;  // tiles of half the L2: written by the product, still there for the gather

/// What the routes of one routes() call share.
struct Session {
  Session(Device& on, std::size_t limit) : device(on), workspace(on, limit) {}
  Device& device;
  SharedWorkspace workspace;
  std::unique_ptr<Buffer> handle_workspace;
  std::shared_ptr<CublasHandle> handle;  // destroyed before the memory it uses
  Expected<std::shared_ptr<CublasLt>> lt = Failure{};
  std::shared_ptr<SupportKernels> kernels;
};

class ShiftAdd : public Runnable {
 public:
  ShiftAdd(std::shared_ptr<Session> session, const Problem& problem, Accuracy accuracy, ShiftAddPlan plan,
           std::shared_ptr<GemmCalls> calls, const std::string& engine)
      : session_(std::move(session)),
        problem_(problem),
        accuracy_(accuracy),
        plan_(std::move(plan)),
        calls_(std::move(calls)),
        name_(fmt::format("cublas_shift_add: {}, {}", plan_.route, engine)) {}

  std::string name() const override { return name_; }
  Work work() const override { return vendor_work(problem_, accuracy_, false); }

  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    try {
      if (plan_.workspace_bytes > 0) workspace_ = session_->workspace.request(plan_.workspace_bytes);
      if (workspace_) workspace_->fill(kPoison);
      if (plan_.packed && !packed_)
        packed_ = session_->device.allocate(static_cast<std::size_t>(problem_.w_count()) * element_bytes());
    } catch (const std::bad_alloc&) {
      return Failure{
          Outcome::launch_failed, fmt::format("no device memory for {} bytes of workspace", plan_.workspace_bytes), {}};
    }
    if (auto prepared = prepare(); !prepared) return prepared;
    return true;
  }

  Expected<bool> prepare() override {
    if (!plan_.packed) return false;
    auto arguments = plan_.packing;
    arguments.source = tensors_.w;
    arguments.target = packed_->data();
    return session_->kernels->permute(element_of(accuracy_), arguments);
  }

  Expected<bool> launch() override {
    for (const ShiftAddStep& step : plan_.steps)
      if (auto done = std::visit([&](const auto& s) { return run(s); }, step); !done) return done;
    return true;
  }

  std::size_t guard_violations() override {
    return (workspace_ ? workspace_->guard_violations() : 0) + (packed_ ? packed_->guard_violations() : 0);
  }

 private:
  std::size_t element_bytes() const { return static_cast<std::size_t>(bytes_of(element_of(accuracy_))); }
  const char* element_at(const void* base, std::int64_t offset) const {
    return static_cast<const char*>(base) + offset * static_cast<std::int64_t>(element_bytes());
  }
  char* element_at(void* base, std::int64_t offset) const {
    return static_cast<char*>(base) + offset * static_cast<std::int64_t>(element_bytes());
  }
  float* workspace_at(std::int64_t offset) const { return static_cast<float*>(workspace_->data()) + offset; }

  Expected<bool> run(const FillStep& step) {
    ct1d::baseline::FillArguments a{};
    const bool to_y = step.target == Destination::y;
    a.y = to_y ? static_cast<void*>(element_at(tensors_.y, step.offset)) : workspace_at(step.offset);
    a.bias = step.bias ? tensors_.bias : nullptr;
    a.rows = step.rows;
    a.channels = problem_.out_channels;
    a.row_stride = a.columns = problem_.length_out();
    a.left_end = step.left_end;
    a.right_begin = step.right_begin;
    return session_->kernels->fill(to_y ? element_of(accuracy_) : Element::f32, a);
  }

  Expected<bool> run(const GemmStep& step) {
    const void* weights = plan_.packed ? packed_->data() : tensors_.w;
    void* c = step.target == Destination::y ? static_cast<void*>(element_at(tensors_.y, step.c)) : workspace_at(step.c);
    return calls_->gemm(step, element_at(tensors_.x, step.a), element_at(weights, step.b), c);
  }

  Expected<bool> run(const GatherStep& step) {
    auto a = gather_arguments(problem_, step);
    a.columns = workspace_at(0);
    a.bias = problem_.bias ? tensors_.bias : nullptr;
    a.y = element_at(tensors_.y, step.first_batch * a.y_batch_stride);
    return session_->kernels->gather(element_of(accuracy_), a);
  }

  std::shared_ptr<Session> session_;
  Problem problem_;
  Accuracy accuracy_;
  ShiftAddPlan plan_;
  std::shared_ptr<GemmCalls> calls_;
  std::string name_;
  Tensors tensors_;
  std::shared_ptr<Buffer> workspace_;
  std::unique_ptr<Buffer> packed_;
};

Expected<std::shared_ptr<Session>> open_session(Device& device, Accuracy accuracy, const BaselineOptions& options,
                                                const CompiledUnit& kernels) {
  auto* cuda = dynamic_cast<CudaDevice*>(&device);
  if (!cuda) return Failure{Outcome::rejected, "needs a CUDA device", {}};
  auto session = std::make_shared<Session>(device, options.workspace_bytes);
  try {
    session->handle_workspace = device.allocate(kHandleWorkspace);
  } catch (const std::bad_alloc&) {
    return Failure{Outcome::launch_failed, "no device memory for cuBLAS's workspace", {}};
  }
  auto handle = make_cublas_handle(cuda->stream(), accuracy, session->handle_workspace->data(),
                                   session->handle_workspace->size());
  if (!handle) return handle.failure();
  session->handle = std::move(*handle);
  session->lt =
      make_cublaslt(cuda->stream(), accuracy, session->handle_workspace->data(), session->handle_workspace->size());
  auto loaded = SupportKernels::load(device, kernels);
  if (!loaded) return loaded.failure();
  session->kernels = *loaded;
  return session;
}

/// One plan by cuBLAS, which chooses its algorithms, then by those that cublasLt's heuristics name.
void append_routes(std::vector<BaselineRoute>& routes, const std::shared_ptr<Session>& session, const Problem& problem,
                   Accuracy accuracy, const ShiftAddPlan& plan) {
  const auto append = [&](const std::string& engine, const std::string& knobs, std::size_t workspace,
                          std::shared_ptr<GemmCalls> calls) {
    BaselineRoute route;
    route.route = plan.route;
    route.engine = engine;
    route.knobs = knobs;
    route.workspace_bytes = plan.workspace_bytes + workspace;
    route.traffic_bytes = traffic_bytes(plan, problem, accuracy);
    route.runnable =
        calls ? std::make_unique<ShiftAdd>(session, problem, accuracy, plan, std::move(calls), engine) : nullptr;
    routes.push_back(std::move(route));
  };
  append(session->handle->mode(), {}, kHandleWorkspace, session->handle);
  auto ways = session->lt ? (*session->lt)->ways(plan) : Expected<std::vector<CublasLtWay>>(session->lt.failure());
  if (!ways) {
    append("cublasLt", {}, 0, nullptr);
    routes.back().runnable = make_refused("cublas_shift_add: " + plan.route + ", cublasLt", ways.failure());
    return;
  }
  for (CublasLtWay& way : *ways) append(way.engine, way.knobs, way.workspace_bytes, std::move(way.calls));
}

class CublasShiftAdd : public Baseline {
 public:
  std::string_view name() const override { return "cublas_shift_add"; }
  Expected<std::string> version() override { return cublas_version(); }

  Expected<std::vector<BaselineRoute>> routes(Device& device, const Problem& problem, Accuracy accuracy,
                                              const BaselineOptions& options, const CompiledUnit& kernels) override {
    std::vector<BaselineRoute> routes;
    if (problem.batch == 0) {
      routes.push_back(empty_batch_route(name()));
      return routes;
    }
    auto session = open_session(device, accuracy, options, kernels);
    if (!session) return session.failure();
    std::vector<Expected<ShiftAddPlan>> plans;
    if (problem.stride == 1)
      for (const PackedOrder order : {PackedOrder::in_out, PackedOrder::out_in})
        plans.push_back(plan_gemm_per_tap(problem, accuracy, order, options.workspace_bytes));
    plans.push_back(plan_columns(problem, options.workspace_bytes));
    const auto l2 = static_cast<std::size_t>(device.environment().device.l2_bytes) / kL2Share;
    if (l2 > 0 && plans.back() && plans.back()->workspace_bytes > l2) plans.push_back(plan_columns(problem, l2));
    Failure last;
    for (auto& plan : plans) {
      if (!plan) {
        last = plan.failure();
        continue;
      }
      if (options.only && *options.only != plan->route) continue;
      append_routes(routes, *session, problem, accuracy, *plan);
    }
    if (routes.empty()) return last;
    return routes;
  }
};

}  // namespace

Baseline& cublas_shift_add_baseline() {
  static CublasShiftAdd baseline;
  return baseline;
}

}  // namespace tuner
