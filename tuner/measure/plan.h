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

/// One timed sample: ms a launch, and the SM clock it ran at (0: unknown).
struct Sample {
  double ms = 0;
  double mhz = 0;
};

/// The clock that a regime shows in these samples: in bursts the highest tenth, under sustained load the median. 0
/// where none is known.
double own_clock(std::span<const Sample> samples, Regime regime);
/// For each sample, whether it ran at the regime's own clock or `expected_mhz`, whichever is higher: no more than 5 %
/// below in bursts, 10 % under sustained load, where the clock moves by itself. Unknown clocks count as right.
std::vector<bool> at_own_clock(std::span<const Sample> samples, Regime regime, double expected_mhz = 0);

/// Collects samples until a stop rule holds. Samples at a fallen clock do not count, and others are taken instead
/// within the limits; where hardly any remain, the clock is what it is and all count.
class Sampling {
 public:
  explicit Sampling(const MeasureOptions& options) : options_(options) {}

  void add(Sample sample) { samples_.push_back(sample); }
  void add(double ms) { add(Sample{ms, 0}); }
  /// By cut_factor; then timing() is cut.
  bool certainly_slower();
  /// `elapsed_seconds`: wall time since sampling began.
  bool done(double elapsed_seconds);
  /// Whether the last sample ran at a fallen clock: time for a pause.
  bool clock_fell() const;
  /// Samples that count, with their median and interval.
  Timing timing() const;

 private:
  std::vector<Sample> counted() const;

  MeasureOptions options_;
  std::vector<Sample> samples_;
  bool cut_ = false;
};

/// The timing over `samples`, all of which count.
Timing timing_of(std::span<const Sample> samples, L2 l2, Regime regime);

/// Work on a stream that nobody timed: the device stays busy for much longer after the timed stream than a wait with
/// nothing to wait for takes, and for more than a thousandth of a launch.
bool works_elsewhere(double busy_ms, double idle_wait_ms, double launch_ms);

/// How launches of `ms` each are spaced. burst: idle first so that the clock recovers, then short blocks with pauses
/// four times as long (at most 0.1 s) between them. sustained: no pauses.
struct Pace {
  double settle_seconds = 0;  // idle before the first block
  int block = 1;              // samples in a block
  double pause_seconds = 0;   // idle between blocks
};
Pace pace_of(Regime regime, double ms);

/// Samples of a block, so few that the launches of a batch fit the stream's queue.
int samples_per_block(const Pace& pace, int launches_per_sample);

/// Launches between two events so that warm short kernels are timed over at least `target_ms`; 1 from there on.
int launches_per_sample(L2 l2, double ms);

/// Sustained load: whether the last window agrees within 0.5 % with the one before, in mean launch time and in clock.
bool clock_settled(std::span<const Sample> windows);

/// Order of `count` entrants in round `round`: a shuffle drawn from the round's number, each followed by its reverse,
/// so that no entrant always comes first, or always after the same other one.
std::vector<std::size_t> round_order(std::size_t count, int round);

/// Rounds of a run-off, by entrant: samples[i][r]. A round in which some entrant ran at a fallen clock does not count
/// for any; where hardly any would remain, all count.
std::vector<bool> rounds_that_count(std::span<const std::vector<Sample>> samples, Regime regime);
/// Enough rounds: each entrant's median and its ratio to the fastest are known to `half_width` (half the 95 % interval,
/// relative).
bool rounds_suffice(std::span<const std::vector<Sample>> samples, Regime regime, double half_width);

/// A block of one entrant under sustained load: launches until its own power state holds, then those that count.
struct LoadBlock {
  int lead_in = 0;
  int timed = 0;
};
LoadBlock block_of(double ms);

}  // namespace tuner
