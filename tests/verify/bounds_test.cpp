// What the bounds must let through, and what they must not.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/verify/data.h"

namespace tuner {
namespace {

using namespace tuner::testing;

const Problem kSeedLike = [] {
  Problem problem = problem_of(128, 16, 3, 1, 0, 0, 1, 1, 500, 2);
  problem.bias = true;
  return problem;
}();

constexpr Values kKinds[] = {Values::normal,   Values::positive,      Values::large_mean,  Values::spike,
                             Values::integers, Values::wide_channels, Values::index_coded, Values::patches};

std::vector<float> rounded(std::vector<float> y, Accuracy accuracy) {
  const auto format = ct1d::check::format_of(ct1d::check::storage_of(static_cast<ct1d::check::Class>(accuracy)));
  for (float& value : y) value = static_cast<float>(ct1d::check::round_to(value, format));
  return y;
}

class ClassBounds : public ::testing::TestWithParam<std::tuple<Accuracy, Values>> {};
INSTANTIATE_TEST_SUITE_P(All, ClassBounds,
                         ::testing::Combine(::testing::ValuesIn(kAccuracies), ::testing::ValuesIn(kKinds)),
                         [](const auto& parameters) {
                           return std::string(to_string(std::get<0>(parameters.param))) + "_" +
                                  std::string(to_string(std::get<1>(parameters.param)));
                         });

TEST_P(ClassBounds, AdmitThePlainSumAndRefuseSabotage) {
  const auto [accuracy, values] = GetParam();
  const Problem& problem = kSeedLike;
  const Inputs inputs = make_inputs(problem, element_of(accuracy), values, 11);
  const Reference reference = make_reference(problem, accuracy, inputs);
  const std::vector<float> right = rounded(plain_sum(problem, inputs), accuracy);
  const auto passed = compare(problem, accuracy, reference, right);
  ASSERT_TRUE(passed) << passed.failure().reason;
  EXPECT_LE(passed->element, 1);
  EXPECT_LE(passed->row, 1);

  const auto length = static_cast<long>(problem.length_out());
  const auto refuses = [&](const char* what, const auto& spoil) {
    std::vector<float> y = right;
    spoil(y);
    const auto errors = compare(problem, accuracy, reference, y);
    EXPECT_FALSE(errors) << what;
    if (!errors) {
      EXPECT_EQ(errors.failure().outcome, Outcome::wrong_result);
    }
  };
  const auto last = 15 * length;  // the channel of the smallest scale
  refuses("a zeroed channel", [&](auto& y) { std::fill_n(y.begin() + last, length, 0.0f); });
  refuses("a stale channel", [&](auto& y) { std::copy_n(y.begin() + last - length, length, y.begin() + last); });
  refuses("a shifted row",
          [&](auto& y) { std::rotate(y.begin() + last, y.begin() + last + 1, y.begin() + last + length); });
  refuses("a half-written output",
          [&](auto& y) { std::fill(y.begin() + static_cast<long>(y.size() / 2), y.end(), kNan); });
  refuses("one element unwritten", [&](auto& y) { y.back() = kNan; });
}

TEST(Bounds, Tf32PassedOffAsFp32IsRefused) {
  for (const Values values : {Values::normal, Values::wide_channels, Values::spike, Values::positive}) {
    const Inputs inputs = make_inputs(kSeedLike, Element::f32, values, 5);
    const auto tf32 = plain_sum(kSeedLike, inputs, [](float value) { return ct1d::check::round_to_tf32(value); });
    EXPECT_FALSE(compare(kSeedLike, Accuracy::fp32, make_reference(kSeedLike, Accuracy::fp32, inputs), tf32))
        << to_string(values);
    const auto own = compare(kSeedLike, Accuracy::tf32, make_reference(kSeedLike, Accuracy::tf32, inputs), tf32);
    EXPECT_TRUE(own) << to_string(values) << ": " << own.failure().reason;
  }
}

TEST(Bounds, TruncatedTf32IsRefusedInItsOwnClass) {
  const Inputs inputs = make_inputs(kSeedLike, Element::f32, Values::positive, 5);
  const auto cut = plain_sum(
      kSeedLike, inputs, [](float value) { return ct1d::check::float_of(ct1d::check::bits_of(value) & 0xffffe000u); });
  EXPECT_FALSE(compare(kSeedLike, Accuracy::tf32, make_reference(kSeedLike, Accuracy::tf32, inputs), cut));
}

TEST(Bounds, IntegersAreExact) {
  const Inputs inputs = make_inputs(kSeedLike, Element::f32, Values::integers, 5);
  const auto errors = compare(kSeedLike, Accuracy::fp32, make_reference(kSeedLike, Accuracy::fp32, inputs),
                              plain_sum(kSeedLike, inputs));
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->element, 0);
  EXPECT_EQ(errors->row, 0);
}

/// The plain sum over the taps and channels in the opposite order: as right as the ordinary one.
std::vector<float> reversed_sum(const Problem& p, const Inputs& in) {
  std::vector<float> y;
  const std::int64_t length = p.length_out();
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t oc = 0; oc < p.out_channels; ++oc)
      for (std::int64_t t = 0; t < length; ++t) {
        float sum = 0;
        for (std::int64_t ic = p.in_channels - 1; ic >= 0; --ic)
          for (std::int64_t k = p.kernel_size - 1; k >= 0; --k) {
            const std::int64_t i = t - k;
            if (i < 0 || i >= p.length) continue;
            sum += in.x[static_cast<std::size_t>((b * p.in_channels + ic) * p.length + i)] *
                   in.w[static_cast<std::size_t>((ic * p.out_channels + oc) * p.kernel_size + k)];
          }
        y.push_back(sum);
      }
  return y;
}

