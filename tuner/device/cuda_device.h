// A CUDA GPU as a Device. Only worker processes use it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tuner/device/device.h"
#include "tuner/device/nvml.h"

namespace tuner {

class CudaDevice : public Device {
 public:
  virtual cudaStream_t stream() const = 0;
  virtual const GpuSensors& sensors() const = 0;
};

/// How many devices the driver shows (0 when there is no driver), without creating a context.
int cuda_device_count();
/// Why no device can be used although there is a driver or an NVIDIA device node; empty otherwise (also without
/// either).
std::string cuda_unusable_reason();
/// Opens device `index`. The Failure says what the driver said.
Expected<std::unique_ptr<CudaDevice>> open_cuda_device(int index);

/// A CUDA call failed; `code` is the runtime's or the driver's number (they agree).
class CudaError : public std::runtime_error {
 public:
  CudaError(int error_code, const std::string& what) : std::runtime_error(what), code(error_code) {}
  const int code;
};
/// Whether the error has taken the context down (illegal address and the like): only a new process helps.
bool is_sticky_cuda_error(int code);

/// Names call, file, line and error text; used through TUNER_CUDA.
std::string describe_cuda_error(cudaError_t error, const char* call, const char* file, int line);
/// CudaError, or std::bad_alloc when the device is out of memory.
void throw_on_cuda_error(cudaError_t error, const char* call, const char* file, int line);
#define TUNER_CUDA(call) ::tuner::throw_on_cuda_error((call), #call, __FILE__, __LINE__)

}  // namespace tuner
