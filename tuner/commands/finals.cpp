#include "tuner/commands/finals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/commands/interrupt.h"
#include "tuner/report/digest.h"

namespace tuner {
namespace {

constexpr std::size_t kFinalists = 6;
constexpr double kFinalistMargin = 1.05;  // slower ones cannot win the run-off
constexpr double kAgain = 0.01;           // that the winner's two measurements may lie apart
constexpr double kClockApart = 0.05;
constexpr int kEnergyWindows = 7;  // the fewest that bound a median at 95 %, and one

bool stopped() { return interrupt_signal() != 0; }

/// Samples of one run-off pair up round by round.
bool paired(const TimeRecord* a, const TimeRecord* b) {
  return a && b && a->interleaved && b->interleaved && !a->samples.empty() && a->samples.size() == b->samples.size();
}

template <class Record>
double expected_ms(const Record& record) {
  return record.time ? record.time->ms.median : 0;
}

template <class Record>
void store(Record& record, RunOffTimes::Entry& entry) {
  if (entry.failure) record.time.reset();
  if (entry.times.empty()) return;
  record.time = std::move(entry.times.front());
  record.other_regimes.assign(entry.times.begin() + 1, entry.times.end());
}

class Finals {
 public:
  Finals(Session& session, const BuildContext& context, std::vector<Finalist> finalists, ClassRecord& record)
      : session_(session), context_(context), finalists_(std::move(finalists)), record_(record) {}

  /// False where it could not take place.
  bool run_off(const std::string& problem) {
    std::vector<Worker::Contestant> contestants;
    for (const Finalist& finalist : finalists_)
      contestants.push_back(
          {std::pair(variant(finalist).variant, finalist.unit), {}, {}, {}, {}, expected_ms(variant(finalist))});
    std::vector<BaselineRecord*> vendors;
    for (BaselineRecord& baseline : record_.baselines)
      if (baseline.best_of_its_name) {
        vendors.push_back(&baseline);
        contestants.push_back(
            {std::nullopt, baseline.name, baseline.route, baseline.engine, baseline.knobs, expected_ms(baseline)});
      }
    session_.progress.note(fmt::format("{} {}: run-off of {} finalists and {} baselines", problem,
                                       to_string(context_.accuracy), finalists_.size(), vendors.size()));
    auto times = session_.target.worker->run_off(contestants, session_.config.cudnn, regimes(),
                                                 session_.config.measure.max_samples);
    if (!times) {
      session_.progress.note("run-off failed: " + times.failure().reason);
      return false;
    }
    record_.conditions = times->conditions;
    for (std::size_t i = 0; i < finalists_.size(); ++i) take(variant(finalists_[i]), times->entries[i]);
    for (std::size_t i = 0; i < vendors.size(); ++i) take(*vendors[i], times->entries[finalists_.size() + i]);
    std::erase_if(finalists_, [&](const Finalist& finalist) { return variant(finalist).outcome != Outcome::ok; });
    return true;
  }

  /// A finalist that fails on fresh inputs is wrong, whatever it computed before. False if that was not found out.
  bool confirm() {
    if (!load(Values::positive, 1)) return false;
    for (const Finalist& finalist : finalists_) {
      const Evaluation fresh = session_.target.worker->evaluate(variant(finalist).variant, finalist.unit, nullptr);
      if (stopped()) return false;  // says nothing about the variant
      note_fresh(variant(finalist), fresh);
    }
    return true;
  }

  /// The winner alone, on inputs that it never saw. False if it was not.
  bool measure_again() {
    const auto winner = std::find_if(finalists_.begin(), finalists_.end(), [&](const Finalist& finalist) {
      return variant(finalist).outcome == Outcome::ok && variant(finalist).id == fastest(record_)->id;
    });
    if (winner == finalists_.end()) return true;  // none of ours
    if (stopped() || !load(Values::normal, 2)) return false;
    const MeasureOptions options = regimes().front();
    VariantRecord& ours = variant(*winner);
    const Evaluation again = session_.target.worker->evaluate(ours.variant, winner->unit, &options);
    if (stopped()) return false;
    note_fresh(ours, again);
    if (!again.time || ours.outcome != Outcome::ok) return true;
    const bool agrees = agree(again.time->ms, ours.time->ms, kAgain);
    record_.best_again = AgainRecord{ours.id, *again.time, agrees};
    if (!agrees)
      record_.warnings.push_back(fmt::format("measured again, {} took {} ms, not the run-off's {} ms", ours.id,
                                             with_interval(again.time->ms), with_interval(ours.time->ms)));
    return true;
  }

