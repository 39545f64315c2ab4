// A CUDA block on fibres: thread order, barriers, warp-wide operations, shared memory.
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
#include "tuner/device/host_bulk.h"
#include "tuner/device/host_copies.h"
#include "tuner/device/host_matrix.h"
#include "tuner/device/host_mbarrier.h"
#include "tuner/device/host_shared.h"

namespace tuner {

/// What a launch runs. `arguments` is copied to every thread.
struct HostKernel {
  const ct1d_host::Entry* entry;
  const void* arguments;
  ct1d::LaunchShape shape;
};

inline constexpr std::size_t kMaxBlockThreads = 1024;
enum class ThreadState : std::uint8_t { ready, at_barrier, in_exchange, at_mbarrier, at_matrix, at_cluster, exited };

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
  std::uint32_t mbarrier = 0;          // address
  bool may_give_up = false;            // its wait for the mbarrier may end without success
  bool gave_up = false;                // and did so,
  std::uint64_t gave_up_at = 0;        // at this count of progress
  unsigned matrix_groups = 0;          // that its wait for matrix products leaves in flight
  std::uint64_t cluster_arrivals = 0;  // at the cluster's barrier
  std::uint64_t cluster_waits = 0;     // of these phases
  ct1d_host::Site site{};
  ct1d_host::Tally tally{};
  ct1d_host::Exchange result{};
  PendingCopies copies;
};

class HostCluster;

/// Runs one block after the other on the calling OS thread, which must stay the same for its lifetime, in turns with
/// the other blocks of the cluster (host_cluster.h).
///
/// Threads run in rounds: each that can run does so, in an order drawn from the seed, until its next barrier, warp-wide
/// operation, wait or end; but for warps that the seed holds back for a stretch of rounds. Exited threads do not count
/// at barriers. When nobody in the cluster can run and somebody waits, bulk loads in flight complete, then waits that
/// need not succeed give up; after that the block has failed, and the failure says who waits where.
class BlockRunner {
 public:
  BlockRunner(HostCluster& cluster, unsigned rank);
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// The threads are ready, none has run. What follows is the same for the same seed, if no other block's writes
  /// matter.
  void start(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed);
  /// Each thread that can run does once; the block's end is checked after the last. Stops at a failure.
  void run_round();
  /// Nobody in the cluster can run: whether something else can happen in this block, or failed.
  bool go_on_without_threads();
  /// Ends the threads of a block that failed, or whose cluster did.
  void abandon();

  bool can_run() const { return !ready_.empty(); }
  bool has_ended() const { return live_ == 0; }
  std::size_t live_threads() const { return live_; }
  const std::optional<std::string>& failure() const { return failure_; }
  std::string describe_place() const;  // "kernel<4, float>, block (1, 0, 0)"
  std::string describe_waits() const;  // of all threads, "; thread (0, 0, 0) waits in ...; 3 threads have exited"
  void release_from_cluster();         // those who wait at the cluster's barrier

