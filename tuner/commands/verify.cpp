// `tuner verify`: every family on every case, on the GPU or by Host execution.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tuner/commands/command_line.h"
#include "tuner/commands/host_proof.h"
#include "tuner/commands/interrupt.h"
#include "tuner/commands/result_file.h"
#include "tuner/commands/target.h"
#include "tuner/commands/vocabulary.h"
#include "tuner/core/config.h"
#include "tuner/core/file.h"
#include "tuner/core/json.h"
#include "tuner/family/family.h"

namespace tuner {
namespace {

/// What a case gives to a worker: its own data, or none (drawn).
struct Trial {
  std::string name;
  Problem problem;
  std::optional<Inputs> inputs;
};

/// Without --cases: small problems that meet each rule of the operation once, all parameters different where they can
/// be.
std::vector<Trial> built_in_trials() {
  const auto named = [](const char* name, Problem problem) { return Trial{name, problem, std::nullopt}; };
  return {
      named("plain", {2, 16, 24, 3, 1, 0, 0, 1, 1, false, 131}),
      named("bias-padding", {3, 7, 5, 4, 1, 2, 0, 1, 1, true, 67}),
      named("one-tap", {2, 5, 7, 1, 1, 0, 0, 1, 1, true, 40}),
      named("length-one", {2, 9, 3, 3, 1, 0, 0, 1, 1, true, 1}),
      named("upsample", {1, 8, 4, 16, 8, 4, 0, 1, 1, true, 33}),
      named("stride-wider-than-kernel", {1, 4, 6, 2, 5, 0, 3, 1, 1, true, 12}),
      named("stride-and-dilation-share-a-factor", {1, 3, 5, 3, 2, 1, 1, 2, 1, true, 29}),
      named("dilation-prime-to-stride", {2, 6, 4, 5, 3, 7, 2, 2, 1, false, 41}),
      named("groups", {1, 15, 12, 3, 2, 1, 1, 1, 3, true, 50}),
      named("depthwise", {2, 24, 24, 5, 2, 2, 1, 1, 24, true, 31}),
      named("long-kernel", {1, 2, 3, 257, 64, 96, 0, 1, 1, false, 19}),
      named("one-channel-out", {1, 34, 1, 8, 4, 0, 0, 1, 1, true, 70}),
      // Long enough for every patch of the worker's own second data (Values::patches).
      named("all-patches", {1, 10, 6, 3, 1, 1, 0, 1, 1, true, 300}),
      named("all-patches-upsample", {1, 6, 4, 4, 2, 1, 0, 1, 1, true, 300}),
  };
}

/// Throws UsageError when a case contradicts the float64 reference: then the file is wrong, not a family.
Trial trial_of(const Case& item, const std::filesystem::path& file) {
  Trial trial{item.name, item.problem, Inputs{}};
  trial.inputs->x.assign(item.input.begin(), item.input.end());
  trial.inputs->w.assign(item.weight.begin(), item.weight.end());
  trial.inputs->bias.assign(item.bias.begin(), item.bias.end());
  const Reference reference = make_reference(item.problem, Accuracy::fp32, *trial.inputs);
  for (std::size_t i = 0; i < reference.y.size(); ++i) {
    const double want = reference.y[i], got = item.output[i];
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    if (!(std::abs(want - got) <= reference.bound[i]))
      throw UsageError(fmt::format("{}: case {}: output[{}] is {}, the float64 reference gives {}", file.string(),
                                   item.name, i, got, want));
  }
  if (item.problem.max_products() > 0 && zero_throughout(reference))
    throw UsageError(
        fmt::format("{}: case {}: the output is zero throughout, although products are summed: whatever "
                    "computes nothing would be right",
                    file.string(), item.name));
  return trial;
}

std::vector<Trial> trials_of(const std::vector<std::filesystem::path>& files) {
  if (files.empty()) return built_in_trials();
  std::vector<Trial> trials;
  for (const auto& file : files)
    for (const Case& item : read_cases(file)) trials.push_back(trial_of(item, file));
  return trials;
}

struct Tally {
  int passed = 0, failed = 0;
  std::map<std::string, int> rejected;  // by reason
};

/// One run of one variant on one trial.
struct Row {
  std::string trial, family, configuration;
  Accuracy accuracy;
  Outcome outcome;
  std::string reason;
  std::optional<Errors> errors;
};

/// Where variants run: the GPU's worker with NVRTC, or the CPU's with the host compiler.
struct Bench {
  Target target;
  std::optional<HostProver> prover;
  Compiler* compiler = nullptr;
  Worker* worker = nullptr;
};

Bench open_bench(const DeviceChoice& choice, const Settings& settings) {
  Bench bench;
  DeviceChoice::Kind kind = choice.kind;
  if (kind == DeviceChoice::Kind::automatic && !nvidia_device_visible()) kind = DeviceChoice::Kind::offline;
  if (kind != DeviceChoice::Kind::offline)
    bench.target = open_target({.device = choice, .jobs = job_count(0)}, settings);
  if (bench.target.measured()) {
    bench.compiler = bench.target.nvrtc.get();
    bench.worker = bench.target.worker.get();
    return bench;
  }
  bench.target.environment.device = read_profile(choice.profile.empty() ? "h200" : choice.profile);
  bench.prover.emplace(settings, job_count(0), 1);
  if (!bench.prover->available())
    throw EnvironmentError(
        "verify: no C++ compiler for Host execution (c++, g++ or clang++ on PATH, or CXX) and no GPU");
  bench.compiler = &bench.prover->compiler();
  bench.worker = &bench.prover->worker();
  return bench;
}

std::vector<const Family*> chosen_families(const std::vector<std::string>& names) {
  if (names.empty()) return families();
  std::vector<const Family*> chosen;
  for (const std::string& name : names) {
    const Family* family = find_family(name);
    if (!family) throw UsageError(fmt::format("--family {}: `tuner list families` names those there are", name));
    chosen.push_back(family);
  }
  return chosen;
}

std::vector<Accuracy> chosen_classes(const std::vector<std::string>& names) {
  if (names.empty()) return {Accuracy::fp32};
  std::vector<Accuracy> chosen;
  for (const std::string& name : names) chosen.push_back(class_named(name));
  return chosen;
}

/// The instance that serves every problem and, where it is another, the one that is specialised to this problem.
std::vector<Variant> variants_of(const Family& family, const BuildContext& context, bool specialised) {
  std::vector<Variant> variants{{std::string(family.name()), family.general_configuration(context)}};
  const Variant own{std::string(family.name()), family.default_configuration(context)};
  if (specialised && !(own == variants.front())) variants.push_back(own);
  return variants;
}

class Verification {
 public:
  Verification(Bench& bench, std::vector<const Family*> chosen, bool specialised)
      : bench_(bench), families_(std::move(chosen)), specialised_(specialised) {}

