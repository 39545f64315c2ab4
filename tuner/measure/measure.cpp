#include "tuner/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "tuner/measure/plan.h"
#include "tuner/measure/stopwatch.h"

namespace tuner {
namespace {

constexpr double kWarmUpSeconds = 0.5;
constexpr double kLoadWindowMs = 100;
constexpr double kLoadSeconds = 3;
constexpr int kPrepareSamples = 7;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void idle(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Runs `body` with a Failure in place of exceptions that CUDA calls throw.
template <class Value, class Body>
Expected<Value> guarded(Device& device, const Body& body) {
  auto* const cuda = dynamic_cast<CudaDevice*>(&device);
  if (!cuda) return Failure{Outcome::unproven, "nothing is timed without a GPU", {}};
  try {
    return body(*cuda);
  } catch (const CudaError& error) {
    return Failure{is_sticky_cuda_error(error.code) ? Outcome::crashed : Outcome::launch_failed, error.what(), {}};
  } catch (const std::bad_alloc&) {
    return Failure{Outcome::launch_failed, "no device memory left for the buffer that flushes L2", {}};
  }
}

std::optional<Failure> implausible(const Runnable& runnable, const DeviceFacts& device, const Timing& timing) {
  const double bound = lower_bound_ms(runnable.work(), device, timing.l2);
  if (timing.samples.empty() || timing.ms.median >= bound) return std::nullopt;
  return Failure{Outcome::implausible,
                 fmt::format("{}: median {:.4g} ms, but its operations and bytes need at least {:.4g} ms on {}",
                             runnable.name(), timing.ms.median, bound, device.name),
                 {}};
}

/// Sustained load: launches back to back until the time of a launch no longer moves.
Expected<bool> load_until_settled(Stopwatch& stopwatch, std::span<Runnable* const> runnables, double ms_a_round) {
  const auto start = std::chrono::steady_clock::now();
  const int rounds = std::max(1, static_cast<int>(kLoadWindowMs / std::max(ms_a_round, 1e-3)));
  std::vector<double> means;
  while (!clock_settled(means) && seconds_since(start) < kLoadSeconds) {
    for (Runnable* runnable : runnables)
      if (auto enqueued = stopwatch.enqueue(*runnable, rounds); !enqueued) return enqueued;
    const auto times = stopwatch.collect();
    if (!times) return times.failure();
    means.push_back(std::accumulate(times->begin(), times->end(), 0.0));
  }
  return true;
}

/// Launches until their times agree; the last time.
Expected<double> warm_up(Stopwatch& stopwatch, Runnable& runnable) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> times;
  do {
    const auto ms = stopwatch.time_once(runnable, 1);
    if (!ms) return ms.failure();
    times.push_back(*ms);
  } while (!settled(times) && seconds_since(start) < kWarmUpSeconds);
  return median(std::span(times).last(std::min<std::size_t>(3, times.size())));
}

Expected<Timing> sample(Stopwatch& stopwatch, Runnable& runnable, const MeasureOptions& options, double ms) {
  const Pace pace = pace_of(options.regime, ms);
  const int launches = launches_per_sample(options.l2, ms);
  Sampling sampling(options);
  const auto start = std::chrono::steady_clock::now();
  do {
    // The first of a block wakes the clock, and its launch is not hidden behind another's run.
    const bool discard_first = pace.block > 1;
    for (int i = discard_first ? -1 : 0; i < pace.block; ++i)
      if (auto enqueued = stopwatch.enqueue(runnable, launches); !enqueued) return enqueued.failure();
    const auto times = stopwatch.collect();
    if (!times) return times.failure();
    for (std::size_t i = discard_first ? 1 : 0; i < times->size(); ++i) sampling.add((*times)[i]);
    if (sampling.done(seconds_since(start))) break;
    idle(pace.pause_seconds);
  } while (true);
  return sampling.timing();
}

Expected<Timing> measure_on(CudaDevice& device, Runnable& runnable, const MeasureOptions& options) {
  Stopwatch stopwatch(device, options.l2);
  Sampling first(options);
  for (int i = 0; i < 2; ++i) {
    const auto ms = stopwatch.time_once(runnable, 1);
    if (!ms) return ms.failure();
    first.add(*ms);
    if (options.best_ms && certainly_slower(first.timing().samples, *options.best_ms, options.cut_factor)) {
      first.done(0);
      return first.timing();
    }
  }
  const double estimate = first.timing().samples.back();
  idle(std::min(options.settle_seconds, pace_of(options.regime, estimate).settle_seconds));
  if (options.regime == Regime::sustained) {
    Runnable* const alone[] = {&runnable};
    if (auto loaded = load_until_settled(stopwatch, alone, estimate); !loaded) return loaded.failure();
  }
  const auto ms = warm_up(stopwatch, runnable);
  if (!ms) return ms.failure();
  auto timing = sample(stopwatch, runnable, options, *ms);
  if (!timing) return timing;
  if (auto failure = implausible(runnable, device.environment().device, *timing)) return *failure;
  return timing;
}

/// One round: each entrant once, in this round's order. Times by entrant.
Expected<std::vector<double>> run_round(Stopwatch& stopwatch, std::span<Runnable* const> runnables, L2 l2,
                                        std::span<const double> estimates, int round) {
  const auto order = round_order(runnables.size(), round);
  const bool warm = l2 == L2::warm;
  for (const std::size_t i : order) {
    if (warm)  // the one before left its own data in L2
      if (auto enqueued = stopwatch.enqueue(*runnables[i], 1); !enqueued) return enqueued.failure();
    if (auto enqueued = stopwatch.enqueue(*runnables[i], launches_per_sample(l2, estimates[i])); !enqueued)
      return enqueued.failure();
  }
  const auto times = stopwatch.collect();
  if (!times) return times.failure();
  std::vector<double> by_entrant(runnables.size());
  for (std::size_t at = 0; at < order.size(); ++at) by_entrant[order[at]] = (*times)[warm ? 2 * at + 1 : at];
  return by_entrant;
}

Expected<std::vector<Timing>> interleave_on(CudaDevice& device, std::span<Runnable* const> runnables,
                                            const MeasureOptions& options, int rounds) {
  Stopwatch stopwatch(device, options.l2);
  idle(pace_of(options.regime, 1).settle_seconds);
  std::vector<double> estimates;
  for (Runnable* runnable : runnables) {
    const auto ms = warm_up(stopwatch, *runnable);
    if (!ms) return ms.failure();
    estimates.push_back(*ms);
  }
  const double ms_a_round = std::accumulate(estimates.begin(), estimates.end(), 0.0);
  if (options.regime == Regime::sustained)
    if (auto loaded = load_until_settled(stopwatch, runnables, ms_a_round); !loaded) return loaded.failure();
  Pace pace = pace_of(options.regime, ms_a_round);
  std::vector<Timing> timings(runnables.size());
  for (int round = 0; round < rounds; ++round) {
    const auto times = run_round(stopwatch, runnables, options.l2, estimates, round);
    if (!times) return times.failure();
    for (std::size_t i = 0; i < timings.size(); ++i) timings[i].samples.push_back((*times)[i]);
    if ((round + 1) % pace.block == 0) idle(pace.pause_seconds);
  }
  for (std::size_t i = 0; i < timings.size(); ++i) {
    timings[i].ms = median_interval(timings[i].samples);
    timings[i].l2 = options.l2;
    timings[i].regime = options.regime;
    if (auto failure = implausible(*runnables[i], device.environment().device, timings[i])) return *failure;
  }
  return timings;
}

Expected<double> prepare_on(CudaDevice& device, Runnable& runnable) {
  const Event start, stop;
  std::vector<double> times;
  for (int i = 0; i < kPrepareSamples; ++i) {
    TUNER_CUDA(cudaEventRecord(start.get(), device.stream()));
    const auto enqueued = runnable.prepare();
    if (!enqueued) return enqueued.failure();
    if (!*enqueued) return 0.0;
    TUNER_CUDA(cudaEventRecord(stop.get(), device.stream()));
    if (auto done = device.synchronize(); !done) return done.failure();
    float ms = 0;
    TUNER_CUDA(cudaEventElapsedTime(&ms, start.get(), stop.get()));
    times.push_back(ms);
  }
  return median(times);
}

}  // namespace

Expected<Timing> measure(Device& device, Runnable& runnable, const MeasureOptions& options) {
  return guarded<Timing>(device, [&](CudaDevice& cuda) { return measure_on(cuda, runnable, options); });
}

Expected<std::vector<Timing>> measure_interleaved(Device& device, std::span<Runnable* const> runnables,
                                                  const MeasureOptions& options, int rounds) {
  return guarded<std::vector<Timing>>(
      device, [&](CudaDevice& cuda) { return interleave_on(cuda, runnables, options, rounds); });
}

Expected<double> measure_prepare(Device& device, Runnable& runnable) {
  return guarded<double>(device, [&](CudaDevice& cuda) { return prepare_on(cuda, runnable); });
}

}  // namespace tuner
