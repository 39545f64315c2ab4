// The main job: config -> target -> for each problem and class a search with baselines -> result files -> table.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "baselines/baseline.h"
#include "tuner/commands/candidates.h"
#include "tuner/commands/class_run.h"
#include "tuner/commands/command_line.h"
#include "tuner/commands/interrupt.h"
#include "tuner/commands/result_file.h"
#include "tuner/commands/version.h"
#include "tuner/commands/vocabulary.h"
#include "tuner/core/file.h"
#include "tuner/family/checks.h"
#include "tuner/report/report.h"
#include "tuner/space/space.h"
#include "tuner/store/store.h"

namespace tuner {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

template <class Item, class NameOf>
void keep_named(std::vector<Item>& items, const std::vector<std::string>& names, const char* flag, NameOf name_of) {
  if (names.empty()) return;
  for (const std::string& name : names) {
    if (std::any_of(items.begin(), items.end(), [&](const Item& item) { return name_of(item) == name; })) continue;
    std::string known;
    for (const Item& item : items) known += (known.empty() ? "" : ", ") + std::string(name_of(item));
    throw UsageError(fmt::format("{} {}: allowed are {}", flag, name, known.substr(0, 400)));
  }
  std::erase_if(items,
                [&](const Item& item) { return std::find(names.begin(), names.end(), name_of(item)) == names.end(); });
}

/// Refuses values that no kernel can be built with.
void check_values(const Config& config, const std::filesystem::path& path) {
  if (!config.families) return;
  for (const FamilySelection& selection : *config.families) {
    const auto tunables = find_family(selection.name)->tunables();
    for (const auto& [name, values] : selection.values)
      for (std::size_t i = 0; i < values.size(); ++i)
        for (const Tunable& tunable : tunables)
          if (tunable.name == name)
            if (const auto takes = unfit(tunable, values[i]))
              throw UsageError(fmt::format("{}: $.families.{}.{}[{}]: {} is not allowed: expected {}", path.string(),
                                           selection.name, name, i, to_string(values[i]), *takes));
  }
}

/// Refuses a wrong `restrict` before anything starts.
void check_conditions(const Config& config, const std::filesystem::path& path) {
  std::vector<std::vector<Tunable>> own;
  for (const Family* family : families()) own.push_back(family->tunables());
  for (std::size_t i = 0; i < config.restrict_.size(); ++i) {
    try {
      bind_conditions({config.restrict_[i]}, own);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: $.restrict[{}]: {}", path.string(), i, error.what()));
    }
  }
}

/// The command line's flags win over the config.
void apply_flags(Config& config, const TuneOptions& options) {
  keep_named(config.problems, options.problems, "--problem", [](const NamedProblem& p) { return p.name; });
  if (!options.classes.empty()) {
    config.classes.clear();
    for (const std::string& name : options.classes) {
      const Accuracy accuracy = class_named(name);
      if (std::find(config.classes.begin(), config.classes.end(), accuracy) == config.classes.end())
        config.classes.push_back(accuracy);
    }
  }
  if (!options.families.empty()) {
    if (!config.families) {
      config.families.emplace();
      for (const Family* family : families()) config.families->push_back({std::string(family->name()), {}});
    }
    keep_named(*config.families, options.families, "--family", [](const FamilySelection& f) { return f.name; });
  }
  if (options.seed) config.search.seed = *options.seed;
  if (options.jobs) config.jobs = *options.jobs;
  if (options.out) config.out = options.out->string();
  if (options.budget.seconds) config.search.budget_seconds = options.budget.seconds;
  if (options.budget.evaluations) config.search.budget_evaluations = options.budget.evaluations;
}

/// Of evaluations an even share of what is left, rounded up: the last pair gets what remains.
Allowance share(const Config& config, std::int64_t evaluated, std::size_t pairs_left) {
  Allowance allowance;
  allowance.pairs_left = std::max<std::size_t>(pairs_left, 1);
  if (config.search.budget_evaluations) {
    const std::int64_t left = std::max<std::int64_t>(0, *config.search.budget_evaluations - evaluated);
    const auto divisor = static_cast<std::int64_t>(allowance.pairs_left);
    allowance.evaluations = left / divisor + (left % divisor != 0 ? 1 : 0);  // left + divisor may not be a number
  }
  return allowance;
}

/// The first run-off is expected to take a quarter of what its entrants may take in all regimes.
RunBudget run_budget(const Config& config, const Target& target) {
  if (!target.measured()) return {config.search.budget_seconds, 0, 0};
  constexpr double kEntrants = 8;
  const double run_off =
      0.25 * kEntrants * config.measure.max_seconds * static_cast<double>(config.measure.regime.size());
  return {config.search.budget_seconds, run_off, 1};
}

RunResult describe_run(const Config& config, const TuneOptions& options, const Target& target,
                       const Settings& settings) {
  RunResult result;
  result.tool_version = tool_version();
  result.tool_commit = tool_commit();
  result.config_text = config.text;
  result.config_hash = config.hash;
  result.name = config.name;
  result.environment = target.environment;
  result.started = utc_now();
  result.command = options.reproduce;
  result.measured = target.measured();
  result.objective = config.search.objective;
  if (target.measured() && !config.device_expect.empty() &&
      !target.environment.device.name.starts_with(config.device_expect))
    result.environment.warnings.push_back(
        fmt::format("the config expects {}, this is {}", config.device_expect, target.environment.device.name));
  for (const Accuracy accuracy : config.classes)
    if (const auto warning = tf32_override_warning(settings.tf32_override, accuracy))
      result.environment.warnings.push_back(*warning);
  if (!target.measured() && config.search.objective == "energy")
    result.environment.warnings.emplace_back(
        "search.objective energy: without a GPU the order is that of the model's times");
  return result;
}

/// Fails before hours of work, not after them.
void require_writable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw EnvironmentError(fmt::format("{}: cannot create: {}", folder.string(), error.message()));
  const auto probe = folder / ".writable";
  write_file_atomically(probe, "");
  std::filesystem::remove(probe, error);
}

