#include "tuner/commands/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/commands/interrupt.h"
#include "tuner/commands/target.h"
#include "tuner/core/file.h"
#include "tuner/core/json.h"
#include "tuner/family/checks.h"
#include "tuner/report/compare.h"
#include "tuner/report/digest.h"

namespace tuner {
namespace {

constexpr int kRounds = 60;         // a number set in advance: stopping at a narrow interval would make it too narrow
constexpr double kMostSeconds = 4;  // for each of the two

/// The best variant of one result, compiled for the GPU that is here.
struct Side {
  const VariantRecord* variant;
  CompiledUnit unit;
  bool as_recorded() const { return unit.sha256 == variant->cubin_sha256; }
};

Side compile_best(const RunResult& result, const ClassRecord& record, const BuildContext& context, Target& target) {
  const VariantRecord* best = fastest(record);
  if (!best) throw UsageError(fmt::format("{}: no variant of it was right and timed", result.name));
  const Family* family = find_family(best->variant.family);
  if (!family) throw UsageError(fmt::format("family `{}` is not in this program", best->variant.family));
  auto compiling =
      target.nvrtc->compile(family->build(context, recorded_configuration(*family, context, best->variant)).unit);
  if (!wait_unless_interrupted(compiling)) throw Interrupted{interrupt_signal()};
  const auto unit = compiling.get();
  if (!unit) throw EnvironmentError(fmt::format("{} does not compile: {}", best->id, unit.failure().reason));
  return {best, *unit};
}

MeasureOptions options_of(const TimeRecord& time) {
  MeasureOptions options;
  options.l2 = l2_named(time.l2);
  options.regime = regime_named(time.regime);
  options.half_width = 1e-9;
  options.max_seconds = kMostSeconds;
  return options;
}

Json interval_json(const Interval& interval) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"median", finite(interval.median)}, {"low", finite(interval.low)}, {"high", finite(interval.high)}};
}

Json side_json(const Side& side, const TimeRecord& time) {
  return {{"id", side.variant->id},
          {"cubin_sha256", side.unit.sha256},
          {"as_recorded", side.as_recorded()},
          {"samples", time.samples},
          {"clock_mhz", interval_json(time.clock_mhz)}};
}

class Live {
 public:
  Live(const CompareCommand& options, const Settings& settings) : options_(options) {
    TargetOptions target;
    target.device.kind = DeviceChoice::Kind::cuda;
    target_ = open_target(target, settings);
    comparison_.timed = true;
    comparison_.options = {options.fail_slower, options.allow_different};
  }

  void add(const ProblemRecord& problem, const RunResult& base, const ClassRecord& base_record, const RunResult& now,
           const ClassRecord& now_record) {
    const BuildContext context{problem.problem, base_record.accuracy, target_.environment.device};
    const Side sides[] = {compile_best(base, base_record, context, target_),
                          compile_best(now, now_record, context, target_)};
    if (const auto loaded = target_.worker->load(context, Values::normal, 1); !loaded)
      throw EnvironmentError(fmt::format("{}: {}", problem.name, loaded.failure().reason));
    ClassComparison c;
    c.problem = problem.name;
    c.accuracy = base_record.accuracy;
    std::vector<Worker::Contestant> contestants;
    for (const Side& side : sides) {
      const Evaluation right = target_.worker->evaluate(side.variant->variant, side.unit, nullptr);
      if (right.outcome != Outcome::ok)
        c.regressions.push_back(fmt::format("{}: {}: {}", side.variant->id, to_string(right.outcome), right.reason));
      if (!side.as_recorded()) c.notes.push_back(side.variant->id + ": another cubin than was recorded");
      contestants.push_back(
          {std::pair(side.variant->variant, side.unit), {}, {}, {}, {}, side.variant->time->ms.median});
    }
    if (interrupt_signal() != 0) throw Interrupted{interrupt_signal()};
    if (c.regressions.empty()) time(c, sides, contestants, *sides[0].variant->time);
    comparison_.classes.push_back(std::move(c));
  }

  int finish(bool color) {
    if (options_.json)
      write_file_atomically(*options_.json, dump_json({{"schema_version", 1},
                                                       {"gpu", target_.environment.device.name},
                                                       {"uuid", target_.environment.uuid},
                                                       {"live", rows_}}));
    fmt::print("{}", to_text(comparison_, color));
    return comparison_.regressed() ? 4 : 0;
  }

 private:
  void time(ClassComparison& c, const Side (&sides)[2], const std::vector<Worker::Contestant>& contestants,
            const TimeRecord& like) {
    const MeasureOptions measure = options_of(like);
    const auto times = target_.worker->run_off(contestants, {}, {measure}, kRounds);
    if (interrupt_signal() != 0) throw Interrupted{interrupt_signal()};
    if (!times) throw EnvironmentError(fmt::format("{}: {}", c.problem, times.failure().reason));
    for (const RunOffTimes::Entry& entry : times->entries)
      if (entry.failure) c.regressions.push_back(entry.failure->reason);
    if (!c.regressions.empty()) return;
    const TimeRecord &base = times->entries[0].times[0], &now = times->entries[1].times[0];
    c.base_variant = sides[0].variant->id;
    c.now_variant = sides[1].variant->id;
    c.base_ms = base.ms;
    c.now_ms = now.ms;
    c.slowdown = ratio_interval(now.samples, base.samples);
    c.verdict = judge(*c.slowdown, options_.fail_slower);
    if (c.verdict == Verdict::slower && c.slowdown->median > 1 + options_.fail_slower / 100)
      c.regressions.push_back(fmt::format("slower by {:.1f} % in interleaved rounds", 100 * (c.slowdown->median - 1)));
    rows_.push_back({{"problem", c.problem},
                     {"class", to_string(c.accuracy)},
                     {"l2", base.l2},
                     {"regime", base.regime},
                     {"base", side_json(sides[0], base)},
                     {"new", side_json(sides[1], now)},
                     {"ratio", interval_json(*c.slowdown)},
                     {"ratio_999", interval_json(ratio_interval(now.samples, base.samples, 0.999))}});
  }

  const CompareCommand& options_;
  Target target_;
  Comparison comparison_;
  Json rows_ = Json::array();
};

}  // namespace

int compare_live(const RunResult& base, const RunResult& now, const CompareCommand& options, const Settings& settings) {
  if (!base.measured || !now.measured) throw UsageError("--live needs two results that were measured on a GPU");
  struct Pair {
    const ProblemRecord* problem;
    const ClassRecord *base, *now;
  };
  std::vector<Pair> pairs;
  for (const ProblemRecord& problem : base.problems)
    for (const ProblemRecord& other : now.problems)
      if (problem.name == other.name && problem.problem == other.problem)
        for (const ClassRecord& record : problem.classes)
          if (const ClassRecord* match = find_class(other, record.accuracy))
            pairs.push_back({&problem, &record, match});
  if (pairs.empty()) throw UsageError("the results have no problem and class in common");
  InterruptGuard guard;
  Live live(options, settings);
  for (const Pair& pair : pairs) live.add(*pair.problem, base, *pair.base, now, *pair.now);
  return live.finish(settings.color);
}

}  // namespace tuner
