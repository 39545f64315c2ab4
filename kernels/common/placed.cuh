// Single instructions that stay where they stand in the program, pairs of halves, and their host form.
//
// Where every register counts, the compiler must not hoist loads, merge arithmetic over branches or keep a second copy
// of an array: asm volatile keeps the order that was written.
#pragma once

#include "kernels/common/stores.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline float load_constant(const float* p) { return *p; }
inline uint32 load_constant(const uint32* p) { return *p; }
inline uint32 load_constant(const unsigned short* p) { return *p; }
inline uint32 load_pair(const unsigned short* p, int count) {
  return (count > 0 ? p[0] : 0u) | (count > 1 ? static_cast<uint32>(p[1]) << 16 : 0u);
}
inline float scaled_here(float v, float factor, float shift) { return fmaf(v, factor, shift); }
inline void clear_here(float& v) { v = 0.0f; }
inline void add_scaled_here(float& sum, float d, float factor) { sum = fmaf(d, factor, sum); }
inline uint32 fresh_copy(uint32 v) { return v; }
template <class Value>
const Value* step_pointer(const Value* base, uint32 row, uint32 count) {
  return base + static_cast<uint64>(row) * count;
}
/// The larger; NaN if either is.
inline float max_or_nan(float a, float b) { return a != a ? a : b != b ? b : a > b ? a : b; }
inline uint32 half_pair(float low, float high) {
  return from_float<Half>(low).bits | static_cast<uint32>(from_float<Half>(high).bits) << 16;
}
/// cvt.rz of a value with half a place added: beyond the halves' range the largest of them, and no infinity.
inline uint32 half_away(float v) {
  const float raised = float_of_bits(bits_of_float(v) + 0x1000u);
  const uint32 sign = bits_of_float(raised) >> 16 & 0x8000u;
  const float magnitude = fabsf(raised);
  if (raised != raised) return 0x7FFFu;
  if (magnitude < 0x1p-14f) return sign | static_cast<uint32>(magnitude * 0x1p24f);
  if (magnitude >= 65536.0f) return sign | (bits_of_float(magnitude) == 0x7F800000u ? 0x7C00u : 0x7BFFu);
  return from_float<Half>(float_of_bits(bits_of_float(raised) & ~0x1FFFu)).bits;
}
inline uint32 half_pair_away(float low, float high) { return half_away(low) | half_away(high) << 16; }
inline uint32 bfloat_pair(float low, float high) {
  return from_float<Bfloat16>(low).bits | static_cast<uint32>(from_float<Bfloat16>(high).bits) << 16;
}
inline uint32 bytes_of_two(uint32 low, uint32 high, uint32 selector) {
  const uint64 both = static_cast<uint64>(high) << 32 | low;
  uint32 result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<uint32>(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return result;
}
inline uint32 magnitudes_by_half(uint32 a, uint32 b, bool larger) {
  uint32 r = 0;
  for (int at = 0; at < 32; at += 16) {
    const uint32 x = a >> at & 0x7FFFu;
    const uint32 y = b >> at & 0x7FFFu;
    r |= ((x > y) == larger ? x : y) << at;
  }
  return r;
}
inline uint32 larger_halves(uint32 a, uint32 b) { return magnitudes_by_half(a, b, true); }
inline uint32 lesser_halves(uint32 a, uint32 b) { return magnitudes_by_half(a, b, false); }
inline uint32 larger_bfloats(uint32 a, uint32 b) { return magnitudes_by_half(a, b, true); }
inline float low_half(uint32 pair) { return to_float(Half{static_cast<unsigned short>(pair)}); }
inline float high_half(uint32 pair) { return to_float(Half{static_cast<unsigned short>(pair >> 16)}); }

#else

/// Through the read-only path, cached in L1.
__device__ __forceinline__ float load_constant(const float* p) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}
__device__ __forceinline__ uint32 load_constant(const uint32* p) {
  uint32 v;
  asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
/// In the low half.
__device__ __forceinline__ uint32 load_constant(const unsigned short* p) {
  uint32 v;
  asm volatile("{ .reg .b16 h; ld.global.nc.b16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(v) : "l"(p));
  return v;
}
/// Two elements at p, a multiple of 4 bytes where there are two; 0 for those beyond the first `count`. No branch.
__device__ __forceinline__ uint32 load_pair(const unsigned short* p, int count) {
  uint32 v = 0;
  asm volatile(
      "{ .reg .pred both, one; setp.gt.s32 both, %2, 1; setp.eq.s32 one, %2, 1; "
      "@both ld.global.nc.b32 %0, [%1]; @one ld.global.nc.u16 %0, [%1]; }"
      : "+r"(v)
      : "l"(p), "r"(count));
  return v;
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
/// v as a value that the compiler reads anew each time: what follows from it is not kept in registers.
__device__ __forceinline__ uint32 fresh_copy(uint32 v) {
  uint32 r;
  asm volatile("mov.u32 %0, %1;" : "=r"(r) : "r"(v));
  return r;
}
/// base + row * count (count below 2^30), in one instruction and never kept for later.
template <class Value>
__device__ __forceinline__ const Value* step_pointer(const Value* base, uint32 row, uint32 count) {
  uint64 r;
  asm volatile("mad.wide.u32 %0, %1, %2, %3;"
               : "=l"(r)
               : "r"(row), "r"(count * static_cast<uint32>(sizeof(Value))), "l"(reinterpret_cast<uint64>(base)));
  return reinterpret_cast<const Value*>(r);
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
/// The same with ties rounded away from zero, as TF32's are: of values that are normal halves when rounded, or zeros.
/// What lies beyond the halves' range becomes the largest of them, infinities and some NaN a NaN, other NaN a zero.
__device__ __forceinline__ uint32 half_pair_away(float low, float high) {
  uint32 r;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;"
      : "=r"(r)
      : "f"(float_of_bits(bits_of_float(high) + 0x1000u)), "f"(float_of_bits(bits_of_float(low) + 0x1000u)));
  return r;
}
__device__ __forceinline__ uint32 bfloat_pair(float low, float high) {
  uint32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
/// Byte i of the result is the one of `low` (0 to 3) and `high` (4 to 7) that digit i of `selector` names.
__device__ __forceinline__ uint32 bytes_of_two(uint32 low, uint32 high, uint32 selector) {
  return __byte_perm(low, high, selector);
}
/// Of two pairs of halves or bfloats the larger magnitudes, NaN above all; and the lesser ones, b being none that is
/// NaN.
__device__ __forceinline__ uint32 larger_halves(uint32 a, uint32 b) {
  uint32 r;
  asm("{ .reg .b32 m; abs.f16x2 m, %2; max.NaN.f16x2 %0, %1, m; }" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ __forceinline__ uint32 larger_bfloats(uint32 a, uint32 b) {
  uint32 r;
  asm("{ .reg .b32 m; abs.bf16x2 m, %2; max.NaN.bf16x2 %0, %1, m; }" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ __forceinline__ uint32 lesser_halves(uint32 a, uint32 b) {
  uint32 r;
  asm("{ .reg .b32 m; abs.f16x2 m, %2; min.f16x2 %0, %1, m; }" : "=r"(r) : "r"(a), "r"(b));
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

/// Elements of any type by load_constant's and store_one's ways, rounded to nearest.
__device__ __forceinline__ float load_element(const float* p) { return load_constant(p); }
template <class Element>
__device__ __forceinline__ float load_element(const Element* p) {
  return to_float(*p);
}
template <bool kStreaming = false>
__device__ __forceinline__ void store_element(float* p, float value, bool valid) {
  store_one<kStreaming>(p, value, valid);
}
template <bool kStreaming = false>
__device__ __forceinline__ void store_element(Half* p, float value, bool valid) {
  store_two_bytes<kStreaming>(p, half_pair(value, value), valid);
}
template <bool kStreaming = false>
__device__ __forceinline__ void store_element(Bfloat16* p, float value, bool valid) {
  store_two_bytes<kStreaming>(p, bfloat_pair(value, value), valid);
}

}  // namespace ct1d
