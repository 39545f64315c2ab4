// What warps with different roles need: barriers of some of the block's threads, registers moved between warpgroups
// (sm_90a), and their host form.
//
// Host execution holds the sum of the registers that all warps asked for against what a block alone on an SM starts
// with: beyond it, registers_up() would wait for ever.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

template <int Threads>
inline void numbered_barrier(int id, CT1D_HOST_SITE) {
  static_assert(Threads > 0 && Threads % 32 == 0, "whole warps meet at a barrier");
  ct1d_host::worker()->services->barrier(ct1d_host::worker(), static_cast<unsigned>(id), Threads, false, {file, line});
}
template <int Id, int Threads>
inline void named_barrier(CT1D_HOST_SITE) {
  numbered_barrier<Threads>(Id, file, line);
}
template <int Id, int Threads>
inline void named_barrier_arrive(CT1D_HOST_SITE) {
  static_assert(Threads > 0 && Threads % 32 == 0, "whole warps meet at a barrier");
  ct1d_host::worker()->services->barrier_arrive(ct1d_host::worker(), Id, Threads, {file, line});
}
template <int Registers>
inline void registers_up(CT1D_HOST_SITE) {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers in eights");
  ct1d_host::worker()->services->set_registers(ct1d_host::worker(), Registers, {file, line});
}
template <int Registers>
inline void registers_down(CT1D_HOST_SITE) {
  registers_up<Registers>(file, line);
}
inline int fresh_thread() { return static_cast<int>(threadIdx.x); }
inline bool one_lane() { return ct1d_host::lane() == 0; }

#else

/// `Threads` threads (whole warps) meet at barrier `id`, 1 to 15.
template <int Threads>
__device__ __forceinline__ void numbered_barrier(int id) {
  static_assert(Threads > 0 && Threads % 32 == 0, "whole warps meet at a barrier");
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}
/// The same, the number known at compile time.
template <int Id, int Threads>
__device__ __forceinline__ void named_barrier() {
  static_assert(Threads > 0 && Threads % 32 == 0, "whole warps meet at a barrier");
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
}
/// Counts as one of `Threads` at the barrier without waiting.
template <int Id, int Threads>
__device__ __forceinline__ void named_barrier_arrive() {
  static_assert(Threads > 0 && Threads % 32 == 0, "whole warps meet at a barrier");
  asm volatile("bar.arrive %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
}

/// All warps of a warpgroup ask for that many registers a thread, more than they have; waits until others gave them up.
template <int Registers>
__device__ __forceinline__ void registers_up() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers in eights");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
/// All warps of a warpgroup give up registers and keep that many a thread.
template <int Registers>
__device__ __forceinline__ void registers_down() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers in eights");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// threadIdx.x as a value that the compiler reads anew each time: what follows from it is not kept in registers.
__device__ __forceinline__ int fresh_thread() {
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}
/// True for one lane; the whole warp asks.
__device__ __forceinline__ bool one_lane() {
  unsigned chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen != 0;
}

#endif

}  // namespace ct1d
