// Events around launches on a CUDA device's stream, with L2 as asked for.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "tuner/device/cuda_device.h"
#include "tuner/measure/measure.h"
#include "tuner/measure/plan.h"
#include "tuner/measure/probe.h"

namespace tuner {

class Event {
 public:
  Event() { TUNER_CUDA(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Enqueues timed launches and reads their times once they are done. CudaError from any call.
class Stopwatch {
 public:
  /// Sets no L2 aside for persisting lines from here on: they would survive the flush. `probe` may be null: then clocks
  /// are unknown and no batch is held.
  Stopwatch(CudaDevice& device, L2 l2, Probe* probe);

  /// Enqueues one sample: L2 flushed (cold), event, `launches` calls, event. The first of a batch also closes the gate
  /// behind which the batch is enqueued, where there is one; it opens once the stream has enough to do. `expected_ms`
  /// is what a launch takes, about.
  Expected<bool> enqueue(Runnable& runnable, int launches, double expected_ms);
  /// Opens the gate, waits, and returns the samples enqueued since the last call, in order.
  Expected<std::vector<Sample>> collect();
  /// One sample, waited for, not held. Also notes for how long the device stays busy after its stream.
  Expected<Sample> time_once(Runnable& runnable, int launches);

  /// Forgets what was noted about an earlier Runnable.
  void begin_runnable() { least_busy_ms_.reset(); }
  /// What makes its times worthless, or nothing: work outside the timed stream, L2 set aside for persisting lines.
  /// `launch_ms`: what a launch takes.
  std::optional<Failure> cheated(const Runnable& runnable, double launch_ms) const;

 private:
  struct Bracket {
    Event start, stop;
    int launches = 1;
    std::size_t after_stamp = 0;
  };
  Expected<bool> enqueue_sample(Runnable& runnable, int launches, double expected_ms);
  Expected<std::vector<Sample>> read();

  CudaDevice& device_;
  L2 l2_;
  Probe* probe_;
  bool persisting_ = false;        // the device can set L2 aside
  std::unique_ptr<Buffer> flush_;  // null when warm
  std::vector<std::unique_ptr<Bracket>> brackets_;
  std::size_t used_ = 0;
  int held_launches_ = 0;
  int stamps_ = 0;
  double since_stamp_ms_ = 0;
  bool may_hold_ = true;  // no launch so far waited for the stream
  double idle_ms_ = 0;    // a device-wide wait with nothing to wait for
  std::optional<double> least_busy_ms_;
};

}  // namespace tuner
