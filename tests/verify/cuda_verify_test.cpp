// The GPU's inputs, reference and comparison against the CPU's.
#include <gmock/gmock.h>

#include "tests/device/gpu.h"
#include "tests/verify/writer.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using namespace tuner::testing;

void copy_to_device(void* target, const void* source, std::size_t bytes) {
  TUNER_CUDA(cudaDeviceSynchronize());
  TUNER_CUDA(cudaMemcpy(target, source, bytes, cudaMemcpyHostToDevice));
}

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

TEST_F(CudaVerifyGpu, InputsAndReferenceAreTheCpus) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies)
      for (const Values values : {Values::normal, Values::large_mean, Values::spike, Values::wide_channels,
                                  Values::integers, Values::index_coded, Values::positive, Values::patches}) {
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
        expect_same(verifier->reference(), make_reference(problem, accuracy, inputs), what);
      }
}

TEST_F(CudaVerifyGpu, VerdictsAreTheCpus) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies) {
      const auto verifier = make_cuda_verifier(*device_, problem, accuracy, kernels_, Values::normal, 3, nullptr);
      expect_same_verdicts(*verifier, problem, accuracy, copy_to_device);
    }
}

TEST_F(CudaVerifyGpu, GivenInputsAndNonFiniteValues) {
  const Problem problem = problem_of(1, 1, 3, 2, 0, 0, 1, 1, 4);
  const Inputs inputs{{1, 1, 1, 1}, {1, kNan, 1}, {}};
  auto verifier = make_verifier(*device_, problem, Accuracy::fp32, inputs, &kernels_);
  ASSERT_TRUE(verifier) << verifier.failure().reason;
  Writer right({1, kNan, 2, kNan, 2, kNan, 2, kNan, 1}, Accuracy::fp32, copy_to_device);
  EXPECT_TRUE((*verifier)->verify(right));
  Writer wrong({1, 0, 2, kNan, 2, kNan, 2, kNan, 1}, Accuracy::fp32, copy_to_device);
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

TEST_F(CudaVerifyGpu, ChangedInputsAndTheirReferenceAreTheCpus) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies) {
      const Element element = element_of(accuracy);
      const auto verifier = make_cuda_verifier(*device_, problem, accuracy, kernels_, Values::normal, 3, nullptr);
      Inputs inputs = make_inputs(problem, element, Values::normal, 3);
      Writer first(right_output(problem, accuracy, inputs), accuracy, copy_to_device);
      ASSERT_TRUE(verifier->verify(first));
      const std::uint64_t bits = verifier->output_bits();
      verifier->change_inputs();
      EXPECT_THAT(verifier->check_again(first).failure().reason, HasSubstr("never written"));
      ASSERT_TRUE(first.launch());
      EXPECT_THAT(verifier->check_again(first).failure().reason, HasSubstr("kept instead of computed"));
      const std::vector<float> before = inputs.x;
      inputs.x = download(verifier->tensors().x, problem.x_count(), element);
      EXPECT_NE(inputs.x, before);
      const Reference changed = make_reference(problem, accuracy, inputs);
      EXPECT_EQ(verifier->reference().y, changed.y);
      EXPECT_EQ(verifier->reference().bound, changed.bound);
      Writer anew(right_output(problem, accuracy, inputs), accuracy, copy_to_device);
      ASSERT_TRUE(anew.bind(verifier->tensors()));
      ASSERT_TRUE(anew.launch());
      EXPECT_TRUE(verifier->check_again(anew));
      EXPECT_NE(verifier->output_bits(), bits);
      EXPECT_TRUE(verifier->verify(first));
      EXPECT_EQ(verifier->output_bits(), bits);
      EXPECT_EQ(download(verifier->tensors().x, problem.x_count(), element), before);
    }
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
