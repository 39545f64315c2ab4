// A Device over ordinary memory, for tests: launches call functions.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "tuner/device/device.h"

namespace tuner::testing {

class MemoryBuffer : public Buffer {
 public:
  explicit MemoryBuffer(std::size_t bytes) : size_(bytes), storage_(bytes + 2 * kGuardBytes, std::byte{0xCB}) {}
  void* data() override { return storage_.data() + kGuardBytes; }
  std::size_t size() const override { return size_; }
  void fill(std::uint32_t word) override {
    for (std::size_t i = 0; i < size_; ++i)
      storage_[kGuardBytes + i] = static_cast<std::byte>(word >> (8 * (i % 4)) & 0xff);
  }
  void upload(const void* source, std::size_t bytes, std::size_t offset) override {
    if (bytes > 0) std::memcpy(storage_.data() + kGuardBytes + offset, source, bytes);
  }
  void download(void* target, std::size_t bytes, std::size_t offset) override {
    if (bytes > 0) std::memcpy(target, storage_.data() + kGuardBytes + offset, bytes);
  }
  std::size_t guard_violations() override {
    std::size_t count = 0;
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      if (i >= kGuardBytes && i < kGuardBytes + size_) continue;
      count += storage_[i] != std::byte{0xCB};
      storage_[i] = std::byte{0xCB};
    }
    return count;
  }

 private:
  std::size_t size_;
  std::vector<std::byte> storage_;
};

class MemoryDevice : public Device {
 public:
  using Kernel = std::function<void(const ct1d::RunArguments&)>;
  using Packing = std::function<void(const ct1d::PrepareArguments&)>;

  std::map<std::string, Kernel> kernels;
  std::map<std::string, Packing> packings;
  std::size_t capacity = std::size_t{1} << 30;
  std::vector<std::string> launched;

  const Environment& environment() const override { return environment_; }
  bool is_cuda() const override { return false; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    if (bytes > capacity) throw std::bad_alloc();
    return std::make_unique<MemoryBuffer>(bytes);
  }
  Expected<std::unique_ptr<Module>> load(const CompiledUnit&) override {
    return std::unique_ptr<Module>(std::make_unique<MemoryModule>(*this));
  }
  Expected<bool> synchronize() override { return true; }

 private:
  class MemoryModule : public Module {
   public:
    explicit MemoryModule(MemoryDevice& device) : device_(device) {}
    Expected<bool> launch(const Launch& launch, const ct1d::RunArguments& arguments) override {
      return call(device_.kernels, launch, arguments);
    }
    Expected<bool> launch(const Launch& launch, const ct1d::PrepareArguments& arguments) override {
      return call(device_.packings, launch, arguments);
    }
    double occupancy(const Launch& launch) override { return launch.shape.block_x / 1024.0; }

   private:
    template <class Functions, class Arguments>
    Expected<bool> call(const Functions& functions, const Launch& launch, const Arguments& arguments) {
      const auto found = functions.find(launch.kernel);
      if (found == functions.end()) return Failure{Outcome::launch_failed, "no kernel " + launch.kernel, {}};
      device_.launched.push_back(launch.kernel);
      found->second(arguments);
      return true;
    }
    MemoryDevice& device_;
  };
  Environment environment_;
};

}  // namespace tuner::testing