 private:
  struct Head : ct1d_host::Worker {  // what kernels see, at the start of the arena
    BlockRunner* runner;
  };
  static_assert(sizeof(ct1d_host::Worker) + sizeof(void*) <= FibreArena::kHeadBytes);
  struct Barrier {
    unsigned expected = 0;
    std::vector<std::uint16_t> waiting;
    std::vector<std::uint16_t> arrived;  // that do not wait
  };
  struct Warp {
    unsigned alive = 0;      // a bit a lane that exists and has not exited
    unsigned waiting = 0;    // in a warp-wide operation
    unsigned registers = 0;  // a thread, as last asked for
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
  // Of Hopper (host_hopper.cpp).
  static unsigned shared_address(ct1d_host::Worker*, const void* shared, ct1d_host::Site);
  static void* shared_load(ct1d_host::Worker*, unsigned address, unsigned bytes, ct1d_host::Site);
  static void* shared_store(ct1d_host::Worker*, unsigned address, unsigned bytes, ct1d_host::Site);
  static void proxy_fence(ct1d_host::Worker*);
  static void barrier_arrive(ct1d_host::Worker*, unsigned id, unsigned threads, ct1d_host::Site);
  static void set_registers(ct1d_host::Worker*, unsigned registers, ct1d_host::Site);
  static void mbarrier_init(ct1d_host::Worker*, unsigned address, unsigned arrivals, ct1d_host::Site);
  static void mbarrier_init_fence(ct1d_host::Worker*);
  static void mbarrier_arrive(ct1d_host::Worker*, unsigned address, unsigned expected_bytes, ct1d_host::Site);
  static bool mbarrier_wait(ct1d_host::Worker*, unsigned address, unsigned parity, bool may_fail, ct1d_host::Site);
  static void bulk_load(ct1d_host::Worker*, unsigned shared, const void* global, unsigned bytes, unsigned barrier,
                        void (*read)(void*, const void*, unsigned), ct1d_host::Site);
  static void bulk_store(ct1d_host::Worker*, void* global, unsigned shared, unsigned bytes,
                         void (*touch)(const void*, unsigned), ct1d_host::Site);
  static void bulk_commit(ct1d_host::Worker*);
  static void bulk_wait(ct1d_host::Worker*, unsigned groups_in_flight, bool read_only);
  static void matrix_fence(ct1d_host::Worker*);
  static void matrix_multiply(ct1d_host::Worker*, const ct1d_host::MatrixProduct*, ct1d_host::Site);
  static void matrix_commit(ct1d_host::Worker*);
  static void matrix_wait(ct1d_host::Worker*, unsigned groups_in_flight, ct1d_host::Site);
  static void mbarrier_arrive_after_copies(ct1d_host::Worker*, unsigned address, ct1d_host::Site);
  static void warp_matrix(ct1d_host::Worker*, const ct1d_host::WarpProduct*, ct1d_host::Site);
  // Of clusters (host_cluster.cpp).
  static void cluster_arrive(ct1d_host::Worker*, ct1d_host::Site);
  static void cluster_wait(ct1d_host::Worker*, ct1d_host::Site);
  static void mbarrier_arrive_of_block(ct1d_host::Worker*, unsigned address, unsigned rank, ct1d_host::Site);
  static void bulk_load_to_blocks(ct1d_host::Worker*, unsigned shared, const void* global, unsigned bytes,
                                  unsigned barrier, unsigned blocks, void (*read)(void*, const void*, unsigned),
                                  ct1d_host::Site);
  static const ct1d_host::Services kServices;
  static BlockRunner& of(ct1d_host::Worker* worker);
  static void thread_body(void* thread);

  HostThread& current();
  bool let_waits_give_up();
  void draw_held_warps();
  void resume(HostThread& thread);
  void suspend(HostThread& thread);
  void release(HostThread& thread);
  void release_all(const std::vector<std::uint16_t>& threads);
  void thread_exited(HostThread& thread);
  void pass_time(HostThread& thread);
  Barrier& barrier_for(unsigned id, unsigned threads, ct1d_host::Site site);
  MatrixUnit& matrix_unit(ct1d_host::Site site);
  BlockRunner& block_of_rank(const char* what, unsigned rank, ct1d_host::Site site);
  void issue_load(BlockRunner& to, unsigned shared, std::vector<unsigned char> data, unsigned barrier,
                  ct1d_host::Site site);
  void check_bulk(const char* what, const void* global, unsigned shared, unsigned bytes, ct1d_host::Site site);
  bool complete_barrier(unsigned id);
  bool complete_exchange(unsigned warp, unsigned mask);
  void deliver(unsigned warp, unsigned lanes);
  // End the calling fibre, and with it the block.
  [[noreturn]] void fail_here(const std::string& what, ct1d_host::Site site);
  [[noreturn]] void fail_block(std::string what);
  void check(const std::optional<std::string>& wrong, ct1d_host::Site site);
  void check_end();
  std::string describe_wait_of(const HostThread& thread) const;

  HostCluster& cluster_;
  FibreArena arena_;
  Head* head_;
  std::vector<std::unique_ptr<HostThread>> threads_;  // grows to the largest block seen
  std::vector<std::uint16_t> ready_, round_;
  std::array<Barrier, 16> barriers_;
  std::array<Warp, kMaxBlockThreads / ct1d_host::kWarpSize> warps_;
  SharedMemory shared_;
  Mbarriers mbarriers_{shared_};
  BulkCopies bulk_{shared_, mbarriers_};
  std::vector<MatrixUnit> matrix_;  // a warpgroup each
  HostKernel kernel_{};
  std::size_t block_threads_ = 0;
  std::size_t live_ = 0;
  Random random_{0};
  std::uint32_t held_ = 0;  // warps, a bit each, that do not run in the next stretch_ rounds
  unsigned stretch_ = 0;
  std::uint64_t progress_ = 0;  // counts what may let a waiting thread go on
  bool abandoning_ = false;
  std::optional<std::string> failure_;
};

}  // namespace tuner
