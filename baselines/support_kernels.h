// Launches of the helper kernels (kernels.cuh) on a device's stream.
#pragma once

#include <memory>

#include "baselines/elements.cuh"
#include "baselines/transpose.cuh"
#include "tuner/core/accuracy.h"
#include "tuner/device/device.h"

namespace tuner {

class SupportKernels {
 public:
  /// A contiguous tensor that a transposition reads.
  struct Rows {
    const void* data = nullptr;
    std::int64_t batches = 0, channels = 0, length = 0;
  };

  static Expected<std::shared_ptr<SupportKernels>> load(Device& device, const CompiledUnit& unit);

  Expected<bool> permute(Element element, const ct1d::baseline::PermuteArguments& arguments);
  Expected<bool> fill(Element element, const ct1d::baseline::FillArguments& arguments);
  /// Bias of every channel into a contiguous channels-last y of `count` elements.
  Expected<bool> fill_last(Element element, void* y, const void* bias, std::int64_t channels, std::int64_t count);
  /// (batches, channels, length) to (batches, length, channels) and back; `bias` with fp32 elements only, else null.
  Expected<bool> to_channels_last(Element element, const Rows& from, void* to);
  Expected<bool> to_channels_first(Element element, const Rows& from, void* to, const void* bias);
  Expected<bool> add_bias(Element element, const ct1d::baseline::AddBiasArguments& arguments);
  Expected<bool> gather(Element element, const ct1d::baseline::GatherArguments& arguments);

 private:
  explicit SupportKernels(std::unique_ptr<Module> module) : module_(std::move(module)) {}

  std::unique_ptr<Module> module_;
};

/// Device memory that routes use one after another: grown by doubling up to the limit. What was handed out stays valid;
/// it is freed before more is taken where nobody holds it any longer.
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
