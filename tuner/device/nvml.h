// What only NVML knows about a GPU. The library is loaded at run time; where it is missing, that is all that is said.
#pragma once

#include <string>
#include <vector>

namespace tuner {

struct NvmlFacts {
  std::string missing;  // why nothing below is known; empty when it is
  std::string driver;   // "580.95.05"
  double power_limit_w = 0;
  double sm_clock_mhz_now = 0;
  int other_processes = 0;            // with a compute context on this GPU, without this process
  std::vector<std::string> warnings;  // MIG, clocks held down, ...
};

/// `pci_bus_id` as cudaDeviceGetPCIBusId gives it: "0000:1b:00.0".
NvmlFacts read_nvml(const std::string& pci_bus_id);

}  // namespace tuner