  /// All compiles are started first, so that the machine's cores are busy.
  void prefetch(const std::vector<Trial>& trials, Accuracy accuracy) {
    for (const Trial& trial : trials)
      for (const Family* family : families_) {
        const BuildContext context = context_of(trial, accuracy);
        if (trial.problem.batch == 0 || family->refuses(context)) continue;
        for (const Variant& variant : variants_of(*family, context, specialised_)) {
          const CompileUnit unit = family->build(context, variant.tunables).unit;
          if (!started_.count(key_of(unit))) started_[key_of(unit)] = bench_.compiler->compile(unit).share();
        }
      }
  }

  void run(const Trial& trial, Accuracy accuracy) {
    const BuildContext context = context_of(trial, accuracy);
    if (trial.problem.batch == 0) {
      for (const Family* family : families_)
        ++tallies[std::string(family->name())].rejected["an empty batch has nothing to compute"];
      return;
    }
    const auto loaded =
        trial.inputs ? bench_.worker->load(context, *trial.inputs) : bench_.worker->load(context, Values::normal, 1);
    for (const Family* family : families_) {
      Tally& tally = tallies[std::string(family->name())];
      if (const auto refusal = family->refuses(context)) {
        ++tally.rejected[*refusal];
        continue;
      }
      if (!loaded && loaded.failure().outcome == Outcome::rejected) {
        ++tally.rejected[loaded.failure().reason];
        continue;
      }
      for (const Variant& variant : variants_of(*family, context, specialised_)) {
        const Evaluation evaluation = loaded ? judge(*family, context, variant) : failed_evaluation(loaded.failure());
        rows.push_back({trial.name, variant.family, to_string(variant.tunables), accuracy, evaluation.outcome,
                        evaluation.reason, evaluation.errors});
        ++(evaluation.outcome == Outcome::ok ? tally.passed : tally.failed);
        if (evaluation.outcome != Outcome::ok)
          fmt::print("FAILED {} {} on {} ({}): {}: {}\n", variant.family, to_string(variant.tunables), trial.name,
                     summary(trial.problem), to_string(evaluation.outcome), evaluation.reason);
      }
    }
  }

