// Launches, checks and changes of inputs around a Runnable's use, on ordinary memory.
#include <gmock/gmock.h>

#include "tests/device/memory_device.h"
#include "tests/verify/data.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace tuner::testing;

/// Computes what is right, unless `instead` does something else to y and says so.
class Candidate : public Runnable {
 public:
  explicit Candidate(const Problem& problem) : problem_(problem) {}
  std::function<bool(const Tensors&, int launch)> instead = [](const Tensors&, int) { return false; };
  int launches = 0;

  std::string name() const override { return "candidate"; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    return true;
  }
  Expected<bool> launch() override {
    if (instead(tensors_, launches++)) return true;
    const auto* const x = static_cast<const float*>(tensors_.x);
    const auto* const w = static_cast<const float*>(tensors_.w);
    const auto right = plain_sum(problem_, {{x, x + problem_.x_count()}, {w, w + problem_.w_count()}, {}});
    std::copy(right.begin(), right.end(), static_cast<float*>(tensors_.y));
    return true;
  }

 private:
  Problem problem_;
  Tensors tensors_;
};

class ProofTest : public ::testing::Test {
 protected:
  ProofTest() {
    auto made = make_verifier(device_, problem_, Accuracy::fp32, Values::normal, 5);
    if (!made) throw std::runtime_error(made.failure().reason);
    verifier_ = std::move(*made);
  }
  float* y() const { return static_cast<float*>(verifier_->tensors().y); }
  /// Launches as timing makes them.
  std::function<std::optional<Failure>()> times(int launches) {
    return [this, launches]() -> std::optional<Failure> {
      for (int i = 0; i < launches; ++i)
        if (const auto launched = candidate_.launch(); !launched) return launched.failure();
      return std::nullopt;
    };
  }
  std::string reason(const std::function<std::optional<Failure>()>& use = nullptr) {
    const auto proof = prove(*verifier_, candidate_, use);
    if (proof) return proof->repeatable ? "passed" : "not repeatable";
    EXPECT_EQ(proof.failure().outcome, Outcome::wrong_result);
    return proof.failure().reason;
  }

  Problem problem_ = problem_of(3, 4, 3, 2, 1, 1, 1, 1, 9, 2);
  MemoryDevice device_;
  std::unique_ptr<Verifier> verifier_;
  Candidate candidate_{problem_};
};

TEST_F(ProofTest, PassesWhatIsRightTimedOrNot) {
  EXPECT_EQ(reason(), "passed");
  EXPECT_EQ(reason(times(30)), "passed");
  const auto proof = prove(*verifier_, candidate_, times(1));
  ASSERT_TRUE(proof);
  EXPECT_GT(proof->errors.element, 0);
  EXPECT_LE(proof->errors.element, 1);
}

TEST_F(ProofTest, FailsAsTimingFails) {
  const auto proof = prove(*verifier_, candidate_, [] {
    return std::optional(Failure{Outcome::implausible, "too fast", {}});
  });
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.failure().outcome, Outcome::implausible);
  EXPECT_EQ(proof.failure().reason, "too fast");
  EXPECT_EQ(reason(), "passed");  // the next one meets its own inputs
}

TEST_F(ProofTest, G01NothingLeftByOthersPassesWhateverRanFirst) {
  Candidate honest(problem_);
  const auto nothing = [](const Runnable::Tensors&, int) { return true; };
  candidate_.instead = nothing;
  EXPECT_THAT(reason(), HasSubstr("never written"));
  ASSERT_TRUE(prove(*verifier_, honest));
  EXPECT_THAT(reason(), HasSubstr("never written"));
  // An output that takes the place of one that was freed, right in it.
  verifier_.reset();
  verifier_ = std::move(*make_verifier(device_, problem_, Accuracy::fp32, Values::normal, 5));
  EXPECT_THAT(reason(), HasSubstr("never written"));
}

TEST_F(ProofTest, G08AnOutputKeptForAnAddressIsFound) {
  std::vector<float> kept;
  candidate_.instead = [&](const Runnable::Tensors& tensors, int) {
    auto* const target = static_cast<float*>(tensors.y);
    if (!kept.empty()) std::copy(kept.begin(), kept.end(), target);
    return !kept.empty();
  };
  ASSERT_TRUE(verifier_->verify(candidate_));
  kept.assign(y(), y() + problem_.y_count());
  EXPECT_THAT(reason(times(3)), StartsWith("after timing: y is the output for inputs of an earlier launch"));
  EXPECT_THAT(reason(), StartsWith("launched again: y is the output for inputs of an earlier launch"));
}

TEST_F(ProofTest, G10WorkLeftOutOrSpoiledLaterIsFound) {
  candidate_.instead = [](const Runnable::Tensors&, int launch) { return launch >= 10; };
  EXPECT_THAT(reason(times(30)), StartsWith("launched again after timing: "));
  candidate_.launches = 0;
  candidate_.instead = [this](const Runnable::Tensors&, int launch) {
    if (launch >= 10) y()[5] = 0;
    return launch >= 10;
  };
  EXPECT_THAT(reason(times(30)), StartsWith("after timing: "));
}

TEST_F(ProofTest, OfSeveralUsedTogetherEachIsLaunchedOnceMore) {
  Candidate other(problem_);
  for (Candidate* each : {&candidate_, &other}) ASSERT_TRUE(each->bind(verifier_->tensors()));
  candidate_.instead = [](const Runnable::Tensors&, int launch) { return launch >= 50; };
  for (int round = 0; round < 50; ++round)
    for (Candidate* each : {&candidate_, &other}) ASSERT_TRUE(each->launch());
  EXPECT_THAT(prove_again(*verifier_, candidate_).failure().reason, HasSubstr("never written"));
  EXPECT_TRUE(prove_again(*verifier_, other));
  EXPECT_TRUE(prove_again(*verifier_, other));
}

TEST_F(ProofTest, WhatIsTimedMustWriteItsOutput) {
  candidate_.instead = [](const Runnable::Tensors&, int launch) { return launch >= 1 && launch <= 30; };
  EXPECT_THAT(reason(times(30)), HasSubstr("after timing: y[b 0, oc 0, t 0] is nan (never written"));
}

TEST_F(ProofTest, H46AddingToTheOutputIsFoundThoughItStartsFromNan) {
  candidate_.instead = [this](const Runnable::Tensors& tensors, int) {
    const std::vector<float> before(y(), y() + problem_.y_count());
    Candidate honest(problem_);
    EXPECT_TRUE(honest.bind(tensors));
    EXPECT_TRUE(honest.launch());
    for (std::size_t i = 0; i < before.size(); ++i)
      if (!std::isnan(before[i])) y()[i] += before[i];
    return true;
  };
  EXPECT_THAT(reason(), StartsWith("launched again: "));
  EXPECT_THAT(reason(times(10)), StartsWith("after timing: "));
}

TEST_F(ProofTest, C47OtherBitsWithinTheBoundsAreNotRepeatable) {
  candidate_.instead = [this](const Runnable::Tensors& tensors, int launch) {
    Candidate honest(problem_);
    EXPECT_TRUE(honest.bind(tensors));
    EXPECT_TRUE(honest.launch());
    if (launch % 2 != 0) y()[3] = std::nextafter(y()[3], kInf);
    return true;
  };
  EXPECT_EQ(reason(), "not repeatable");  // launches 0 and 3 have the first inputs
  candidate_.launches = 0;
  EXPECT_EQ(reason(times(4)), "not repeatable");  // 0 and 5
}

}  // namespace
}  // namespace tuner
