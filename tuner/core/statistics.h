// Order statistics of timings. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace tuner {

/// A median and its distribution-free confidence interval (binomial order statistics), in the samples' unit.
struct Interval {
  double median = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
  /// (high - low) / 2 / median; infinity when there are too few samples to bound both sides.
  double relative_half_width() const;
};

double median(std::span<const double> samples);
/// Conover's order-statistic interval: at least `confidence` coverage; low/high are -inf/+inf with too few samples (< 6
/// at 95 %).
Interval median_interval(std::span<const double> samples, double confidence = 0.95);
/// Median of the paired ratios numerator[i] / denominator[i] (rounds interleaved in one process) and its interval.
Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                        double confidence = 0.95);
/// Whether two intervals overlap once both are widened by `slack`, relative. Unbounded ones overlap everything.
bool agree(const Interval& a, const Interval& b, double slack);
double geometric_mean(std::span<const double> values);

}  // namespace tuner
