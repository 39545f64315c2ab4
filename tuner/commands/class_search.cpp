#include "tuner/commands/class_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/commands/finals.h"
#include "tuner/commands/reuse.h"
#include "tuner/jit/ptxas_report.h"
#include "tuner/model/model.h"

namespace tuner {
namespace {

/// A search that is stopped goes on with what the store knows until so many candidates in a row are not in it.
constexpr std::size_t kMostUnknown = 32;

}  // namespace

ClassSearch::ClassSearch(ClassTask& task)
    : task_(task), candidates_(task.session.config, task.context, task.result.rejections) {
  task_.result.space_size = candidates_.size();
}

void ClassSearch::start(std::optional<std::int64_t> evaluations) {
  const std::size_t total = candidates_.size();
  const SearchSpace space{total, [this](std::size_t index) { return candidates_.at(index); },
                          candidates_.defaults(task_.context),
                          [this](std::size_t index) { return candidates_.neighbours(index); }};
  least_ = space.first.size();
  strategy_ = make_strategy(task_.session.config.search.strategy, space, task_.session.config.search.seed);
  limit_ = evaluations ? std::min(total, static_cast<std::size_t>(*evaluations)) : total;
  counted_ = evaluations.has_value();
  account_ = task_.records.account();
  account_.jobs = task_.session.jobs;
  start_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(account_.wall));
  fill();
  paused_ = Clock::now();
}

void ClassSearch::fill() {
  while (asked_ < limit_ && pipeline_.size() < static_cast<std::size_t>(task_.session.jobs) * 2) {
    const auto proposals = strategy_->ask(1);
    if (proposals.empty()) break;
    pipeline_.push_back(begin(proposals.front()));
    ++asked_;
  }
}

void ClassSearch::run(std::optional<double> seconds) {
  seconds_ = seconds;
  task_.session.progress.begin(task_.label(), limit_, seconds_);
  const auto pause = Clock::now() - paused_;
  start_ += pause;
  for (Pending& pending : pipeline_) pending.started += pause;
  std::size_t unknown = 0;  // one after the other, once stopped
  while (true) {
    fill();
    if (pipeline_.empty()) break;
    drop_undone_cut(pipeline_.front());
    if (pipeline_.front().stored) {
      unknown = 0;
    } else if (task_.stopped()) {
      if (++unknown > kMostUnknown) break;
      strategy_->abandon(pipeline_.front().proposal);
      pipeline_.pop_front();
      continue;
    } else if (seconds_ && searched() > *seconds_ && task_.result.variants.size() >= least_) {
      break;
    }
    if (!ready(pipeline_.front())) continue;  // the wait ended by a signal or the budget
    Pending next = std::move(pipeline_.front());
    pipeline_.pop_front();
    const Proposal proposal = next.proposal;
    if (const auto told = next.stored ? retell(std::move(next)) : finish(std::move(next)))
      strategy_->tell(*told);
    else
      strategy_->abandon(proposal);
  }
  for (const Pending& pending : pipeline_) strategy_->abandon(pending.proposal);
  pipeline_.clear();
  const SearchAccount spent = account();
  spent_ = spent;
  // Budgets cover resumed runs: they go on from here, and one whose time was up ends here, too.
  if ((seconds_ || (counted_ && stored_any_)) && !task_.stopped()) task_.records.keep_search_end(spent);
  task_.result.search_account = spent;
  task_.session.searched_seconds += spent.wall;
  task_.session.budget.searched(spent.wall);
  task_.session.progress.end();
}

ClassSearch::Pending ClassSearch::begin(const Proposal& proposal) {
  const auto started = Clock::now();
  Pending pending{proposal, candidates_.at(proposal.index), {}, {}, {}, {}, started};
  pending.program = task_.program_of(pending.variant);
  pending.key = task_.session.target.nvrtc->key(pending.program.unit);
  pending.stored = task_.records.variant(id_of(pending.variant), pending.key);
  if (pending.stored)
    start_ += Clock::now() - started;  // looking it up is no search
  else if (!task_.stopped())
    pending.unit = task_.session.target.nvrtc->compile(pending.program.unit);
  return pending;
}

/// Measures anew what was cut against a faster one that no longer holds.
void ClassSearch::drop_undone_cut(Pending& pending) {
  if (!pending.stored || holds_against(*pending.stored, best_, task_.session.config.measure.cut_factor)) return;
  task_.records.was_stale(pending.stored->variant.id, "cut against a faster one that is gone");
  pending.stored.reset();
  if (!task_.stopped()) pending.unit = task_.session.target.nvrtc->compile(pending.program.unit);
}

bool ClassSearch::ready(const Pending& pending) {
  if (pending.stored) return true;
  const auto start = Clock::now();
  const bool ready = pending.unit.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready;
  account_.compile_wait += std::chrono::duration<double>(Clock::now() - start).count();
  return ready;
}

/// Nothing where it has to be given up.
std::optional<Told> ClassSearch::finish(Pending pending) {
  VariantRecord record;
  record.id = id_of(pending.variant);
  record.variant = pending.variant;
  record.lower_bound_ms =
      lower_bound_ms(pending.program.work, task_.context.device, task_.session.config.measure.l2 != "warm");
  const auto unit = pending.unit.get();
  const double best_before = best_;
  if (!unit) {
    record.outcome = unit.failure().outcome;
    record.reason = unit.failure().reason;
    record.log = unit.failure().log;
  } else {
    note_compile_facts(record, pending.program, *unit);
    if (record.outcome != Outcome::rejected) {
      if (task_.session.target.measured() && !task_.load()) return std::nullopt;
      judge(record, *unit);
    }
  }
  store(record, pending.key, best_before);
  const std::chrono::duration<double> cost = Clock::now() - pending.started;
  return note(pending, std::move(record), unit ? std::optional(*unit) : std::nullopt, cost.count());
}

