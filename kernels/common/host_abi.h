// What a kernel compiled for Host execution (a shared object) and the program that runs it agree on.
//
// The shared object needs no library: it exports one `ct1d_host_unit`, and reaches the program through the table of
// functions in the Worker that runs it. A worker is an OS thread; the stacks of its fibres (one a CUDA thread) lie in
// one arena of kArenaBytes, aligned to its size, with the Worker at its start, so that code on a fibre finds the Worker
// from its own stack pointer. A later issue that adds mbarriers, bulk copies or clusters appends to Services and raises
// kAbiVersion.
#pragma once

namespace ct1d_host {

inline constexpr unsigned kAbiVersion = 1;
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
};

/// State of the OS thread that runs a block. Lies at the start of its arena.
struct Worker {
  const Services* services;
  Thread* current;
  Dim3 block_index;
  Dim3 block_dim;
  Dim3 grid_dim;
  void* dynamic_shared;  // 1024-byte aligned
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
