// What a kernel compiled for Host execution (a shared object) and the program that runs it agree on.
//
// The shared object needs no library: it exports one `ct1d_host_unit`, and reaches the program through the table of
// functions in the Worker that runs it. A worker is an OS thread; the stacks of its fibres (one a CUDA thread) lie in
// one arena of kArenaBytes, aligned to its size, with the Worker at its start, so that code on a fibre finds the Worker
// from its own stack pointer. Whoever adds to Services appends to it and raises kAbiVersion.
#pragma once

namespace ct1d_host {

inline constexpr unsigned kAbiVersion = 5;
inline constexpr unsigned long long kArenaBytes = 1ull << 28;
/// Every byte of memory that holds no value yet: NaN in fp32, fp16 and bf16, -1 as an integer.
inline constexpr unsigned char kPoisonByte = 0xFF;
inline constexpr unsigned kWarpSize = 32;

struct Dim3 {
  unsigned x, y, z;
};

/// Where in the kernel's source something happens.
struct Site {
  const char* file;
  int line;
};

/// One CUDA thread as the kernel sees it; the program's own state follows it in memory.
struct Thread {
  Dim3 index;       // threadIdx
  unsigned linear;  // within the block: x fastest
};

/// Threads that arrived at a barrier, and those among them whose predicate held.
struct Tally {
  unsigned arrived;
  unsigned held;
};

enum class WarpOperation : unsigned { sync, shuffle, vote };
/// What a lane gets from a warp-wide operation: the source lane's payload, and a bit for each lane of the mask whose
/// payload is not zero.
struct Exchange {
  unsigned long long payload;
  unsigned long long ballot;
};

/// A matrix product as one thread of its warpgroup issues it (kernels/common/matrix.cuh).
struct MatrixProduct {
  float* sums;
  unsigned columns;
  bool bfloat16;  // else fp16
  bool accumulate;
  const unsigned* a[4];  // the thread's registers; null where a is in shared memory
  unsigned long long a_descriptor;
  unsigned long long b_descriptor;
};

/// One lane's part of a warp's matrix product (kernels/common/warp_matrix.cuh).
struct WarpProduct {
  float* d;           // 4, added to
  const unsigned* a;  // 4
  const unsigned* b;  // 2
  bool bfloat16;      // else fp16
};

struct Worker;

/// Each may switch to other fibres, and each ends the calling fibre by an exception once the block has failed.
struct Services {
  /// Waits until `threads` threads (0: all of the block that have not exited) arrived at barrier `id`, 0..15.
  Tally (*barrier)(Worker*, unsigned id, unsigned threads, bool predicate, Site);
  /// Waits until every lane of `mask` that has not exited arrived at the same operation with the same mask. The payload
  /// of a lane that takes no part is poison.
  Exchange (*exchange)(Worker*, WarpOperation, unsigned mask, unsigned source_lane, unsigned long long payload, Site);
  /// The block's static shared array that `key` stands for, made and poisoned when first asked for.
  void* (*static_shared)(Worker*, const void* key, unsigned long long bytes, Site);
  /// Takes a copy of 4, 8 or 16 bytes to a destination that the caller has poisoned; completes at a legal moment.
  void (*copy_async)(Worker*, void* shared, const void* data, unsigned bytes, Site);
  void (*copy_commit)(Worker*);
  void (*copy_wait)(Worker*, unsigned groups_in_flight);
  /// Ends the block: the kernel did something illegal.
  void (*fail)(Worker*, const char* what, Site);

  // Shared memory by 32-bit address (kernels/common/shared_memory.cuh).
  unsigned (*shared_address)(Worker*, const void* shared, Site);
  /// Memory at the address; all of `bytes` are inside one array of the block.
  void* (*shared_load)(Worker*, unsigned address, unsigned bytes, Site);
  /// The same for a store that follows, recorded with the thread and the site.
  void* (*shared_store)(Worker*, unsigned address, unsigned bytes, Site);
  void (*proxy_fence)(Worker*);

  // Named barriers and registers (warpgroup.cuh).
  void (*barrier_arrive)(Worker*, unsigned id, unsigned threads, Site);
  void (*set_registers)(Worker*, unsigned registers, Site);

  // mbarriers (mbarrier.cuh).
  void (*mbarrier_init)(Worker*, unsigned address, unsigned arrivals, Site);
  void (*mbarrier_init_fence)(Worker*);
  void (*mbarrier_arrive)(Worker*, unsigned address, unsigned expected_bytes, Site);
  /// Whether the phase of that parity is complete; waits for it, but with `may_fail` not for ever.
  bool (*mbarrier_wait)(Worker*, unsigned address, unsigned parity, bool may_fail, Site);

  // Bulk copies (bulk_copy.cuh). `read` copies the source, in code that a sanitizer watches; `touch` reads the target.
  void (*bulk_load)(Worker*, unsigned shared, const void* global, unsigned bytes, unsigned barrier,
                    void (*read)(void* target, const void* source, unsigned bytes), Site);
  void (*bulk_store)(Worker*, void* global, unsigned shared, unsigned bytes,
                     void (*touch)(const void* target, unsigned bytes), Site);
  void (*bulk_commit)(Worker*);
  /// Until at most that many of the thread's groups still read shared memory (`read_only`) or are in flight.
  void (*bulk_wait)(Worker*, unsigned groups_in_flight, bool read_only);

  // Matrix products (matrix.cuh).
  void (*matrix_fence)(Worker*);
  void (*matrix_multiply)(Worker*, const MatrixProduct*, Site);
  void (*matrix_commit)(Worker*);
  void (*matrix_wait)(Worker*, unsigned groups_in_flight, Site);

  /// An arrival on an mbarrier when all of the thread's copy_async() before it are there.
  void (*mbarrier_arrive_after_copies)(Worker*, unsigned address, Site);

  /// Waits until all 32 lanes of the warp arrived with the same type of operands, and adds their product.
  void (*warp_matrix)(Worker*, const WarpProduct*, Site);

  // Clusters (cluster.cuh).
  void (*cluster_arrive)(Worker*, Site);
  void (*cluster_wait)(Worker*, Site);
  /// On the mbarrier at that address in the cluster's block of that rank.
  void (*mbarrier_arrive_of_block)(Worker*, unsigned address, unsigned rank, Site);
  /// bulk_load to the same addresses in the blocks whose rank's bit is set in `blocks`.
  void (*bulk_load_to_blocks)(Worker*, unsigned shared, const void* global, unsigned bytes, unsigned barrier,
                              unsigned blocks, void (*read)(void* target, const void* source, unsigned bytes), Site);
};

/// State of the OS thread that runs a block. Lies at the start of its arena.
struct Worker {
  const Services* services;
  Thread* current;
  Dim3 block_index;
  Dim3 block_dim;
  Dim3 grid_dim;
  void* dynamic_shared;  // 1024-byte aligned
  unsigned cluster_rank;
};

/// A kernel instance: called once a thread with the address of its one argument.
struct Entry {
  const char* name;  // name expression
  void (*call)(const void* arguments);
  unsigned long long argument_bytes;
};

/// What the shared object exports, as `extern "C" const ct1d_host::Unit ct1d_host_unit`.
struct Unit {
  unsigned abi_version;
  unsigned count;
  const Entry* entries;
};

}  // namespace ct1d_host
