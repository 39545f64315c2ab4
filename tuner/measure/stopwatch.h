// Events around launches on a CUDA device's stream, with L2 as asked for.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "tuner/device/cuda_device.h"
#include "tuner/measure/measure.h"

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
  Stopwatch(CudaDevice& device, L2 l2);

  /// Enqueues one sample: L2 flushed (cold), event, `launches` calls, event.
  Expected<bool> enqueue(Runnable& runnable, int launches);
  /// Waits, and returns the samples enqueued since the last call: ms per launch, in order.
  Expected<std::vector<double>> collect();
  /// One sample, waited for.
  Expected<double> time_once(Runnable& runnable, int launches);

 private:
  struct Sample {
    Event start, stop;
    int launches = 1;
  };

  CudaDevice& device_;
  L2 l2_;
  std::unique_ptr<Buffer> flush_;  // null when warm
  std::vector<std::unique_ptr<Sample>> samples_;
  std::size_t used_ = 0;
};

}  // namespace tuner
