// What the run-off asks of a search that has ended: an order, machine code, and what has to be evaluated again.
#include <algorithm>

#include "tuner/commands/class_search.h"
#include "tuner/commands/interrupt.h"
#include "tuner/commands/reuse.h"

namespace tuner {

std::vector<ClassSearch::Kept*> ClassSearch::ranking(Outcome outcome) {
  std::vector<Kept*> order;
  for (Kept& kept : kept_)
    if (task_.result.variants[kept.record].outcome == outcome) order.push_back(&kept);
  std::stable_sort(order.begin(), order.end(),
                   [](const Kept* a, const Kept* b) { return a->objective < b->objective; });
  return order;
}

/// Nothing where a signal ended the wait.
std::optional<Expected<CompiledUnit>> ClassSearch::compiled(const Program& program) {
  auto unit = task_.session.target.nvrtc->compile(program.unit);
  if (!wait_unless_interrupted(unit)) return std::nullopt;
  return unit.get();
}

bool ClassSearch::have_unit(Kept& kept) {
  if (kept.unit) return true;
  VariantRecord& record = task_.result.variants[kept.record];
  const Program program = task_.program_of(record.variant);
  auto unit = compiled(program);
  if (!unit) return false;
  if (*unit && (*unit)->sha256 == record.cubin_sha256) {
    kept.unit = std::move(**unit);
    return true;
  }
  task_.records.was_stale(record.id, "other machine code");
  kept.objective = evaluate_again(record, program, *unit).value_or(kept.objective);
  if (*unit) kept.unit = std::move(**unit);
  return false;
}

std::optional<double> ClassSearch::evaluate_again(VariantRecord& record, const Program& program,
                                                  const Expected<CompiledUnit>& unit) {
  record.outcome = Outcome::unproven;
  record.time.reset();
  find_best();  // without it
  if (!unit) {
    record.outcome = unit.failure().outcome;
    record.reason = unit.failure().reason;
    return std::nullopt;
  }
  if (!task_.load()) return std::nullopt;
  note_compile_facts(record, program, *unit);
  if (record.outcome != Outcome::rejected) judge(record, *unit);
  store(record, task_.session.target.nvrtc->key(program.unit), best_);
  return value_of(record, program);
}

std::vector<std::size_t> ClassSearch::undone_cuts() {
  find_best();
  std::vector<std::size_t> places;
  const auto& variants = task_.result.variants;
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variants[i].outcome == Outcome::cut && !too_slow(variants[i], best_, task_.session.config.measure.cut_factor))
      places.push_back(i);
  return places;
}

void ClassSearch::evaluate_again(const std::vector<std::size_t>& places) {
  for (const std::size_t place : places) {
    VariantRecord& record = task_.result.variants[place];
    const Program program = task_.program_of(record.variant);
    auto unit = compiled(program);
    if (!unit || task_.stopped()) return;
    const auto value = evaluate_again(record, program, *unit);
    if (value && record.outcome == Outcome::ok) kept_.push_back({place, std::move(**unit), *value});
  }
}

void ClassSearch::keep(const VariantRecord& record) {
  store(record, task_.session.target.nvrtc->key(task_.program_of(record.variant).unit), best_);
}

/// Of those that are right now.
void ClassSearch::find_best() {
  best_ = std::numeric_limits<double>::infinity();
  best_id_.clear();
  for (const Kept& kept : kept_) {
    const VariantRecord& record = task_.result.variants[kept.record];
    if (record.outcome != Outcome::ok || kept.objective >= best_) continue;
    best_ = kept.objective;
    best_id_ = record.id;
  }
}

}  // namespace tuner
