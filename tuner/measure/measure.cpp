#include "tuner/measure/measure.h"

#include <chrono>

#include "tuner/measure/steps.h"

namespace tuner {
namespace {

constexpr int kPrepareSamples = 7;

/// Samples in blocks, with pauses as the regime asks for, or where the clock fell.
Expected<Timing> sample(CudaDevice& device, Stopwatch& stopwatch, Runnable& runnable, const MeasureOptions& options,
                        double ms, double& idled) {
  const Pace pace = pace_of(options.regime, ms);
  const int launches = launches_per_sample(options.l2, ms);
  const int block = samples_per_block(pace, launches);
  Sampling sampling(options);
  std::uint64_t throttling = 0;
  const auto start = std::chrono::steady_clock::now();
  do {
    // The first of a block wakes the clock.
    const bool discard_first = block > 1;
    for (int i = discard_first ? -1 : 0; i < block; ++i)
      if (auto enqueued = stopwatch.enqueue(runnable, launches, ms); !enqueued) return enqueued.failure();
    const auto samples = stopwatch.collect();
    if (!samples) return samples.failure();
    throttling |= device.sensors().throttling();
    for (std::size_t i = discard_first ? 1 : 0; i < samples->size(); ++i) sampling.add((*samples)[i]);
    if (sampling.done(steps::seconds_since(start))) break;
    if (options.rest || (options.regime == Regime::burst && sampling.clock_fell()))
      steps::idle(pace.pause_seconds, idled);
  } while (true);
  Timing timing = sampling.timing();
  timing.throttling = throttling;
  return timing;
}

/// Up to two samples; `first` tells whether they are certainly slower.
Expected<bool> take_first(Stopwatch& stopwatch, Runnable& runnable, Sampling& first) {
  for (int i = 0; i < 2; ++i) {
    const auto taken = stopwatch.time_once(runnable, 1);
    if (!taken) return taken.failure();
    first.add(*taken);
    if (first.certainly_slower()) return true;
  }
  return false;
}

Expected<std::optional<Timing>> look_on(CudaDevice& device, Runnable& runnable, const MeasureOptions& options,
                                        Probe* probe) {
  if (auto launched = runnable.launch(); !launched) return launched.failure();  // loads lazily
  if (auto done = device.synchronize(); !done) return done.failure();
  Stopwatch stopwatch(device, options.l2, probe);
  Sampling first(options);
  const auto slower = take_first(stopwatch, runnable, first);
  if (!slower) return slower.failure();
  return *slower ? std::optional(first.timing()) : std::nullopt;
}

Expected<Timing> measure_on(CudaDevice& device, Runnable& runnable, const MeasureOptions& options, Probe* probe) {
  Stopwatch stopwatch(device, options.l2, probe);
  Sampling first(options);
  const auto slower = take_first(stopwatch, runnable, first);
  if (!slower) return slower.failure();
  if (*slower) return first.timing();
  const double estimate = first.timing().samples.back();
  double idled = 0;
  steps::idle(std::min(options.settle_seconds, pace_of(options.regime, estimate).settle_seconds), idled);
  if (options.regime == Regime::sustained) {
    Runnable* const alone[] = {&runnable};
    if (auto loaded = steps::load_until_settled(stopwatch, alone, estimate); !loaded) return loaded.failure();
  }
  const auto ms = steps::warm_up(stopwatch, runnable);
  if (!ms) return ms.failure();
  auto timing = sample(device, stopwatch, runnable, options, *ms, idled);
  if (!timing) return timing;
  timing->idle_seconds = idled;
  if (auto failure = steps::implausible(runnable, device.environment().device, *timing)) return *failure;
  if (auto failure = stopwatch.cheated(runnable, timing->ms.median)) return *failure;
  if (options.energy_windows > 0 && !timing->cut) {
    auto energy = steps::energy_of(device, runnable, timing->ms.median, options.energy_windows);
    if (!energy) return energy.failure();
    timing->energy = std::move(*energy);
  }
  return timing;
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

Expected<Timing> measure(Device& device, Runnable& runnable, const MeasureOptions& options, Probe* probe) {
  return steps::guarded<Timing>(device, [&](CudaDevice& cuda) { return measure_on(cuda, runnable, options, probe); });
}

Expected<std::optional<Timing>> look(Device& device, Runnable& runnable, const MeasureOptions& options, Probe* probe) {
  return steps::guarded<std::optional<Timing>>(
      device, [&](CudaDevice& cuda) { return look_on(cuda, runnable, options, probe); });
}

Expected<double> measure_prepare(Device& device, Runnable& runnable) {
  return steps::guarded<double>(device, [&](CudaDevice& cuda) { return prepare_on(cuda, runnable); });
}

}  // namespace tuner
