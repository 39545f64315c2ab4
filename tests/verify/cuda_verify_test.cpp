// The GPU's inputs, reference and comparison against the CPU's.
#include <gmock/gmock.h>

#include "tests/device/gpu.h"
#include "tests/verify/data.h"
#include "tuner/verify/inputs.h"
#include "tuner/verify/resident.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using namespace tuner::testing;

/// Writes a given y.
class Writer : public Runnable {
 public:
  Writer(std::vector<float> y, Accuracy accuracy) : y_(stored(y, element_of(accuracy))) {}
  std::string name() const override { return "writer"; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    return true;
  }
  Expected<bool> launch() override {
    TUNER_CUDA(cudaDeviceSynchronize());
    TUNER_CUDA(cudaMemcpy(tensors_.y, y_.data(), y_.size(), cudaMemcpyHostToDevice));
    return true;
  }

 private:
  std::vector<std::byte> y_;
  Tensors tensors_;
};

class CudaVerifyGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (device_) kernels_ = compile(verify_unit());
  }
  std::vector<float> download(const void* tensor, std::int64_t count, Element element) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * bytes_of(element)));
    TUNER_CUDA(cudaMemcpy(bytes.data(), tensor, bytes.size(), cudaMemcpyDeviceToHost));
    return widened(bytes, element);
  }
  CompiledUnit kernels_;
};

/// Shapes with groups, gaps, ragged channel blocks, more than one tile and rows of one.
std::vector<Problem> odd_problems() {
  std::vector<Problem> problems{problem_of(6, 10, 5, 3, 2, 1, 4, 2, 37, 3), problem_of(3, 7, 3, 1, 0, 0, 1, 1, 9001, 2),
                                problem_of(24, 24, 5, 2, 2, 1, 1, 24, 300, 2), problem_of(9, 5, 4, 2, 1, 0, 2, 1, 1, 7),
                                problem_of(4, 4, 2, 16, 0, 3, 1, 1, 50)};
  problems[0].bias = problems[3].bias = true;
  return problems;
}

TEST_F(CudaVerifyGpu, InputsAndReferenceAreTheCpus) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies)
      for (const Values values : {Values::normal, Values::large_mean, Values::spike, Values::wide_channels,
                                  Values::integers, Values::index_coded, Values::positive}) {
        const std::string what =
            summary(problem) + " " + std::string(to_string(accuracy)) + " " + std::string(to_string(values));
        const Element element = element_of(accuracy);
        const auto verifier = make_cuda_verifier(*device_, problem, accuracy, kernels_, values, 3, nullptr);
        const Inputs inputs = make_inputs(problem, element, values, 3);
        const Runnable::Tensors tensors = verifier->tensors();
        ASSERT_EQ(download(tensors.x, problem.x_count(), element), inputs.x) << what;
        ASSERT_EQ(download(tensors.w, problem.w_count(), element), inputs.w) << what;
        if (problem.bias) {
          ASSERT_EQ(download(tensors.bias, problem.out_channels, element), inputs.bias) << what;
        }
        const Reference gpu = verifier->reference(), cpu = make_reference(problem, accuracy, inputs);
        ASSERT_EQ(gpu.y, cpu.y) << what;
        ASSERT_EQ(gpu.bound, cpu.bound) << what;
        ASSERT_EQ(gpu.nans, cpu.nans);
        for (std::size_t row = 0; row < cpu.row_norm.size(); ++row) {
          ASSERT_NEAR(gpu.row_norm[row], cpu.row_norm[row], 1e-12 * cpu.row_norm[row]) << what;
          ASSERT_NEAR(gpu.row_bound[row], cpu.row_bound[row], 1e-9 * cpu.row_bound[row]) << what;
        }
        ASSERT_NEAR(gpu.plain_error, cpu.plain_error, 1e-9 * cpu.plain_error) << what;
      }
}

