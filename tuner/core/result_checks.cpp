#include "tuner/core/result_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

/// Of one number computed twice; far below what a clock resolves.
constexpr double kRounding = 1e-9;

bool same(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b;
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

void require_same(const Node& node, const char* key, double found, double expected, const char* source) {
  if (same(found, expected)) return;
  node.at(key).refuse(
      fmt::format("{}, {}", std::isfinite(expected) ? fmt::format("{:.10g}", expected) : "null", source));
}

std::optional<double> value_of(const TimeRecord& time, bool energy) {
  if (!energy) return time.ms.median;
  if (!time.energy) return std::nullopt;
  return time.energy->mj.median;
}

const VariantRecord* best_of_ours(const ClassRecord& record, bool energy) {
  const VariantRecord* best = nullptr;
  std::optional<double> least;
  for (const VariantRecord& variant : record.variants) {
    if (variant.outcome != Outcome::ok || !variant.time) continue;
    const auto value = value_of(*variant.time, energy);
    if (!value || (least && *value >= *least)) continue;
    best = &variant;
    least = value;
  }
  return best;
}

const BaselineRecord* representative(const ClassRecord& record, const std::string& name) {
  const auto found = std::find_if(record.baselines.begin(), record.baselines.end(), [&](const BaselineRecord& each) {
    return each.name == name && each.best_of_its_name && each.time;
  });
  return found == record.baselines.end() ? nullptr : &*found;
}

template <class Record>
const TimeRecord* time_in(const Record& record, const std::string& regime) {
  if (record.time->regime == regime) return &*record.time;
  for (const TimeRecord& time : record.other_regimes)
    if (time.regime == regime) return &time;
  return nullptr;
}

/// NaN and infinite ends stand as null in the file, and are read as unbounded.
Interval unbounded_where_unknown(Interval interval) {
  if (std::isnan(interval.low)) interval.low = -std::numeric_limits<double>::infinity();
  if (std::isnan(interval.high)) interval.high = std::numeric_limits<double>::infinity();
  return interval;
}

/// What the ratio should be; nothing where the class has nothing that it could be of.
std::optional<Interval> expected(const RatioRecord& ratio, const VariantRecord& ours, const BaselineRecord& theirs) {
  if (ratio.quantity == "energy") {
    if (!ours.time->energy || !theirs.time->energy) return std::nullopt;
    const Interval a = theirs.time->energy->mj, b = ours.time->energy->mj;
    return Interval{a.median / b.median, a.low / b.high, a.high / b.low};
  }
  const std::string regime = ratio.regime.empty() ? ours.time->regime : ratio.regime;
  const TimeRecord *a = time_in(theirs, regime), *b = time_in(ours, regime);
  if (!a || !b || a->samples.size() != b->samples.size()) return std::nullopt;
  return ratio_interval(a->samples, b->samples);
}

}  // namespace

void require_of_samples(const Node& node, const Interval& interval, const std::vector<double>& samples) {
  if (samples.empty()) node.at("samples").refuse("one sample at least");
  const Interval of_samples = median_interval(samples);
  require_same(node, "median", interval.median, of_samples.median, "the median of 'samples'");
  require_same(node, "low", interval.low, of_samples.low, "as 'samples' give it");
  require_same(node, "high", interval.high, of_samples.high, "as 'samples' give it");
}

void require_ratios(const Node& node, const ClassRecord& record, const std::string& objective) {
  const VariantRecord* ours = best_of_ours(record, objective == "energy");
  for (std::size_t i = 0; i < record.ratios.size(); ++i) {
    const RatioRecord& ratio = record.ratios[i];
    const Node place = node.at("ratios").elements()[i];
    const BaselineRecord* theirs = representative(record, ratio.baseline);
    const auto of_samples = ours && theirs ? expected(ratio, *ours, *theirs) : std::nullopt;
    if (!of_samples)
      place.fail(fmt::format("no samples, round by round, of our best and of {} stand in the file for this ratio",
                             excerpt(ratio.baseline)));
    const Interval interval = unbounded_where_unknown(*of_samples);
    require_same(place, "ratio", ratio.ratio, interval.median, "as the samples of both give it");
    require_same(place, "low", ratio.low, interval.low, "as the samples of both give it");
    require_same(place, "high", ratio.high, interval.high, "as the samples of both give it");
  }
}

}  // namespace tuner
