#include "tuner/commands/class_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <future>
#include <limits>
#include <unordered_map>

#include "tuner/commands/candidates.h"
#include "tuner/commands/finals.h"
#include "tuner/commands/interrupt.h"
#include "tuner/model/model.h"
#include "tuner/search/search.h"

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kShortlist = 8;
constexpr std::size_t kSamplesOfAClock = 8;

/// The search needs an order, not a number to publish: short looks, which the run-off replaces for those that may win.
MeasureOptions search_options(MeasureOptions options) {
  options.half_width = std::max(options.half_width, 0.01);
  options.max_samples = std::min(options.max_samples, 20);
  options.max_seconds = std::min(options.max_seconds, 0.25);
  options.settle_seconds = 0;
  options.rest = false;  // a pause only where the clock fell
  return options;
}

/// A candidate on its way through compiling, and what is kept of it afterwards.
struct Pending {
  Proposal proposal;
  Variant variant;
  Program program;
  std::future<Expected<CompiledUnit>> unit;
  Clock::time_point started;
};

struct Kept {
  std::size_t record;
  CompiledUnit unit;
  double objective;
};

class ClassRun {
 public:
  ClassRun(Session& session, const NamedProblem& problem, Accuracy accuracy, const Allowance& allowance)
      : session_(session),
        name_(problem.name),
        context_{problem.problem, accuracy, session.target.environment.device},
        allowance_(allowance),
        measure_(measure_options(session.config.measure, session.config.measure.regime.front())) {
    if (by_energy()) measure_.energy_windows = 1;
    record_.accuracy = accuracy;
  }

  ClassRecord run() {
    candidates_ = Candidates(session_.config, context_, record_.rejections);
    record_.space_size = candidates_.size();
    session_.progress.note(fmt::format("{} {} ({}): {} valid configurations", name_, to_string(context_.accuracy),
                                       summary(context_.problem), record_.space_size));
    if (context_.problem.batch == 0) return record_;  // an empty result: nothing to run
    if (session_.target.measured()) {
      try {
        tune_on_device();
      } catch (const EnvironmentError& error) {  // no fresh worker could be started: what was measured stays
        session_.lost = error.what();
      }
      if (record_.best.empty()) choose_best(record_, objective());
    } else {
      for (const std::string& name : session_.config.baselines) {
        BaselineRecord not_run;
        not_run.name = name;
        not_run.status = "not run";
        not_run.reason = session_.target.why_offline;
        record_.baselines.push_back(not_run);
      }
      search();
      prove();
    }
    return record_;
  }

 private:
  void tune_on_device() {
    if (!load(Values::normal, session_.config.search.seed)) return;
    baselines();
    if (!stopped()) search();
    if (stopped()) return;
    std::vector<Finalist> finalists;
    for (const Kept* kept : ranking(Outcome::ok)) finalists.push_back({kept->record, kept->unit, kept->objective});
    run_finals(session_, name_, context_, std::move(finalists), record_);
  }

  const std::string& objective() const { return session_.config.search.objective; }
  bool by_energy() const { return objective() == "energy"; }
  bool stopped() const { return interrupt_signal() != 0; }
  bool out_of_time() const {
    return allowance_.seconds && std::chrono::duration<double>(Clock::now() - start_).count() > *allowance_.seconds;
  }

  bool load(Values values, std::uint64_t seed) {
    const auto loaded = session_.target.worker->load(context_, values, seed);
    if (loaded) {
      record_.plain_error = std::max(record_.plain_error, *loaded);
      return true;
    }
    if (stopped()) return false;
    session_.progress.note(fmt::format("{} {}: {}", name_, to_string(context_.accuracy), loaded.failure().reason));
    VariantRecord none;
    none.id = "inputs";
    none.outcome = loaded.failure().outcome;
    none.reason = loaded.failure().reason;
    record_.variants.push_back(none);
    return false;
  }

