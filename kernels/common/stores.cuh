// Predicated stores to global memory, and their host form. They do nothing unless `valid`, without a branch. Addresses
// are multiples of the bytes stored. kStreaming: marked as read by nobody soon, so that L2 keeps other data rather.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/shared_memory.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

template <int Bytes>
inline bool may_store(const void* p, bool valid, ct1d_host::Site site) {
  if (valid && reinterpret_cast<uint64>(p) % Bytes != 0)
    ct1d_host::fail("a store to an address that is not a multiple of its size", site);
  return valid;
}
template <bool kStreaming = false>
void store_one(float* p, float a, bool valid, CT1D_HOST_SITE) {
  if (may_store<4>(p, valid, {file, line})) *p = a;
}
template <bool kStreaming = false>
void store_pair(float* p, float a, float b, bool valid, CT1D_HOST_SITE) {
  if (may_store<8>(p, valid, {file, line})) p[0] = a, p[1] = b;
}
template <bool kStreaming = false>
void store_quad(float* p, float a, float b, float c, float d, bool valid, CT1D_HOST_SITE) {
  if (may_store<16>(p, valid, {file, line})) p[0] = a, p[1] = b, p[2] = c, p[3] = d;
}
template <bool kStreaming = false>
void store_two_bytes(void* p, uint32 bits, bool valid, CT1D_HOST_SITE) {
  if (may_store<2>(p, valid, {file, line})) *static_cast<unsigned short*>(p) = static_cast<unsigned short>(bits);
}

#else

template <bool kStreaming = false>
__device__ __forceinline__ void store_one(float* p, float a, bool valid) {
  if constexpr (kStreaming) {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; @q st.global.cs.f32 [%0], %1; }" ::"l"(p), "f"(a),
                 "r"(valid ? 1 : 0)
                 : "memory");
  } else {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; @q st.global.f32 [%0], %1; }" ::"l"(p), "f"(a),
                 "r"(valid ? 1 : 0)
                 : "memory");
  }
}
template <bool kStreaming = false>
__device__ __forceinline__ void store_pair(float* p, float a, float b, bool valid) {
  if constexpr (kStreaming) {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %3, 0; @q st.global.cs.v2.f32 [%0], {%1, %2}; }" ::"l"(p), "f"(a),
                 "f"(b), "r"(valid ? 1 : 0)
                 : "memory");
  } else {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %3, 0; @q st.global.v2.f32 [%0], {%1, %2}; }" ::"l"(p), "f"(a), "f"(b),
                 "r"(valid ? 1 : 0)
                 : "memory");
  }
}
template <bool kStreaming = false>
__device__ __forceinline__ void store_quad(float* p, float a, float b, float c, float d, bool valid) {
  if constexpr (kStreaming) {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %5, 0; @q st.global.cs.v4.f32 [%0], {%1, %2, %3, %4}; }" ::"l"(p),
                 "f"(a), "f"(b), "f"(c), "f"(d), "r"(valid ? 1 : 0)
                 : "memory");
  } else {
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %5, 0; @q st.global.v4.f32 [%0], {%1, %2, %3, %4}; }" ::"l"(p), "f"(a),
                 "f"(b), "f"(c), "f"(d), "r"(valid ? 1 : 0)
                 : "memory");
  }
}
/// The low half of `bits`.
template <bool kStreaming = false>
__device__ __forceinline__ void store_two_bytes(void* p, uint32 bits, bool valid) {
  if constexpr (kStreaming) {
    asm volatile(
        "{ .reg .pred q; .reg .b16 l, h; setp.ne.b32 q, %2, 0; mov.b32 {l, h}, %1; "
        "@q st.global.cs.b16 [%0], l; }" ::"l"(p),
        "r"(bits), "r"(valid ? 1 : 0)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred q; .reg .b16 l, h; setp.ne.b32 q, %2, 0; mov.b32 {l, h}, %1; "
        "@q st.global.b16 [%0], l; }" ::"l"(p),
        "r"(bits), "r"(valid ? 1 : 0)
        : "memory");
  }
}

#endif

}  // namespace ct1d
