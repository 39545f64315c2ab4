#include "tuner/worker/limits.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr double kMargin = 4;
constexpr double kFloorMargin = 1000;
constexpr double kLeastVendorSeconds = 20;  // loading and first use of a library in a fresh process

}  // namespace

double launch_limit(const LaunchForecast& forecast, int launches, double grace_seconds) {
  const double ms = forecast.best_ms ? launches * kMargin * forecast.cut_factor * *forecast.best_ms
                                     : kFloorMargin * forecast.floor_ms;
  return grace_seconds + ms / 1e3;
}

double run_off_limit(double ms_a_round, int rounds, double grace_seconds) {
  return grace_seconds + kMargin * rounds * ms_a_round / 1e3;
}

double second_vendor_limit(std::optional<double> slowest) {
  return slowest ? std::clamp(kMargin * *slowest, kLeastVendorSeconds, kVendorSeconds) : kVendorSeconds;
}

}  // namespace tuner