// In a row of one or a few outputs the ordinary sum may be exact by luck while another order is not; without the
// allowance for short rows, right sums fail here.
TEST(Bounds, AnotherOrderOfAdditionPassesHoweverShortTheRow) {
  int would_fail = 0;
  for (const std::int64_t length : {1, 2, 5, 40})
    for (const Values values : {Values::normal, Values::positive, Values::wide_channels}) {
      const Problem problem = problem_of(300, 200, 1, 1, 0, 0, 1, 1, length, 10);
      const Inputs inputs = make_inputs(problem, Element::f32, values, 21);
      Reference reference = make_reference(problem, Accuracy::fp32, inputs);
      const auto y = reversed_sum(problem, inputs);
      const auto errors = compare(problem, Accuracy::fp32, reference, y);
      EXPECT_TRUE(errors) << length << " " << to_string(values) << ": " << errors.failure().reason;
      // Twice the plain sum's own error on the row, or 4e-7, and nothing else:
      const auto plain = plain_sum(problem, inputs);
      for (std::size_t row = 0; row < reference.row_bound.size(); ++row) {
        double error2 = 0;
        for (std::int64_t t = 0; t < length; ++t) {
          const auto at = row * static_cast<std::size_t>(length) + static_cast<std::size_t>(t);
          error2 += (plain[at] - reference.y[at]) * (plain[at] - reference.y[at]);
        }
        reference.row_bound[row] = std::max(2 * std::sqrt(error2) / reference.row_norm[row], 4e-7);
      }
      would_fail += !compare(problem, Accuracy::fp32, reference, y);
    }
  EXPECT_GT(would_fail, 0);
}

TEST(Bounds, LongRowsAreHeldToTwiceThePlainSum) {
  const Problem problem = problem_of(64, 2, 3, 1, 0, 0, 1, 1, 65536);
  const Reference reference =
      make_reference(problem, Accuracy::fp32, make_inputs(problem, Element::f32, Values::normal, 3));
  for (const double bound : reference.row_bound) EXPECT_LT(bound, 1.1 * std::max(2 * reference.plain_error, 4e-7));
}

}  // namespace
}  // namespace tuner
