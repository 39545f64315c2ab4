// The coordinator's side: speaks to the worker process, replaces it when it dies or hangs, and finds out who is to
// blame.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "tuner/worker/channel.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/sanitizer_report.h"
#include "tuner/worker/worker.h"
#include "tuner/worker/worker_process.h"

namespace tuner {
namespace {

namespace msg = messages;

constexpr const char* kInterrupted = "interrupted";
constexpr double kSanitizerSlowdown = 5;
constexpr double kSanitizedHangSeconds = 15;
constexpr double kSanitizerFlushSeconds = 20;
constexpr double kStartSeconds = 120;
constexpr double kNeverNarrow = 1e-12;  // a suspect alone is launched as often as it may have been in company
constexpr int kStarts = 3;  // attempts at a fresh worker: the memory of one that was killed may not be free yet

bool cost_the_worker(Outcome outcome) { return outcome == Outcome::crashed || outcome == Outcome::timed_out; }

class WorkerHandle : public Worker {
 public:
  explicit WorkerHandle(const WorkerOptions& options) : options_(options), process_(started({})) {}

  Environment environment() override {
    Json reply;
    if (const auto failure = request({{"op", "environment"}}, reply)) throw EnvironmentError(failure->reason);
    return msg::environment(reply);
  }

  void support(const CompiledUnit& verify, const CompiledUnit& baselines, const CompiledUnit& measure) override {
    support_ = {{"op", "support"},
                {"verify", msg::from(verify)},
                {"baselines", msg::from(baselines)},
                {"measure", msg::from(measure)}};
    Json reply;
    if (const auto failure = request(support_, reply)) throw EnvironmentError(failure->reason);
  }

  Expected<double> load(const BuildContext& context, Values values, std::uint64_t seed) override {
    Json message = load_message(context);
    message["values"] = to_string(values);
    message["seed"] = seed;
    return load(std::move(message));
  }

  Expected<double> load(const BuildContext& context, const Inputs& inputs) override {
    Json message = load_message(context);
    message["inputs"] = {{"x", inputs.x}, {"w", inputs.w}, {"bias", inputs.bias}};
    return load(std::move(message));
  }

  Evaluation evaluate(const Variant& variant, const CompiledUnit& unit, const MeasureOptions* measure) override {
    Json message{{"op", "evaluate"},
                 {"variant", msg::from(variant)},
                 {"unit", msg::from(unit)},
                 {"grace_seconds", options_.grace_seconds}};
    if (measure) message["measure"] = msg::from(*measure);
    const Evaluation first = evaluate_once(message);
    if (!cost_the_worker(first.outcome)) return first;
    Evaluation alone = evaluate_once(message);
    if (is_interrupted(alone)) return alone;
    alone.attempts = 2;
    if (!cost_the_worker(alone.outcome)) {
      alone.reason += fmt::format("{}a worker ended first ({}); this is what the variant did alone in a fresh one",
                                  alone.reason.empty() ? "" : "; ", first.reason);
      return alone;
    }
    alone.reason += "; twice, the second time alone in a fresh worker";
    if (!options_.compute_sanitizer.empty()) diagnose(message, alone);
    return alone;
  }

  std::vector<BaselineRecord> baseline(const std::string& name, const CudnnOptions& options,
                                       const MeasureOptions& measure) override {
    Json message{{"op", "baseline"},
                 {"name", name},
                 {"workspace_mib", options.workspace_mib},
                 {"deterministic", options.deterministic},
                 {"measure", msg::from(measure)}};
    std::vector<BaselineRecord> records;
    BaselineRecord next;  // the route at work
    next.name = name;
    int done = 0;  // routes that have their records or are blamed
    const auto take = [&](const Json& part) {
      for (const Json& record : part.at("records")) records.push_back(msg::baseline_record(record));
    };
    // A route that costs the worker is repeated as the first of a fresh one; the others go on after it.
    for (std::optional<int> suspect;;) {
      message["skip"] = done;
      message["measure"] = msg::from(options_after(measure, records));
      Json reply;
      const auto failure = request(message, reply, [&](const Json& sign) {
        if (!sign.contains("next")) return;
        take(sign);
        done = sign.at("routes").get<int>();
        next = msg::baseline_record(sign["next"]);
      });
      if (!failure) {
        take(reply);
        return records;
      }
      const bool lost = cost_the_worker(failure->outcome);
      if (lost && suspect != done) {
        suspect = done;
        continue;
      }
      next.status = to_string(failure->outcome);
      next.reason = failure->reason + (lost ? "; twice, the second time as the first of a fresh worker" : "");
      records.push_back(next);
      if (!lost || next.route.empty()) return records;
      ++done;
    }
  }

