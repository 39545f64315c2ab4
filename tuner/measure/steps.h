// What timing one Runnable and timing several in turn have in common.
#pragma once

#include <span>

#include "tuner/measure/stopwatch.h"

namespace tuner::steps {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Idles, and adds what it idled to `total`.
void idle(double seconds, double& total);

/// Runs `body` on the CUDA device, with a Failure in place of exceptions that CUDA calls throw.
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

/// Faster than the device can be.
std::optional<Failure> implausible(const Runnable& runnable, const DeviceFacts& device, const Timing& timing);

/// Launches one at a time until their times agree; the last time, ms.
Expected<double> warm_up(Stopwatch& stopwatch, Runnable& runnable);

/// Sustained load: launches back to back until neither the time of a launch nor the clock moves any more.
Expected<bool> load_until_settled(Stopwatch& stopwatch, std::span<Runnable* const> runnables, double ms_a_round);

/// Energy of a launch of `ms` over windows of sustained load. Failure: NVML offers no counter, or it stands still.
Expected<Energy> energy_of(CudaDevice& device, Runnable& runnable, double ms, int windows);

}  // namespace tuner::steps
