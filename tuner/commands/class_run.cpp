#include "tuner/commands/class_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "baselines/baseline.h"
#include "tuner/commands/class_search.h"
#include "tuner/commands/finals.h"
#include "tuner/commands/reuse.h"
#include "tuner/core/hash.h"
#include "tuner/verify/verify.h"
#include "tuner/worker/messages.h"

namespace tuner {
namespace {

constexpr std::size_t kShortlist = 8;

std::string library_key(const ClassTask& task, const std::string& name) {
  const Target& target = task.session.target;
  return baseline_key(name, target.environment, task.session.config.cudnn, target.nvrtc->key(baseline_unit()),
                      baseline_sources());
}

std::vector<BaselineRecord> routes_of(ClassTask& task, const std::string& name, std::optional<double> seconds) {
  const std::string key = library_key(task, name);
  if (auto known = task.records.baseline(name, key)) return std::move(*known);
  if (task.stopped() || !task.load()) return {};
  auto routes =
      task.session.target.worker->baseline(name, task.session.config.cudnn, search_options(task.measure), seconds);
  if (!task.stopped()) task.records.keep_baseline(name, key, routes);
  return routes;
}

/// The route that stands for its baseline.
BaselineRecord* best_route(std::vector<BaselineRecord>& routes, const std::string& objective) {
  BaselineRecord* best = nullptr;
  std::optional<double> least;
  for (BaselineRecord& route : routes) {
    const auto value = objective_of(route.time, objective);
    if (route.status != "ok" || route.not_comparable || !value || (least && *value >= *least)) continue;
    best = &route;
    least = value;
  }
  return best;
}

void measure_baselines(ClassTask& task, std::size_t pairs_left) {
  const auto seconds = task.session.budget.baseline_seconds(pairs_left, task.session.config.baselines.size());
  for (const std::string& name : task.session.config.baselines) {
    if (!task.stopped()) task.session.progress.note(fmt::format("{}: baseline {}", task.label(), name));
    auto routes = routes_of(task, name, seconds);
    if (BaselineRecord* best = best_route(routes, task.objective())) best->best_of_its_name = true;
    for (BaselineRecord& route : routes) {
      if (route.time) task.note_clock(*route.time);
      task.session.progress.detail(
          fmt::format("  {} {} {} {}: {}{}", route.name, route.route, route.engine, route.knobs, route.status,
                      route.time ? fmt::format(" {:.4g} ms", route.time->ms.median) : ", " + route.reason));
      task.result.baselines.push_back(std::move(route));
    }
  }
}

/// Who takes part in the run-off, and what of them its numbers depend on.
std::string entrants_of(const ClassTask& task, const std::vector<ClassSearch::Kept*>& ranked) {
  std::string text;
  for (const ClassSearch::Kept* kept : ranked) {
    const VariantRecord& variant = task.result.variants[kept->record];
    text += variant.id + " " + variant.cubin_sha256 + "\n";
  }
  for (const BaselineRecord& baseline : task.result.baselines)
    if (baseline.best_of_its_name)
      text += fmt::format("{} {} {} {} {}\n", baseline.name, baseline.route, baseline.engine, baseline.knobs,
                          library_key(task, baseline.name));
  return sha256(text);
}

/// All that the config says of how the run-off is measured.
std::string settings_of_finals(const ClassTask& task) {
  std::string text = fmt::format("{} {}", task.objective(), task.session.target.environment.energy_counter);
  for (const std::string& regime : task.session.config.measure.regime)
    text += messages::from(measure_options(task.session.config.measure, regime)).dump();
  return text;
}

/// Where a finalist failed against which others were cut, the class is as before the run-off but for that failure, and
/// they are measured again. False where there is nothing to measure.
bool undo_cuts(ClassTask& task, ClassSearch& search, const ClassRecord& before,
               const std::vector<std::size_t>& finalists) {
  std::vector<std::size_t> failed;
  for (const std::size_t place : finalists)
    if (task.result.variants[place].outcome != Outcome::ok) failed.push_back(place);
  if (failed.empty()) return false;
  const auto undone = search.undone_cuts();
  if (undone.empty()) return false;
  const ClassRecord after = std::exchange(task.result, before);
  for (const std::size_t place : failed) {
    VariantRecord& record = task.result.variants[place];
    record = after.variants[place];
    record.time.reset();
    record.other_regimes.clear();
    search.keep(record);
  }
  task.session.progress.note(
      fmt::format("{}: {} that were cut against one that failed are measured again", task.label(), undone.size()));
  task.forget_inputs();
  search.evaluate_again(undone);
  return true;
}

void run_off(ClassTask& task, ClassSearch& search) {
  while (true) {
    auto ranked = search.ranking(Outcome::ok);
    std::vector<double> objectives;
    for (const ClassSearch::Kept* kept : ranked) objectives.push_back(kept->objective);
    ranked.resize(finalist_count(objectives));
    const std::string entrants = entrants_of(task, ranked), settings = settings_of_finals(task);
    if (auto known = task.records.finals(entrants, settings)) {
      task.result = with_finals(task.result, std::move(*known));
      return;
    }
    if (task.stopped()) return;
    if (!std::all_of(ranked.begin(), ranked.end(), [&](auto* kept) { return search.have_unit(*kept); })) {
      if (!task.stopped()) search.evaluate_again(search.undone_cuts());
      continue;
    }
    if (!task.load()) return;
    std::vector<Finalist> finalists;
    std::vector<std::size_t> places;
    for (const ClassSearch::Kept* kept : ranked) {
      finalists.push_back({kept->record, *kept->unit, kept->objective});
      places.push_back(kept->record);
    }
    const ClassRecord before = task.result;
    const bool complete = run_finals(task.session, task.name, task.context, std::move(finalists), task.result);
    if (task.stopped()) return;
    if (undo_cuts(task, search, before, places)) continue;
    if (complete) task.records.keep_finals(entrants, settings, finals_of(before, task.result));
    return;
  }
}

/// Compile facts stay those of the search.
void take_over(ClassTask& task, const ClassRecords::Proof& known, VariantRecord& record) {
  record.outcome = known.variant.outcome;
  record.reason = known.variant.reason;
  record.log = known.variant.log;
  record.errors = known.variant.errors;
  record.proven_on = known.variant.proven_on;
  task.result.plain_error = std::max(task.result.plain_error, known.plain_error);
}

/// Host execution of the first by the model.
void prove_shortlist(ClassTask& task, ClassSearch& search) {
  HostProver* prover = task.session.prover;
  auto order = search.ranking(Outcome::unproven);
  if (order.size() > kShortlist) order.resize(kShortlist);
  std::vector<Variant> open;
  std::vector<std::size_t> places;
  for (const ClassSearch::Kept* kept : order) {
    VariantRecord& record = task.result.variants[kept->record];
    task.result.shortlist.push_back(record.id);
    record.reason = prover ? "compiled; interrupted before it was run on the CPU"
                           : "compiled; no C++ compiler for Host execution, so not run";
    if (!prover) continue;
    if (const auto known = task.records.proof(record.id, prover->key(task.context, record.variant))) {
      take_over(task, *known, record);
      continue;
    }
    open.push_back(record.variant);
    places.push_back(kept->record);
  }
  if (task.stopped() || open.empty()) return;
  task.session.progress.note(fmt::format("{}: proving a shortlist of {} on the CPU", task.label(), open.size()));
  prover->prove(task.context, open, [&](std::size_t i, const HostProver::Proof& proof) {
    VariantRecord& record = task.result.variants[places[i]];
    VariantRecord proven = record;
    proven.outcome = proof.evaluation.outcome;
    proven.reason = proof.evaluation.reason;
    if (!proof.evaluation.log.empty()) proven.log = proof.evaluation.log;
    proven.errors = proof.evaluation.errors;
    proven.proven_on = proof.on;
    const ClassRecords::Proof known{proven, proof.plain_error};
    task.records.keep_proof(known, prover->key(task.context, record.variant));
    take_over(task, known, record);
  });
}

void tune_on_device(ClassTask& task, ClassSearch& search, const Allowance& allowance) {
  RunBudget& budget = task.session.budget;
  const auto timed = [](const auto& step) {
    const auto start = std::chrono::steady_clock::now();
    step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  search.start(allowance.evaluations);
  const double measuring = timed([&] { measure_baselines(task, allowance.pairs_left); });
  if (!task.stopped()) budget.measured_baselines(measuring);
  const double room = room_to_gain(task.result, task.context.problem, task.context.accuracy, task.context.device);
  const double searching = timed([&] { search.run(budget.search_seconds(allowance.pairs_left, room)); });
  const double running_off = timed([&] { run_off(task, search); });
  if (!task.stopped()) budget.ran_off(running_off);
  task.session.progress.note(fmt::format("{}: {:.1f} s of baselines, {:.1f} s of search, {:.1f} s of run-off",
                                         task.label(), measuring, searching, running_off));
}

/// A GPU would refuse it; without one it would go by unseen.
void warn_of_memory(ClassTask& task) {
  const auto& [problem, accuracy, device] = task.context;
  if (!exceeds_memory(problem, accuracy, device)) return;
  task.result.warnings.push_back(memory_in_words(problem, accuracy, device) + ": it cannot be tuned there");
  task.session.progress.note(fmt::format("warning: {}: {}", task.label(), task.result.warnings.back()));
}

void tune_offline(ClassTask& task, ClassSearch& search, const Allowance& allowance) {
  warn_of_memory(task);
  for (const std::string& name : task.session.config.baselines) {
    BaselineRecord not_run;
    not_run.name = name;
    not_run.status = "not run";
    not_run.reason = task.session.target.why_offline;
    task.result.baselines.push_back(not_run);
  }
  search.start(allowance.evaluations);
  search.run(task.session.budget.search_seconds(allowance.pairs_left, 1));
  prove_shortlist(task, search);
}

}  // namespace

ClassRecord run_class(Session& session, const NamedProblem& problem, Accuracy accuracy, const Allowance& allowance) {
  ClassTask task(session, problem, accuracy);
  ClassSearch search(task);
  session.progress.note(
      fmt::format("{} ({}): {} valid configurations", task.label(), summary(problem.problem), search.space_size()));
  if (problem.problem.batch == 0) return task.result;  // an empty result: nothing to run
  const bool measured = session.target.measured();
  try {
    if (measured)
      tune_on_device(task, search, allowance);
    else
      tune_offline(task, search, allowance);
  } catch (const EnvironmentError& error) {  // no fresh worker, a full disk: what was found out stays
    session.lost = error.what();
  }
  if (measured && task.result.best.empty()) choose_best(task.result, task.objective());
  return task.result;
}

}  // namespace tuner
