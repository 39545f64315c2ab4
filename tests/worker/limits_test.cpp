// When something is taken for hung: literal numbers.
#include "tuner/worker/limits.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(Limits, FollowTheBestAndTheCutFactor) {
  LaunchForecast forecast;
  forecast.best_ms = 10;
  forecast.cut_factor = 2;
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 1, 5), 5 + 0.08);
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 32, 5), 5 + 2.56);
  forecast.cut_factor = 4;
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 32, 5), 5 + 5.12);
  forecast.floor_ms = 1000;  // says less than what was measured
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 32, 5), 5 + 5.12);
}

TEST(Limits, WithoutABestAreAThousandTimesTheFloor) {
  LaunchForecast forecast;
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 32, 5), 5);  // nothing is known: the grace alone
  forecast.floor_ms = 6.2;
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 32, 5), 5 + 6.2);
  EXPECT_DOUBLE_EQ(launch_limit(forecast, 1, 5), 5 + 6.2);
}

TEST(Limits, GiveARunOffFourTimesItsLength) {
  EXPECT_DOUBLE_EQ(run_off_limit(12.5, 40, 5), 5 + 2);
  EXPECT_DOUBLE_EQ(run_off_limit(0, 40, 5), 5);
}

TEST(Limits, OfAVendorsRouteThatFailedOnceFollowFromThoseThatDidNot) {
  EXPECT_DOUBLE_EQ(second_vendor_limit(std::nullopt), 60);  // nothing is known of this library
  EXPECT_DOUBLE_EQ(second_vendor_limit(0.3), 20);
  EXPECT_DOUBLE_EQ(second_vendor_limit(8), 32);
  EXPECT_DOUBLE_EQ(second_vendor_limit(40), 60);
}

}  // namespace
}  // namespace tuner
