// In-kernel readings of the SM clock, and the gate behind which a batch of launches is enqueued. NVML's clocks are too
// coarse and too late for either.
#pragma once

#include <memory>
#include <vector>

#include "tuner/device/cuda_device.h"
#include "tuner/measure/probe_kernels.cuh"

namespace tuner {

class Probe {
 public:
  /// `unit` is measure_unit() compiled for the device, which outlives the Probe.
  static Expected<std::unique_ptr<Probe>> load(CudaDevice& device, const CompiledUnit& unit);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// Enqueues a reading; how many there are since the last clocks(). At the limit none is added.
  Expected<int> stamp();
  /// The stream must be idle. Mean SM clock between each reading and the next, MHz (0: unknown); forgets the readings.
  std::vector<double> clocks();

  /// Enqueues the gate: what is enqueued after it waits for release(), or for a tenth of a second.
  Expected<bool> hold();
  void release();
  /// Whether the last gate opened by itself: the host waited for the stream before it was done enqueueing.
  bool opened_by_itself() const;

 private:
  Probe(CudaDevice& device, std::unique_ptr<Module> module);

  CudaDevice& device_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Buffer> readings_;
  volatile unsigned* gate_ = nullptr;  // pinned: [0] released, [1] timed out
  unsigned ticket_ = 0;
  int stamps_ = 0;
};

/// MHz by one SM's readings; 0 where one is missing or time stood still.
double mean_mhz(const ct1d::probe::Reading& from, const ct1d::probe::Reading& to);

}  // namespace tuner