  /// Entrants of one run-off that ran at different clocks in bursts were not all given the same machine.
  void warn_of_clocks() {
    const VariantRecord* ours = fastest(record_);
    double highest = 0;
    const auto see = [&](const auto& entrant) {
      if (entrant.time && entrant.time->interleaved) highest = std::max(highest, entrant.time->clock_mhz.median);
    };
    for (const VariantRecord& each : record_.variants) see(each);
    for (const BaselineRecord& each : record_.baselines) see(each);
    if (!ours || !ours->time || ours->time->regime != "burst" || ours->time->clock_mhz.median == 0) return;
    if (ours->time->clock_mhz.median < (1 - kClockApart) * highest)
      record_.warnings.push_back(fmt::format("{} ran at {:.0f} MHz in bursts, others at up to {:.0f} MHz", ours->id,
                                             ours->time->clock_mhz.median, highest));
  }

 private:
  VariantRecord& variant(const Finalist& finalist) { return record_.variants[finalist.record]; }

  std::vector<MeasureOptions> regimes() const {
    std::vector<MeasureOptions> options;
    for (const std::string& regime : session_.config.measure.regime)
      options.push_back(measure_options(session_.config.measure, regime));
    if (session_.target.environment.energy_counter != "available") return options;
    const std::vector<std::string>& asked = session_.config.measure.regime;
    const bool loads = std::find(asked.begin(), asked.end(), "sustained") != asked.end();
    options.front().energy_windows = session_.config.search.objective == "energy" ? kEnergyWindows : loads ? 1 : 0;
    return options;
  }

  static void take(VariantRecord& record, RunOffTimes::Entry& entry) {
    store(record, entry);
    if (!entry.failure) return;
    record.outcome = entry.failure->outcome;
    record.reason = "in the run-off: " + entry.failure->reason;
    if (!entry.failure->log.empty()) record.log = entry.failure->log;
  }
  static void take(BaselineRecord& record, RunOffTimes::Entry& entry) {
    store(record, entry);
    if (!entry.failure) return;
    record.status = to_string(entry.failure->outcome);
    record.reason = "in the run-off: " + entry.failure->reason;
    record.best_of_its_name = false;
  }

  bool load(Values values, std::uint64_t draw) {
    const auto loaded = session_.target.worker->load(context_, values, session_.config.search.seed + draw);
    if (!loaded) {
      session_.progress.note("finalists could not be confirmed: " + loaded.failure().reason);
      return false;
    }
    record_.plain_error = std::max(record_.plain_error, *loaded);
    return true;
  }

  static void note_fresh(VariantRecord& variant, const Evaluation& fresh) {
    if (fresh.outcome == Outcome::ok) {
      variant.errors->element = std::max(variant.errors->element, fresh.errors->element);
      variant.errors->row = std::max(variant.errors->row, fresh.errors->row);
      return;
    }
    variant.outcome = fresh.outcome;
    variant.reason = "on fresh inputs: " + fresh.reason;
  }

