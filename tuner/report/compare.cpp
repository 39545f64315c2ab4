#include "tuner/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tuner/report/digest.h"
#include "tuner/report/escape.h"

namespace tuner {
namespace {

/// Ran, or would have run: what is not here is a fault of the variant.
bool works(Outcome outcome) {
  return outcome == Outcome::ok || outcome == Outcome::cut || outcome == Outcome::unproven;
}

std::string branch(const std::string& driver) { return driver.substr(0, driver.find('.')); }

const ProblemRecord* find_problem(const RunResult& result, const std::string& name) {
  for (const ProblemRecord& problem : result.problems)
    if (problem.name == name) return &problem;
  return nullptr;
}

/// L2 state and regime of the times in a result.
std::set<std::string> conditions(const RunResult& result) {
  std::set<std::string> found;
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes)
      for (const std::string& regime : regimes_of(record))
        if (const VariantRecord* best = fastest(record)) found.insert(best->time->l2 + " L2, " + regime);
  return found;
}

std::string joined(const std::set<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " and ") + part;
  return text.empty() ? "none" : text;
}

/// Every way in which the two must not be compared without being told to.
std::vector<std::string> differences(const RunResult& base, const RunResult& now, bool timed) {
  std::vector<std::string> found;
  const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      found.push_back(fmt::format("{} {} against {}", what, a.empty() ? "unknown" : a, b.empty() ? "unknown" : b));
  };
  const DeviceFacts &a = base.environment.device, &b = now.environment.device;
  differ("GPU", a.name, b.name);
  differ("target", a.arch, b.arch);
  if (timed) {
    differ("number of SMs", std::to_string(a.sm_count), std::to_string(b.sm_count));
    differ("power limit", fmt::format("{:.0f} W", base.environment.power_limit_w),
           fmt::format("{:.0f} W", now.environment.power_limit_w));
    differ("driver branch", branch(base.environment.driver), branch(now.environment.driver));
    differ("regime", joined(conditions(base)), joined(conditions(now)));
  } else if (base.measured != now.measured) {
    found.push_back(base.measured ? "the first was measured, the second not"
                                  : "the second was measured, the first not");
  }
  for (const ProblemRecord& problem : base.problems) {
    const ProblemRecord* other = find_problem(now, problem.name);
    if (!other) {
      found.push_back(fmt::format("problem {} is only in the first", problem.name));
      continue;
    }
    differ(fmt::format("problem {}:", problem.name).c_str(), summary(problem.problem), summary(other->problem));
    for (const ClassRecord& record : problem.classes)
      if (!find_class(*other, record.accuracy))
        found.push_back(
            fmt::format("class {} of problem {} is only in the first", to_string(record.accuracy), problem.name));
  }
  return found;
}

void compare_times(ClassComparison& c, const ClassRecord& base, const ClassRecord& now, double percent) {
  const VariantRecord *before = fastest(base), *after = fastest(now);
  const TimeRecord* was = before ? time_in(*before, c.regime) : nullptr;
  const TimeRecord* is = after ? time_in(*after, c.regime) : nullptr;
  if (was) c.base_variant = before->id, c.base_ms = was->ms;
  if (is) c.now_variant = after->id, c.now_ms = is->ms;
  if (before && !after) c.regressions.push_back("nothing valid is left");
  if (!was || !is) return;
  c.slowdown = worst_case_ratio(*c.now_ms, *c.base_ms);
  c.verdict = judge(*c.slowdown, percent);
  if (c.verdict == Verdict::slower && c.slowdown->median > 1 + percent / 100)
    c.regressions.push_back(fmt::format("slower by {:.1f} % ({} ms, was {} ms)", 100 * (c.slowdown->median - 1),
                                        with_interval(*c.now_ms), with_interval(*c.base_ms)));
}

void compare_outcome(ClassComparison& c, const VariantRecord& before, const VariantRecord& after) {
  if (works(before.outcome) && !works(after.outcome))
    c.regressions.push_back(fmt::format("{}: {}, was {}{}", after.id, to_string(after.outcome),
                                        to_string(before.outcome), after.reason.empty() ? "" : ": " + after.reason));
  else if (before.outcome == Outcome::ok && after.outcome == Outcome::unproven)
    c.notes.push_back(fmt::format("{}: no longer proven on the CPU", after.id));
}