TEST_F(CudaVerifyGpu, VerdictsAreTheCpus) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies) {
      const Inputs inputs = make_inputs(problem, element_of(accuracy), Values::normal, 3);
      const Reference reference = make_reference(problem, accuracy, inputs);
      const auto verifier = make_cuda_verifier(*device_, problem, accuracy, kernels_, Values::normal, 3, nullptr);
      auto right = plain_sum(problem, inputs);
      const auto format = ct1d::check::format_of(ct1d::check::storage_of(static_cast<ct1d::check::Class>(accuracy)));
      for (float& value : right) value = static_cast<float>(ct1d::check::round_to(value, format));
      auto zeroed = right, unwritten = right, wrong = right;
      std::fill_n(zeroed.end() - problem.length_out(), problem.length_out(), 0.0f);
      unwritten[unwritten.size() / 2] = kNan;
      wrong[wrong.size() / 3] += 1;
      for (const auto& y : {right, zeroed, unwritten, wrong}) {
        Writer writer(y, accuracy);
        const auto gpu = verifier->verify(writer), cpu = compare(problem, accuracy, reference, y);
        ASSERT_EQ(static_cast<bool>(gpu), static_cast<bool>(cpu)) << summary(problem);
        if (!gpu) {
          ASSERT_EQ(gpu.failure().reason, cpu.failure().reason);
          continue;
        }
        ASSERT_DOUBLE_EQ(gpu->element, cpu->element);
        ASSERT_NEAR(gpu->row, cpu->row, 1e-9);
      }
    }
}

TEST_F(CudaVerifyGpu, GivenInputsAndNonFiniteValues) {
  const Problem problem = problem_of(1, 1, 3, 2, 0, 0, 1, 1, 4);
  const Inputs inputs{{1, 1, 1, 1}, {1, kNan, 1}, {}};
  auto verifier = make_verifier(*device_, problem, Accuracy::fp32, inputs, &kernels_);
  ASSERT_TRUE(verifier) << verifier.failure().reason;
  Writer right({1, kNan, 2, kNan, 2, kNan, 2, kNan, 1}, Accuracy::fp32);
  EXPECT_TRUE((*verifier)->verify(right));
  Writer wrong({1, 0, 2, kNan, 2, kNan, 2, kNan, 1}, Accuracy::fp32);
  EXPECT_FALSE((*verifier)->verify(wrong));
}

TEST_F(CudaVerifyGpu, WritesOutsideAndChangedInputsAreCaught) {
  Problem problem = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 1000);
  Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 1);
  inputs.w = {1};  // so that copying is right
  auto verifier = make_verifier(*device_, problem, Accuracy::fp32, inputs, &kernels_);
  ASSERT_TRUE(verifier);
  const CompiledUnit probes = compile(probe_unit());
  const ct1d::LaunchShape shape{1, 1, 1, 256, 1, 1, 0, 1};
  auto copy = make_runnable(*device_, problem, probe_program("copy", shape), probes, "copy");
  auto past = make_runnable(*device_, problem, probe_program("past_the_end", shape), probes, "past");
  ASSERT_TRUE((*verifier)->verify(**copy));
  const auto caught = (*verifier)->verify(**past);
  ASSERT_FALSE(caught);
  EXPECT_EQ(caught.failure().reason, "wrote outside y: 4 bytes of its guard bands changed");
  EXPECT_TRUE((*verifier)->verify(**copy));

  const float changed = 9;
  TUNER_CUDA(cudaMemcpy((*verifier)->tensors().x, &changed, sizeof changed, cudaMemcpyHostToDevice));
  const auto inputs_changed = (*verifier)->check_again(**copy);
  ASSERT_FALSE(inputs_changed);
  EXPECT_EQ(inputs_changed.failure().reason, "changed its inputs");
  EXPECT_TRUE((*verifier)->verify(**copy));  // they were restored
}

TEST_F(CudaVerifyGpu, WhatDoesNotFitIsAFailureAndFreesWhatItTook) {
  const Problem huge = problem_of(1024, 1024, 1, 1, 0, 0, 1, 1, 1 << 24);
  const auto verifier = make_verifier(*device_, huge, Accuracy::fp32, Values::normal, 1, &kernels_);
  ASSERT_FALSE(verifier);
  EXPECT_EQ(verifier.failure().outcome, Outcome::launch_failed);
  EXPECT_THAT(verifier.failure().reason, HasSubstr("for the float64 reference"));
  EXPECT_TRUE(
      make_verifier(*device_, problem_of(2, 2, 3, 1, 0, 0, 1, 1, 9), Accuracy::fp32, Values::normal, 1, &kernels_));
}

}  // namespace
}  // namespace tuner
