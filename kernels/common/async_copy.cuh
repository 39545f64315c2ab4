// Asynchronous copies from global to shared memory in groups (cp.async, sm_80 and newer), and their host form.
//
// A copy belongs to the thread that issues it. copy_commit() closes the thread's current group; copy_wait<N>() returns
// when at most the N most recent groups may still be in flight. Until then the destination holds no value that may be
// read (Host execution poisons it); other threads may read it after a barrier that follows the wait.
#pragma once

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

/// As the device form below. Bad alignment and destinations outside the block's shared memory are reported.
template <int Bytes>
inline void copy_async(void* shared, const void* global, bool valid, CT1D_HOST_SITE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  ct1d_host::copy_async<Bytes>(shared, global, valid, ct1d_host::Site{file, line});
}
inline void copy_commit() { ct1d_host::copy_commit(); }
template <int Groups>
inline void copy_wait() {
  static_assert(Groups >= 0, "copy_wait<N> leaves at most N groups in flight");
  ct1d_host::copy_wait(Groups);
}

#else

/// Copies Bytes (4, 8 or 16) from global to shared memory, or writes as many zeros where `valid` is false (`global` is
/// not read then). Both addresses are multiples of Bytes.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int source_bytes = valid ? Bytes : 0;
  if constexpr (Bytes == 16) {  // past L1: nothing of a tile is read through it again
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(global), "n"(Bytes),
                 "r"(source_bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int Groups>
__device__ __forceinline__ void copy_wait() {
  static_assert(Groups >= 0, "copy_wait<N> leaves at most N groups in flight");
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

#endif

}  // namespace ct1d
