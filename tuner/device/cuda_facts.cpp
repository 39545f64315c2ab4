#include "tuner/device/cuda_facts.h"

#include <fmt/format.h>

#include <array>

#include "tuner/device/cuda_device.h"
#include "tuner/device/nvml.h"

namespace tuner {
namespace {

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  TUNER_CUDA(cudaDeviceGetAttribute(&value, name, device));
  return value;
}

/// 0 where the driver no longer answers (clock attributes are deprecated).
int attribute_or_zero(cudaDeviceAttr name, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, name, device) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

// NVIDIA's architecture white papers: dense rates of GV100, TU102, GA100, GA102, AD102, GH100, GB200, GB202, each
// checked against the data sheet's TFLOP/s over SMs times boost clock.
PipeRates pipe_rates(int major, int minor) {
  switch (major) {
    case 7:
      return {128, 0, 1024};
    case 8:
      if (minor == 0) return {128, 1024, 2048};
      if (minor == 7) return {256, 1024, 2048};
      return {256, 512, 1024};
    case 9:
      return {256, 2048, 4096};
    case 10:
      return {256, 4096, 8192};
    case 11:
    case 12:
      return {256, 512, 1024};
    default:
      return {256, 0, 0};
  }
}

std::string nvrtc_arch(int major, int minor) { return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""); }

DeviceFacts read_cuda_facts(int device) {
  cudaDeviceProp properties{};
  TUNER_CUDA(cudaGetDeviceProperties(&properties, device));
  DeviceFacts facts;
  facts.measured = true;
  facts.name = properties.name;
  facts.compute_major = properties.major;
  facts.compute_minor = properties.minor;
  facts.arch = nvrtc_arch(properties.major, properties.minor);
  facts.sm_count = properties.multiProcessorCount;
  facts.max_threads_per_block = properties.maxThreadsPerBlock;
  facts.max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  facts.max_blocks_per_sm = attribute(cudaDevAttrMaxBlocksPerMultiprocessor, device);
  facts.registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor, device);
  facts.shared_per_sm = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  facts.shared_per_block_optin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  facts.shared_reserved_per_block = attribute(cudaDevAttrReservedSharedMemoryPerBlock, device);
  facts.l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
  facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.sm_clock_mhz = attribute_or_zero(cudaDevAttrClockRate, device) / 1e3;
  const double memory_mhz = attribute_or_zero(cudaDevAttrMemoryClockRate, device) / 1e3;
  const double bus_bytes = attribute_or_zero(cudaDevAttrGlobalMemoryBusWidth, device) / 8.0;
  facts.memory_gbps = 2 * memory_mhz * bus_bytes / 1e3;  // two transfers a clock
  const PipeRates rates = pipe_rates(properties.major, properties.minor);
  const double clocks = facts.sm_count * facts.sm_clock_mhz * 1e6;
  facts.fp32_tflops = rates.fp32 * clocks / 1e12;
  facts.tf32_tflops = rates.tf32 * clocks / 1e12;
  facts.fp16_tflops = rates.fp16 * clocks / 1e12;
  return facts;
}

std::string pci_bus_id(int device) {
  std::array<char, 32> bus_id{};
  TUNER_CUDA(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  return bus_id.data();
}

Environment read_cuda_environment(int device) {
  Environment environment;
  environment.device = read_cuda_facts(device);
  cudaDeviceProp properties{};
  TUNER_CUDA(cudaGetDeviceProperties(&properties, device));
  environment.uuid = uuid_text(properties.uuid);
  int version = 0;
  TUNER_CUDA(cudaRuntimeGetVersion(&version));
  environment.cuda = version_text(version);

  const NvmlFacts nvml = GpuSensors(pci_bus_id(device)).facts();
  environment.driver = nvml.driver;
  environment.power_limit_w = nvml.power_limit_w;
  environment.sm_clock_mhz_now = nvml.sm_clock_mhz_now;
  environment.other_processes = nvml.other_processes;
  environment.mig = nvml.mig;
  environment.energy_counter = nvml.energy_counter;
  environment.warnings = nvml.warnings;
  if (!nvml.missing.empty())
    environment.warnings.push_back(nvml.missing + ": driver version, power limit and other processes are unknown");
  if (environment.driver.empty()) {
    TUNER_CUDA(cudaDriverGetVersion(&version));
    environment.driver = "CUDA " + version_text(version);
  }
  if (environment.device.sm_clock_mhz == 0 || environment.device.memory_gbps == 0)
    environment.warnings.emplace_back("the driver gives no clock rates: lower bounds of time are not checked");
  return environment;
}

}  // namespace tuner
