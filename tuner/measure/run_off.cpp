// Several Runnables in turn.
#include <algorithm>
#include <chrono>
#include <numeric>

#include "tuner/measure/steps.h"

namespace tuner {
namespace {

constexpr int kLeastRounds = 20;

class RunOff {
 public:
  RunOff(CudaDevice& device, std::span<Runnable* const> runnables, const MeasureOptions& options, Probe* probe)
      : device_(device),
        runnables_(runnables),
        options_(options),
        stopwatch_(device, options.l2, probe),
        timings_(runnables.size()) {}

  Expected<std::vector<Timing>> run(int most_rounds) {
    if (auto ready = get_ready(); !ready) return ready.failure();
    const bool sustained = options_.regime == Regime::sustained;
    const double most_seconds = options_.max_seconds * static_cast<double>(entrants_.size());
    const auto start = std::chrono::steady_clock::now();
    const int least = sustained ? kMinSamples : kLeastRounds;
    for (int round = 0; round < most_rounds && !entrants_.empty(); ++round) {
      if (auto done = sustained ? blocks(round) : burst(round); !done) return done.failure();
      throttling_ |= device_.sensors().throttling();
      if (round + 1 < least) continue;
      if (rounds_suffice(samples_, options_.regime, options_.half_width)) break;
      if (steps::seconds_since(start) >= most_seconds) break;
    }
    return finish();
  }

 private:
  Expected<bool> get_ready() {
    steps::idle(pace_of(options_.regime, 1).settle_seconds, idled_);
    for (std::size_t i = 0; i < runnables_.size(); ++i) {
      stopwatch_.begin_runnable();
      const auto ms = steps::warm_up(stopwatch_, *runnables_[i]);
      if (!ms) return ms.failure();
      if ((timings_[i].failure = stopwatch_.cheated(*runnables_[i], *ms))) continue;
      entrants_.push_back(runnables_[i]);
      places_.push_back(i);
      estimates_.push_back(*ms);
    }
    samples_.resize(entrants_.size());
    const double ms_a_round = std::accumulate(estimates_.begin(), estimates_.end(), 0.0);
    pace_ = pace_of(options_.regime, ms_a_round);
    if (options_.regime == Regime::burst || entrants_.empty()) return true;
    return steps::load_until_settled(stopwatch_, entrants_, ms_a_round);
  }

  /// Each entrant once. A block of rounds begins with a launch that wakes the clock and does not count.
  Expected<bool> burst(int round) {
    const auto order = round_order(entrants_.size(), round);
    const bool warm = options_.l2 == L2::warm;
    std::vector<std::size_t> places;  // of each entrant's sample among the batch's
    std::size_t enqueued = 0;
    const auto enqueue = [&](std::size_t i, int launches) {
      ++enqueued;
      return stopwatch_.enqueue(*entrants_[i], launches, estimates_[i]);
    };
    if (round % pace_.block == 0)
      if (auto woken = enqueue(order.front(), 1); !woken) return woken;
    for (const std::size_t i : order) {
      if (warm)  // the one before left its own data in L2
        if (auto refilled = enqueue(i, 1); !refilled) return refilled;
      places.push_back(enqueued);
      if (auto timed = enqueue(i, launches_per_sample(options_.l2, estimates_[i])); !timed) return timed;
    }
    const auto taken = stopwatch_.collect();
    if (!taken) return taken.failure();
    for (std::size_t at = 0; at < order.size(); ++at) samples_[order[at]].push_back((*taken)[places[at]]);
    if ((round + 1) % pace_.block == 0) steps::idle(pace_.pause_seconds, idled_);
    return true;
  }

  /// Each entrant for a block of its own; the median of the block's timed part is its sample.
  Expected<bool> blocks(int round) {
    for (const std::size_t i : round_order(entrants_.size(), round)) {
      const int launches = launches_per_sample(options_.l2, estimates_[i]);
      const LoadBlock block = block_of(launches * estimates_[i]);
      for (int k = 0; k < block.lead_in + block.timed; ++k)
        if (auto enqueued = stopwatch_.enqueue(*entrants_[i], launches, estimates_[i]); !enqueued) return enqueued;
      const auto taken = stopwatch_.collect();
      if (!taken) return taken.failure();
      const Timing timed =
          timing_of(std::span(*taken).last(static_cast<std::size_t>(block.timed)), options_.l2, options_.regime);
      samples_[i].push_back({timed.ms.median, timed.clock_mhz.median});
    }
    return true;
  }

  std::vector<Timing> finish() {
    const auto counts = rounds_that_count(samples_, options_.regime);
    for (std::size_t i = 0; i < entrants_.size(); ++i) {
      std::vector<Sample> counted;
      for (std::size_t r = 0; r < counts.size(); ++r)
        if (counts[r]) counted.push_back(samples_[i][r]);
      Timing& timing = timings_[places_[i]];
      timing = timing_of(counted, options_.l2, options_.regime);
      timing.dropped = static_cast<int>(samples_[i].size() - counted.size());
      timing.throttling = throttling_;
      timing.failure = steps::implausible(*entrants_[i], device_.environment().device, timing);
      if (options_.energy_windows > 0 && !timing.failure)
        if (auto energy = steps::energy_of(device_, *entrants_[i], timing.ms.median, options_.energy_windows))
          timing.energy = std::move(*energy);
    }
    if (!timings_.empty()) timings_.front().idle_seconds = idled_;
    return std::move(timings_);
  }

  CudaDevice& device_;
  std::span<Runnable* const> runnables_;
  const MeasureOptions& options_;
  Stopwatch stopwatch_;
  std::vector<Timing> timings_;               // of every Runnable
  std::vector<Runnable*> entrants_;           // those that may be timed
  std::vector<std::size_t> places_;           // of an entrant among the Runnables
  std::vector<double> estimates_;             // ms a launch
  std::vector<std::vector<Sample>> samples_;  // of an entrant, a sample a round
  Pace pace_;
  std::uint64_t throttling_ = 0;
  double idled_ = 0;
};

}  // namespace

Expected<std::vector<Timing>> measure_interleaved(Device& device, std::span<Runnable* const> runnables,
                                                  const MeasureOptions& options, int most_rounds, Probe* probe) {
  return steps::guarded<std::vector<Timing>>(
      device, [&](CudaDevice& cuda) { return RunOff(cuda, runnables, options, probe).run(most_rounds); });
}

}  // namespace tuner
