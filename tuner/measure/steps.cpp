#include "tuner/measure/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace tuner::steps {
namespace {

constexpr double kWarmUpSeconds = 0.5;
constexpr double kLoadWindowMs = 100;
constexpr double kLoadSeconds = 3;

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void idle(double seconds, double& total) {
  if (seconds <= 0) return;
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  total += seconds_since(start);
}

std::optional<Failure> implausible(const Runnable& runnable, const DeviceFacts& device, const Timing& timing) {
  const double bound = lower_bound_ms(runnable.work(), device, timing.l2);
  if (timing.samples.empty() || timing.ms.median >= bound) return std::nullopt;
  return Failure{Outcome::implausible,
                 fmt::format("{}: median {:.4g} ms, but its operations and bytes need at least {:.4g} ms on {}",
                             runnable.name(), timing.ms.median, bound, device.name),
                 {}};
}

Expected<double> warm_up(Stopwatch& stopwatch, Runnable& runnable) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> times;
  do {
    const auto sample = stopwatch.time_once(runnable, 1);
    if (!sample) return sample.failure();
    times.push_back(sample->ms);
  } while (!settled(times) && seconds_since(start) < kWarmUpSeconds);
  return median(std::span(times).last(std::min<std::size_t>(3, times.size())));
}

Expected<bool> load_until_settled(Stopwatch& stopwatch, std::span<Runnable* const> runnables, double ms_a_round) {
  const auto start = std::chrono::steady_clock::now();
  const int rounds = std::max(1, static_cast<int>(kLoadWindowMs / std::max(ms_a_round, 1e-3)));
  std::vector<Sample> windows;
  while (!clock_settled(windows) && seconds_since(start) < kLoadSeconds) {
    for (Runnable* runnable : runnables)
      if (auto enqueued = stopwatch.enqueue(*runnable, rounds, ms_a_round); !enqueued) return enqueued;
    const auto samples = stopwatch.collect();
    if (!samples) return samples.failure();
    Sample window;
    for (const Sample& sample : *samples) {
      window.ms += sample.ms;
      window.mhz += sample.mhz / static_cast<double>(samples->size());
    }
    windows.push_back(window);
  }
  return true;
}

}  // namespace tuner::steps
