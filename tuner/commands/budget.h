// How a run's seconds are divided over its pairs of problem and class.
#pragma once

#include <cstddef>
#include <optional>

#include "tuner/core/device_facts.h"
#include "tuner/core/problem.h"
#include "tuner/core/result.h"

namespace tuner {

/// How much there is to gain: the binary logarithm of the fastest vendor route's time over what the device's limits
/// allow the operation in this class, between 1/4 and 4; 1 where no route was timed.
double room_to_gain(const ClassRecord& record, const Problem& problem, Accuracy accuracy, const DeviceFacts& device);

/// The seconds of a run: what they are spent on, what a pair's search may take of them. A pair's baselines and run-off
/// take what they take; searches share what is left by what there is to gain.
class RunBudget {
 public:
  /// `seconds`: of the whole run, none: no limit. `run_off_seconds`: what the first is expected to take.
  /// `least_search_seconds`: of a pair that is begun.
  RunBudget(std::optional<double> seconds, double run_off_seconds, double least_search_seconds)
      : seconds_(seconds), least_(least_search_seconds), run_off_(run_off_seconds) {}

  /// Seconds of searching, of baselines and of run-offs, once each is known.
  void searched(double seconds) { spent_ += seconds; }
  void measured_baselines(double seconds);
  void ran_off(double seconds);

  /// What each of so many baselines of the next pair may take: a third of the pair's even share together, 2 s at least;
  /// none: no limit.
  std::optional<double> baseline_seconds(std::size_t pairs_left, std::size_t baselines) const;

  /// Whether a pair's baselines and run-off would still fit. The first pair is always begun.
  bool has_room_for_a_pair() const;
  /// What the search of the pair whose baselines were just measured may take; none: no limit.
  /// `pairs_left`: this one included; `room`: of this one.
  std::optional<double> search_seconds(std::size_t pairs_left, double room);

 private:
  std::optional<double> seconds_;
  double least_ = 0;
  double spent_ = 0;
  double baselines_ = 0;  // of all pairs so far
  std::size_t measured_ = 0;
  double run_off_;  // expected of the next: the mean of those so far
  double run_offs_ = 0;
  std::size_t ran_ = 0;
  double rooms_ = 0;
  std::size_t shared_ = 0;
};

}  // namespace tuner
