#include "tuner/device/cuda_module.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "tuner/device/cuda_device.h"

namespace tuner {
namespace {

class CudaModule : public Module {
 public:
  CudaModule(const CudaDriver& driver, const DeviceFacts& device, cudaStream_t stream, const CompiledUnit& unit,
             CUmodule module)
      : driver_(driver), device_(device), stream_(stream), unit_(unit), module_(module) {}
  ~CudaModule() override { driver_.module_unload(module_); }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  Expected<bool> launch(const Launch& launch, const ct1d::RunArguments& arguments) override {
    return launch_with(launch, &arguments, sizeof arguments);
  }
  Expected<bool> launch(const Launch& launch, const ct1d::PrepareArguments& arguments) override {
    return launch_with(launch, &arguments, sizeof arguments);
  }

  Expected<bool> launch_with(const Launch& launch, const void* arguments, std::size_t) override {
    const auto kernel = ready(launch);
    if (!kernel) return kernel.failure();
    const ct1d::LaunchShape& shape = launch.shape;
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = shape.cluster_x;
    cluster.value.clusterDim.y = 1;
    cluster.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = shape.grid_x;
    config.gridDimY = shape.grid_y;
    config.gridDimZ = shape.grid_z;
    config.blockDimX = shape.block_x;
    config.blockDimY = shape.block_y;
    config.blockDimZ = shape.block_z;
    config.sharedMemBytes = shape.shared_bytes;
    config.hStream = stream_;
    config.attrs = &cluster;
    config.numAttrs = shape.cluster_x > 1 ? 1 : 0;
    std::array<void*, 1> parameters{const_cast<void*>(arguments)};
    const CUresult result = driver_.launch_kernel(&config, *kernel, parameters.data(), nullptr);
    if (result == CUDA_SUCCESS) return true;
    return failed(result, fmt::format("launching {} with grid {}x{}x{}, block {}x{}x{}, {} bytes of shared memory, "
                                      "cluster {}",
                                      launch.kernel, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
                                      shape.block_y, shape.block_z, shape.shared_bytes, shape.cluster_x));
  }

  double occupancy(const Launch& launch) override {
    const auto kernel = ready(launch);
    if (!kernel || device_.max_threads_per_sm == 0) return 0;
    const int threads = static_cast<int>(launch.shape.block_x * launch.shape.block_y * launch.shape.block_z);
    int blocks = 0;
    if (driver_.occupancy(&blocks, *kernel, threads, launch.shape.shared_bytes) != CUDA_SUCCESS) return 0;
    return static_cast<double>(blocks) * threads / device_.max_threads_per_sm;
  }

 private:
  struct Kernel {
    CUfunction function = nullptr;
    unsigned dynamic_bytes = 0;  // that it may use as set so far
  };

  /// The kernel, allowed to use as much dynamic shared memory as the launch asks for.
  Expected<CUfunction> ready(const Launch& launch) {
    auto found = kernels_.find(launch.kernel);
    if (found == kernels_.end()) {
      const std::string* symbol = unit_.symbol(launch.kernel);
      if (!symbol) return Failure{Outcome::launch_failed, "the compiled unit has no kernel " + launch.kernel, {}};
      Kernel kernel;
      if (const CUresult result = driver_.module_get_function(&kernel.function, module_, symbol->c_str()))
        return failed(result, "finding " + *symbol);
      found = kernels_.emplace(launch.kernel, kernel).first;
    }
    Kernel& kernel = found->second;
    // Raised whatever the size: static + dynamic may pass 48 KB although dynamic alone does not.
    if (launch.shape.shared_bytes > kernel.dynamic_bytes) {
      int static_bytes = 0;
      driver_.func_get_attribute(&static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.function);
      const std::int64_t wanted = std::int64_t{static_bytes} + launch.shape.shared_bytes;
      if (wanted > device_.shared_per_block_optin)
        return Failure{
            Outcome::launch_failed,
            fmt::format("{} static + {} dynamic bytes of shared memory; a block on {} has at most {}", static_bytes,
                        launch.shape.shared_bytes, device_.name, device_.shared_per_block_optin),
            {}};
      if (const CUresult result =
              driver_.func_set_attribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(launch.shape.shared_bytes)))
        return failed(result, fmt::format("allowing {} {} bytes of dynamic shared memory", launch.kernel,
                                          launch.shape.shared_bytes));
      kernel.dynamic_bytes = launch.shape.shared_bytes;
    }
    if (launch.shape.cluster_x > 8)  // 8 is what every device with clusters can do
      driver_.func_set_attribute(kernel.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return kernel.function;
  }

  Failure failed(CUresult result, const std::string& what) const {
    const auto outcome = is_sticky_cuda_error(result) ? Outcome::crashed : Outcome::launch_failed;
    return {outcome, fmt::format("{}: {}", what, driver_.describe(result)), {}};
  }

  const CudaDriver& driver_;
  const DeviceFacts& device_;
  cudaStream_t stream_;
  CompiledUnit unit_;
  CUmodule module_;
  std::unordered_map<std::string, Kernel> kernels_;
};

}  // namespace

Expected<std::unique_ptr<Module>> load_cuda_module(const CudaDriver& driver, const DeviceFacts& device,
                                                   cudaStream_t stream, const CompiledUnit& unit) {
  std::ifstream file(unit.file, std::ios::binary);
  const std::string cubin{std::istreambuf_iterator<char>(file), {}};
  if (cubin.empty()) return Failure{Outcome::launch_failed, "cannot read " + unit.file.string(), {}};
  std::array<char, 4096> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const CUresult result = driver.module_load_data(&module, cubin.data(), options.size(), options.data(), values.data());
  if (result != CUDA_SUCCESS) {
    const auto outcome = is_sticky_cuda_error(result) ? Outcome::crashed : Outcome::launch_failed;
    return Failure{outcome, fmt::format("loading {}: {}", unit.file.string(), driver.describe(result)), log.data()};
  }
  return std::unique_ptr<Module>(std::make_unique<CudaModule>(driver, device, stream, unit, module));
}

}  // namespace tuner
