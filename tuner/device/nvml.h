// What only NVML knows about a GPU. The library is loaded at run time; where it is missing, that is all that is said.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tuner {

struct NvmlFacts {
  std::string missing;  // why nothing below is known; empty when it is
  std::string driver;   // "580.95.05"
  double power_limit_w = 0;
  double sm_clock_mhz_now = 0;
  int processes = 0;                  // with a compute context on this GPU, this one among them if it has one
  int other_processes = 0;            // the same without this process, as far as NVML's process ids tell
  std::string mig;                    // "off", "on", "not supported", or "not available: why"
  std::string energy_counter;         // "available", or "not available: why"
  std::vector<std::string> warnings;  // MIG, clocks held down, ...
};

/// One GPU's readings, for as long as the object lives. Not for several threads.
class GpuSensors {
 public:
  /// `pci_bus_id` as cudaDeviceGetPCIBusId gives it: "0000:1b:00.0".
  explicit GpuSensors(const std::string& pci_bus_id);
  ~GpuSensors();
  GpuSensors(const GpuSensors&) = delete;
  GpuSensors& operator=(const GpuSensors&) = delete;

  /// Why nothing is known; empty where NVML answers.
  const std::string& missing() const { return missing_; }
  NvmlFacts facts() const;
  /// Energy since the driver was loaded, millijoules; nothing where the GPU or the permissions offer no counter.
  std::optional<std::uint64_t> energy_mj() const;
  /// What holds clocks down now, as bits for throttling_in_words; 0 where unknown.
  std::uint64_t throttling() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  void* device_ = nullptr;
  std::string missing_;
};

/// "the software power cap", ... for each bit that holds clocks below what was asked for; idleness is none.
std::vector<std::string> throttling_in_words(std::uint64_t bits);

}  // namespace tuner
