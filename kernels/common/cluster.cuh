// Blocks of a cluster (sm_90): their common barrier, loads that come to several of them, arrivals on each other's
// mbarriers, and their host form. A launch without clusters has clusters of one block.
//
// A block is named by its rank, 0 to the cluster's size - 1. Another block's shared memory may be reached once that
// block runs and, for a barrier, once it initialised it, and until it exits: blocks meet at the cluster's barrier first
// and last. Host execution fails on what reaches a block that ended or does not exist, on a barrier that is not there
// yet, and on a cluster_arrive() and cluster_wait() that do not take turns.
#pragma once

#include "kernels/common/bulk_copy.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline int cluster_rank() { return static_cast<int>(ct1d_host::worker()->cluster_rank); }
inline void cluster_arrive(CT1D_HOST_SITE) {
  ct1d_host::worker()->services->cluster_arrive(ct1d_host::worker(), {file, line});
}
inline void cluster_wait(CT1D_HOST_SITE) {
  ct1d_host::worker()->services->cluster_wait(ct1d_host::worker(), {file, line});
}
inline void barrier_arrive_of_block(uint32 barrier, int rank, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->mbarrier_arrive_of_block(ct1d_host::worker(), barrier, static_cast<unsigned>(rank),
                                                          {file, line});
}
inline void bulk_load_to_blocks(uint32 shared, const void* global, int bytes, uint32 barrier, uint32 blocks,
                                CT1D_HOST_SITE) {
  ct1d_host::worker()->services->bulk_load_to_blocks(ct1d_host::worker(), shared, global, static_cast<unsigned>(bytes),
                                                     barrier, blocks, &ct1d_host::read_chunks, {file, line});
}

#else

__device__ __forceinline__ int cluster_rank() {
  uint32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
/// By all threads of the cluster that have not exited, whole warps at once; what they wrote before is seen by those who
/// waited.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/// Returns once all threads of the cluster have arrived or exited.
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// Arrives on the barrier that lies at the same place in the block of that rank, which may be the caller's own. What
/// the thread has read by then may be written over by a copy that the arrival lets start; nothing that it wrote is made
/// visible to the other block (a fence of all its stores to memory would come with that).
__device__ __forceinline__ void barrier_arrive_of_block(uint32 barrier, int rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// bulk_load() to the same place in each block whose rank's bit is set in `blocks`; its bytes come on the barrier at
/// the same place as `barrier` in each of them.
__device__ __forceinline__ void bulk_load_to_blocks(uint32 shared, const void* global, int bytes, uint32 barrier,
                                                    uint32 blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(barrier), "h"(static_cast<unsigned short>(blocks))
      : "memory");
}

#endif

}  // namespace ct1d
