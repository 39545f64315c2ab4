#include "tuner/measure/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tuner/core/random.h"
#include "tuner/family/lower_bound.h"

namespace tuner {
namespace {

constexpr std::size_t kMaxWarmUp = 20;
constexpr double kWarmUpTolerance = 0.02;
constexpr double kClockTolerance = 0.005;
constexpr double kBurstSettle = 0.5;  // s
constexpr double kBurstBlockMs = 25;  // of busy GPU in a row
constexpr int kBurstBlockSamples = 12;
constexpr double kLongestPause = 0.1;  // s
constexpr double kShortMs = 0.05;      // below this, event resolution (0.5 us) and launch gaps show
constexpr double kShortTargetMs = 0.2;
constexpr int kMostInASample = 64;  // launches
constexpr int kMostInABatch = 64;   // launches: a stream's queue holds about a thousand commands
constexpr double kBurstClockShare = 0.9;
constexpr double kBurstFall = 0.05;  // of the clock, that a sample may have lost
constexpr double kSustainedFall = 0.10;
constexpr double kBusyMs = 0.02;  // a wait takes some microseconds, now and then ten
constexpr double kBusyFactor = 5;
constexpr double kBusyShare = 1e-3;
constexpr double kLeadInMs = 100;  // the power controller answers within tens of milliseconds
constexpr double kBlockMs = 50;
constexpr int kMostOfABlock = 1000;

}  // namespace

std::string_view to_string(L2 l2) { return l2 == L2::cold ? "cold" : "warm"; }
std::string_view to_string(Regime regime) { return regime == Regime::burst ? "burst" : "sustained"; }
L2 l2_named(std::string_view name) { return name == "warm" ? L2::warm : L2::cold; }
Regime regime_named(std::string_view name) { return name == "sustained" ? Regime::sustained : Regime::burst; }

double lower_bound_ms(const Work& work, const DeviceFacts& device, L2 l2) {
  return lower_bound_ms(work, device, l2 == L2::cold);
}

bool certainly_slower(std::span<const double> samples, double best_ms, double factor) {
  if (samples.empty()) return false;
  const double fastest = *std::min_element(samples.begin(), samples.end());
  return fastest > (samples.size() >= 2 ? 1 : 4) * factor * best_ms;
}

bool settled(std::span<const double> warm_up) {
  const std::size_t n = warm_up.size();
  if (n >= kMaxWarmUp) return true;
  if (n < 6) return false;
  const double last = median(warm_up.subspan(n - 3)), before = median(warm_up.subspan(n - 6, 3));
  return std::abs(last - before) <= kWarmUpTolerance * before;
}

double own_clock(std::span<const Sample> samples, Regime regime) {
  std::vector<double> known;
  for (const Sample& sample : samples)
    if (sample.mhz > 0) known.push_back(sample.mhz);
  if (known.empty()) return 0;
  const double share = regime == Regime::burst ? kBurstClockShare : 0.5;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(known.size() - 1));
  std::nth_element(known.begin(), known.begin() + at, known.end());
  return known[static_cast<std::size_t>(at)];
}

std::vector<bool> at_own_clock(std::span<const Sample> samples, Regime regime, double expected_mhz) {
  const double least = (1 - (regime == Regime::burst ? kBurstFall : kSustainedFall)) *
                       std::max(own_clock(samples, regime), expected_mhz);
  std::vector<bool> right;
  for (const Sample& sample : samples) right.push_back(sample.mhz == 0 || sample.mhz >= least);
  return right;
}

Timing timing_of(std::span<const Sample> samples, L2 l2, Regime regime) {
  Timing timing;
  std::vector<double> clocks;
  for (const Sample& sample : samples) {
    timing.samples.push_back(sample.ms);
    if (sample.mhz > 0) clocks.push_back(sample.mhz);
  }
  timing.ms = median_interval(timing.samples);
  if (!clocks.empty()) {
    const auto [slowest, fastest] = std::minmax_element(clocks.begin(), clocks.end());
    timing.clock_mhz = {median(clocks), *slowest, *fastest};
  }
  timing.l2 = l2;
  timing.regime = regime;
  return timing;
}

std::vector<Sample> Sampling::counted() const {
  const auto right = at_own_clock(samples_, options_.regime, options_.expected_mhz);
  const auto count = static_cast<std::size_t>(std::count(right.begin(), right.end(), true));
  if (count < std::min<std::size_t>(samples_.size(), kMinSamples)) return samples_;
  std::vector<Sample> counted;
  for (std::size_t i = 0; i < samples_.size(); ++i)
    if (right[i]) counted.push_back(samples_[i]);
  return counted;
}

