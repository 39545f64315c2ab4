// Inputs that change between launches: what is kept from before is wrong afterwards, on the CPU's path and the GPU's.
#include "tuner/verify/change.h"

#include <gmock/gmock.h>

#include "tests/verify/emulated_device.h"
#include "tests/verify/writer.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace tuner::testing;

constexpr Values kKinds[] = {Values::normal,        Values::positive, Values::large_mean, Values::spike,
                             Values::wide_channels, Values::integers, Values::index_coded};

/// x as it stands on a device whose memory is this process's.
std::vector<float> x_of(const Verifier& verifier, const Problem& problem, Accuracy accuracy) {
  const auto* const x = static_cast<const std::byte*>(verifier.tensors().x);
  return widened({x, x + problem.x_count() * bytes_of(element_of(accuracy))}, element_of(accuracy));
}

TEST(OutputsReached, AreTheTapsOfEveryChannelOfTheGroup) {
  // 4 inputs, 2 groups of 3 outputs, K 3, stride 2, padding 1, dilation 2: length 5 gives 11.
  const Problem problem = problem_of(4, 6, 3, 2, 1, 0, 2, 2, 5, 2);
  ASSERT_EQ(problem.length_out(), 11);
  const std::int64_t second_batch_channel_2 = (4 + 2) * 5;  // of the second group
  EXPECT_THAT(outputs_reached(problem, second_batch_channel_2 + 2),
              ElementsAre(102, 104, 106, 113, 115, 117, 124, 126, 128));  // t 3, 5, 7 of rows 9, 10, 11
  EXPECT_THAT(outputs_reached(problem, second_batch_channel_2), ElementsAre(100, 102, 111, 113, 122, 124));  // t -1
}

TEST(OutputsReached, AreNoneOfAnElementThatPaddingCutsOff) {
  const Problem problem = problem_of(1, 1, 3, 1, 2, 0, 1, 1, 4);  // 2 outputs
  ASSERT_EQ(problem.length_out(), 2);
  EXPECT_THAT(outputs_reached(problem_of(1, 1, 1, 1, 1, 0, 1, 1, 4), 0), IsEmpty());
  EXPECT_THAT(outputs_reached(problem, 0), ElementsAre(0));
}

TEST(DrawnPlace, IsOneThatSomeOutputReadsButNoEndOfX) {
  const Problem cropped = problem_of(3, 2, 1, 1, 400, 0, 1, 1, 802, 2);  // 2 of 802 elements of a row are read
  const Problem short_rows = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 3);
  int none = 0;
  for (ct1d::check::uint64 bits = 0; bits < 50; ++bits) {
    const auto place = drawn_place(cropped, bits), middle = drawn_place(short_rows, bits);
    ASSERT_TRUE(place);
    EXPECT_FALSE(outputs_reached(cropped, *place).empty()) << *place;
    EXPECT_TRUE(!middle || *middle == 1) << *middle;
    none += !middle;
    EXPECT_TRUE(drawn_place(problem_of(1, 1, 1, 1, 0, 0, 1, 1, 2), bits));  // has nothing but ends
  }
  EXPECT_GT(none, 0);
  EXPECT_LT(none, 50);
}

TEST(DrawnPlace, IsNoneForAnOutputBetweenTheTaps) {
  int none = 0;
  for (ct1d::check::uint64 bits = 0; bits < 50; ++bits)
    none += !drawn_place(problem_of(1, 1, 1, 9, 0, 0, 1, 1, 400), bits);
  EXPECT_GT(none, 20);
  EXPECT_LT(none, 50);
}

/// Both paths: on the CPU, and the GPU's kernels emulated.
class ChangedInputs : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<ResidentVerifier> verifier_for(const Problem& problem, Accuracy accuracy, Values values) {
    if (GetParam()) return make_cuda_verifier(emulated_, problem, accuracy, {}, values, 3, nullptr);
    return make_cpu_verifier(device_, problem, accuracy, make_inputs(problem, element_of(accuracy), values, 3));
  }
  std::unique_ptr<ResidentVerifier> verifier_for(const Problem& problem, const Inputs& inputs) {
    if (GetParam()) return make_cuda_verifier(emulated_, problem, Accuracy::fp32, {}, Values::normal, 0, &inputs);
    return make_cpu_verifier(device_, problem, Accuracy::fp32, inputs);
  }

  MemoryDevice device_;
  emulation::VerifyDevice emulated_;
};

