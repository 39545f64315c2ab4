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
constexpr int kClockSm = 1;  // NVML_CLOCK_SM
// nvmlClocksThrottleReason*: what holds clocks below what was asked for, apart from idleness and application clocks.
constexpr std::array<std::pair<unsigned long long, const char*>, 5> kThrottleReasons{
    {{0x04, "the software power cap"},
     {0x08, "a hardware slowdown (power brake or temperature)"},
     {0x20, "the software thermal limit"},
     {0x40, "the hardware thermal limit"},
     {0x80, "the hardware power brake"}}};

/// libnvidia-ml.so.1, initialised; shut down and closed with this object.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    const auto init = find<int (*)()>("nvmlInit_v2");
    initialised_ = init && init() == 0;
  }
  ~Nvml() {
    if (initialised_)
      if (const auto shutdown = find<int (*)()>("nvmlShutdown")) shutdown();
    if (library_) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool loaded() const { return library_; }
  bool initialised() const { return initialised_; }

  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  /// Calls `name` with the arguments; false where the function is missing or fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto function = find<int (*)(Arguments...)>(name);
    return function && function(arguments...) == 0;
  }

 private:
  void* library_ = nullptr;
  bool initialised_ = false;
};

int count_other_processes(const Nvml& nvml, NvmlDevice device) {
  std::vector<NvmlProcess> processes(256);
  auto count = static_cast<unsigned>(processes.size());
  if (!nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, processes.data())) return 0;
  int others = 0;
  for (unsigned i = 0; i < count && i < processes.size(); ++i)
    if (processes[i].pid != static_cast<unsigned>(getpid())) ++others;
  return others;
}

std::vector<std::string> warnings_of(const Nvml& nvml, NvmlDevice device, int other_processes) {
  std::vector<std::string> warnings;
  unsigned mig = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &mig, &pending) && mig == 1)
    warnings.emplace_back("MIG is on: this is a slice of the GPU, and its peaks are not the whole GPU's");
  unsigned long long reasons = 0;
  if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons))
    for (const auto& [bit, text] : kThrottleReasons)
      if (reasons & bit) warnings.push_back(fmt::format("clocks are held down by {}", text));
  if (other_processes > 0)
    warnings.push_back(fmt::format("{} other process{} on this GPU: times may be disturbed", other_processes,
                                   other_processes == 1 ? " computes" : "es compute"));
  return warnings;
}

}  // namespace

NvmlFacts read_nvml(const std::string& pci_bus_id) {
  NvmlFacts facts;
  const Nvml nvml;
  if (!nvml.initialised()) {
    facts.missing = nvml.loaded() ? "libnvidia-ml.so.1 does not initialise" : "libnvidia-ml.so.1 was not found";
    return facts;
  }
  std::array<char, 96> driver{};
  if (nvml.call("nvmlSystemGetDriverVersion", driver.data(), static_cast<unsigned>(driver.size())))
    facts.driver = driver.data();
  NvmlDevice device = nullptr;
  if (!nvml.call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device)) {
    facts.missing = "NVML does not know the GPU at " + pci_bus_id;
    return facts;
  }
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetPowerManagementLimit", device, &value)) facts.power_limit_w = value / 1000.0;
  if (nvml.call("nvmlDeviceGetClockInfo", device, kClockSm, &value)) facts.sm_clock_mhz_now = value;
  facts.other_processes = count_other_processes(nvml, device);
  facts.warnings = warnings_of(nvml, device, facts.other_processes);
  return facts;
}

}  // namespace tuner
