#include "tuner/measure/plan.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

std::string_view to_string(L2 l2) { return l2 == L2::cold ? "cold" : "warm"; }
std::string_view to_string(Regime regime) { return regime == Regime::burst ? "burst" : "sustained"; }

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

bool Sampling::done(double elapsed_seconds) {
  const auto count = static_cast<int>(timing_.samples.size());
  if (count == 0) return false;
  if (options_.best_ms && certainly_slower(timing_.samples, *options_.best_ms, options_.cut_factor))
    return timing_.cut = true;
  if (count >= options_.max_samples || elapsed_seconds >= options_.max_seconds) return true;
  return count >= kMinSamples && median_interval(timing_.samples).relative_half_width() <= options_.half_width;
}

Timing Sampling::timing() const {
  Timing timing = timing_;
  timing.ms = median_interval(timing.samples);
  timing.l2 = options_.l2;
  timing.regime = options_.regime;
  return timing;
}

Pace pace_of(Regime regime, double ms) {
  if (regime == Regime::sustained) return {0, kBurstBlockSamples, 0};
  const int block = std::clamp(static_cast<int>(kBurstBlockMs / std::max(ms, 1e-3)), 1, kBurstBlockSamples);
  return {kBurstSettle, block, std::min(kLongestPause, 4 * block * ms / 1e3)};
}

int launches_per_sample(L2 l2, double ms) {
  if (l2 == L2::cold || ms >= kShortMs) return 1;
  return static_cast<int>(std::ceil(kShortTargetMs / std::max(ms, 1e-3)));
}

bool clock_settled(std::span<const double> window_means) {
  const std::size_t n = window_means.size();
  if (n < 2) return false;
  return std::abs(window_means[n - 1] - window_means[n - 2]) <= kClockTolerance * window_means[n - 2];
}

std::vector<std::size_t> round_order(std::size_t count, int round) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = (i + static_cast<std::size_t>(round)) % count;
  return order;
}

}  // namespace tuner
