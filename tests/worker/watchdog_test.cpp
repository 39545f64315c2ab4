// The watchdog: expires without a sign of life, and not with one.
#include "tuner/worker/watchdog.h"

#include <gtest/gtest.h>

#include <future>

namespace tuner {
namespace {

TEST(Watchdog, ExpiresWhenNothingIsHeard) {
  std::promise<double> expired;
  Watchdog watchdog([&](double seconds) { expired.set_value(seconds); });
  watchdog.expect(0.05);
  EXPECT_EQ(expired.get_future().get(), 0.05);
}

TEST(Watchdog, AShorterLimitReplacesALongerOne) {
  std::promise<double> expired;
  Watchdog watchdog([&](double seconds) { expired.set_value(seconds); });
  watchdog.expect(1e6);
  watchdog.expect(0.05);
  EXPECT_EQ(expired.get_future().get(), 0.05);
}

TEST(Watchdog, IsQuietWhereItIsToldSoInTime) {
  int calls = 0;
  {
    Watchdog watchdog([&](double) { ++calls; });
    watchdog.again();  // nothing is due yet
    watchdog.expect(1e6);
    watchdog.again();
    watchdog.expect(600);
    watchdog.calm();
    watchdog.again();
  }
  EXPECT_EQ(calls, 0);
}

TEST(Watchdog, EndsWhileSomethingIsDue) {
  int calls = 0;
  {
    Watchdog watchdog([&](double) { ++calls; });
    watchdog.expect(1e6);
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace tuner
