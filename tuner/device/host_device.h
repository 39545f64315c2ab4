// Host execution: kernels compiled by the system's C++ compiler run on the CPU, a fibre per thread, blocks over cores.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tuner/device/device.h"

namespace tuner {

struct HostOptions {
  std::uint64_t seed = 1;  // thread order, and when asynchronous operations complete
  int threads = 0;         // 0: one a core
};

std::unique_ptr<Device> make_host_device(const HostOptions& options);

/// The text that the host compiler gets for a unit: the host forms first, then the unit's source, then one entry a
/// kernel.
std::string host_translation_unit(const CompileUnit& unit);
/// A file of kernels/ as the host compiler needs it (`extern __shared__` arrays become the block's dynamic shared
/// memory).
std::string host_form_of_source(std::string_view content);

}  // namespace tuner
