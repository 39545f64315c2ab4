#include "tuner/report/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

constexpr std::size_t kReasons = 3;

std::vector<OutcomeCount> count_outcomes(const ClassRecord& record) {
  std::map<Outcome, std::map<std::string, std::size_t>> counts;
  for (const VariantRecord& variant : record.variants) ++counts[variant.outcome][variant.reason];
  std::vector<OutcomeCount> outcomes;
  for (const auto& [outcome, reasons] : counts) {
    OutcomeCount entry{outcome, 0, {}};
    for (const auto& [reason, count] : reasons) {
      entry.count += count;
      if (!reason.empty()) entry.reasons.emplace_back(reason, count);
    }
    std::stable_sort(entry.reasons.begin(), entry.reasons.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (entry.reasons.size() > kReasons) entry.reasons.resize(kReasons);
    outcomes.push_back(std::move(entry));
  }
  return outcomes;
}

template <class Record>
const TimeRecord* find_time(const Record& record, const std::string& regime) {
  if (record.time && (regime.empty() || record.time->regime == regime)) return &*record.time;
  for (const TimeRecord& time : record.other_regimes)
    if (time.regime == regime) return &time;
  return nullptr;
}

const BaselineRecord* best_route(const ClassRecord& record, const std::string& name) {
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.name == name && baseline.best_of_its_name && baseline.time) return &baseline;
  return nullptr;
}

/// Names of baselines that have a time, in the file's order.
std::vector<std::string> timed_baselines(const ClassRecord& record) {
  std::vector<std::string> names;
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.best_of_its_name && baseline.time) names.push_back(baseline.name);
  return names;
}

std::optional<VendorRatio> ratio_to(const Digest& digest, const std::string& baseline, const std::string& regime) {
  if (!digest.time) return std::nullopt;
  for (const RatioRecord& ratio : digest.record->ratios) {
    const std::string& of = ratio.regime.empty() ? digest.ours->time->regime : ratio.regime;
    if (ratio.baseline == baseline && ratio.quantity.empty() && of == digest.time->regime)
      return VendorRatio{baseline, {ratio.ratio, ratio.low, ratio.high}, true};
  }
  const BaselineRecord* route = best_route(*digest.record, baseline);
  const TimeRecord* theirs = route ? time_in(*route, regime) : nullptr;
  if (!theirs) return std::nullopt;
  return VendorRatio{baseline, worst_case_ratio(theirs->ms, digest.time->ms), false};
}

void add_vendors(Digest& digest, const ProblemRecord& problem, const std::string& regime) {
  const ClassRecord& record = *digest.record;
  for (const std::string& name : timed_baselines(record))
    if (const auto ratio = ratio_to(digest, name, regime)) digest.ratios.push_back(*ratio);
  for (const BaselineRecord& baseline : record.baselines) {
    const bool known = std::any_of(digest.absent.begin(), digest.absent.end(),
                                   [&](const auto& entry) { return entry.first == baseline.name; });
    if (known || best_route(record, baseline.name)) continue;
    digest.absent.emplace_back(baseline.name,
                               baseline.reason.empty() ? baseline.status : baseline.status + ": " + baseline.reason);
  }
  const ClassRecord* tf32 = record.accuracy == Accuracy::fp32 ? find_class(problem, Accuracy::tf32) : nullptr;
  const BaselineRecord* route = tf32 ? best_route(*tf32, "cudnn") : nullptr;
  const TimeRecord* theirs = route ? time_in(*route, regime) : nullptr;
  if (theirs && digest.time)
    digest.default_tf32 = {"cudnn in TF32", worst_case_ratio(theirs->ms, digest.time->ms), false};
}

}  // namespace

const ClassRecord* find_class(const ProblemRecord& problem, Accuracy accuracy) {
  for (const ClassRecord& record : problem.classes)
    if (record.accuracy == accuracy) return &record;
  return nullptr;
}

const VariantRecord* fastest(const ClassRecord& record) {
  const VariantRecord* best = nullptr;
  for (const VariantRecord& variant : record.variants) {
    if (variant.outcome != Outcome::ok || !variant.time) continue;
    if (variant.id == record.best) return &variant;
    if (!best || variant.time->ms.median < best->time->ms.median) best = &variant;
  }
  return best;
}

Interval worst_case_ratio(const Interval& numerator, const Interval& denominator) {
  return {numerator.median / denominator.median, numerator.low / denominator.high, numerator.high / denominator.low};
}

std::vector<std::string> regimes_of(const ClassRecord& record) {
  const VariantRecord* ours = fastest(record);
  if (!ours) return {""};
  std::vector<std::string> regimes{ours->time->regime};
  for (const TimeRecord& time : ours->other_regimes) regimes.push_back(time.regime);
  return regimes;
}

const TimeRecord* time_in(const VariantRecord& record, const std::string& regime) { return find_time(record, regime); }
const TimeRecord* time_in(const BaselineRecord& record, const std::string& regime) { return find_time(record, regime); }

Digest digest(const ProblemRecord& problem, const ClassRecord& record, const std::string& regime) {
  Digest digest;
  digest.record = &record;
  digest.ours = fastest(record);
  digest.time = digest.ours ? time_in(*digest.ours, regime) : nullptr;
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.time && record.best == baseline.name + ": " + baseline.route) digest.vendor = &baseline;
  if (digest.time && digest.ours->lower_bound_ms > 0)
    digest.share_of_limit = digest.ours->lower_bound_ms / digest.time->ms.median;
  add_vendors(digest, problem, regime);
  digest.outcomes = count_outcomes(record);
  for (const VariantRecord& variant : record.variants) {
    digest.compiled += !variant.cubin_sha256.empty();
    digest.proven += variant.outcome == Outcome::ok && variant.proven_on.has_value();
  }
  return digest;
}

std::string four_digits(double value) {
  return value >= 999.95 ? fmt::format("{:.0f}", value) : fmt::format("{:#.4g}", value);
}

std::string with_interval(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high))
    return fmt::format("{} {}", four_digits(interval.median), kUnbounded);
  return fmt::format("{} [{}, {}]", four_digits(interval.median), four_digits(interval.low),
                     four_digits(interval.high));
}

std::string as_factor(const Interval& ratio) {
  if (!std::isfinite(ratio.low) || !std::isfinite(ratio.high))
    return fmt::format("{:.3f}x {}", ratio.median, kUnbounded);
  return fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio.median, ratio.low, ratio.high);
}

std::string counted(std::uint64_t count, const std::string& noun, const std::string& plural) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits + ' ' + noun + (count == 1 ? "" : plural);
}

}  // namespace tuner
