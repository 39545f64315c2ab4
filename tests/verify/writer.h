// What the tests of the verifier's GPU path share, on a GPU and emulated.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/verify/data.h"
#include "tuner/verify/inputs.h"
#include "tuner/verify/resident.h"

namespace tuner::testing {

/// Writes a given y, by `copy` (memcpy unless the device needs another).
class Writer : public Runnable {
 public:
  using Copy = void (*)(void* target, const void* source, std::size_t bytes);
  Writer(const std::vector<float>& y, Accuracy accuracy, Copy copy = nullptr)
      : y_(stored(y, element_of(accuracy))), copy_(copy) {}
  std::string name() const override { return "writer"; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    return true;
  }
  Expected<bool> launch() override {
    if (copy_)
      copy_(tensors_.y, y_.data(), y_.size());
    else if (!y_.empty())
      std::memcpy(tensors_.y, y_.data(), y_.size());
    return true;
  }

 private:
  std::vector<std::byte> y_;
  Copy copy_;
  Tensors tensors_;
};

/// Shapes with groups, gaps, ragged channel blocks, more than one tile and rows of one.
inline std::vector<Problem> odd_problems() {
  std::vector<Problem> problems{problem_of(6, 10, 5, 3, 2, 1, 4, 2, 37, 3), problem_of(3, 7, 3, 1, 0, 0, 1, 1, 4301, 1),
                                problem_of(24, 24, 5, 2, 2, 1, 1, 24, 90, 1), problem_of(9, 5, 4, 2, 1, 0, 2, 1, 1, 2),
                                problem_of(4, 4, 2, 16, 0, 3, 1, 1, 50)};
  problems[0].bias = problems[3].bias = true;
  return problems;
}

/// The plain sum, stored in the class's element type.
inline std::vector<float> right_output(const Problem& problem, Accuracy accuracy, const Inputs& inputs) {
  const auto format = ct1d::check::format_of(ct1d::check::storage_of(static_cast<ct1d::check::Class>(accuracy)));
  std::vector<float> y = plain_sum(problem, inputs);
  for (float& value : y) value = static_cast<float>(ct1d::check::round_to(value, format));
  return y;
}

/// Elements bit for bit, rows up to the order of their sums.
inline void expect_same(const Reference& got, const Reference& want, const std::string& what) {
  ASSERT_EQ(got.y, want.y) << what;
  ASSERT_EQ(got.bound, want.bound) << what;
  ASSERT_EQ(got.nans, want.nans) << what;
  ASSERT_EQ(got.outside, want.outside) << what;
  ASSERT_EQ(got.row_norm.size(), want.row_norm.size()) << what;
  for (std::size_t row = 0; row < want.row_norm.size(); ++row) {
    ASSERT_NEAR(got.row_norm[row], want.row_norm[row], 1e-12 * want.row_norm[row]) << what;
    ASSERT_NEAR(got.row_bound[row], want.row_bound[row], 1e-9 * want.row_bound[row]) << what;
  }
  ASSERT_NEAR(got.plain_error, want.plain_error, 1e-9 * want.plain_error) << what;
}

/// A right output and three wrong ones are judged as compare() judges them, to the letter. `verifier` holds
/// Values::normal of seed 3.
inline void expect_same_verdicts(Verifier& verifier, const Problem& problem, Accuracy accuracy,
                                 Writer::Copy copy = nullptr) {
  const Inputs inputs = make_inputs(problem, element_of(accuracy), Values::normal, 3);
  const Reference reference = make_reference(problem, accuracy, inputs);
  const auto right = right_output(problem, accuracy, inputs);
  auto zeroed = right, unwritten = right, wrong = right;
  std::fill_n(zeroed.end() - problem.length_out(), problem.length_out(), 0.0f);
  unwritten[unwritten.size() / 2] = kNan;
  wrong[wrong.size() / 3] = wrong[wrong.size() / 3] == 2.0f ? 4.0f : 2.0f;  // held exactly by every format
  for (const auto& y : {right, zeroed, unwritten, wrong}) {
    Writer writer(y, accuracy, copy);
    const auto got = verifier.verify(writer), want = compare(problem, accuracy, reference, y);
    ASSERT_EQ(static_cast<bool>(got), static_cast<bool>(want)) << summary(problem);
    if (!got) {
      ASSERT_EQ(got.failure().reason, want.failure().reason);
      continue;
    }
    ASSERT_DOUBLE_EQ(got->element, want->element);
    ASSERT_NEAR(got->row, want->row, 1e-9);
  }
}

}  // namespace tuner::testing
