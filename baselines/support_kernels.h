// Launches of the helper kernels (kernels.cuh) on a device's stream.
#pragma once

#include <memory>

#include "baselines/elements.cuh"
#include "tuner/core/accuracy.h"
#include "tuner/device/device.h"

namespace tuner {

class SupportKernels {
 public:
  static Expected<std::shared_ptr<SupportKernels>> load(Device& device, const CompiledUnit& unit);

  Expected<bool> permute(Element element, const ct1d::baseline::PermuteArguments& arguments);
  Expected<bool> fill(Element element, const ct1d::baseline::FillArguments& arguments);
  Expected<bool> add_bias(Element element, const ct1d::baseline::AddBiasArguments& arguments);
  Expected<bool> gather(Element element, const ct1d::baseline::GatherArguments& arguments);

 private:
  explicit SupportKernels(std::unique_ptr<Module> module) : module_(std::move(module)) {}

  std::unique_ptr<Module> module_;
};

/// Device memory that routes use one after another: grown by doubling, what was handed out stays valid.
class SharedWorkspace {
 public:
  explicit SharedWorkspace(Device& device, std::size_t limit) : device_(device), limit_(limit) {}
  /// At least `bytes`. Throws std::bad_alloc.
  std::shared_ptr<Buffer> request(std::size_t bytes);

 private:
  Device& device_;
  std::size_t limit_;
  std::shared_ptr<Buffer> current_;
};

}  // namespace tuner
