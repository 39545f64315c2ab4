// Shared memory by 32-bit address, as asynchronous operations name it, and the fence between ordinary accesses and
// them.
//
// mbarriers, bulk copies and matrix products reach shared memory by the async proxy, everything else by the generic
// one. What ordinary stores wrote is seen by bulk stores and matrix products only after the storing thread's
// async_proxy_fence() (and a barrier, where another thread issues them).
//
// Host execution reports a bulk store or matrix product that reads what no fence covers. Stores through store_shared_*
// are known by thread and place. Plain stores show as a difference to what shared memory held at the last fence of any
// thread: a missing fence goes unseen where another thread's fence follows the store, or where the store did not change
// the value. Loads, and ordinary stores followed by a bulk load over them, are not checked.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {

using uint64 = unsigned long long;
using uint32 = unsigned;

#if defined(CT1D_HOST_EXECUTION)

inline uint32 shared_address(const void* shared, CT1D_HOST_SITE) {
  return ct1d_host::worker()->services->shared_address(ct1d_host::worker(), shared, {file, line});
}
inline void async_proxy_fence() { ct1d_host::worker()->services->proxy_fence(ct1d_host::worker()); }

template <class Value>
Value load_shared(uint32 address, CT1D_HOST_SITE) {
  Value value;
  const void* at =
      ct1d_host::worker()->services->shared_load(ct1d_host::worker(), address, sizeof(Value), {file, line});
  __builtin_memcpy(&value, at, sizeof(Value));
  return value;
}
template <class Value>
void store_shared(uint32 address, Value value, CT1D_HOST_SITE) {
  void* at = ct1d_host::worker()->services->shared_store(ct1d_host::worker(), address, sizeof(Value), {file, line});
  __builtin_memcpy(at, &value, sizeof(Value));
}
inline float load_shared_float(uint32 address, CT1D_HOST_SITE) { return load_shared<float>(address, file, line); }
inline uint32 load_shared_2(uint32 address, CT1D_HOST_SITE) { return load_shared<unsigned short>(address, file, line); }
inline uint32 load_shared_4(uint32 address, CT1D_HOST_SITE) { return load_shared<uint32>(address, file, line); }
inline uint2 load_shared_8(uint32 address, CT1D_HOST_SITE) { return load_shared<uint2>(address, file, line); }
inline uint4 load_shared_16(uint32 address, CT1D_HOST_SITE) { return load_shared<uint4>(address, file, line); }
inline void store_shared_float(uint32 address, float value, CT1D_HOST_SITE) {
  store_shared(address, value, file, line);
}
inline void store_shared_2(uint32 address, unsigned short value, CT1D_HOST_SITE) {
  store_shared(address, value, file, line);
}
inline void store_shared_4(uint32 address, uint32 value, CT1D_HOST_SITE) { store_shared(address, value, file, line); }
inline void store_shared_8(uint32 address, uint32 a, uint32 b, CT1D_HOST_SITE) {
  store_shared(address, uint2{a, b}, file, line);
}
inline void store_shared_16(uint32 address, uint32 a, uint32 b, uint32 c, uint32 d, CT1D_HOST_SITE) {
  store_shared(address, uint4{a, b, c, d}, file, line);
}
inline void or_shared_4(uint32 address, uint32 bits, CT1D_HOST_SITE) {
  store_shared(address, load_shared<uint32>(address, file, line) | bits, file, line);
}
inline void max_shared_4(uint32 address, uint32 value, CT1D_HOST_SITE) {
  const uint32 before = load_shared<uint32>(address, file, line);
  store_shared(address, before > value ? before : value, file, line);
}

#else

__device__ __forceinline__ uint32 shared_address(const void* shared) {
  return static_cast<uint32>(__cvta_generic_to_shared(shared));
}
/// Ordinary writes of this thread to shared memory before it are seen by matrix products and bulk copies after it.
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Addresses are multiples of the access's bytes.

__device__ __forceinline__ float load_shared_float(uint32 address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
/// In the low half.
__device__ __forceinline__ uint32 load_shared_2(uint32 address) {
  uint32 value;
  asm volatile("{ .reg .b16 h; ld.shared.b16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(value) : "r"(address) : "memory");
  return value;
}
__device__ __forceinline__ uint32 load_shared_4(uint32 address) {
  uint32 value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
__device__ __forceinline__ uint2 load_shared_8(uint32 address) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ uint4 load_shared_16(uint32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ void store_shared_float(uint32 address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
__device__ __forceinline__ void store_shared_2(uint32 address, unsigned short value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}
__device__ __forceinline__ void store_shared_4(uint32 address, uint32 value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
__device__ __forceinline__ void store_shared_8(uint32 address, uint32 a, uint32 b) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
}
__device__ __forceinline__ void store_shared_16(uint32 address, uint32 a, uint32 b, uint32 c, uint32 d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
/// Atomically, as several threads may: the word becomes word | bits, or the larger of the two.
__device__ __forceinline__ void or_shared_4(uint32 address, uint32 bits) {
  asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}
__device__ __forceinline__ void max_shared_4(uint32 address, uint32 value) {
  asm volatile("red.shared.max.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

#endif

}  // namespace ct1d
