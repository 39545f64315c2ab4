// The verifier's GPU path without a GPU: its kernels on the CPU against the CPU's own path.
#include <gmock/gmock.h>

#include "tests/verify/emulated_device.h"
#include "tests/verify/writer.h"

namespace tuner {
namespace {

using namespace tuner::testing;

TEST(EmulatedVerify, InputsAndReferenceAreTheCpus) {
  emulation::VerifyDevice device;
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies)
      for (const Values values : {Values::normal, Values::wide_channels, Values::index_coded, Values::patches}) {
        const Element element = element_of(accuracy);
        const auto verifier = make_cuda_verifier(device, problem, accuracy, {}, values, 3, nullptr);
        const Inputs inputs = make_inputs(problem, element, values, 3);
        const auto* const x = static_cast<const std::byte*>(verifier->tensors().x);
        const auto bytes = static_cast<std::size_t>(problem.x_count() * bytes_of(element));
        ASSERT_EQ(widened({x, x + bytes}, element), inputs.x) << summary(problem);
        expect_same(verifier->reference(), make_reference(problem, accuracy, inputs), summary(problem));
      }
}

TEST(EmulatedVerify, VerdictsAreTheCpus) {
  emulation::VerifyDevice device;
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies) {
      const auto verifier = make_cuda_verifier(device, problem, accuracy, {}, Values::normal, 3, nullptr);
      expect_same_verdicts(*verifier, problem, accuracy);
    }
}

TEST(EmulatedVerify, ChangedInputsAreCaughtAndRestored) {
  emulation::VerifyDevice device;
  const Problem problem = problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 2);
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16}) {
    const auto verifier = make_cuda_verifier(device, problem, accuracy, {}, Values::normal, 3, nullptr);
    const auto y = right_output(problem, accuracy, make_inputs(problem, element_of(accuracy), Values::normal, 3));
    Writer writer(y, accuracy);
    ASSERT_TRUE(verifier->verify(writer));
    auto* const last =
        static_cast<unsigned char*>(verifier->tensors().w) + problem.w_count() * bytes_of(element_of(accuracy)) - 1;
    *last = static_cast<unsigned char>(*last ^ 1);
    const auto caught = verifier->check_again(writer);
    ASSERT_FALSE(caught);
    EXPECT_EQ(caught.failure().reason, "changed its inputs");
    EXPECT_TRUE(verifier->verify(writer));
  }
}

TEST(EmulatedVerify, AnEmptyBatchNeedsNoKernel) {
  emulation::VerifyDevice device;
  const Problem problem = problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 0);
  const CompiledUnit kernels;
  auto verifier = make_verifier(device, problem, Accuracy::fp32, Values::normal, 1, &kernels);
  ASSERT_TRUE(verifier) << verifier.failure().reason;
  Writer writer({}, Accuracy::fp32);
  EXPECT_TRUE((*verifier)->verify(writer));
}

}  // namespace
}  // namespace tuner
