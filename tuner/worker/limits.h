// How long something on a device may take before it is taken for hung: arithmetic only.
#pragma once

#include <optional>

namespace tuner {

/// What is known of one launch before it is made.
struct LaunchForecast {
  std::optional<double> best_ms;  // the fastest variant so far
  double cut_factor = 2;          // times slower than it, and a variant is given up anyway
  double floor_ms = 0;            // what the work needs at the device's peaks; 0: unknown
};

/// Launches that may lie between two signs of life.
inline constexpr int kQueuedLaunches = 32;

/// Seconds that `launches` may take: `grace` for all that is no launch (loading, comparing, a busy machine), and for
/// each launch 4 * cut_factor times the best. Without a best, 1000 times the floor for all of them.
double launch_limit(const LaunchForecast& forecast, int launches, double grace_seconds);

/// Seconds that `rounds` rounds over entrants of `ms_a_round` in all may take: four times as long, and the grace.
double run_off_limit(double ms_a_round, int rounds, double grace_seconds);

/// Seconds that a library's route may take between two signs of life, in which it may compile before it runs.
inline constexpr double kVendorSeconds = 60;
/// The same for one that has cost a worker: four times what the slowest of the routes that came to their end took (if
/// there is one), from 20 to kVendorSeconds.
double second_vendor_limit(std::optional<double> slowest);

}  // namespace tuner
