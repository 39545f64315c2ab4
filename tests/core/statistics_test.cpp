#include "tuner/core/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace tuner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> one_to(int n) {
  std::vector<double> samples(static_cast<std::size_t>(n));
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(median(std::vector<double>{1, NAN, 2})));
}

TEST(Statistics, MedianIntervalAgreesWithThePublishedRanks) {
  // Ranks of the 95 % interval of a median: D. Altman, Statistics with Confidence, table of ranks; exact binomial.
  struct Row {
    int n, low;
  };
  for (const auto& [n, low] :
       {Row{6, 1}, Row{7, 1}, Row{8, 1}, Row{9, 2}, Row{10, 2}, Row{11, 2}, Row{12, 3}, Row{15, 4}, Row{20, 6},
        Row{25, 8}, Row{30, 10}, Row{40, 14}, Row{50, 18}, Row{70, 27}, Row{100, 40}}) {
    SCOPED_TRACE(n);
    const Interval interval = median_interval(one_to(n));
    EXPECT_EQ(interval.low, low);
    EXPECT_EQ(interval.high, n + 1 - low);
    EXPECT_EQ(interval.median, (n + 1) / 2.0);
  }
}

TEST(Statistics, OtherConfidencesMoveTheRanks) {
  EXPECT_EQ(median_interval(one_to(8), 0.99), (Interval{4.5, 1, 8}));
  EXPECT_EQ(median_interval(one_to(20), 0.99), (Interval{10.5, 4, 17}));
  EXPECT_EQ(median_interval(one_to(20), 0.90), (Interval{10.5, 6, 15}));
  EXPECT_EQ(median_interval(one_to(30), 0.999), (Interval{15.5, 6, 25}));
}

TEST(Statistics, FewerThanSixSamplesBoundNothing) {
  for (int n = 1; n < 6; ++n) {
    const Interval interval = median_interval(one_to(n));
    EXPECT_EQ(interval.low, -kInfinity);
    EXPECT_EQ(interval.high, kInfinity);
    EXPECT_EQ(interval.relative_half_width(), kInfinity);
  }
  EXPECT_TRUE(std::isnan(median_interval({}).median));
  EXPECT_EQ(median_interval({}).relative_half_width(), kInfinity);
}

TEST(Statistics, ManySamplesDoNotUnderflow) {
  const Interval interval = median_interval(one_to(1000001));
  EXPECT_EQ(interval.median, 500001);
  EXPECT_NEAR(interval.low, 500001 - 1.959964 * 500, 2);  // the normal approximation is exact enough here
  EXPECT_EQ(interval.high, 1000002 - interval.low);
}

TEST(Statistics, RelativeHalfWidth) {
  EXPECT_DOUBLE_EQ((Interval{10, 9, 12}.relative_half_width()), 0.15);
  EXPECT_EQ((Interval{0, -1, 1}.relative_half_width()), kInfinity);
}

TEST(Statistics, RatiosArePairedRoundByRound) {
  // The clock drops by half in the middle: rounds move together and the ratio does not.
  const std::vector<double> ours{1, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<double> theirs{3, 3, 3, 3, 6, 6, 6, 6};
  EXPECT_EQ(ratio_interval(theirs, ours), (Interval{3, 3, 3}));
  EXPECT_THROW(ratio_interval(theirs, std::vector<double>{1}), std::invalid_argument);
}

TEST(Statistics, GeometricMean) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{1, 4, 16}), 4);
  EXPECT_TRUE(std::isnan(geometric_mean({})));
  EXPECT_TRUE(std::isnan(geometric_mean(std::vector<double>{1, 0})));
}

TEST(Agreement, IsOverlapWithinTheSlack) {
  EXPECT_TRUE(agree({10, 9.9, 10.1}, {10.15, 10.05, 10.2}, 0));
  EXPECT_FALSE(agree({10, 9.9, 10.1}, {10.3, 10.15, 10.4}, 0));
  EXPECT_TRUE(agree({10, 9.9, 10.1}, {10.3, 10.15, 10.4}, 0.01));
  EXPECT_TRUE(agree({10.3, 10.15, 10.4}, {10, 9.9, 10.1}, 0.01));
  EXPECT_FALSE(agree({10, 9.9, 10.1}, {10.5, 10.3, 10.7}, 0.01));
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(agree({10, -inf, inf}, {99, 98, 100}, 0.01));
}

}  // namespace
}  // namespace tuner
