// Single instructions that stay where they stand in the program, predicated stores, pairs of halves, and their host
// form.
//
// Where every register counts, the compiler must not hoist loads, merge arithmetic over branches or keep a second copy
// of an array: asm volatile keeps the order that was written.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/shared_memory.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline float load_constant(const float* p) { return *p; }
template <int Bytes>
inline bool may_store(const void* p, bool valid, ct1d_host::Site site) {
  if (valid && reinterpret_cast<uint64>(p) % Bytes != 0)
    ct1d_host::fail("a store to an address that is not a multiple of its size", site);
  return valid;
}
inline void store_one(float* p, float a, bool valid, CT1D_HOST_SITE) {
  if (may_store<4>(p, valid, {file, line})) *p = a;
}
inline void store_pair(float* p, float a, float b, bool valid, CT1D_HOST_SITE) {
  if (may_store<8>(p, valid, {file, line})) p[0] = a, p[1] = b;
}
inline void store_quad(float* p, float a, float b, float c, float d, bool valid, CT1D_HOST_SITE) {
  if (may_store<16>(p, valid, {file, line})) p[0] = a, p[1] = b, p[2] = c, p[3] = d;
}
inline float scaled_here(float v, float factor, float shift) { return fmaf(v, factor, shift); }
inline void clear_here(float& v) { v = 0.0f; }
inline void add_scaled_here(float& sum, float d, float factor) { sum = fmaf(d, factor, sum); }
/// The larger; NaN if either is.
inline float max_or_nan(float a, float b) { return a != a ? a : b != b ? b : a > b ? a : b; }
inline uint32 half_pair(float low, float high) {
  return from_float<Half>(low).bits | static_cast<uint32>(from_float<Half>(high).bits) << 16;
}
inline float low_half(uint32 pair) { return to_float(Half{static_cast<unsigned short>(pair)}); }
inline float high_half(uint32 pair) { return to_float(Half{static_cast<unsigned short>(pair >> 16)}); }

#else

/// Through the read-only path, cached in L1.
__device__ __forceinline__ float load_constant(const float* p) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}
/// Stores do nothing unless `valid`; no branch. Addresses are multiples of the bytes stored.
__device__ __forceinline__ void store_one(float* p, float a, bool valid) {
  asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; @q st.global.f32 [%0], %1; }" ::"l"(p), "f"(a), "r"(valid ? 1 : 0)
               : "memory");
}
__device__ __forceinline__ void store_pair(float* p, float a, float b, bool valid) {
  asm volatile("{ .reg .pred q; setp.ne.b32 q, %3, 0; @q st.global.v2.f32 [%0], {%1, %2}; }" ::"l"(p), "f"(a), "f"(b),
               "r"(valid ? 1 : 0)
               : "memory");
}
__device__ __forceinline__ void store_quad(float* p, float a, float b, float c, float d, bool valid) {
  asm volatile("{ .reg .pred q; setp.ne.b32 q, %5, 0; @q st.global.v4.f32 [%0], {%1, %2, %3, %4}; }" ::"l"(p), "f"(a),
               "f"(b), "f"(c), "f"(d), "r"(valid ? 1 : 0)
               : "memory");
}
/// v * factor + shift.
__device__ __forceinline__ float scaled_here(float v, float factor, float shift) {
  float r;
  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(v), "f"(factor), "f"(shift));
  return r;
}
/// v = 0, in the register where it is.
__device__ __forceinline__ void clear_here(float& v) { asm volatile("mov.f32 %0, 0f00000000;" : "+f"(v)); }
/// sum += d * factor.
__device__ __forceinline__ void add_scaled_here(float& sum, float d, float factor) {
  asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum) : "f"(d), "f"(factor));
}
/// The larger; NaN if either is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
/// Two halves in one word, `low` in bits 0 to 15.
__device__ __forceinline__ uint32 half_pair(float low, float high) {
  uint32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ float low_half(uint32 pair) {
  float r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(r) : "r"(pair));
  return r;
}
__device__ __forceinline__ float high_half(uint32 pair) {
  float r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(r) : "r"(pair));
  return r;
}

#endif

}  // namespace ct1d
