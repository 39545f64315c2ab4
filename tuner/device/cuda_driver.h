// The driver functions that the runtime has no form of, found through the runtime: libcuda is never linked.
#pragma once

#include <cuda.h>

#include <string>

namespace tuner {

struct CudaDriver {
  decltype(&cuGetErrorName) get_error_name = nullptr;
  decltype(&cuGetErrorString) get_error_string = nullptr;
  decltype(&cuModuleLoadDataEx) module_load_data = nullptr;
  decltype(&cuModuleUnload) module_unload = nullptr;
  decltype(&cuModuleGetFunction) module_get_function = nullptr;
  decltype(&cuFuncGetAttribute) func_get_attribute = nullptr;
  decltype(&cuFuncSetAttribute) func_set_attribute = nullptr;
  decltype(&cuLaunchKernelEx) launch_kernel = nullptr;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy = nullptr;
  decltype(&cuMemsetD32Async) memset_words = nullptr;

  /// "CUDA_ERROR_INVALID_VALUE: invalid argument".
  std::string describe(CUresult result) const;
};

/// Throws CudaError naming the function that the driver lacks.
CudaDriver find_cuda_driver();

}  // namespace tuner
