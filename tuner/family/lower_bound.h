// The fastest time that a device's theoretical limits allow for some work: a time below it is an error, not a record.
#pragma once

#include <algorithm>

#include "tuner/family/program.h"

namespace tuner {

/// In ms: the busiest pipe at its peak rate and, where L2 is cold, the bytes at the memory's peak rate, all
/// overlapping. A pipe or memory whose rate is unknown (0) does not count.
inline double lower_bound_ms(const Work& work, const DeviceFacts& device, bool cold_l2) {
  const auto ms = [](double amount, double per_second) { return per_second > 0 ? amount / per_second * 1e3 : 0.0; };
  return std::max({ms(work.fma_fp32, device.fp32_tflops * 1e12), ms(work.tensor_tf32, device.tf32_tflops * 1e12),
                   ms(work.tensor_fp16, device.fp16_tflops * 1e12),
                   cold_l2 ? ms(work.bytes, device.memory_gbps * 1e9) : 0.0});
}

}  // namespace tuner