  Expected<RunOffTimes> run_off(const std::vector<Contestant>& contestants, const CudnnOptions& options,
                                const std::vector<MeasureOptions>& regimes, int most_rounds) override {
    const auto race = [&](const std::vector<std::size_t>& entrants, bool to_the_end) -> Expected<RunOffTimes> {
      Json entries = Json::array(), measures = Json::array();
      for (MeasureOptions measure : regimes) {
        if (to_the_end) measure.half_width = kNeverNarrow;
        measures.push_back(msg::from(measure));
      }
      for (const std::size_t i : entrants) entries.push_back(entry_of(contestants[i]));
      Json reply;
      const Json message{{"op", "run_off"},
                         {"contestants", std::move(entries)},
                         {"workspace_mib", options.workspace_mib},
                         {"deterministic", options.deterministic},
                         {"measures", std::move(measures)},
                         {"rounds", most_rounds},
                         {"grace_seconds", options_.grace_seconds}};
      if (const auto failure = request(message, reply)) return *failure;
      return msg::run_off_times(reply);
    };
    std::vector<std::size_t> entrants(contestants.size());
    std::iota(entrants.begin(), entrants.end(), std::size_t{0});
    auto times = race(entrants, false);
    if (times || !cost_the_worker(times.failure().outcome)) return times;
    RunOffTimes all;
    all.entries.resize(contestants.size());
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const auto alone = race({i}, true);
      if (options_.interrupted && options_.interrupted()) return Failure{Outcome::unproven, kInterrupted, {}};
      if (alone || !cost_the_worker(alone.failure().outcome)) continue;
      all.entries[i].failure = alone.failure();
      all.entries[i].failure->reason += "; again alone under as many launches in a fresh worker";
    }
    std::erase_if(entrants, [&](std::size_t i) { return all.entries[i].failure.has_value(); });
    if (entrants.empty()) return all;
    times = race(entrants, false);
    if (!times) {
      Failure failure = times.failure();
      if (cost_the_worker(failure.outcome)) failure.reason += "; nobody who takes part fails alone";
      return failure;
    }
    all.conditions = times->conditions;
    for (std::size_t at = 0; at < entrants.size(); ++at) all.entries[entrants[at]] = std::move(times->entries[at]);
    return all;
  }

 private:
  static Json load_message(const BuildContext& context) {
    return {{"op", "load"},
            {"problem", msg::from(context.problem)},
            {"class", to_string(context.accuracy)},
            {"device", msg::from(context.device)}};
  }

  /// With the best route so far as the one to beat.
  static MeasureOptions options_after(MeasureOptions options, const std::vector<BaselineRecord>& records) {
    for (const BaselineRecord& record : records)
      if (record.status == to_string(Outcome::ok) && record.time && !record.not_comparable)
        options.best_ms = std::min(options.best_ms.value_or(record.time->ms.median), record.time->ms.median);
    return options;
  }

  static Json entry_of(const Contestant& contestant) {
    Json entry = contestant.variant ? Json{{"variant", msg::from(contestant.variant->first)},
                                           {"unit", msg::from(contestant.variant->second)}}
                                    : Json{{"baseline", contestant.baseline},
                                           {"route", contestant.route},
                                           {"engine", contestant.engine},
                                           {"knobs", contestant.knobs}};
    entry["expected_ms"] = contestant.expected_ms;
    return entry;
  }

  Expected<double> load(Json message) {
    load_ = Json();
    Json reply;
    auto failure = request(message, reply);
    if (failure && cost_the_worker(failure->outcome)) failure = request(message, reply);
    if (failure) return *failure;
    load_ = std::move(message);
    return reply.at("plain_error").get<double>();
  }

  Evaluation evaluate_once(const Json& message) {
    Json reply;
    if (const auto failure = request(message, reply)) return failed_evaluation(*failure);
    return msg::evaluation(reply);
  }

  static bool is_interrupted(const Evaluation& evaluation) {
    return evaluation.outcome == Outcome::unproven && evaluation.reason == kInterrupted;
  }

  /// Starts a process and waits until it serves. Throws NoDevice or EnvironmentError.
  std::unique_ptr<WorkerProcess> started(const std::vector<std::string>& wrapper) {
    auto process =
        std::make_unique<WorkerProcess>(WorkerCommand{options_.program, wrapper, options_.device, options_.preload});
    Json hello;
    const Received got = receive(*process, hello, kStartSeconds);
    if (got == Received::message && hello.contains("ready")) return process;
    if (got == Received::message && hello.contains("none")) throw NoDevice(hello["none"].get<std::string>());
    std::string reason = "no answer";
    if (got == Received::message && hello.contains("fatal"))
      reason = hello["fatal"].get<std::string>();
    else if (got == Received::closed)
      reason = process->ending() + " " + process->error_output();
    throw EnvironmentError(fmt::format("device {} cannot be used: {}", options_.device, reason));
  }

  /// Tells a new process what the last one knew. Empty, or why that did not work.
  std::string taught(WorkerProcess& process, double seconds) {
    for (const Json* message : {&support_, &load_}) {
      if (message->is_null()) continue;
      Json reply;
      if (exchange(process, *message, reply, seconds) != Received::message) return process.ending();
      if (reply.contains("failure")) return msg::failure(reply["failure"]).reason;
    }
    return {};
  }

