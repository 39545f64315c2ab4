#include "baselines/baseline.h"

#include <fmt/format.h>

#include "baselines/route.h"

namespace tuner {

Baseline& cudnn_baseline();
Baseline& cublas_shift_add_baseline();

namespace {

class Refused : public Runnable {
 public:
  Refused(std::string name, Failure failure) : name_(std::move(name)), failure_(std::move(failure)) {}
  std::string name() const override { return name_; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors&) override { return failure_; }
  Expected<bool> launch() override { return failure_; }

 private:
  std::string name_;
  Failure failure_;
};

class EmptyBatch : public Runnable {
 public:
  explicit EmptyBatch(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors&) override { return true; }
  Expected<bool> launch() override { return true; }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Runnable> make_refused(std::string name, Failure failure) {
  return std::make_unique<Refused>(std::move(name), std::move(failure));
}

BaselineRoute empty_batch_route(std::string_view baseline) {
  BaselineRoute route;
  route.route = "empty batch, library not called";
  route.runnable = std::make_unique<EmptyBatch>(fmt::format("{}: {}", baseline, route.route));
  return route;
}

Work vendor_work(const Problem& problem, Accuracy accuracy, bool transforms) {
  Work work;
  work.bytes = problem.min_bytes(bytes_of(element_of(accuracy)));
  if (transforms) return work;
  switch (accuracy) {
    case Accuracy::fp32:
      work.fma_fp32 = problem.flop();
      break;
    case Accuracy::tf32:
      work.tensor_tf32 = problem.flop();
      break;
    case Accuracy::fp16:
    case Accuracy::bf16:
      work.tensor_fp16 = problem.flop();
      break;
  }
  return work;
}

std::optional<std::string> tf32_override_warning(std::optional<std::string_view> value, Accuracy accuracy) {
  if (!value || value->empty()) return std::nullopt;
  if (*value == "0") {
    if (accuracy != Accuracy::tf32) return std::nullopt;
    return "NVIDIA_TF32_OVERRIDE=0: cuBLAS and cuDNN compute class tf32 in full fp32, so its baselines are slower than "
           "they need be";
  }
  if (accuracy != Accuracy::fp32) return std::nullopt;
  return fmt::format(
      "NVIDIA_TF32_OVERRIDE={}: cuBLAS and cuDNN may use TF32 in class fp32, where the check then refuses them",
      *value);
}

Baseline* find_baseline(std::string_view name) {
  for (Baseline* baseline : {&cudnn_baseline(), &cublas_shift_add_baseline()})
    if (baseline->name() == name) return baseline;
  return nullptr;
}

std::vector<std::string_view> baseline_names() { return {cudnn_baseline().name(), cublas_shift_add_baseline().name()}; }

}  // namespace tuner
