#include "tuner/commands/finals.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/commands/interrupt.h"

namespace tuner {
namespace {

constexpr std::size_t kFinalists = 6;
constexpr double kFinalistMargin = 1.05;  // slower ones cannot win the run-off
constexpr int kRunOffRounds = 40;

bool stopped() { return interrupt_signal() != 0; }

/// Samples of one run-off pair up round by round.
bool interleaved(const std::optional<TimeRecord>& a, const std::optional<TimeRecord>& b) {
  return a && b && a->samples.size() == b->samples.size() && a->samples.size() == kRunOffRounds;
}

/// A finalist that fails on fresh inputs is wrong, whatever it computed before.
void confirm(Session& session, const BuildContext& context, const std::vector<Finalist>& finalists,
             ClassRecord& record) {
  const auto loaded = session.target.worker->load(context, Values::positive, session.config.search.seed + 1);
  if (!loaded) {
    session.progress.note("finalists could not be confirmed: " + loaded.failure().reason);
    return;
  }
  record.plain_error = std::max(record.plain_error, *loaded);
  for (const Finalist& finalist : finalists) {
    VariantRecord& variant = record.variants[finalist.record];
    const Evaluation fresh = session.target.worker->evaluate(variant.variant, finalist.unit, nullptr);
    if (stopped()) return;  // says nothing about the variant
    if (fresh.outcome == Outcome::ok) {
      variant.errors->element = std::max(variant.errors->element, fresh.errors->element);
      variant.errors->row = std::max(variant.errors->row, fresh.errors->row);
      continue;
    }
    variant.outcome = fresh.outcome;
    variant.reason = "on fresh inputs: " + fresh.reason;
  }
}

}  // namespace

void run_finals(Session& session, const std::string& problem, const BuildContext& context,
                const MeasureOptions& measure, std::vector<Finalist> ranked, ClassRecord& record) {
  if (ranked.empty()) return;
  while (ranked.size() > kFinalists || ranked.back().objective > kFinalistMargin * ranked.front().objective)
    ranked.pop_back();
  std::vector<Worker::Contestant> contestants;
  for (const Finalist& finalist : ranked)
    contestants.push_back({std::pair(record.variants[finalist.record].variant, finalist.unit), {}, {}, {}, {}});
  std::vector<BaselineRecord*> vendors;
  for (BaselineRecord& baseline : record.baselines)
    if (baseline.best_of_its_name) {
      vendors.push_back(&baseline);
      contestants.push_back({std::nullopt, baseline.name, baseline.route, baseline.engine, baseline.knobs});
    }
  session.progress.note(fmt::format("{} {}: run-off of {} finalists and {} baselines", problem,
                                    to_string(context.accuracy), ranked.size(), vendors.size()));
  auto times = session.target.worker->run_off(contestants, session.config.cudnn, measure, kRunOffRounds);
  if (!times) {
    session.progress.note("run-off failed: " + times.failure().reason);
    return;
  }
  for (std::size_t i = 0; i < ranked.size(); ++i) record.variants[ranked[i].record].time = (*times)[i];
  for (std::size_t i = 0; i < vendors.size(); ++i) vendors[i]->time = (*times)[ranked.size() + i];
  confirm(session, context, ranked, record);
  choose_best(record);
}

void choose_best(ClassRecord& record) {
  const VariantRecord* best = nullptr;
  for (const VariantRecord& variant : record.variants)
    if (variant.outcome == Outcome::ok && variant.time && (!best || variant.time->ms.median < best->time->ms.median))
      best = &variant;
  const BaselineRecord* vendor = nullptr;
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.best_of_its_name && (!vendor || baseline.time->ms.median < vendor->time->ms.median))
      vendor = &baseline;
  if (vendor && (!best || vendor->time->ms.median < best->time->ms.median))
    record.best = fmt::format("{}: {}", vendor->name, vendor->route);
  else if (best)
    record.best = best->id;
  if (!best) return;
  for (const VariantRecord& variant : record.variants)
    if (&variant != best && variant.outcome == Outcome::ok && interleaved(variant.time, best->time) &&
        ratio_interval(variant.time->samples, best->time->samples).low <= 1)
      record.tie.push_back(variant.id);
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.best_of_its_name && interleaved(baseline.time, best->time)) {
      const Interval ratio = ratio_interval(baseline.time->samples, best->time->samples);
      record.ratios.push_back({baseline.name, ratio.median, ratio.low, ratio.high});
    }
}

}  // namespace tuner
