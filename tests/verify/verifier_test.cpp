// The order of checks around a launch, on ordinary memory.
#include <gmock/gmock.h>

#include <limits>

#include "tests/device/memory_device.h"
#include "tests/verify/data.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace tuner::testing;

/// A Runnable that computes the right y and then does what a test says.
class Candidate : public Runnable {
 public:
  Candidate(const Problem& problem, Accuracy accuracy) : problem_(problem), accuracy_(accuracy) {}

  std::function<void(const Tensors&)> spoil = [](const Tensors&) {};
  std::function<Expected<bool>()> instead;
  std::size_t own_violations = 0;
  bool saw_nan = false;  // y before the launch

  std::string name() const override { return "candidate"; }
  Work work() const override { return {}; }
  std::size_t guard_violations() override { return own_violations; }
  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    return true;
  }
  Expected<bool> launch() override {
    if (instead) return instead();
    const auto* const x = static_cast<const float*>(tensors_.x);
    const auto* const w = static_cast<const float*>(tensors_.w);
    const auto* const bias = static_cast<const float*>(tensors_.bias);
    Inputs inputs{{x, x + problem_.x_count()}, {w, w + problem_.w_count()}, {}};
    if (bias) inputs.bias.assign(bias, bias + problem_.out_channels);
    auto* const y = static_cast<float*>(tensors_.y);
    saw_nan = std::all_of(y, y + problem_.y_count(), [](float value) { return std::isnan(value); });
    const auto right = plain_sum(problem_, inputs);
    std::copy(right.begin(), right.end(), y);
    spoil(tensors_);
    return true;
  }

 private:
  Problem problem_;
  Accuracy accuracy_;
  Tensors tensors_;
};

class VerifierTest : public ::testing::Test {
 protected:
  VerifierTest() {
    problem_.bias = true;
    auto made = make_verifier(device_, problem_, Accuracy::fp32, Values::normal, 5);
    if (!made) throw std::runtime_error(made.failure().reason);
    verifier_ = std::move(*made);
  }
  std::string reason_of_failure() {
    const auto errors = verifier_->verify(candidate_);
    if (errors) return "passed";
    EXPECT_EQ(errors.failure().outcome, Outcome::wrong_result);
    return errors.failure().reason;
  }

  Problem problem_ = problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 2);
  MemoryDevice device_;
  std::unique_ptr<Verifier> verifier_;
  Candidate candidate_{problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 2), Accuracy::fp32};
};

TEST(Memory, OfAProblemIsThatOfItsTensorsAndReference) {
  DeviceFacts h200;
  h200.name = "NVIDIA H200";
  h200.memory_bytes = 150'000'000'000;
  const Problem seed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};  // x and y of 537 M elements each
  EXPECT_EQ(memory_in_words(seed, Accuracy::fp32, h200),
            "B64 128->128 K3 s1 L65536 needs 4.3 GB for x, w and y and 8.59 GB for the float64 reference; NVIDIA H200 "
            "has 150 GB");
  EXPECT_FALSE(exceeds_memory(seed, Accuracy::fp32, h200));
  h200.memory_bytes = 12'800'000'000;
  EXPECT_TRUE(exceeds_memory(seed, Accuracy::fp32, h200));
  EXPECT_FALSE(exceeds_memory(seed, Accuracy::fp16, h200)) << "2.15 GB less";
  const Problem huge{64, 8192, 8192, 3, 1, 0, 0, 1, 1, false, 1'000'000'000};
  EXPECT_THAT(memory_in_words(huge, Accuracy::fp32, h200), HasSubstr("needs 4.19 PB for x, w and y and 8.39 PB"));
  h200.memory_bytes = 0;
  EXPECT_FALSE(exceeds_memory(huge, Accuracy::fp32, h200)) << "unknown";
}

TEST_F(VerifierTest, PassesWhatIsRightAndStartsFromNan) {
  problem_.bias = true;
  Candidate candidate(problem_, Accuracy::fp32);
  const auto errors = verifier_->verify(candidate);
  ASSERT_TRUE(errors) << errors.failure().reason;
  EXPECT_LE(errors->row, 1);
  EXPECT_TRUE(candidate.saw_nan);
  EXPECT_TRUE(verifier_->check_again(candidate));
  EXPECT_GT(verifier_->plain_error(), 0);
}

TEST_F(VerifierTest, CatchesAForgottenBias) { EXPECT_THAT(reason_of_failure(), StartsWith("y[b ")); }

TEST_F(VerifierTest, CatchesAWriteBeyondTheOutputOnceAndForgets) {
  candidate_ = Candidate(problem_, Accuracy::fp32);
  candidate_.spoil = [this](const Runnable::Tensors& t) { static_cast<float*>(t.y)[problem_.y_count()] = 1; };
  EXPECT_EQ(reason_of_failure(), "wrote outside y: 4 bytes of its guard bands changed");
  candidate_.spoil = [](const Runnable::Tensors&) {};
  EXPECT_EQ(reason_of_failure(), "passed");
  candidate_.spoil = [](const Runnable::Tensors& t) { static_cast<char*>(t.w)[-1] = 1; };
  EXPECT_EQ(reason_of_failure(), "wrote outside w: 1 bytes of its guard bands changed");
  candidate_.spoil = [](const Runnable::Tensors&) {};
  candidate_.own_violations = 12;
  EXPECT_THAT(reason_of_failure(), HasSubstr("packed weights or workspace: 12 bytes"));
}

