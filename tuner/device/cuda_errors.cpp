#include <fmt/format.h>

#include <new>

#include "tuner/device/cuda_device.h"

namespace tuner {

std::string describe_cuda_error(cudaError_t error, const char* call, const char* file, int line) {
  return fmt::format("{}:{}: {}: {}: {}", file, line, call, cudaGetErrorName(error), cudaGetErrorString(error));
}

void throw_on_cuda_error(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: the next call must not find it
    throw std::bad_alloc();
  }
  throw CudaError(error, describe_cuda_error(error, call, file, line));
}

bool is_sticky_cuda_error(int code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace tuner