  /// A fresh process that knows what the last one knew.
  void restart() {
    std::string reason;
    for (int attempt = 0; attempt < kStarts; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
      try {
        auto process = started({});
        reason = taught(*process, options_.timeout_seconds);
        if (reason.empty()) {
          process_ = std::move(process);
          return;
        }
      } catch (const EnvironmentError& error) {
        reason = error.what();
      }
      if (options_.interrupted && options_.interrupted()) break;
    }
    throw EnvironmentError(fmt::format("device {}: a fresh worker failed: {}", options_.device, reason));
  }

  Received receive(WorkerProcess& process, Json& message, double seconds) {
    return receive_message(process.socket(), message, seconds, [&]() -> std::optional<Received> {
      if (options_.interrupted && options_.interrupted()) return Received::interrupted;
      if (process.stays_stopped()) return Received::stopped;
      return std::nullopt;
    });
  }

  using Sign = std::function<void(const Json&)>;

  /// `seconds` is how long it may be silent: signs of life are messages too, and may bring a part of the reply.
  Received exchange(WorkerProcess& process, const Json& message, Json& reply, double seconds, const Sign& sign = {}) {
    if (!send_message(process.socket(), message)) return Received::closed;
    while (true) {
      const Received end = receive(process, reply, seconds);
      if (end != Received::message || !reply.is_object() || !reply.contains("alive")) return end;
      if (sign) sign(reply);
    }
  }

  /// The failure of this request, or nothing and `reply`. After one that cost the worker there is none.
  std::optional<Failure> request(const Json& message, Json& reply, const Sign& sign = {}) {
    if (!process_) restart();
    process_->forget_error_output();
    switch (exchange(*process_, message, reply, options_.timeout_seconds, sign)) {
      case Received::message:
        break;
      case Received::interrupted:
        process_.reset();
        return Failure{Outcome::unproven, kInterrupted, {}};
      case Received::timed_out:
        return lost({Outcome::timed_out, fmt::format("no sign of life for {:g} s", options_.timeout_seconds), {}});
      case Received::stopped:
        return lost({Outcome::timed_out, "the worker was stopped by a signal and not continued", {}});
      case Received::closed: {
        const std::string ending = process_->ending();
        const std::string summary = address_sanitizer_summary(process_->error_output());
        return lost({Outcome::crashed, summary.empty() ? "the worker ended by " + ending : summary, {}});
      }
    }
    if (!reply.is_object()) return std::nullopt;
    if (reply.contains("failure")) {
      const Failure failure = msg::failure(reply["failure"]);
      return cost_the_worker(failure.outcome) ? lost(failure) : failure;
    }
    if (reply.contains("outcome") && cost_the_worker(*parse_outcome(reply["outcome"].get<std::string>())))
      return lost({*parse_outcome(reply["outcome"].get<std::string>()), reply["reason"].get<std::string>(),
                   reply["log"].get<std::string>()});
    return std::nullopt;
  }

  /// The worker is given up; what it printed meanwhile goes with the failure.
  Failure lost(Failure failure) {
    const std::string printed = process_->error_output();
    process_.reset();
    if (const std::string line = assertion_line(printed); !line.empty()) failure.reason = line + ": " + failure.reason;
    if (!printed.empty()) failure.log += (failure.log.empty() ? "" : "\n") + printed;
    return failure;
  }

  /// Once more under compute-sanitizer: what it says goes into the evaluation.
  void diagnose(const Json& message, Evaluation& evaluation) {
    const std::string found = diagnosis(message, evaluation);
    evaluation.reason += "; compute-sanitizer: " + found;
  }

  std::string diagnosis(Json message, Evaluation& evaluation) {
    if (options_.compute_sanitizer.find('/') == std::string::npos) return "not found";
    const double seconds = kSanitizerSlowdown * options_.timeout_seconds;
    // What hangs will do so again.
    message["grace_seconds"] = evaluation.outcome == Outcome::timed_out ? kSanitizedHangSeconds : seconds;
    try {
      auto process = started({options_.compute_sanitizer, "--tool", "memcheck", "--print-limit", "20"});
      if (const std::string reason = taught(*process, seconds); !reason.empty())
        return "its worker failed before the variant: " + reason;
      Json reply;
      const Received end = exchange(*process, message, reply, seconds);
      // It prints its findings when the program ends, which a worker does when nobody speaks to it any more.
      process->finish(kSanitizerFlushSeconds);
      const std::string printed = process->error_output();
      evaluation.log += (evaluation.log.empty() ? "" : "\n") + printed;
      const std::string line = memcheck_finding(printed);
      if (!line.empty()) return line;
      return end == Received::message ? "no error reported" : "no error reported before the worker ended or hung";
    } catch (const EnvironmentError& error) {
      return error.what();
    }
  }

  WorkerOptions options_;
  std::unique_ptr<WorkerProcess> process_;
  Json support_, load_;
};

}  // namespace

std::unique_ptr<Worker> start_worker(const WorkerOptions& options) { return std::make_unique<WorkerHandle>(options); }

}  // namespace tuner
