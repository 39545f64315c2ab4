#include "tuner/device/cuda_driver.h"

#include <fmt/format.h>

#include "tuner/device/cuda_device.h"

namespace tuner {
namespace {

/// The form of `name` as CUDA 12.0 has it: that of the oldest driver this program serves.
template <class Function>
void find(const char* name, Function& function) {
  constexpr unsigned kVersion = 12000;
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  TUNER_CUDA(cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found));
#else
  static_cast<void>(kVersion);
  TUNER_CUDA(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || !address)
    throw CudaError(cudaErrorSymbolNotFound,
                    fmt::format("the NVIDIA driver has no {}: it is older than CUDA 12", name));
  function = reinterpret_cast<Function>(address);
}

}  // namespace

CudaDriver find_cuda_driver() {
  CudaDriver driver;
  find("cuGetErrorName", driver.get_error_name);
  find("cuGetErrorString", driver.get_error_string);
  find("cuModuleLoadDataEx", driver.module_load_data);
  find("cuModuleUnload", driver.module_unload);
  find("cuModuleGetFunction", driver.module_get_function);
  find("cuFuncGetAttribute", driver.func_get_attribute);
  find("cuFuncSetAttribute", driver.func_set_attribute);
  find("cuLaunchKernelEx", driver.launch_kernel);
  find("cuOccupancyMaxActiveBlocksPerMultiprocessor", driver.occupancy);
  find("cuMemsetD32Async", driver.memset_words);
  return driver;
}

std::string CudaDriver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  get_error_name(result, &name);
  get_error_string(result, &text);
  return fmt::format("{}: {}", name ? name : "unknown CUDA error", text ? text : std::to_string(result).c_str());
}

}  // namespace tuner