  void search() {
    const auto total = static_cast<std::size_t>(record_.space_size);
    const SearchSpace space{total, [this](std::size_t index) { return candidates_.at(index); },
                            candidates_.defaults(context_)};
    const auto strategy = make_strategy(session_.config.search.strategy, space, session_.config.search.seed);
    const std::size_t limit =
        allowance_.evaluations ? std::min(total, static_cast<std::size_t>(*allowance_.evaluations)) : total;
    session_.progress.begin(fmt::format("{} {}", name_, to_string(context_.accuracy)), limit, allowance_.seconds);
    start_ = Clock::now();
    account_ = {};
    account_.jobs = session_.jobs;
    std::deque<Pending> pipeline;
    std::size_t asked = 0;
    while (!stopped() && !out_of_time()) {
      while (asked < limit && pipeline.size() < static_cast<std::size_t>(session_.jobs) * 2) {
        const auto proposals = strategy->ask(1);
        if (proposals.empty()) break;
        pipeline.push_back(begin(proposals.front()));
        ++asked;
      }
      if (pipeline.empty()) break;
      if (!ready(pipeline.front())) continue;  // the wait ended by a signal or the budget
      Pending next = std::move(pipeline.front());
      pipeline.pop_front();
      strategy->tell(finish(std::move(next)));
    }
    for (const Pending& pending : pipeline) strategy->abandon(pending.proposal);
    account_.wall = std::chrono::duration<double>(Clock::now() - start_).count();
    account_.other = account_.wall - account_.compile_wait - account_.load - account_.verify - account_.measure -
                     account_.idle - account_.store;
    record_.search_account = account_;
    session_.searched_seconds += account_.wall;
    session_.progress.end();
  }

  Pending begin(const Proposal& proposal) {
    Pending pending{proposal, candidates_.at(proposal.index), {}, {}, Clock::now()};
    pending.program = find_family(pending.variant.family)->build(context_, pending.variant.tunables);
    pending.unit = session_.target.nvrtc->compile(pending.program.unit);
    return pending;
  }

  bool ready(const Pending& pending) {
    const auto start = Clock::now();
    const bool ready = pending.unit.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready;
    account_.compile_wait += std::chrono::duration<double>(Clock::now() - start).count();
    return ready;
  }

  void account_for(const Spent& spent) {
    account_.load += spent.load;
    account_.verify += spent.verify;
    account_.measure += spent.measure;
    account_.idle += spent.idle;
  }

  Told finish(Pending pending) {
    VariantRecord record;
    record.id = id_of(pending.variant);
    record.variant = pending.variant;
    record.lower_bound_ms = lower_bound_ms(pending.program.work, context_.device, session_.config.measure.l2 != "warm");
    const auto unit = pending.unit.get();
    std::optional<double> objective;
    if (!unit) {
      record.outcome = unit.failure().outcome;
      record.reason = unit.failure().reason;
      record.log = unit.failure().log;
    } else {
      note_compile_facts(record, pending.program, *unit);
      if (record.outcome != Outcome::rejected) objective = judge(record, pending, *unit);
    }
    session_.progress.detail(fmt::format("  {} {}: {}{}", record.id, to_string(pending.variant.tunables),
                                         to_string(record.outcome),
                                         record.time             ? fmt::format(" {:.4g} ms", record.time->ms.median)
                                         : record.reason.empty() ? ""
                                                                 : ", " + record.reason));
    const std::chrono::duration<double> cost = Clock::now() - pending.started;
    Told told{pending.proposal, record.outcome, objective, cost.count()};
    if (objective && record.outcome != Outcome::cut) kept_.push_back({record_.variants.size(), *unit, *objective});
    record_.variants.push_back(std::move(record));
    session_.progress.step(best_text());
    return told;
  }

  void note_compile_facts(VariantRecord& record, const Program& program, const CompiledUnit& unit) {
    record.registers = unit.registers;
    record.spill_bytes = unit.spill_bytes;
    record.cubin_sha256 = unit.sha256;
    record.compile_ms = unit.compile_ms;
    if (!unit.from_cache) account_.compile_cpu += unit.compile_ms / 1e3;
    record.log = unit.log;
    record.occupancy = 1;
    for (const Launch& launch : program.run) {
      const Occupancy occupancy = occupancy_of(context_.device, unit.registers, unit.static_shared_bytes, launch.shape);
      record.shared_bytes =
          std::max(record.shared_bytes, unit.static_shared_bytes + static_cast<int>(launch.shape.shared_bytes));
      record.occupancy = std::min(record.occupancy, occupancy.fraction);
      if (occupancy.blocks_per_sm == 0) {
        record.outcome = Outcome::rejected;
        record.reason = "no block fits an SM: " + occupancy.limited_by;
      }
    }
  }

