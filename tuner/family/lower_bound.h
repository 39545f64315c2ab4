// The fastest time that a device's theoretical limits allow for some work: a time below it is an error, not a record.
#pragma once

#include <algorithm>

#include "tuner/family/program.h"

namespace tuner {

/// In ms: the busiest of the FP32 pipe, the matrix unit (all operand types together), shared memory and, where L2 is
/// cold, device memory, each at its peak rate and all overlapping. What was written may still lie in L2 at the end, so
/// that as many bytes do not count. A rate that is unknown (0) sets no bound.
inline double lower_bound_ms(const Work& work, const DeviceFacts& device, bool cold_l2) {
  const auto ms = [](double amount, double per_second) { return per_second > 0 ? amount / per_second * 1e3 : 0.0; };
  const double matrix =
      ms(work.tensor_tf32, device.tf32_tflops * 1e12) + ms(work.tensor_fp16, device.fp16_tflops * 1e12);
  const double bytes = cold_l2 ? std::max(0.0, work.bytes - static_cast<double>(device.l2_bytes)) : 0.0;
  const double shared = ms(work.shared_accesses, device.sm_count * device.sm_clock_mhz * 1e6);
  return std::max({ms(work.fma_fp32, device.fp32_tflops * 1e12), matrix, shared, ms(bytes, device.memory_gbps * 1e9)});
}

}  // namespace tuner