/// One that the store knows, as if it had just been found out.
Told ClassSearch::retell(Pending pending) {
  const auto started = Clock::now();
  const Told told = note(pending, std::move(pending.stored->variant), std::nullopt, 0);
  start_ += Clock::now() - started;
  return told;
}

Told ClassSearch::note(const Pending& pending, VariantRecord record, std::optional<CompiledUnit> unit, double cost) {
  task_.session.progress.detail(fmt::format("  {} {}: {}{}{}", record.id, to_string(pending.variant.tunables),
                                            to_string(record.outcome),
                                            record.time             ? fmt::format(" {:.4g} ms", record.time->ms.median)
                                            : record.reason.empty() ? ""
                                                                    : ", " + record.reason,
                                            pending.stored ? " (from the store)" : ""));
  if (record.time) task_.note_clock(*record.time);
  const auto value = value_of(record, pending.program);
  if (record.outcome == Outcome::ok && value && *value < best_) {
    best_ = *value;
    best_id_ = record.id;
  }
  if (value && record.outcome != Outcome::cut) kept_.push_back({task_.result.variants.size(), std::move(unit), *value});
  const Told told{pending.proposal, record.outcome, value, cost};
  task_.result.variants.push_back(std::move(record));
  task_.session.progress.step(best_text(), pending.stored.has_value());
  return told;
}

void ClassSearch::store(const VariantRecord& record, const std::string& key, double best_before) {
  const auto start = Clock::now();
  task_.records.keep_variant({record, best_before, account()}, key);
  stored_any_ = true;
  account_.store += std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the search compares, the smaller the better. Offline: the place in the model's order.
std::optional<double> ClassSearch::value_of(const VariantRecord& record, const Program& program) const {
  if (task_.session.target.measured()) return objective_of(record.time, task_.objective());
  if (record.outcome != Outcome::unproven || record.cubin_sha256.empty()) return std::nullopt;
  return shortlist_key(record, program, task_.context);
}

void ClassSearch::note_compile_facts(VariantRecord& record, const Program& program, const CompiledUnit& unit) {
  record.registers = unit.registers;
  record.spill_bytes = unit.spill_bytes;
  record.cubin_sha256 = unit.sha256;
  record.compile_ms = unit.compile_ms;
  if (!unit.from_cache) account_.compile_cpu += unit.compile_ms / 1e3;
  record.log = unit.log;
  record.shared_bytes = 0;
  record.occupancy = 1;
  for (const Launch& launch : program.run) {
    const Occupancy occupancy =
        occupancy_of(task_.context.device, unit.registers, unit.static_shared_bytes, launch.shape);
    record.shared_bytes =
        std::max(record.shared_bytes, unit.static_shared_bytes + static_cast<int>(launch.shape.shared_bytes));
    record.occupancy = std::min(record.occupancy, occupancy.fraction);
    if (occupancy.blocks_per_sm == 0) {
      record.outcome = Outcome::rejected;
      record.reason = "no block fits an SM: " + occupancy.limited_by;
    }
  }
  // Products in flight cannot wait for registers to come back from memory: such a variant is never worth GPU time. What
  // packs weights once may spill.
  std::vector<std::string> run_symbols;
  for (const Launch& launch : program.run)
    if (const std::string* symbol = unit.symbol(launch.kernel)) run_symbols.push_back(*symbol);
  const bool spills_allowed = program.work.tensor_fp16 + program.work.tensor_tf32 == 0;
  if (const auto objection = objection_to(parse_ptxas_report(unit.log, run_symbols), spills_allowed)) {
    record.outcome = Outcome::rejected;
    record.reason = *objection;
  }
}

/// On the GPU: verified and timed.
void ClassSearch::judge(VariantRecord& record, const CompiledUnit& unit) {
  if (!task_.session.target.measured()) {
    record.outcome = Outcome::unproven;
    record.reason = "compiled; not on the shortlist, so not run";
    return;
  }
  MeasureOptions options = search_options(task_.measure);
  options.expected_mhz = task_.clock_mhz;
  // A slower variant may still take less energy.
  if (!task_.by_energy() && best_ < std::numeric_limits<double>::infinity()) options.best_ms = best_;
  Evaluation evaluation = task_.session.target.worker->evaluate(record.variant, unit, &options);
  account_.load += evaluation.spent.load;
  account_.verify += evaluation.spent.verify;
  account_.measure += evaluation.spent.measure;
  account_.idle += evaluation.spent.idle;
  record.outcome = evaluation.outcome;
  record.reason = evaluation.reason;
  if (!evaluation.log.empty()) record.log = evaluation.log;
  record.errors = evaluation.errors;
  record.time = std::move(evaluation.time);
  record.prepare_ms = evaluation.prepare_ms;
}

SearchAccount ClassSearch::account() const {
  if (spent_) return *spent_;
  SearchAccount now = account_;
  now.wall = searched();
  now.other = now.wall - now.compile_wait - now.load - now.verify - now.measure - now.idle - now.store;
  return now;
}

std::string ClassSearch::best_text() const {
  return best_id_.empty() ? std::string()
                          : fmt::format("{:.4g} {} {}", best_, task_.by_energy() ? "mJ" : "ms", best_id_);
}

}  // namespace tuner