void require_energy_counter(const Config& config, const Target& target) {
  const std::string& counter = target.environment.energy_counter;
  if (config.search.objective == "energy" && target.measured() && counter != "available")
    throw EnvironmentError("search.objective energy: NVML's energy counter: " + counter);
}

bool anything_valid(const RunResult& result) {
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes) {
      if (problem.problem.batch == 0) return true;
      for (const VariantRecord& variant : record.variants)
        if (variant.outcome == Outcome::ok ||
            (!result.measured && variant.outcome == Outcome::unproven && !variant.cubin_sha256.empty()))
          return true;
    }
  return false;
}

void say_what_comes(Progress& progress, const Config& config, const Target& target, std::size_t pairs,
                    const std::vector<std::string>& warnings) {
  const DeviceFacts& device = target.environment.device;
  std::string budget = "until every configuration is tried";
  if (config.search.budget_seconds) budget = fmt::format("about {:g} s", *config.search.budget_seconds);
  if (config.search.budget_evaluations)
    budget += fmt::format(", at most {} evaluations", *config.search.budget_evaluations);
  progress.note(
      target.measured()
          ? fmt::format("Tuning on {} ({}): {} problem-class pairs, {}", device.name, device.arch, pairs, budget)
          : fmt::format("Offline ({}): compiling for {} ({}), {} problem-class pairs, {}, proofs on the CPU on top",
                        target.why_offline, device.arch, device.name, pairs, budget));
  for (const std::string& line : untouched_families(config)) progress.note(line);
  for (const std::string& warning : warnings) progress.note("warning: " + warning);
}

/// Names the pairs that a budget in seconds had no room for.
void say_time_is_up(Progress& progress, RunResult& result, std::size_t classes) {
  const std::size_t pairs = result.problems.size() * classes;
  std::size_t done = 0;
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes) done += record.best.empty() && problem.problem.batch > 0 ? 0 : 1;
  result.environment.warnings.push_back(
      fmt::format("the budget's seconds sufficed for {} of {} problem-class pairs; --resume with a larger one goes on",
                  done, pairs));
  progress.note("warning: " + result.environment.warnings.back());
}

/// What the compilers have had to say since the last time, once each.
void note_warnings(const Session& session, RunResult& result) {
  std::vector<std::string> said = session.target.nvrtc->warnings();
  if (session.prover)
    for (std::string& warning : session.prover->compiler().warnings()) said.push_back(std::move(warning));
  std::vector<std::string>& known = result.environment.warnings;
  for (const std::string& warning : said) {
    if (std::find(known.begin(), known.end(), warning) != known.end()) continue;
    session.progress.note("warning: " + warning);
    known.push_back(warning);
  }
}

/// Runs `save`. Where that fails, the reason for which the run ended comes first, and what can be done.
template <class Save>
void saving(const Session& session, const Save& save) {
  try {
    save();
  } catch (const EnvironmentError& error) {
    if (!session.lost.empty()) throw EnvironmentError(fmt::format("{}; {}", session.lost, error.what()));
    throw EnvironmentError(fmt::format("{}; the store has every record, --resume goes on with it", error.what()));
  }
}

