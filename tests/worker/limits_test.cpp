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

}  // namespace
}  // namespace tuner