  std::map<std::string, Tally> tallies;
  std::vector<Row> rows;

 private:
  static std::string key_of(const CompileUnit& unit) {
    std::string key = unit.source;
    for (const std::string& kernel : unit.kernels) key += '\n' + kernel;
    for (const std::string& option : unit.options) key += '\n' + option;
    return key;
  }

  BuildContext context_of(const Trial& trial, Accuracy accuracy) const {
    return {trial.problem, accuracy, bench_.target.environment.device};
  }

  Evaluation judge(const Family& family, const BuildContext& context, const Variant& variant) {
    const auto& started = started_.at(key_of(family.build(context, variant.tunables).unit));
    if (!wait_unless_interrupted(started)) throw Interrupted{interrupt_signal()};
    const auto unit = started.get();
    if (!unit) return failed_evaluation(unit.failure());
    return bench_.worker->evaluate(variant, *unit, nullptr);
  }

  Bench& bench_;
  std::vector<const Family*> families_;
  bool specialised_;
  std::map<std::string, std::shared_future<Expected<CompiledUnit>>> started_;
};

void write_json(const Verification& verification, const std::filesystem::path& path) {
  Json rows = Json::array();
  for (const Row& row : verification.rows) {
    Json entry{{"case", row.trial},
               {"family", row.family},
               {"tunables", row.configuration},
               {"class", to_string(row.accuracy)},
               {"outcome", to_string(row.outcome)}};
    if (!row.reason.empty()) entry["reason"] = row.reason;
    if (row.errors) entry["errors"] = {{"element", row.errors->element}, {"row", row.errors->row}};
    rows.push_back(std::move(entry));
  }
  write_file_atomically(path, dump_json({{"schema_version", 1}, {"verified", std::move(rows)}}));
}

}  // namespace

int verify(const VerifyOptions& options, const Settings& settings) {
  const auto chosen = chosen_families(options.families);
  const auto classes = chosen_classes(options.classes);
  const auto trials = trials_of(options.cases);
  if (options.json) require_replaceable(*options.json);  // before all the work, not after it
  InterruptGuard guard;
  Bench bench = open_bench(options.device, settings);
  fmt::print("Verifying {} cases on {}\n", trials.size(),
             bench.target.measured() ? bench.target.environment.device.name : "the CPU (Host execution)");
  for (const std::string& warning : bench.compiler->warnings()) fmt::print(stderr, "warning: {}\n", warning);
  Verification verification(bench, chosen, !options.cases.empty() || bench.target.measured());
  for (const Accuracy accuracy : classes) verification.prefetch(trials, accuracy);
  for (const Accuracy accuracy : classes)
    for (const Trial& trial : trials) {
      if (interrupt_signal() != 0) throw Interrupted{interrupt_signal()};
      verification.run(trial, accuracy);
    }
  int passed = 0, failed = 0;
  fmt::print("{:<12} {:>7} {:>7} {:>9}\n", "family", "passed", "failed", "rejected");
  for (const auto& [family, tally] : verification.tallies) {
    int rejected = 0;
    for (const auto& [reason, count] : tally.rejected) rejected += count;
    fmt::print("{:<12} {:>7} {:>7} {:>9}\n", family, tally.passed, tally.failed, rejected);
    for (const auto& [reason, count] : tally.rejected) fmt::print("  {} x rejected: {}\n", count, reason);
    passed += tally.passed;
    failed += tally.failed;
  }
  if (options.json) write_json(verification, *options.json);
  if (passed + failed == 0) fmt::print("Nothing was run.\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace tuner