  /// On the GPU: verified and timed. Offline: its place in the model's order.
  std::optional<double> judge(VariantRecord& record, const Pending& pending, const CompiledUnit& unit) {
    if (!session_.target.measured()) {
      record.outcome = Outcome::unproven;
      record.reason = "compiled; not on the shortlist, so not run";
      return shortlist_key(record, pending.program, context_);
    }
    MeasureOptions options = search_options(measure_);
    options.expected_mhz = clock_mhz_;
    // A slower variant may still take less energy.
    if (!by_energy() && best_ < std::numeric_limits<double>::infinity()) options.best_ms = best_;
    Evaluation evaluation = session_.target.worker->evaluate(pending.variant, unit, &options);
    account_for(evaluation.spent);
    record.outcome = evaluation.outcome;
    record.reason = evaluation.reason;
    if (!evaluation.log.empty()) record.log = evaluation.log;
    record.errors = evaluation.errors;
    record.time = std::move(evaluation.time);
    record.prepare_ms = evaluation.prepare_ms;
    if (!record.time) return std::nullopt;
    note_clock(*record.time);
    const auto value = objective_of(record.time, objective());
    if (record.outcome == Outcome::ok && value && *value < best_) {
      best_ = *value;
      best_id_ = record.id;
    }
    return value;
  }

  /// Bursts are to run at the clock that earlier ones had.
  void note_clock(const TimeRecord& time) {
    if (time.regime == "burst" && time.samples.size() >= kSamplesOfAClock)
      clock_mhz_ = std::max(clock_mhz_, time.clock_mhz.median);
  }

  std::string best_text() const {
    return best_id_.empty() ? std::string() : fmt::format("{:.4g} {} {}", best_, by_energy() ? "mJ" : "ms", best_id_);
  }

  void baselines() {
    for (const std::string& name : session_.config.baselines) {
      if (stopped()) return;
      session_.progress.note(fmt::format("{} {}: baseline {}", name_, to_string(context_.accuracy), name));
      auto records = session_.target.worker->baseline(name, session_.config.cudnn, search_options(measure_));
      BaselineRecord* best = nullptr;
      std::optional<double> least;
      for (BaselineRecord& record : records) {
        const auto value = objective_of(record.time, objective());
        if (record.time) note_clock(*record.time);
        if (record.status != "ok" || record.not_comparable || !value || (least && *value >= *least)) continue;
        best = &record;
        least = value;
      }
      if (best) best->best_of_its_name = true;
      for (BaselineRecord& record : records) {
        session_.progress.detail(
            fmt::format("  {} {} {} {}: {}{}", record.name, record.route, record.engine, record.knobs, record.status,
                        record.time ? fmt::format(" {:.4g} ms", record.time->ms.median) : ", " + record.reason));
        record_.baselines.push_back(std::move(record));
      }
    }
  }

  /// Kept candidates of this outcome, the best objective first.
  std::vector<const Kept*> ranking(Outcome outcome) const {
    std::vector<const Kept*> order;
    for (const Kept& kept : kept_)
      if (record_.variants[kept.record].outcome == outcome) order.push_back(&kept);
    std::stable_sort(order.begin(), order.end(),
                     [](const Kept* a, const Kept* b) { return a->objective < b->objective; });
    return order;
  }

  void prove() {
    auto order = ranking(Outcome::unproven);
    if (order.size() > kShortlist) order.resize(kShortlist);
    std::vector<Variant> variants;
    for (const Kept* kept : order) {
      record_.shortlist.push_back(record_.variants[kept->record].id);
      record_.variants[kept->record].reason = session_.prover
                                                  ? "compiled; interrupted before it was run on the CPU"
                                                  : "compiled; no C++ compiler for Host execution, so not run";
      variants.push_back(record_.variants[kept->record].variant);
    }
    if (!session_.prover || stopped() || variants.empty()) return;
    session_.progress.note(fmt::format("{} {}: proving a shortlist of {} on the CPU", name_,
                                       to_string(context_.accuracy), variants.size()));
    const auto proofs = session_.prover->prove(context_, variants);
    for (std::size_t i = 0; i < proofs.size(); ++i) {
      VariantRecord& record = record_.variants[order[i]->record];
      record.outcome = proofs[i].evaluation.outcome;
      record.reason = proofs[i].evaluation.reason;
      if (!proofs[i].evaluation.log.empty()) record.log = proofs[i].evaluation.log;
      record.errors = proofs[i].evaluation.errors;
      record.proven_on = proofs[i].on;
      record_.plain_error = std::max(record_.plain_error, proofs[i].plain_error);
    }
  }

  Session& session_;
  std::string name_;
  BuildContext context_;
  Allowance allowance_;
  MeasureOptions measure_;
  Clock::time_point start_;
  Candidates candidates_;
  std::vector<Kept> kept_;
  ClassRecord record_;
  SearchAccount account_;
  double clock_mhz_ = 0;                                   // of bursts so far
  double best_ = std::numeric_limits<double>::infinity();  // ms, or mJ
  std::string best_id_;
};

}  // namespace

ClassRecord run_class(Session& session, const NamedProblem& problem, Accuracy accuracy, const Allowance& allowance) {
  return ClassRun(session, problem, accuracy, allowance).run();
}

}  // namespace tuner
