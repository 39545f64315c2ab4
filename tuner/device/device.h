// A device that runs compiled programs: a CUDA GPU (cuda_device.h) or the CPU by Host execution (host_device.h).
// Lives in a worker process; the coordinator never includes the CUDA one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/family/program.h"

namespace tuner {

/// What a compile left behind (tuner/jit): machine code or a shared object, and the entry symbol of each kernel.
struct CompiledUnit {
  std::filesystem::path file;                                // cubin, or .so for Host execution
  std::string sha256;                                        // of the file's content
  std::vector<std::pair<std::string, std::string>> symbols;  // name expression -> lowered name
  /// Resources by the compiler's report, largest over the unit's kernels.
  int registers = 0;
  int spill_bytes = 0;  // stores + loads
  int static_shared_bytes = 0;
  int barriers = 0;
  double compile_ms = 0;  // 0 when it came from the cache
  bool from_cache = false;
  std::string log;

  const std::string* symbol(std::string_view name_expression) const;
};

/// Owning block of device memory with guard bands of kGuardBytes before and after, filled with a pattern.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;                   // first byte inside the guards; 256-byte aligned
  virtual std::size_t size() const = 0;       // bytes inside the guards
  virtual void fill(std::uint32_t word) = 0;  // repeats a 32-bit word over the inside
  virtual void upload(const void* source, std::size_t bytes, std::size_t offset = 0) = 0;
  virtual void download(void* target, std::size_t bytes, std::size_t offset = 0) = 0;
  /// Bytes of the guard bands that no longer hold the pattern; writes the pattern again.
  virtual std::size_t guard_violations() = 0;
};
inline constexpr std::size_t kGuardBytes = 4096;

/// A loaded unit whose kernels can be launched. Launching returns at once on CUDA, and after completion on the host.
class Module {
 public:
  virtual ~Module() = default;
  virtual Expected<bool> launch(const Launch& launch, const ct1d::RunArguments& arguments) = 0;
  virtual Expected<bool> launch(const Launch& launch, const ct1d::PrepareArguments& arguments) = 0;
  /// For kernels whose one parameter, by value, is another struct (tuner/verify's own, on CUDA only).
  virtual Expected<bool> launch_with(const Launch& launch, const void* arguments, std::size_t bytes);
  /// Resident blocks an SM of a launch over what the SM could hold in threads, 0..1; 0 where unknown.
  virtual double occupancy(const Launch& launch) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Environment& environment() const = 0;
  virtual bool is_cuda() const = 0;
  /// Throws std::bad_alloc when the device has too little memory.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  virtual Expected<std::unique_ptr<Module>> load(const CompiledUnit& unit) = 0;
  /// Waits for everything; the failure carries a sticky error (illegal address, ...) with Outcome::crashed. It may wait
  /// for ever: whoever must not calls on_progress() and ends the process when nothing is heard.
  virtual Expected<bool> synchronize() = 0;
  /// `call` is made whenever a wait has ended well.
  void on_progress(std::function<void()> call) { progress_ = std::move(call); }

 protected:
  void progress() const {
    if (progress_) progress_();
  }

 private:
  std::function<void()> progress_;
};

/// Anything that computes y from x, w and bias on a device: a variant or a baseline. verify and measure see only this.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual std::string name() const = 0;
  virtual Work work() const = 0;
  /// Buffers are the caller's and stay valid until the next bind. Runs the prepare step. y may be any content.
  struct Tensors {
    void* x = nullptr;
    void* w = nullptr;
    void* bias = nullptr;  // null where the problem has none
    void* y = nullptr;
  };
  virtual Expected<bool> bind(const Tensors& tensors) = 0;
  /// Enqueues one call on the device's stream.
  virtual Expected<bool> launch() = 0;
  /// Enqueues the once-per-weights step again, to be timed apart; false where there is none.
  virtual Expected<bool> prepare() { return false; }
  /// Bytes written outside buffers of its own (packed weights, workspace) since the last call.
  virtual std::size_t guard_violations() { return 0; }
  /// Lowest over its kernels, 0..1; 0 where unknown.
  virtual double occupancy() { return 0; }
};

/// A variant as a Runnable: loads the unit, owns packed weights and workspace. Launches with an empty grid are left
/// out.
Expected<std::unique_ptr<Runnable>> make_runnable(Device& device, const Problem& problem, const Program& program,
                                                  const CompiledUnit& unit, std::string name);

}  // namespace tuner
