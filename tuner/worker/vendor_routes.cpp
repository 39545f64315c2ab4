#include "tuner/worker/vendor_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tuner/worker/limits.h"
#include "tuner/worker/messages.h"

namespace tuner {
namespace {

namespace msg = messages;

/// Tried however little time there is: at least the first choice of each way that a library has to the result.
constexpr std::size_t kLeastRoutes = 6;

/// What is known of a route before it runs.
BaselineRecord record_of(const std::string& name, const BaselineRoute& route) {
  BaselineRecord record;
  record.name = name;
  record.route = route.route;
  record.engine = route.engine;
  record.knobs = route.knobs;
  record.workspace_bytes = route.workspace_bytes;
  record.traffic_bytes = route.traffic_bytes;
  return record;
}

void note_best(MeasureOptions& options, double ms) { options.best_ms = std::min(options.best_ms.value_or(ms), ms); }

/// A right route's work between its conversions, timed in the same way; what it computed is checked afterwards.
BaselineRecord note_beside(Workbench& bench, InnerRunnable& inner, Runnable& whole, BaselineRecord record,
                           MeasureOptions& options) {
  record.route += ", conversions not counted";
  record.not_comparable = true;
  record.traffic_bytes = 0;
  record.time.reset();
  const auto timing = [&]() -> Expected<Timing> {
    if (auto bound = inner.bind(bench.verifier().tensors()); !bound) return bound.failure();
    auto timed = measure(bench.device(), inner, options, bench.probe());
    if (!timed) return timed.failure();
    if (auto delivered = inner.deliver(); !delivered) return delivered.failure();
    if (auto errors = bench.verifier().check_again(whole); !errors) return errors.failure();
    return timed;
  }();
  if (!timing) {
    record.status = to_string(bench.note(timing.failure()).outcome);
    record.reason = timing.failure().reason;
    return record;
  }
  record.status = to_string(timing->cut ? Outcome::cut : Outcome::ok);
  record.reason.clear();
  record.time = time_record(*timing);
  if (!timing->cut) note_best(options, timing->ms.median);
  return record;
}

}  // namespace

BaselineOptions baseline_options(const Json& request) {
  BaselineOptions options;
  options.workspace_bytes = request.at("workspace_mib").get<std::size_t>() << 20;
  options.deterministic = request.at("deterministic").get<bool>();
  return options;
}

Expected<std::vector<BaselineRoute>> routes_of(Workbench& bench, const std::optional<CompiledUnit>& kernels,
                                               const std::string& name, const BaselineOptions& options) {
  Baseline* baseline = find_baseline(name);
  if (!baseline) return Failure{Outcome::rejected, fmt::format("no baseline `{}`", name), {}};
  if (!kernels) return Failure{Outcome::rejected, "not run: no GPU", {}};
  return baseline->routes(bench.device(), bench.context().problem, bench.context().accuracy, options, *kernels);
}

Json answer_baseline(Workbench& bench, const std::optional<CompiledUnit>& kernels, const Json& request) {
  const auto name = request.at("name").get<std::string>();
  const BaselineOptions offer = baseline_options(request);
  const auto start = std::chrono::steady_clock::now();
  const auto time_is_up = [&] {
    return request.contains("seconds") &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
               request["seconds"].get<double>();
  };
  auto routes = routes_of(bench, kernels, name, offer);
  if (!routes) return {{"failure", msg::from(bench.note(routes.failure()))}};
  // A library has hundreds of routes: those certain to be slower than the best so far are cut as variants are.
  MeasureOptions options = msg::measure_options(request.at("measure")), for_notes = options;
  const auto skip = request.at("skip").get<std::size_t>();
  Json done = Json::array();
  for (std::size_t i = skip; i < routes->size(); ++i) {
    BaselineRoute& route = (*routes)[i];
    BaselineRecord record = record_of(name, route);
    if (i >= kLeastRoutes && time_is_up()) {
      record.status = to_string(Outcome::rejected);
      record.reason = "not tried: the budget leaves baselines no more seconds";
      done.push_back(msg::from(record));
      continue;
    }
    bench.send({{"alive", true}, {"routes", i}, {"records", std::move(done)}, {"next", msg::from(record)}});
    done = Json::array();
    bool repeatable = true;
    const double limit = i == skip ? request.at("first_seconds").get<double>() : kVendorSeconds;
    bench.watchdog().expect(limit + options.max_seconds);
    const Evaluation evaluation = bench.check_and_time(*route.runnable, &options, offer.deterministic, &repeatable);
    if (bench.poisoned())
      return {{"failure", msg::from(Failure{evaluation.outcome, evaluation.reason, evaluation.log})}};
    record.deterministic = route.deterministic && repeatable;
    record.status = to_string(evaluation.outcome);
    record.reason = evaluation.reason;
    record.errors = evaluation.errors;
    record.time = evaluation.time;
    if (evaluation.outcome == Outcome::ok && evaluation.time) note_best(options, evaluation.time->ms.median);
    done.push_back(msg::from(record));
    if (route.inner && evaluation.time) {
      const BaselineRecord beside = note_beside(bench, *route.inner, *route.runnable, record, for_notes);
      if (bench.poisoned()) return {{"failure", msg::from(Failure{*parse_outcome(beside.status), beside.reason, {}})}};
      done.push_back(msg::from(beside));
    }
    route.inner.reset();
    route.runnable.reset();  // its plan, packed weights and share of the workspace: the next may need more
    bench.watchdog().calm();
  }
  return {{"records", std::move(done)}};
}

}  // namespace tuner
