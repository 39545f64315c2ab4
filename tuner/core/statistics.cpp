#include "tuner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace tuner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double middle(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
}

bool any_nan(std::span<const double> samples) {
  return std::any_of(samples.begin(), samples.end(), [](double sample) { return std::isnan(sample); });
}

/// Largest r with 2 P(Binomial(n, 1/2) < r) <= 1 - confidence; 0 if there is none. The interval is then the r-th
/// smallest to the r-th largest sample (Conover, Practical Nonparametric Statistics, section 3.2).
std::size_t order_statistic(std::size_t n, double confidence) {
  const auto count = static_cast<double>(n);
  const double tail = (1 - confidence) / 2;
  double log_mass = -count * std::log(2.0);  // of exactly r successes; logarithms, since 2^-n underflows
  double below = 0;
  std::size_t r = 0;
  while (r < n) {
    below += std::exp(log_mass);
    if (below > tail * (1 + 1e-12)) break;
    log_mass += std::log((count - static_cast<double>(r)) / (static_cast<double>(r) + 1));
    ++r;
  }
  return r;
}

}  // namespace

double Interval::relative_half_width() const {
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(median) || median == 0) return kInfinity;
  return (high - low) / 2 / median;
}

double median(std::span<const double> samples) {
  if (samples.empty() || any_nan(samples)) return kNan;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return middle(sorted);
}

Interval median_interval(std::span<const double> samples, double confidence) {
  if (samples.empty() || any_nan(samples)) return {kNan, -kInfinity, kInfinity};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t r = order_statistic(sorted.size(), confidence);
  if (r == 0) return {middle(sorted), -kInfinity, kInfinity};
  return {middle(sorted), sorted[r - 1], sorted[sorted.size() - r]};
}

Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, double confidence) {
  if (numerator.size() != denominator.size()) throw std::invalid_argument("ratio_interval: rounds must come in pairs");
  std::vector<double> ratios(numerator.size());
  std::transform(numerator.begin(), numerator.end(), denominator.begin(), ratios.begin(),
                 [](double a, double b) { return a / b; });
  return median_interval(ratios, confidence);
}

bool agree(const Interval& a, const Interval& b, double slack) {
  return a.low <= b.high * (1 + slack) && b.low <= a.high * (1 + slack);
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return kNan;
  double sum = 0;
  for (const double value : values) {
    if (!(value > 0)) return kNan;
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace tuner
