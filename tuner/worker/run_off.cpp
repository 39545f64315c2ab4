#include "tuner/worker/run_off.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tuner/device/cuda_device.h"
#include "tuner/worker/limits.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/vendor_routes.h"

namespace tuner {
namespace {

namespace msg = messages;

/// Who takes part, in the request's order.
struct Entrants {
  std::vector<std::unique_ptr<Runnable>> variants;
  std::map<std::pair<std::string, std::string>, std::vector<BaselineRoute>> routes;  // by baseline and route
  std::vector<Runnable*> all;                                                        // of the above
};

Expected<Entrants> entrants_of(Workbench& bench, const std::optional<CompiledUnit>& kernels, const Json& request) {
  Entrants entrants;
  for (const Json& contestant : request.at("contestants")) {
    if (contestant.contains("variant")) {
      auto made = bench.runnable_of(msg::variant(contestant["variant"]), msg::unit(contestant.at("unit")));
      if (!made) return made.failure();
      entrants.variants.push_back(std::move(*made));
      entrants.all.push_back(entrants.variants.back().get());
      continue;
    }
    const auto name = contestant.at("baseline").get<std::string>();
    BaselineOptions options = baseline_options(request);
    options.only = contestant.at("route").get<std::string>();
    std::vector<BaselineRoute>& offered = entrants.routes[{name, *options.only}];
    if (offered.empty()) {
      auto found = routes_of(bench, kernels, name, options);
      if (!found) return found.failure();
      offered = std::move(*found);
    }
    for (BaselineRoute& route : offered)
      if (route.route == contestant.at("route") && route.engine == contestant.at("engine") &&
          route.knobs == contestant.at("knobs"))
        entrants.all.push_back(route.runnable.get());
  }
  if (entrants.all.size() != request.at("contestants").size())
    return Failure{Outcome::rejected, "a baseline no longer offers its best route", {}};
  return entrants;
}

/// The machine's state while its times were taken.
Conditions conditions_of(Workbench& bench, const RunOffTimes& times) {
  Conditions conditions;
  const auto* const cuda = dynamic_cast<const CudaDevice*>(&bench.device());
  if (!cuda) return conditions;
  const NvmlFacts facts = cuda->sensors().facts();
  conditions.power_limit_w = facts.power_limit_w;
  conditions.mig = facts.mig;
  conditions.other_processes = std::max(0, facts.processes - 1);  // one is this worker
  if (!facts.missing.empty()) conditions.not_available = "not available: " + facts.missing;
  for (const RunOffTimes::Entry& entry : times.entries)
    for (const TimeRecord& time : entry.times)
      for (const std::string& reason : time.throttling)
        if (std::find(conditions.throttling.begin(), conditions.throttling.end(), reason) ==
            conditions.throttling.end())
          conditions.throttling.push_back(reason);
  return conditions;
}

Expected<RunOffTimes> race(Workbench& bench, const std::vector<Runnable*>& entrants, const Json& request) {
  bench.watchdog().expect(kVendorSeconds);
  for (Runnable* entrant : entrants)
    if (const auto bound = entrant->bind(bench.verifier().tensors()); !bound) return bound.failure();
  const int rounds = request.at("rounds").get<int>();
  double ms_a_round = 0;
  for (const Json& contestant : request.at("contestants")) ms_a_round += contestant.at("expected_ms").get<double>();
  bench.watchdog().expect(kSustainedSeconds +
                          run_off_limit(ms_a_round, rounds, request.at("grace_seconds").get<double>()));
  RunOffTimes times;
  times.entries.resize(entrants.size());
  for (const Json& measure : request.at("measures")) {
    const auto timings =
        measure_interleaved(bench.device(), entrants, msg::measure_options(measure), rounds, bench.probe());
    if (!timings) return timings.failure();
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const Timing& timing = (*timings)[i];
      if (timing.failure && !times.entries[i].failure) times.entries[i].failure = timing.failure;
      times.entries[i].times.push_back(time_record(timing));
      times.entries[i].times.back().interleaved = true;
    }
  }
  for (std::size_t i = 0; i < entrants.size(); ++i)
    if (!times.entries[i].failure)
      if (const auto right = prove_again(bench.verifier(), *entrants[i]); !right)
        times.entries[i].failure = bench.note(right.failure());
  times.conditions = conditions_of(bench, times);
  return times;
}

}  // namespace

Json answer_run_off(Workbench& bench, const std::optional<CompiledUnit>& kernels, const Json& request) {
  auto entrants = entrants_of(bench, kernels, request);
  if (!entrants) return {{"failure", msg::from(bench.note(entrants.failure()))}};
  const auto times = race(bench, entrants->all, request);
  if (!times) return {{"failure", msg::from(bench.note(times.failure()))}};
  return msg::from(*times);
}

}  // namespace tuner
