#include "tuner/device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "tuner/device/cuda_driver.h"
#include "tuner/device/cuda_facts.h"
#include "tuner/device/cuda_module.h"

namespace tuner {
namespace {

constexpr unsigned char kGuardByte = 0xCB;

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(const CudaDriver& driver, cudaStream_t stream, std::size_t bytes)
      : driver_(driver), stream_(stream), size_(bytes) {
    TUNER_CUDA(cudaMalloc(reinterpret_cast<void**>(&base_), size_ + 2 * kGuardBytes));
    try {
      write_guards();
    } catch (...) {
      cudaFree(base_);
      throw;
    }
  }
  ~CudaBuffer() override { cudaFree(base_); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  void* data() override { return base_ + kGuardBytes; }
  std::size_t size() const override { return size_; }

  void fill(std::uint32_t word) override {
    const auto address = reinterpret_cast<CUdeviceptr>(data());
    if (const CUresult result = size_ >= 4 ? driver_.memset_words(address, word, size_ / 4, stream_) : CUDA_SUCCESS)
      throw CudaError(result, "filling device memory: " + driver_.describe(result));
    if (size_ % 4 != 0) upload(&word, size_ % 4, size_ - size_ % 4);
  }

  void upload(const void* source, std::size_t bytes, std::size_t offset) override {
    TUNER_CUDA(cudaMemcpyAsync(base_ + kGuardBytes + offset, source, bytes, cudaMemcpyHostToDevice, stream_));
    TUNER_CUDA(cudaStreamSynchronize(stream_));
  }

  void download(void* target, std::size_t bytes, std::size_t offset) override {
    TUNER_CUDA(cudaMemcpyAsync(target, base_ + kGuardBytes + offset, bytes, cudaMemcpyDeviceToHost, stream_));
    TUNER_CUDA(cudaStreamSynchronize(stream_));
  }

  std::size_t guard_violations() override {
    std::array<unsigned char, 2 * kGuardBytes> bands;
    TUNER_CUDA(cudaMemcpyAsync(bands.data(), base_, kGuardBytes, cudaMemcpyDeviceToHost, stream_));
    TUNER_CUDA(cudaMemcpyAsync(bands.data() + kGuardBytes, base_ + kGuardBytes + size_, kGuardBytes,
                               cudaMemcpyDeviceToHost, stream_));
    TUNER_CUDA(cudaStreamSynchronize(stream_));
    const auto intact = std::count(bands.begin(), bands.end(), kGuardByte);
    const std::size_t violated = bands.size() - static_cast<std::size_t>(intact);
    if (violated > 0) write_guards();
    return violated;
  }

 private:
  void write_guards() {
    TUNER_CUDA(cudaMemsetAsync(base_, kGuardByte, kGuardBytes, stream_));
    TUNER_CUDA(cudaMemsetAsync(base_ + kGuardBytes + size_, kGuardByte, kGuardBytes, stream_));
  }

  const CudaDriver& driver_;
  cudaStream_t stream_;
  std::size_t size_;
  unsigned char* base_ = nullptr;
};

class OpenedCudaDevice : public CudaDevice {
 public:
  explicit OpenedCudaDevice(int index) : environment_(read_cuda_environment(index)), sensors_(pci_bus_id(index)) {
    TUNER_CUDA(cudaSetDevice(index));
    TUNER_CUDA(cudaFree(nullptr));  // makes the context
    driver_ = find_cuda_driver();
    TUNER_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~OpenedCudaDevice() override { cudaStreamDestroy(stream_); }
  OpenedCudaDevice(const OpenedCudaDevice&) = delete;
  OpenedCudaDevice& operator=(const OpenedCudaDevice&) = delete;

  const Environment& environment() const override { return environment_; }
  bool is_cuda() const override { return true; }
  cudaStream_t stream() const override { return stream_; }
  const GpuSensors& sensors() const override { return sensors_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<CudaBuffer>(driver_, stream_, bytes);
  }

  Expected<std::unique_ptr<Module>> load(const CompiledUnit& unit) override {
    return load_cuda_module(driver_, environment_.device, stream_, unit);
  }

  Expected<bool> synchronize() override {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) {
      progress();
      return true;
    }
    cudaGetLastError();
    return Failure{is_sticky_cuda_error(error) ? Outcome::crashed : Outcome::launch_failed,
                   fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error)),
                   {}};
  }

 private:
  Environment environment_;
  GpuSensors sensors_;
  CudaDriver driver_;
  cudaStream_t stream_ = nullptr;
};

bool device_node_exists() {
  std::error_code ignored;
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl"})
    if (std::filesystem::exists(path, ignored)) return true;
  return false;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::string cuda_unusable_reason() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  int driver = 0;  // stays 0 where there is no driver
  const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  if (error == cudaErrorNoDevice || (!has_driver && !device_node_exists())) return {};
  const std::string what = fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error));
  if (!has_driver) return "there is an NVIDIA device node, but libcuda.so.1 was not found or does not load: " + what;
  return fmt::format("the driver serves CUDA {}.{}: {}", driver / 1000, driver % 1000 / 10, what);
}

Expected<std::unique_ptr<CudaDevice>> open_cuda_device(int index) {
  const int count = cuda_device_count();
  if (index < 0 || index >= count) {
    const std::string unusable = cuda_unusable_reason();
    return Failure{Outcome::launch_failed,
                   unusable.empty() ? fmt::format("there is no CUDA device {}: {} visible", index, count) : unusable,
                   {}};
  }
  try {
    return std::unique_ptr<CudaDevice>(std::make_unique<OpenedCudaDevice>(index));
  } catch (const std::bad_alloc&) {
    return Failure{Outcome::launch_failed, fmt::format("CUDA device {} has no memory left for a context", index), {}};
  } catch (const CudaError& error) {
    return Failure{Outcome::launch_failed, fmt::format("CUDA device {}: {}", index, error.what()), {}};
  }
}

}  // namespace tuner
