#include "tuner/device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace tuner {
namespace {

// The part of NVML's stable ABI that is used here (NVIDIA NVML API reference).
using NvmlDevice = void*;
struct NvmlProcess {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
constexpr int kClockSm = 1;       // NVML_CLOCK_SM
constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED
constexpr int kNoPermission = 4;  // NVML_ERROR_NO_PERMISSION
// nvmlClocksThrottleReason*: what holds clocks below what was asked for, apart from idleness and application clocks.
constexpr std::array<std::pair<unsigned long long, const char*>, 5> kThrottleReasons{
    {{0x04, "the software power cap"},
     {0x08, "a hardware slowdown (power brake or temperature)"},
     {0x20, "the software thermal limit"},
     {0x40, "the hardware thermal limit"},
     {0x80, "the hardware power brake"}}};

std::string why(int code) {
  if (code == kNotSupported) return "not available: this GPU does not offer it";
  if (code == kNoPermission) return "not available: no permission";
  return code < 0 ? "not available: this NVML lacks the call" : fmt::format("not available: NVML error {}", code);
}

}  // namespace

/// libnvidia-ml.so.1, initialised; shut down and closed with this object.
struct GpuSensors::Library {
  Library() : handle(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle) initialised = call("nvmlInit_v2") == 0;
  }
  ~Library() {
    if (initialised) call("nvmlShutdown");
    if (handle) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// NVML's error code of `name` called with the arguments; 0 is success, -1 where there is no such function.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle, name));
    return function ? function(arguments...) : -1;
  }

  void* handle = nullptr;
  bool initialised = false;
};

GpuSensors::GpuSensors(const std::string& pci_bus_id) : library_(std::make_unique<Library>()) {
  if (!library_->handle)
    missing_ = "libnvidia-ml.so.1 was not found";
  else if (!library_->initialised)
    missing_ = "libnvidia-ml.so.1 does not initialise";
  else if (library_->call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device_) != 0)
    missing_ = "NVML does not know the GPU at " + pci_bus_id;
}

GpuSensors::~GpuSensors() = default;

std::optional<std::uint64_t> GpuSensors::energy_mj() const {
  unsigned long long mj = 0;
  if (!missing_.empty() || library_->call("nvmlDeviceGetTotalEnergyConsumption", device_, &mj) != 0)
    return std::nullopt;
  return mj;
}

std::uint64_t GpuSensors::throttling() const {
  unsigned long long reasons = 0;
  if (!missing_.empty() || library_->call("nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons) != 0)
    return 0;
  return reasons;
}

NvmlFacts GpuSensors::facts() const {
  NvmlFacts facts;
  facts.missing = missing_;
  if (!missing_.empty()) {
    facts.mig = facts.energy_counter = "not available: " + missing_;
    return facts;
  }
  const Library& nvml = *library_;
  std::array<char, 96> driver{};
  if (nvml.call("nvmlSystemGetDriverVersion", driver.data(), static_cast<unsigned>(driver.size())) == 0)
    facts.driver = driver.data();
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetPowerManagementLimit", device_, &value) == 0) facts.power_limit_w = value / 1000.0;
  if (nvml.call("nvmlDeviceGetClockInfo", device_, kClockSm, &value) == 0) facts.sm_clock_mhz_now = value;
  std::vector<NvmlProcess> processes(256);
  auto count = static_cast<unsigned>(processes.size());
  if (nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, processes.data()) == 0)
    for (unsigned i = 0; i < count && i < processes.size(); ++i, ++facts.processes)
      if (processes[i].pid != static_cast<unsigned>(getpid())) ++facts.other_processes;
  unsigned mig = 0, pending = 0;
  const int mig_code = nvml.call("nvmlDeviceGetMigMode", device_, &mig, &pending);
  facts.mig = mig_code == kNotSupported ? "not supported" : mig_code != 0 ? why(mig_code) : mig == 1 ? "on" : "off";
  unsigned long long energy = 0;
  const int energy_code = nvml.call("nvmlDeviceGetTotalEnergyConsumption", device_, &energy);
  facts.energy_counter = energy_code == 0 ? "available" : why(energy_code);

  if (facts.mig == "on")
    facts.warnings.emplace_back("MIG is on: this is a slice of the GPU, and its peaks are not the whole GPU's");
  for (const std::string& reason : throttling_in_words(throttling()))
    facts.warnings.push_back("clocks are held down by " + reason);
  if (facts.other_processes > 0)
    facts.warnings.push_back(fmt::format("{} other process{} on this GPU: times may be disturbed",
                                         facts.other_processes,
                                         facts.other_processes == 1 ? " computes" : "es compute"));
  return facts;
}

std::vector<std::string> throttling_in_words(std::uint64_t bits) {
  std::vector<std::string> words;
  for (const auto& [bit, text] : kThrottleReasons)
    if (bits & bit) words.emplace_back(text);
  return words;
}

}  // namespace tuner