bool Sampling::clock_fell() const {
  return !samples_.empty() && !at_own_clock(samples_, options_.regime, options_.expected_mhz).back();
}

bool Sampling::certainly_slower() {
  std::vector<double> all;
  for (const Sample& sample : samples_) all.push_back(sample.ms);
  return cut_ = options_.best_ms && tuner::certainly_slower(all, *options_.best_ms, options_.cut_factor);
}

bool Sampling::done(double elapsed_seconds) {
  if (samples_.empty()) return false;
  if (certainly_slower()) return true;
  const auto tried = static_cast<int>(samples_.size());
  if (tried >= 2 * options_.max_samples || elapsed_seconds >= options_.max_seconds) return true;
  const Timing now = timing();
  const auto count = static_cast<int>(now.samples.size());
  if (clock_fell() && now.dropped == 0 && count > 1) return false;  // too few remain: not a good moment to stop
  if (count >= options_.max_samples) return true;
  return count >= kMinSamples && now.ms.relative_half_width() <= options_.half_width;
}

Timing Sampling::timing() const {
  const std::vector<Sample> kept = counted();
  Timing timing = timing_of(kept, options_.l2, options_.regime);
  timing.dropped = static_cast<int>(samples_.size() - kept.size());
  timing.cut = cut_;
  return timing;
}

bool works_elsewhere(double busy_ms, double idle_wait_ms, double launch_ms) {
  return busy_ms > kBusyMs + kBusyFactor * idle_wait_ms + kBusyShare * launch_ms;
}

Pace pace_of(Regime regime, double ms) {
  if (regime == Regime::sustained) return {0, kBurstBlockSamples, 0};
  const int block = std::clamp(static_cast<int>(kBurstBlockMs / std::max(ms, 1e-3)), 1, kBurstBlockSamples);
  return {kBurstSettle, block, std::min(kLongestPause, 4 * block * ms / 1e3)};
}

int samples_per_block(const Pace& pace, int launches) { return std::clamp(kMostInABatch / launches, 1, pace.block); }

int launches_per_sample(L2 l2, double ms) {
  if (l2 == L2::cold || ms >= kShortMs) return 1;
  return std::min(kMostInASample, static_cast<int>(std::ceil(kShortTargetMs / std::max(ms, 1e-3))));
}

bool clock_settled(std::span<const Sample> windows) {
  const std::size_t n = windows.size();
  if (n < 2) return false;
  const auto agree = [](double now, double before) { return std::abs(now - before) <= kClockTolerance * before; };
  return agree(windows[n - 1].ms, windows[n - 2].ms) && agree(windows[n - 1].mhz, windows[n - 2].mhz);
}

std::vector<std::size_t> round_order(std::size_t count, int round) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(static_cast<std::uint64_t>(round / 2) + 1);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<bool> rounds_that_count(std::span<const std::vector<Sample>> samples, Regime regime) {
  std::vector<bool> counts(samples.empty() ? 0 : samples.front().size(), true);
  for (const std::vector<Sample>& entrant : samples) {
    const auto right = at_own_clock(entrant, regime);
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = counts[r] && right[r];
  }
  if (std::count(counts.begin(), counts.end(), true) < kMinSamples) counts.assign(counts.size(), true);
  return counts;
}

bool rounds_suffice(std::span<const std::vector<Sample>> samples, Regime regime, double half_width) {
  const auto counts = rounds_that_count(samples, regime);
  std::vector<std::vector<double>> ms(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (std::size_t r = 0; r < counts.size(); ++r)
      if (counts[r]) ms[i].push_back(samples[i][r].ms);
  if (ms.empty()) return true;
  const auto& fastest =
      *std::min_element(ms.begin(), ms.end(), [](const auto& a, const auto& b) { return median(a) < median(b); });
  return std::all_of(ms.begin(), ms.end(), [&](const auto& entrant) {
    return median_interval(entrant).relative_half_width() <= half_width &&
           ratio_interval(entrant, fastest).relative_half_width() <= half_width;
  });
}

LoadBlock block_of(double ms) {
  const auto launches = [&](double of_ms, int least, int most) {
    return std::clamp(static_cast<int>(std::ceil(of_ms / std::max(ms, 1e-3))), least, most);
  };
  return {launches(kLeadInMs, 1, kMostOfABlock), launches(kBlockMs, 3, kMostOfABlock / 4)};
}

}  // namespace tuner
