// A CUDA GPU as a Device. Only worker processes use it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "tuner/device/device.h"

namespace tuner {

class CudaDevice : public Device {
 public:
  virtual cudaStream_t stream() const = 0;
};

/// How many devices the driver shows (0 when there is no driver), without creating a context.
int cuda_device_count();
/// Opens device `index`. The Failure says what the driver said.
Expected<std::unique_ptr<CudaDevice>> open_cuda_device(int index);

/// Names call, file, line and error text; used through TUNER_CUDA.
std::string describe_cuda_error(cudaError_t error, const char* call, const char* file, int line);
void throw_on_cuda_error(cudaError_t error, const char* call, const char* file, int line);
#define TUNER_CUDA(call) ::tuner::throw_on_cuda_error((call), #call, __FILE__, __LINE__)

}  // namespace tuner
