// Energy of a launch by NVML's counter, which counts millijoules and moves every few tens of milliseconds.
#include <chrono>
#include <thread>

#include "tuner/measure/steps.h"

namespace tuner::steps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeadSeconds = 0.3;    // load before the first window
constexpr double kWindowSeconds = 0.5;  // at least, between two movements of the counter
constexpr double kBatchMs = 5;
constexpr double kMostSeconds = 3;  // a window without a movement of the counter by then: it stands still
constexpr auto kPoll = std::chrono::microseconds(500);

/// Keeps the stream busy: two batches of launches are always enqueued, and the GPU's time for them is known.
class Load {
 public:
  Load(CudaDevice& device, Runnable& runnable, double ms)
      : device_(device), runnable_(runnable), launches_(std::max(1, static_cast<int>(kBatchMs / std::max(ms, 1e-3)))) {
    TUNER_CUDA(cudaEventRecord(first_.get(), device_.stream()));
  }

  Expected<bool> feed() {
    Event& oldest = done_[batches_ % 2];
    if (batches_ >= 2) {
      const cudaError_t state = cudaEventQuery(oldest.get());
      if (state == cudaErrorNotReady) return true;
      TUNER_CUDA(state);
    }
    for (int i = 0; i < launches_; ++i)
      if (auto launched = runnable_.launch(); !launched) return launched;
    TUNER_CUDA(cudaEventRecord(oldest.get(), device_.stream()));
    ++batches_;
    return true;
  }

  /// Waits; ms a launch, on average over everything that was fed.
  Expected<double> finish() {
    const Event last;
    TUNER_CUDA(cudaEventRecord(last.get(), device_.stream()));
    if (auto done = device_.synchronize(); !done) return done.failure();
    float ms = 0;
    TUNER_CUDA(cudaEventElapsedTime(&ms, first_.get(), last.get()));
    return static_cast<double>(ms) / (batches_ * launches_);
  }

 private:
  CudaDevice& device_;
  Runnable& runnable_;
  int launches_;
  int batches_ = 0;
  Event first_, done_[2];
};

}  // namespace

Expected<Energy> energy_of(CudaDevice& device, Runnable& runnable, double ms, int windows) {
  const auto none = [&](const char* why) { return Failure{Outcome::unproven, why, {}}; };
  auto counter = device.sensors().energy_mj();
  if (!counter) return none("NVML offers no energy counter");
  Load load(device, runnable, ms);
  const auto start = Clock::now();
  std::optional<Clock::time_point> window;  // began at a movement of the counter
  std::uint64_t before = 0;
  std::vector<double> watts;
  while (static_cast<int>(watts.size()) < windows) {
    if (auto fed = load.feed(); !fed) return fed.failure();
    const auto now = device.sensors().energy_mj();
    const auto at = Clock::now();
    if (!now) return none("NVML's energy counter no longer answers");
    const bool moved = *now != *counter;
    counter = now;
    const double elapsed = std::chrono::duration<double>(at - window.value_or(start)).count();
    if (moved && elapsed >= (window ? kWindowSeconds : kLeadSeconds)) {
      if (window) watts.push_back(static_cast<double>(*now - before) / 1e3 / elapsed);
      window = at;
      before = *now;
    } else if (elapsed > kMostSeconds) {
      load.finish();
      return none("NVML's energy counter stands still");
    }
    std::this_thread::sleep_for(kPoll);
  }
  const auto ms_a_launch = load.finish();
  if (!ms_a_launch) return ms_a_launch.failure();
  Energy energy;
  for (const double watt : watts) energy.samples.push_back(watt * *ms_a_launch);
  energy.mj = median_interval(energy.samples);
  return energy;
}

}  // namespace tuner::steps
