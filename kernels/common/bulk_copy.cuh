// Bulk copies between global and shared memory by the async proxy (cp.async.bulk, sm_90), and their host form. One
// thread issues a copy. Addresses and sizes are multiples of 16 bytes.
//
// A load completes on an mbarrier, which must expect its bytes. Until its phase is complete the target holds no value
// that may be read (Host execution poisons it). A store belongs to the issuing thread's current group; what it reads
// may not change before a bulk_wait_read(), and needs an async_proxy_fence() of those who wrote it. A thread that
// stored waits at least for reading before it exits, and a block lets none of its loads outlive it.
#pragma once

#include "kernels/common/mbarrier.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline void bulk_load(uint32 shared, const void* global, int bytes, uint32 barrier, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->bulk_load(ct1d_host::worker(), shared, global, static_cast<unsigned>(bytes), barrier,
                                           &ct1d_host::read_chunks, {file, line});
}
inline void bulk_prefetch(const void* global, int bytes, CT1D_HOST_SITE) {
  if (reinterpret_cast<uint64>(global) % 16 != 0 || bytes <= 0 || bytes % 16 != 0)
    ct1d_host::fail("bulk_prefetch of an address or size that is not a multiple of 16", {file, line});
  ct1d_host::touch_chunks(global, static_cast<unsigned>(bytes));
}
inline void bulk_store(void* global, uint32 shared, int bytes, CT1D_HOST_SITE) {
  ct1d_host::worker()->services->bulk_store(ct1d_host::worker(), global, shared, static_cast<unsigned>(bytes),
                                            &ct1d_host::touch_chunks, {file, line});
}
inline void bulk_commit() { ct1d_host::worker()->services->bulk_commit(ct1d_host::worker()); }
template <int Groups>
inline void bulk_wait() {
  static_assert(Groups >= 0, "bulk_wait<N> leaves at most N groups in flight");
  ct1d_host::worker()->services->bulk_wait(ct1d_host::worker(), Groups, false);
}
template <int Groups>
inline void bulk_wait_read() {
  static_assert(Groups >= 0, "bulk_wait_read<N> leaves at most N groups in flight");
  ct1d_host::worker()->services->bulk_wait(ct1d_host::worker(), Groups, true);
}

#else

__device__ __forceinline__ void bulk_load(uint32 shared, const void* global, int bytes, uint32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier)
               : "memory");
}
/// Brings it into L2 only.
__device__ __forceinline__ void bulk_prefetch(const void* global, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk_store(void* global, uint32 shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Returns when at most the `Groups` most recent groups are in flight.
template <int Groups>
__device__ __forceinline__ void bulk_wait() {
  static_assert(Groups >= 0, "bulk_wait<N> leaves at most N groups in flight");
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Groups) : "memory");
}
/// Returns when at most the `Groups` most recent groups may still read shared memory.
template <int Groups>
__device__ __forceinline__ void bulk_wait_read() {
  static_assert(Groups >= 0, "bulk_wait_read<N> leaves at most N groups in flight");
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Groups) : "memory");
}

#endif

}  // namespace ct1d
