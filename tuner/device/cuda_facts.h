// Facts and environment of a CUDA device, read without creating a context on it.
#pragma once

#include "tuner/core/device_facts.h"

namespace tuner {

/// Peaks are those of the pipes at the highest clock: what no kernel can exceed. Throws CudaError.
DeviceFacts read_cuda_facts(int device);
Environment read_cuda_environment(int device);
/// "0000:1b:00.0", by which NVML knows it.
std::string pci_bus_id(int device);

/// Operations an SM can retire a clock, dense: FP32 pipe, and the matrix unit with TF32 and FP16 operands (0: none).
/// Where one compute capability has parts of different rates, the highest.
struct PipeRates {
  int fp32 = 0;
  int tf32 = 0;
  int fp16 = 0;
};
PipeRates pipe_rates(int major, int minor);
/// "sm_90a" where the architecture has an accelerated form, else "sm_89".
std::string nvrtc_arch(int major, int minor);

}  // namespace tuner