  Session& session_;
  const BuildContext& context_;
  std::vector<Finalist> finalists_;
  ClassRecord& record_;
};

void add_ratios(ClassRecord& record, const VariantRecord& best, const std::string& objective) {
  std::vector<std::string> regimes{best.time->regime};
  for (const TimeRecord& time : best.other_regimes) regimes.push_back(time.regime);
  for (const std::string& regime : regimes)
    for (const BaselineRecord& baseline : record.baselines) {
      const TimeRecord *theirs = time_in(baseline, regime), *ours = time_in(best, regime);
      if (!baseline.best_of_its_name || !paired(theirs, ours)) continue;
      const Interval ratio = ratio_interval(theirs->samples, ours->samples);
      record.ratios.push_back({baseline.name, ratio.median, ratio.low, ratio.high, regime});
    }
  if (objective != "energy") return;
  for (const BaselineRecord& baseline : record.baselines) {
    if (!baseline.best_of_its_name || !baseline.time || !baseline.time->energy || !best.time->energy) continue;
    const Interval ratio = worst_case_ratio(baseline.time->energy->mj, best.time->energy->mj);
    record.ratios.push_back({baseline.name, ratio.median, ratio.low, ratio.high, "sustained", "energy"});
  }
}

/// Whether a finalist cannot be told from the best.
bool ties(const VariantRecord& variant, const VariantRecord& best, const std::string& objective) {
  if (&variant == &best || variant.outcome != Outcome::ok || !variant.time) return false;
  if (!paired(&*variant.time, &*best.time)) return false;
  if (objective == "energy")
    return variant.time->energy && best.time->energy &&
           !(worst_case_ratio(variant.time->energy->mj, best.time->energy->mj).low > 1);
  return ratio_interval(variant.time->samples, best.time->samples).low <= 1;
}

}  // namespace

MeasureOptions measure_options(const MeasureConfig& config, const std::string& regime) {
  MeasureOptions options;
  options.l2 = l2_named(config.l2);
  options.regime = regime_named(regime);
  options.half_width = config.half_width;
  options.max_samples = config.max_samples;
  options.max_seconds = config.max_seconds;
  options.cut_factor = config.cut_factor;
  return options;
}

std::size_t finalist_count(const std::vector<double>& objectives) {
  std::size_t count = std::min(objectives.size(), kFinalists);
  while (count > 0 && objectives[count - 1] > kFinalistMargin * objectives.front()) --count;
  return count;
}

bool run_finals(Session& session, const std::string& problem, const BuildContext& context, std::vector<Finalist> ranked,
                ClassRecord& record) {
  if (ranked.empty()) return true;
  std::vector<double> objectives;
  for (const Finalist& finalist : ranked) objectives.push_back(finalist.objective);
  ranked.resize(finalist_count(objectives));
  Finals finals(session, context, std::move(ranked), record);
  if (!finals.run_off(problem)) return false;
  const bool confirmed = finals.confirm();
  choose_best(record, session.config.search.objective);
  finals.warn_of_clocks();
  const bool measured_again = finals.measure_again();
  choose_best(record, session.config.search.objective);  // the winner may have failed
  return confirmed && measured_again;
}

std::optional<double> objective_of(const std::optional<TimeRecord>& time, const std::string& objective) {
  if (!time) return std::nullopt;
  if (objective != "energy") return time->ms.median;
  if (!time->energy) return std::nullopt;
  return time->energy->mj.median;
}

void choose_best(ClassRecord& record, const std::string& objective) {
  record.best.clear();
  record.tie.clear();
  record.ratios.clear();
  const VariantRecord* best = nullptr;
  const BaselineRecord* vendor = nullptr;
  std::optional<double> least, vendors;
  for (const VariantRecord& variant : record.variants)
    if (const auto value = objective_of(variant.time, objective);
        variant.outcome == Outcome::ok && value && (!least || *value < *least)) {
      best = &variant;
      least = value;
    }
  for (const BaselineRecord& baseline : record.baselines)
    if (const auto value = objective_of(baseline.time, objective);
        baseline.best_of_its_name && value && (!vendors || *value < *vendors)) {
      vendor = &baseline;
      vendors = value;
    }
  if (vendor && (!best || *vendors < *least))
    record.best = fmt::format("{}: {}", vendor->name, vendor->route);
  else if (best)
    record.best = best->id;
  if (!best) return;
  for (const VariantRecord& variant : record.variants)
    if (ties(variant, *best, objective)) record.tie.push_back(variant.id);
  add_ratios(record, *best, objective);
}

}  // namespace tuner