/// Begins anew or goes on. What a new run finds is kept aside, not thrown away.
void begin(Store& store, bool resume, Progress& progress, RunResult& result) {
  if (!resume) {
    if (const auto previous = store.set_aside())
      progress.note(
          fmt::format("An earlier run's records are kept in {}; --resume would have gone on with them, and "
                      "docs/FORMATS.md (Store) has the way back",
                      previous->string()));
  } else if (const auto size = store.size(); size > 0) {
    progress.note(fmt::format("Resuming: the store holds {} records", size));
  }
  store.set_fact("started", result.started);
  const std::string first = store.fact("started");
  const bool a_time = first.size() == result.started.size() && first.find_first_not_of("0123456789-:TZ") == first.npos;
  if (a_time) result.started = first;
}

}  // namespace

int tune(const TuneOptions& options, const Settings& settings) {
  Config config = read_config(options.config, vocabulary());
  check_values(config, options.config);
  check_conditions(config, options.config);
  apply_flags(config, options);
  InterruptGuard guard;
  Progress progress(options.verbosity, settings.progress_bar);
  const int jobs = job_count(config.jobs);
  const std::filesystem::path folder = std::filesystem::path(config.out) / config.name, file = folder / "store.sqlite";
  // One that is there is opened first: if it is in use or unfit, nothing else is begun.
  std::optional<Store> store;
  if (std::filesystem::exists(file)) store.emplace(file);
  Target target = open_target({.device = options.device,
                               .profile = config.device_profile,
                               .target = config.device_target,
                               .jobs = jobs,
                               .compile = config.compile,
                               .config = options.config.string(),
                               .diagnose = options.diagnose},
                              settings);
  require_energy_counter(config, target);
  require_writable(folder);
  if (!store) store.emplace(file);
  ResultFile results(folder, *store, config);
  std::optional<HostProver> prover;
  if (!target.measured()) prover.emplace(settings, jobs, config.search.seed, limits_of(config.compile));
  Session session{config,
                  target,
                  prover && prover->available() ? &*prover : nullptr,
                  progress,
                  *store,
                  jobs,
                  run_budget(config, target)};
  RunResult result = describe_run(config, options, target, settings);
  begin(*store, options.resume, progress, result);
  session.taken_over = TakenOver(store->size());

  const auto filled = std::count_if(config.problems.begin(), config.problems.end(),
                                    [](const NamedProblem& named) { return named.problem.batch > 0; });
  std::size_t pairs_left = static_cast<std::size_t>(filled) * config.classes.size();  // that have something to search
  say_what_comes(progress, config, target, config.problems.size() * config.classes.size(), result.environment.warnings);
  note_warnings(session, result);
  std::int64_t evaluated = 0;
  const auto stopped = [&] { return interrupt_signal() != 0 || session.out_of_time || !session.lost.empty(); };
  for (const NamedProblem& problem : config.problems) {
    result.problems.push_back({problem.name, problem.problem, {}});
    for (const Accuracy accuracy : config.classes) {
      session.out_of_time = session.out_of_time || (target.measured() && !session.budget.has_room_for_a_pair());
      if (stopped() && !options.resume) break;  // a resumed run still takes over what the store knows
      const Allowance allowance = share(config, evaluated, pairs_left);
      if (problem.problem.batch > 0) --pairs_left;
      result.problems.back().classes.push_back(run_class(session, problem, accuracy, allowance));
      evaluated += static_cast<std::int64_t>(result.problems.back().classes.back().variants.size());
      result.search_seconds = session.searched_seconds;
      result.interrupted = interrupt_signal() != 0;
      note_warnings(session, result);
      if (!stopped()) saving(session, [&] { results.keep(result); });  // safe before the next pair begins
    }
  }
  if (options.resume) progress.note(session.taken_over.in_words());
  if (session.out_of_time) say_time_is_up(progress, result, config.classes.size());
  result.interrupted = interrupt_signal() != 0;
  bool saved = false;
  saving(session, [&] { saved = results.keep_last(result, !stopped()); });

  fmt::print("{}", report_table({result}, settings.color));
  if (saved) fmt::print("\nResult: {}\nBest:   {}\n", results.result().string(), results.best().string());
  const char* interrupted = result.interrupted ? "Interrupted: " : "";
  if (!saved)
    progress.note(
        fmt::format("{}{} has more and stays as it was. What was found out since is in the store, and "
                    "--resume goes on with it.",
                    interrupted, results.result().string()));
  else if (result.interrupted)
    progress.note("Interrupted: everything found out so far is in the result.");
  if (!session.lost.empty() && !result.interrupted) throw EnvironmentError(session.lost);
  if (result.interrupted) throw Interrupted{interrupt_signal()};
  return anything_valid(result) ? 0 : 1;
}

}  // namespace tuner
