// Barriers in shared memory (mbarrier, sm_90) that count arrivals of threads and bytes of bulk copies, and their host
// form. A barrier is 8 bytes, aligned to 8, named by its shared_address().
//
// A phase is complete when `arrivals` threads arrived and as many bytes came as were expected; the next then starts.
// Phases are numbered from 0. barrier_wait(b, n % 2) returns once phase n is complete: the caller knows n, and nobody
// may complete phase n + 1 while somebody still waits for n.
//
// Host execution fails on arrivals beyond the phase's, on a phase that completes while a thread still waits for the one
// before, on barriers overwritten or never initialised, and on a wait that nothing can end (who waits where).
#pragma once

#include "kernels/common/shared_memory.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline void barrier_init(uint32 barrier, int arrivals, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->mbarrier_init(ct1d_host::worker(), barrier, static_cast<unsigned>(arrivals),
                                               {file, line});
}
inline void barrier_init_fence() { ct1d_host::worker()->services->mbarrier_init_fence(ct1d_host::worker()); }
inline void barrier_expect(uint32 barrier, int bytes, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->mbarrier_arrive(ct1d_host::worker(), barrier, static_cast<unsigned>(bytes),
                                                 {file, line});
}
inline void barrier_arrive(uint32 barrier, CT1D_HOST_SITE) { barrier_expect(barrier, 0, file, line); }
inline void barrier_arrive_after_copies(uint32 barrier, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->mbarrier_arrive_after_copies(ct1d_host::worker(), barrier, {file, line});
}
inline bool barrier_try(uint32 barrier, uint32 parity, CT1D_HOST_SITE) {
  return ct1d_host::worker()->services->mbarrier_wait(ct1d_host::worker(), barrier, parity, true, {file, line});
}
inline void barrier_wait(uint32 barrier, uint32 parity, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->mbarrier_wait(ct1d_host::worker(), barrier, parity, false, {file, line});
}

#else

/// By one thread.
__device__ __forceinline__ void barrier_init(uint32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// By the thread that initialised, before the __syncthreads() after which others and bulk copies use the barriers.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives, and makes the phase wait for `bytes` more.
__device__ __forceinline__ void barrier_expect(uint32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Counts as one of the phase's arrivals once all copy_async() of this thread before it are there; does not wait.
__device__ __forceinline__ void barrier_arrive_after_copies(uint32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
/// Whether the phase of that parity is complete; may wait for a while.
__device__ __forceinline__ bool barrier_try(uint32 barrier, uint32 parity) {
  uint32 done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}
/// (No trap after a time: it would make ptxas ignore setmaxnreg's counts.)
__device__ __forceinline__ void barrier_wait(uint32 barrier, uint32 parity) {
  while (!barrier_try(barrier, parity)) {
  }
}

#endif

}  // namespace ct1d