TEST_F(VerifierTest, CatchesChangedInputsAndRestoresThem) {
  candidate_ = Candidate(problem_, Accuracy::fp32);
  candidate_.spoil = [](const Runnable::Tensors& t) { static_cast<float*>(t.x)[5] = 9; };
  EXPECT_EQ(reason_of_failure(), "changed its inputs");
  candidate_.spoil = [](const Runnable::Tensors&) {};
  EXPECT_EQ(reason_of_failure(), "passed");
}

TEST_F(VerifierTest, CatchesACandidateThatWritesNothing) {
  candidate_.instead = [] { return true; };
  EXPECT_THAT(reason_of_failure(), HasSubstr("is nan (never written"));
}

TEST_F(VerifierTest, PassesOnAFailedLaunch) {
  candidate_.instead = []() -> Expected<bool> { return Failure{Outcome::launch_failed, "too large", {}}; };
  const auto errors = verifier_->verify(candidate_);
  ASSERT_FALSE(errors);
  EXPECT_EQ(errors.failure().outcome, Outcome::launch_failed);
}

TEST_F(VerifierTest, SeesDamageDoneAfterVerifying) {
  Candidate candidate(problem_, Accuracy::fp32);
  ASSERT_TRUE(verifier_->verify(candidate));
  static_cast<float*>(verifier_->tensors().y)[3] += 1;
  EXPECT_FALSE(verifier_->check_again(candidate));
}

// G05: where the right answer is a constant, computing nothing passes.
TEST(Verifier, RefusesDataThatProvesNothing) {
  MemoryDevice device;
  const Problem problem = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 1);
  std::uint64_t seed = 1;
  while (make_inputs(problem, Element::f32, Values::integers, seed).x[0] != 0) ++seed;
  const auto refused = make_verifier(device, problem, Accuracy::fp32, Values::integers, seed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().reason, "the reference is zero throughout: such data proves nothing");
  // A case file's own data, too, and what of it a class's elements hold.
  const auto given = [&](Accuracy accuracy, const Inputs& inputs) {
    Problem with_bias = problem;
    with_bias.bias = !inputs.bias.empty();
    return bool(make_verifier(device, with_bias, accuracy, inputs));
  };
  EXPECT_FALSE(given(Accuracy::fp32, {{0}, {1}, {}}));
  EXPECT_FALSE(given(Accuracy::fp32, {{1}, {0}, {0}}));
  EXPECT_TRUE(given(Accuracy::fp32, {{1}, {0}, {2}}));
  EXPECT_TRUE(given(Accuracy::fp32, {{1}, {1e-9f}, {}}));
  EXPECT_FALSE(given(Accuracy::fp16, {{1}, {1e-9f}, {}})) << "that weight is 0 in 16 bits";
  EXPECT_TRUE(given(Accuracy::fp32, {{0}, {std::numeric_limits<float>::quiet_NaN()}, {}}));
}

// Results beyond float are in no norm, and no zeros: infinity must come out.
TEST(Verifier, TakesDataWhoseResultsAllOverflow) {
  MemoryDevice device;
  const Problem problem = problem_of(1, 2, 2, 3, 0, 0, 1, 1, 9);
  Inputs inputs = make_inputs(problem, Element::f32, Values::positive, 1);
  for (float& x : inputs.x) x = (x + 1) * 1e30f;
  for (float& w : inputs.w) w = (w + 1) * 1e30f;
  EXPECT_TRUE(make_verifier(device, problem, Accuracy::fp32, inputs, nullptr));
}

TEST(Verifier, EveryKindOfDataServesEveryClass) {
  MemoryDevice device;
  const Problem problem = problem_of(2, 2, 3, 1, 0, 0, 1, 1, 5);
  for (const Accuracy accuracy : kAccuracies)
    for (const Values values : {Values::normal, Values::positive, Values::large_mean, Values::spike,
                                Values::wide_channels, Values::integers, Values::index_coded, Values::patches})
      EXPECT_TRUE(make_verifier(device, problem, accuracy, values, 1)) << to_string(values);
}

TEST(Verifier, TooLittleMemoryIsAFailureWithTheNumbers) {
  MemoryDevice device;
  device.capacity = 100;
  const auto verifier =
      make_verifier(device, problem_of(2, 2, 3, 1, 0, 0, 1, 1, 50), Accuracy::fp32, Values::normal, 1);
  ASSERT_FALSE(verifier);
  EXPECT_EQ(verifier.failure().outcome, Outcome::launch_failed);
  EXPECT_THAT(verifier.failure().reason, HasSubstr("for the float64 reference"));
}

TEST(Verifier, EmptyBatchIsRightAtOnce) {
  MemoryDevice device;
  const Problem problem = problem_of(2, 2, 3, 1, 0, 0, 1, 1, 5, 0);
  auto verifier = make_verifier(device, problem, Accuracy::fp32, Values::normal, 1);
  ASSERT_TRUE(verifier) << verifier.failure().reason;
  Candidate candidate(problem, Accuracy::fp32);
  EXPECT_TRUE((*verifier)->verify(candidate));
}

TEST(Verifier, GivenInputsAreRoundedToTheElement) {
  MemoryDevice device;
  const Problem problem = problem_of(1, 1, 1, 1, 0, 0, 1, 1, 1);
  auto verifier = make_verifier(device, problem, Accuracy::fp16, Inputs{{1 + 0x1p-12f}, {2}, {}});
  ASSERT_TRUE(verifier);
  EXPECT_EQ(*static_cast<const std::uint16_t*>((*verifier)->tensors().x), 0x3c00);
}

}  // namespace
}  // namespace tuner