void compare_facts(ClassComparison& c, const VariantRecord& before, const VariantRecord& after, double percent) {
  if (before.cubin_sha256.empty() || after.cubin_sha256.empty()) return;
  if (after.spill_bytes > before.spill_bytes)
    c.regressions.push_back(
        fmt::format("{}: spills {} bytes, was {}", after.id, after.spill_bytes, before.spill_bytes));
  if (after.occupancy < before.occupancy - 1e-9)
    c.regressions.push_back(
        fmt::format("{}: occupancy {:.1f} %, was {:.1f} %", after.id, 100 * after.occupancy, 100 * before.occupancy));
  if (after.registers > before.registers * (1 + percent / 100))
    c.regressions.push_back(fmt::format("{}: {} registers, was {}", after.id, after.registers, before.registers));
}

ClassComparison compare_class(const std::string& problem, const ClassRecord& base, const ClassRecord& now, bool timed,
                              const CompareOptions& options) {
  ClassComparison c;
  c.problem = problem;
  c.accuracy = base.accuracy;
  if (timed) compare_times(c, base, now, options.fail_slower_percent);
  std::map<std::string, const VariantRecord*> before;
  for (const VariantRecord& variant : base.variants) before.emplace(variant.id, &variant);
  std::size_t common = 0;
  for (const VariantRecord& variant : now.variants) {
    const auto found = before.find(variant.id);
    if (found == before.end()) continue;
    ++common;
    compare_outcome(c, *found->second, variant);
    if (!timed) compare_facts(c, *found->second, variant, options.fail_slower_percent);
  }
  if (common < base.variants.size() || common < now.variants.size())
    c.notes.push_back(fmt::format("{} in both, {} only in the first, {} only in the second", counted(common, "variant"),
                                  base.variants.size() - common, now.variants.size() - common));
  if (!timed)  // compile facts carry no interval: any change for the worse is one
    c.verdict = !c.regressions.empty() ? Verdict::slower : common > 0 ? Verdict::same : Verdict::cannot_tell;
  return c;
}

/// A further regime that both were timed in: times alone.
ClassComparison compare_regime(const std::string& problem, const ClassRecord& base, const ClassRecord& now,
                               const std::string& regime, const CompareOptions& options) {
  ClassComparison c;
  c.problem = problem;
  c.accuracy = base.accuracy;
  c.regime = regime;
  compare_times(c, base, now, options.fail_slower_percent);
  return c;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::same:
      return "same";
    case Verdict::slower:
      return "slower";
    case Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

Verdict judge(const Interval& slowdown, double threshold_percent) {
  if (!std::isfinite(slowdown.low) || !std::isfinite(slowdown.high) || !(slowdown.low <= slowdown.high))
    return Verdict::cannot_tell;
  if (slowdown.low > 1) return Verdict::slower;
  if (slowdown.high < 1) return Verdict::faster;
  const double allowed = 1 + threshold_percent / 100;
  return slowdown.high <= allowed && slowdown.low >= 1 / allowed ? Verdict::same : Verdict::cannot_tell;
}

bool Comparison::regressed() const {
  for (const ClassComparison& c : classes)
    if (!c.regressions.empty()) return true;
  return false;
}

Comparison compare(const RunResult& base, const RunResult& now, const CompareOptions& options) {
  Comparison comparison;
  comparison.options = options;
  comparison.timed = base.measured && now.measured;
  comparison.untimed = base.measured ? "the new one" : now.measured ? "the base" : "either";
  comparison.notes = differences(base, now, comparison.timed);
  if (!comparison.notes.empty() && !options.allow_different) {
    std::string text;
    for (const std::string& difference : comparison.notes) text += (text.empty() ? "" : "; ") + printable(difference);
    throw UsageError("the results cannot be compared: " + text + " (--allow-different compares them all the same)");
  }
  for (const ProblemRecord& problem : base.problems)
    if (const ProblemRecord* other = find_problem(now, problem.name))
      for (const ClassRecord& record : problem.classes)
        if (const ClassRecord* match = find_class(*other, record.accuracy)) {
          comparison.classes.push_back(compare_class(problem.name, record, *match, comparison.timed, options));
          const auto regimes = regimes_of(record), others = regimes_of(*match);
          for (std::size_t i = 1; comparison.timed && i < regimes.size(); ++i)
            if (std::find(others.begin(), others.end(), regimes[i]) != others.end())
              comparison.classes.push_back(compare_regime(problem.name, record, *match, regimes[i], options));
        }
  if (comparison.classes.empty()) throw UsageError("the results have no problem and class in common");
  for (const ProblemRecord& problem : now.problems)
    if (!find_problem(base, problem.name))
      comparison.notes.push_back(fmt::format("problem {} is only in the second", problem.name));
  return comparison;
}

}  // namespace tuner
