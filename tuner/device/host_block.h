// One CUDA block at a time on fibres: thread order, barriers, warp-wide operations, shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/geometry.h"
#include "kernels/common/host_abi.h"
#include "tuner/core/random.h"
#include "tuner/device/fibre.h"
#include "tuner/device/host_copies.h"
#include "tuner/device/host_memory.h"

namespace tuner {

/// What a launch runs. `arguments` is copied to every thread.
struct HostKernel {
  const ct1d_host::Entry* entry;
  const void* arguments;
  ct1d::LaunchShape shape;
};

inline constexpr std::size_t kMaxBlockThreads = 1024;
inline constexpr std::size_t kMaxStaticSharedBytes = 48 * 1024;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;  // static + dynamic, sm_90

inline constexpr std::size_t kSharedGuardBytes = 4096;  // before and after each shared array
inline constexpr std::size_t kSharedAlignment = 1024;

enum class ThreadState : std::uint8_t { ready, at_barrier, in_exchange, exited };

/// A CUDA thread: what the kernel sees, its fibre, and what it waits for.
struct HostThread : ct1d_host::Thread {
  class BlockRunner* runner = nullptr;
  std::unique_ptr<Fibre> fibre;
  ThreadState state = ThreadState::ready;
  ct1d_host::WarpOperation operation{};
  bool predicate = false;
  unsigned barrier = 0;
  unsigned mask = 0;
  unsigned source_lane = 0;
  unsigned long long payload = 0;
  ct1d_host::Site site{};
  ct1d_host::Tally tally{};
  ct1d_host::Exchange result{};
  PendingCopies copies;
};

/// Runs blocks on the calling OS thread, which must stay the same for its lifetime.
///
/// Threads run in rounds: each that can run does so, in an order drawn from the seed, until its next barrier, warp-wide
/// operation or end. Exited threads do not count at barriers. When nobody can run and somebody waits, the block has
/// failed, and the failure says who waits where.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Nothing, or what the block did wrong. The same for the same seed, if no other block's writes matter.
  std::optional<std::string> run(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed);

 private:
  struct Head : ct1d_host::Worker {  // what kernels see, at the start of the arena
    BlockRunner* runner;
  };
  static_assert(sizeof(ct1d_host::Worker) + sizeof(void*) <= FibreArena::kHeadBytes);
  struct Barrier {
    unsigned expected = 0;
    std::vector<std::uint16_t> waiting;
  };
  struct Warp {
    unsigned alive = 0;    // a bit a lane that exists and has not exited
    unsigned waiting = 0;  // in a warp-wide operation
  };
  struct StaticArray {
    const void* key;
    std::unique_ptr<GuardedMemory> memory;
  };

  // What kernels call (ct1d_host::Services).
  static ct1d_host::Tally barrier(ct1d_host::Worker*, unsigned id, unsigned threads, bool predicate, ct1d_host::Site);
  static ct1d_host::Exchange exchange(ct1d_host::Worker*, ct1d_host::WarpOperation, unsigned mask, unsigned source_lane,
                                      unsigned long long payload, ct1d_host::Site);
  static void* static_shared(ct1d_host::Worker*, const void* key, unsigned long long bytes, ct1d_host::Site);
  static void copy_async(ct1d_host::Worker*, void* shared, const void* data, unsigned bytes, ct1d_host::Site);
  static void copy_commit(ct1d_host::Worker*);
  static void copy_wait(ct1d_host::Worker*, unsigned groups_in_flight);
  static void fail(ct1d_host::Worker*, const char* what, ct1d_host::Site);
  static const ct1d_host::Services kServices;
  static BlockRunner& of(ct1d_host::Worker* worker);
  static void thread_body(void* thread);

  HostThread& current();
  void start(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed);
  void set_dynamic_shared(std::size_t bytes);
  void run_rounds();
  void resume(HostThread& thread);
  void suspend(HostThread& thread);
  void release(HostThread& thread);
  void thread_exited(HostThread& thread);
  bool complete_barrier(unsigned id);
  bool complete_exchange(unsigned warp, unsigned mask);
  void deliver(unsigned warp, unsigned lanes);
  // End the calling fibre, and with it the block.
  [[noreturn]] void fail_here(const std::string& what, ct1d_host::Site site);
  [[noreturn]] void fail_block(std::string what);
  void abandon();
  void check_shared_guards();
  std::string describe_stuck() const;

  FibreArena arena_;
  Head* head_;
  std::vector<std::unique_ptr<HostThread>> threads_;  // grows to the largest block seen
  std::vector<std::uint16_t> ready_, round_;
  std::array<Barrier, 16> barriers_;
  std::array<Warp, kMaxBlockThreads / ct1d_host::kWarpSize> warps_;
  std::unique_ptr<GuardedMemory> dynamic_shared_;
  std::vector<StaticArray> static_arrays_;
  HostKernel kernel_{};
  std::size_t block_threads_ = 0;
  std::size_t live_ = 0;
  Random random_{0};
  bool abandoning_ = false;
  std::optional<std::string> failure_;
};

}  // namespace tuner
