#include "tuner/worker/run_off.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <new>
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

/// What a copy of x to a buffer of its own takes, beside the entrants: a yardstick, not a route.
class CopyOfX final : public Runnable {
 public:
  CopyOfX(CudaDevice& device, std::size_t bytes) : device_(device), to_(device.allocate(bytes)) {}
  std::string name() const override { return "copy of x"; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors& tensors) override {
    from_ = tensors.x;
    return true;
  }
  Expected<bool> launch() override {
    const cudaError_t status =
        cudaMemcpyAsync(to_->data(), from_, to_->size(), cudaMemcpyDeviceToDevice, device_.stream());
    if (status != cudaSuccess) return Failure{Outcome::launch_failed, cudaGetErrorString(status), {}};
    return true;
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<Buffer> to_;
  const void* from_ = nullptr;
};

/// Nothing where there is no memory for it.
std::unique_ptr<Runnable> copy_of_x(Workbench& bench) {
  auto* const cuda = dynamic_cast<CudaDevice*>(&bench.device());
  const Problem& problem = bench.context().problem;
  const auto bytes = static_cast<std::size_t>(problem.x_count()) *
                     static_cast<std::size_t>(bytes_of(element_of(bench.context().accuracy)));
  if (!cuda || bytes == 0) return nullptr;
  try {
    return std::make_unique<CopyOfX>(*cuda, bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
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
  std::vector<TimeRecord> of_copy;
  const auto copy = copy_of_x(bench);
  std::vector<Runnable*> runners = entrants;
  if (copy && copy->bind(bench.verifier().tensors())) runners.push_back(copy.get());
  for (const Json& measure : request.at("measures")) {
    const auto timings =
        measure_interleaved(bench.device(), runners, msg::measure_options(measure), rounds, bench.probe());
    if (!timings) return timings.failure();
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const Timing& timing = (*timings)[i];
      if (timing.failure && !times.entries[i].failure) times.entries[i].failure = timing.failure;
      times.entries[i].times.push_back(time_record(timing));
      times.entries[i].times.back().interleaved = true;
    }
    if (runners.size() > entrants.size() && !timings->back().failure) {
      of_copy.push_back(time_record(timings->back()));
      of_copy.back().interleaved = true;
    }
  }
  for (std::size_t i = 0; i < entrants.size(); ++i)
    if (!times.entries[i].failure)
      if (const auto right = prove_again(bench.verifier(), *entrants[i]); !right)
        times.entries[i].failure = bench.note(right.failure());
  times.conditions = conditions_of(bench, times);
  times.conditions.copy = std::move(of_copy);
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
