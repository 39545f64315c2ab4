#include "tuner/device/host_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "tuner/device/host_memory.h"
#include "tuner/device/host_pool.h"
#include "tuner/device/host_sanitizer.h"

namespace tuner {
namespace {

constexpr std::size_t kBufferAlignment = 256;

Failure launch_failure(std::string reason) { return {Outcome::launch_failed, std::move(reason), {}}; }

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : memory_(bytes, kGuardBytes, kBufferAlignment) {}

  void* data() override { return memory_.data(); }
  std::size_t size() const override { return memory_.size(); }
  void fill(std::uint32_t word) override {
    for (std::size_t at = 0; at < size(); at += sizeof(word))
      std::memcpy(memory_.data() + at, &word, std::min(sizeof(word), size() - at));
  }
  void upload(const void* source, std::size_t bytes, std::size_t offset) override {
    check(bytes, offset);
    if (bytes != 0) std::memcpy(memory_.data() + offset, source, bytes);
  }
  void download(void* target, std::size_t bytes, std::size_t offset) override {
    check(bytes, offset);
    if (bytes != 0) std::memcpy(target, memory_.data() + offset, bytes);
  }
  std::size_t guard_violations() override { return memory_.violations(); }

 private:
  void check(std::size_t bytes, std::size_t offset) const {
    if (offset > size() || bytes > size() - offset)
      throw std::out_of_range(fmt::format("{} bytes at offset {} of a buffer of {}", bytes, offset, size()));
  }
  GuardedMemory memory_;
};

/// What CUDA would refuse of a launch; empty if nothing.
std::string illegal(const ct1d::LaunchShape& s) {
  const std::uint64_t threads = std::uint64_t{s.block_x} * s.block_y * s.block_z;
  if (s.grid_x == 0 || s.grid_y == 0 || s.grid_z == 0)
    return fmt::format("grid of {} x {} x {} blocks: each extent is at least 1", s.grid_x, s.grid_y, s.grid_z);
  if (s.grid_x > 2147483647u || s.grid_y > 65535 || s.grid_z > 65535)
    return fmt::format("grid of {} x {} x {} blocks: at most 2147483647 x 65535 x 65535", s.grid_x, s.grid_y, s.grid_z);
  if (threads == 0 || threads > kMaxBlockThreads || s.block_x > 1024 || s.block_y > 1024 || s.block_z > 64)
    return fmt::format("block of {} x {} x {} threads: 1 to 1024 in all, at most 1024 x 1024 x 64", s.block_x,
                       s.block_y, s.block_z);
  if (s.shared_bytes > kMaxSharedBytes)
    return fmt::format("{} bytes of dynamic shared memory: at most {}", s.shared_bytes, kMaxSharedBytes);
  if (s.cluster_x > kMaxClusterBlocks)
    return fmt::format("clusters of {} blocks: at most {}", s.cluster_x, kMaxClusterBlocks);
  if (s.cluster_x > 1 && s.grid_x % s.cluster_x != 0)
    return fmt::format("grid of {} blocks along x: not a multiple of the cluster's {}", s.grid_x, s.cluster_x);
  return {};
}

class HostModule final : public Module {
 public:
  HostModule(void* library, const ct1d_host::Unit& unit, HostPool& pool, std::uint64_t seed)
      : library_(library), unit_(unit), pool_(pool), seed_(seed) {}
  ~HostModule() override { dlclose(library_); }
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;

  Expected<bool> launch(const Launch& what, const ct1d::RunArguments& arguments) override {
    return launch_with(what, &arguments, sizeof(arguments));
  }
  Expected<bool> launch(const Launch& what, const ct1d::PrepareArguments& arguments) override {
    return launch_with(what, &arguments, sizeof(arguments));
  }
  Expected<bool> launch_with(const Launch& what, const void* arguments, std::size_t bytes) override;
  double occupancy(const Launch&) override { return 0; }

 private:
  void* library_;
  const ct1d_host::Unit& unit_;
  HostPool& pool_;
  std::uint64_t seed_;
};

Expected<bool> HostModule::launch_with(const Launch& what, const void* arguments, std::size_t bytes) {
  const auto* end = unit_.entries + unit_.count;
  const auto* entry = std::find_if(unit_.entries, end, [&](const auto& e) { return e.name == what.kernel; });
  if (entry == end) return launch_failure("the unit has no kernel " + what.kernel);
  if (entry->argument_bytes != bytes)
    return launch_failure(
        fmt::format("{} takes {} bytes of arguments, the launch gives {}", what.kernel, entry->argument_bytes, bytes));
  if (std::string why = illegal(what.shape); !why.empty()) return launch_failure(what.kernel + ": " + why);
  if (auto why = pool_.run({entry, arguments, what.shape}, seed_)) return Failure{Outcome::crashed, *why, {}};
  return true;
}

/// A shared object built with AddressSanitizer ends a process that lacks its runtime: its loading must be refused.
bool needs_absent_sanitizer(const std::filesystem::path& file) {
  if (AddressSanitizer::of_process()) return false;
  std::ifstream stream(file, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  return content.find("__asan_init") != std::string::npos;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostOptions& options) : seed_(options.seed), pool_(thread_count(options)) {
    environment_.device.name = "Host execution";
    environment_.device.shared_per_block_optin = static_cast<int>(kMaxSharedBytes);
    environment_.device.shared_per_sm = static_cast<int>(kMaxSharedBytes) + 1024;
  }

  const Environment& environment() const override { return environment_; }
  bool is_cuda() const override { return false; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<HostBuffer>(bytes); }
  Expected<std::unique_ptr<Module>> load(const CompiledUnit& unit) override;
  Expected<bool> synchronize() override {
    progress();
    return true;
  }

 private:
  static int thread_count(const HostOptions& options) {
    const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(wanted, 1, kMaxPoolThreads);
  }

  Environment environment_;
  std::uint64_t seed_;
  HostPool pool_;
};

Expected<std::unique_ptr<Module>> HostDevice::load(const CompiledUnit& unit) {
  if (needs_absent_sanitizer(unit.file))
    return launch_failure(unit.file.string() +
                          " was built with the address sanitizer, whose runtime this process lacks");
  void* library = dlopen(unit.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return launch_failure(dlerror());
  const auto* table = static_cast<const ct1d_host::Unit*>(dlsym(library, "ct1d_host_unit"));
  if (table == nullptr || table->abi_version != ct1d_host::kAbiVersion) {
    dlclose(library);
    return launch_failure(unit.file.string() + " is no unit of this version of Host execution");
  }
  return std::unique_ptr<Module>(std::make_unique<HostModule>(library, *table, pool_, seed_));
}

}  // namespace

std::unique_ptr<Device> make_host_device(const HostOptions& options) { return std::make_unique<HostDevice>(options); }

}  // namespace tuner
