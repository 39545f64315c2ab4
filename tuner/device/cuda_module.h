// A loaded cubin whose kernels are launched on one stream.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "tuner/device/cuda_driver.h"
#include "tuner/device/device.h"

namespace tuner {

/// The device's context is current; `driver` and `device` outlive the module. Failure: what the driver said.
Expected<std::unique_ptr<Module>> load_cuda_module(const CudaDriver& driver, const DeviceFacts& device,
                                                   cudaStream_t stream, const CompiledUnit& unit);

}  // namespace tuner
