// When to stop timing, when to give up, and how launches are spaced: pure functions over samples and seconds.
#pragma once

#include <span>
#include <vector>

#include "tuner/measure/measure.h"

namespace tuner {

inline constexpr int kMinSamples = 8;  // the fewest that bound a median on both sides at 95 % is 6

/// Certain to be slower than factor * best: two samples, and the fastest is slower; or one that is four times beyond.
bool certainly_slower(std::span<const double> samples, double best_ms, double factor);

/// Warm-up is over: the last three launches agree within 2 % with the three before, or there were 20.
bool settled(std::span<const double> warm_up);

/// Collects samples until a stop rule holds.
class Sampling {
 public:
  explicit Sampling(const MeasureOptions& options) : options_(options) {}

  void add(double ms) { timing_.samples.push_back(ms); }
  /// `elapsed_seconds`: wall time since sampling began.
  bool done(double elapsed_seconds);
  /// Samples with their median and interval.
  Timing timing() const;

 private:
  MeasureOptions options_;
  Timing timing_;
};

/// How launches of `ms` each are spaced. burst: idle first so that the clock recovers, then short blocks with pauses
/// four times as long (at most 0.1 s) between them. sustained: no pauses.
struct Pace {
  double settle_seconds = 0;  // idle before the first block
  int block = 1;              // samples in a block
  double pause_seconds = 0;   // idle between blocks
};
Pace pace_of(Regime regime, double ms);

/// Launches between two events so that warm short kernels are timed over at least `target_ms`; 1 from there on.
int launches_per_sample(L2 l2, double ms);

/// Sustained load: whether the mean launch time of the last window agrees within 0.5 % with the window before.
bool clock_settled(std::span<const double> window_means);

/// Order of `count` entrants in round `round`: rotated by one each round.
std::vector<std::size_t> round_order(std::size_t count, int round);

}  // namespace tuner