TEST_P(ChangedInputs, MakeWhatWasRightWrongAndBack) {
  for (const Problem& problem : odd_problems())
    for (const Accuracy accuracy : kAccuracies)
      for (const Values values : kKinds) {
        const std::string what =
            summary(problem) + " " + std::string(to_string(accuracy)) + " " + std::string(to_string(values));
        const auto verifier = verifier_for(problem, accuracy, values);
        Inputs inputs = make_inputs(problem, element_of(accuracy), values, 3);
        const Reference before = verifier->reference();
        Writer right(right_output(problem, accuracy, inputs), accuracy);
        ASSERT_TRUE(verifier->verify(right)) << what;

        verifier->change_inputs();
        ASSERT_THAT(verifier->check_again(right).failure().reason, HasSubstr("never written")) << what;
        ASSERT_TRUE(right.launch());
        const auto replayed = verifier->check_again(right);
        ASSERT_FALSE(replayed) << what;
        ASSERT_THAT(replayed.failure().reason, StartsWith("y is the output for inputs of an earlier launch")) << what;

        const auto x = x_of(*verifier, problem, accuracy);
        int changed = 0;
        for (std::size_t i = 0; i < x.size(); ++i) changed += x[i] != inputs.x[i];
        ASSERT_GE(changed, 1) << what;
        ASSERT_LE(changed, 3) << what;
        const std::vector<float> first_x = std::exchange(inputs.x, x);
        const Reference changed_reference = make_reference(problem, accuracy, inputs);
        ASSERT_EQ(verifier->reference().y, changed_reference.y) << what;
        ASSERT_EQ(verifier->reference().bound, changed_reference.bound) << what;
        Writer anew(right_output(problem, accuracy, inputs), accuracy);
        ASSERT_TRUE(anew.bind(verifier->tensors()));
        ASSERT_TRUE(anew.launch());
        const auto again = verifier->check_again(anew);
        ASSERT_TRUE(again) << what << ": " << again.failure().reason;

        verifier->change_inputs();
        ASSERT_EQ(x_of(*verifier, problem, accuracy), first_x) << what;
        ASSERT_EQ(verifier->reference().y, before.y) << what;
        ASSERT_EQ(verifier->reference().row_norm, before.row_norm) << what;
        ASSERT_TRUE(right.launch());
        ASSERT_TRUE(verifier->check_again(right)) << what;
        ASSERT_TRUE(anew.launch());
        ASSERT_THAT(verifier->check_again(anew).failure().reason, HasSubstr("kept instead of computed")) << what;
      }
}

TEST_P(ChangedInputs, ArePutBackByTheNextProof) {
  const Problem problem = odd_problems().front();
  const auto verifier = verifier_for(problem, Accuracy::fp32, Values::normal);
  Writer right(right_output(problem, Accuracy::fp32, make_inputs(problem, Element::f32, Values::normal, 3)),
               Accuracy::fp32);
  verifier->change_inputs();
  EXPECT_TRUE(verifier->verify(right));
}

TEST_P(ChangedInputs, AreWatchedAndRestoredLikeTheFirstOnes) {
  const Problem problem = odd_problems().front();
  const auto verifier = verifier_for(problem, Accuracy::fp32, Values::normal);
  verifier->change_inputs();
  const auto x = x_of(*verifier, problem, Accuracy::fp32);
  Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 3);
  inputs.x = x;
  Writer right(right_output(problem, Accuracy::fp32, inputs), Accuracy::fp32);
  ASSERT_TRUE(right.bind(verifier->tensors()));
  ASSERT_TRUE(right.launch());
  ASSERT_TRUE(verifier->check_again(right));
  static_cast<float*>(verifier->tensors().x)[7] += 1;
  EXPECT_EQ(verifier->check_again(right).failure().reason, "changed its inputs");
  EXPECT_EQ(x_of(*verifier, problem, Accuracy::fp32), x);
  EXPECT_TRUE(verifier->check_again(right));
}

TEST_P(ChangedInputs, StandAsTheyAreWhereNothingOfThemShows) {
  Problem problem = problem_of(2, 2, 1, 1, 0, 0, 1, 1, 5);
  problem.bias = true;
  const auto verifier = verifier_for(problem, Inputs{std::vector<float>(10, 1), std::vector<float>(4, 0), {3, 3}});
  Writer threes(std::vector<float>(10, 3), Accuracy::fp32);
  ASSERT_TRUE(verifier->verify(threes));
  verifier->change_inputs();
  EXPECT_EQ(x_of(*verifier, problem, Accuracy::fp32), std::vector<float>(10, 1));
  EXPECT_FALSE(verifier->check_again(threes));  // y was filled with NaN all the same
}

TEST_P(ChangedInputs, CountTheNansThatTheyTakeAway) {
  const Problem problem = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 1);
  const auto verifier = verifier_for(problem, Inputs{{kNan}, {2}, {}});
  Writer nan({kNan}, Accuracy::fp32), number({-2}, Accuracy::fp32);
  ASSERT_TRUE(verifier->verify(nan));
  verifier->change_inputs();
  ASSERT_TRUE(number.bind(verifier->tensors()));
  ASSERT_TRUE(number.launch());
  const auto errors = verifier->check_again(number);
  EXPECT_TRUE(errors) << errors.failure().reason;
}

TEST_P(ChangedInputs, OfAnEmptyBatchAreNone) {
  const Problem problem = problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 0);
  const auto verifier = verifier_for(problem, Accuracy::fp32, Values::normal);
  verifier->change_inputs();
  Writer writer({}, Accuracy::fp32);
  EXPECT_TRUE(verifier->check_again(writer));
}

TEST_P(ChangedInputs, OutputBitsTellOutputsApart) {
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16}) {
    const Problem problem = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 9);  // an odd number of 16-bit words
    const auto verifier = verifier_for(problem, accuracy, Values::normal);
    std::vector<std::uint64_t> seen;
    for (const float last : {1.0f, 2.0f, 1.0f}) {
      std::vector<float> y(9, 3);
      y.back() = last;
      Writer writer(y, accuracy);
      ASSERT_TRUE(writer.bind(verifier->tensors()));
      ASSERT_TRUE(writer.launch());
      seen.push_back(verifier->output_bits());
    }
    EXPECT_EQ(seen[0], seen[2]);
    EXPECT_NE(seen[0], seen[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, ChangedInputs, ::testing::Bool(),
                         [](const auto& path) { return path.param ? "Emulated" : "Cpu"; });

}  // namespace
}  // namespace tuner
