// The coordinator's side: makes the requests, and finds out who is to blame when one costs a worker.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "tuner/worker/connection.h"
#include "tuner/worker/limits.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

namespace msg = messages;

constexpr double kNeverNarrow = 1e-12;  // a suspect alone is launched as often as it may have been in company

class WorkerHandle : public Worker {
 public:
  explicit WorkerHandle(const WorkerOptions& options) : connection_(options) {}

  Environment environment() override {
    Json reply;
    if (const auto failure = connection_.request({{"op", "environment"}}, reply))
      throw EnvironmentError(failure->reason);
    return msg::environment(reply);
  }

  void support(const CompiledUnit& verify, const CompiledUnit& baselines, const CompiledUnit& measure) override {
    connection_.support = {{"op", "support"},
                           {"verify", msg::from(verify)},
                           {"baselines", msg::from(baselines)},
                           {"measure", msg::from(measure)}};
    Json reply;
    if (const auto failure = connection_.request(connection_.support, reply)) throw EnvironmentError(failure->reason);
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
                 {"grace_seconds", connection_.options().grace_seconds}};
    if (measure) message["measure"] = msg::from(*measure);
    const Evaluation first = evaluate_once(message);
    if (!cost_the_worker(first.outcome)) return first;
    Evaluation alone = evaluate_once(message);
    if (connection_.interrupted()) return alone;
    alone.attempts = 2;
    if (!cost_the_worker(alone.outcome)) {
      alone.reason += fmt::format("{}a worker ended first ({}); this is what the variant did alone in a fresh one",
                                  alone.reason.empty() ? "" : "; ", first.reason);
      return alone;
    }
    alone.reason += "; twice, the second time alone in a fresh worker";
    if (!connection_.options().compute_sanitizer.empty())
      alone.reason += "; compute-sanitizer: " + connection_.diagnose(message, alone.outcome, alone.log);
    return alone;
  }

  std::vector<BaselineRecord> baseline(const std::string& name, const CudnnOptions& options,
                                       const MeasureOptions& measure, std::optional<double> seconds) override {
    Json message{{"op", "baseline"},
                 {"name", name},
                 {"workspace_mib", options.workspace_mib},
                 {"deterministic", options.deterministic},
                 {"measure", msg::from(measure)}};
    std::vector<BaselineRecord> records;
    BaselineRecord next;  // the route at work
    next.name = name;
    int done = 0;  // routes that have their records or are blamed
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    std::optional<Clock::time_point> began;  // the route at work
    std::optional<double> slowest;           // seconds of one that came to its end
    const auto take = [&](const Json& part) {
      for (const Json& record : part.at("records")) records.push_back(msg::baseline_record(record));
    };
    // A route that costs the worker is repeated as the first of a fresh one; the others go on after it.
    for (std::optional<int> suspect;;) {
      message["skip"] = done;
      message["first_seconds"] = suspect == done ? second_vendor_limit(slowest) : kVendorSeconds;
      if (seconds)
        message["seconds"] = std::max(0.0, *seconds - std::chrono::duration<double>(Clock::now() - start).count());
      began.reset();
      message["measure"] = msg::from(options_after(measure, records));
      Json reply;
      const auto failure = connection_.request(message, reply, [&](const Json& sign) {
        if (!sign.contains("next")) return;
        take(sign);
        if (began)
          slowest = std::max(slowest.value_or(0), std::chrono::duration<double>(Clock::now() - *began).count());
        began = Clock::now();
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
                         {"grace_seconds", connection_.options().grace_seconds}};
      if (const auto failure = connection_.request(message, reply)) return *failure;
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
      if (connection_.interrupted()) return Connection::interruption();
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
    connection_.load = Json();
    Json reply;
    auto failure = connection_.request(message, reply);
    if (failure && cost_the_worker(failure->outcome)) failure = connection_.request(message, reply);
    if (failure) return *failure;
    connection_.load = std::move(message);
    return reply.at("plain_error").get<double>();
  }

  Evaluation evaluate_once(const Json& message) {
    Json reply;
    if (const auto failure = connection_.request(message, reply)) return failed_evaluation(*failure);
    return msg::evaluation(reply);
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Worker> start_worker(const WorkerOptions& options) { return std::make_unique<WorkerHandle>(options); }

}  // namespace tuner
