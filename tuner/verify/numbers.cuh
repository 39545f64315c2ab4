// Number formats and exactly reproducible arithmetic, read alike by the host compiler and by NVRTC.
//
// Written apart from kernels/common/element.cuh on purpose: what proves the kernels shares no conversion with them.
#pragma once

#include "kernels/common/geometry.h"

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstring>
#endif

namespace ct1d::check {

using uint64 = unsigned long long;

/// Storage of x, w, bias and y; the order is tuner::Element's.
enum class Storage : int { f32, f16, bf16 };
struct F16 {
  unsigned short bits;
};
struct Bf16 {
  unsigned short bits;
};

CT1D_HD inline uint64 bits_of(double value) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint64>(__double_as_longlong(value));
#else
  uint64 bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
CT1D_HD inline double double_of(uint64 bits) {
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(static_cast<long long>(bits));
#else
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
CT1D_HD inline unsigned bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
CT1D_HD inline float float_of(unsigned bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// Rounded on their own, never fused: the same bits on every machine.
CT1D_HD inline double multiply(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
CT1D_HD inline double add(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
CT1D_HD inline float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
CT1D_HD inline float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

CT1D_HD inline double magnitude(double value) { return double_of(bits_of(value) & 0x7fffffffffffffffull); }
CT1D_HD inline bool is_nan(double value) { return value != value; }
CT1D_HD inline bool is_finite(double value) { return (bits_of(value) >> 52 & 0x7ff) != 0x7ff; }
CT1D_HD inline double infinity() { return double_of(0x7ff0000000000000ull); }
/// 2^exponent, -1022 to 1023.
CT1D_HD inline double power_of_two(int exponent) { return double_of(static_cast<uint64>(exponent + 1023) << 52); }
/// floor(log2 |value|) of a normal number; -1023 for zero and subnormal ones.
CT1D_HD inline int exponent_of(double value) { return static_cast<int>(bits_of(value) >> 52 & 0x7ff) - 1023; }

struct Format {
  int digits;        // of the significand, the hidden one included
  int min_exponent;  // 2^min_exponent is the smallest normal number
  double largest;    // finite
};

CT1D_HD inline Format format_of(Storage storage) {
  if (storage == Storage::f16) return {11, -14, 65504.0};
  if (storage == Storage::bf16) return {8, -126, 255 * power_of_two(120)};
  return {24, -126, 16777215 * power_of_two(104)};
}

/// Distance of neighbouring numbers of the format at `value`.
CT1D_HD inline double ulp(double value, const Format& format) {
  const int exponent = exponent_of(value);
  return power_of_two((exponent > format.min_exponent ? exponent : format.min_exponent) - format.digits + 1);
}

/// Smallest magnitude that rounds to infinity.
CT1D_HD inline double overflow_threshold(const Format& format) {
  return format.largest + ulp(format.largest, format) / 2;
}

/// Nearest number of the format, ties to even; beyond its range an infinity.
CT1D_HD inline double round_to(double value, const Format& format) {
  if (!is_finite(value) || value == 0) return value;
  if (magnitude(value) >= overflow_threshold(format)) return value > 0 ? infinity() : -infinity();
  const double unit = ulp(value, format);
#if defined(__CUDA_ARCH__)
  return rint(value / unit) * unit;
#else
  return std::nearbyint(value / unit) * unit;
#endif
}

/// Nearest TF32 number (11 significant bits), ties away from zero, as cvt.rna.tf32.f32 rounds.
CT1D_HD inline float round_to_tf32(float value) {
  const unsigned bits = bits_of(value);
  if ((bits >> 23 & 0xff) == 0xff) return value;
  return float_of((bits + 0x1000u) & 0xffffe000u);
}

CT1D_HD inline float widen(float value) { return value; }
CT1D_HD inline float widen(Bf16 value) { return float_of(static_cast<unsigned>(value.bits) << 16); }
CT1D_HD inline float widen(F16 value) {
  const int exponent = value.bits >> 10 & 0x1f, fraction = value.bits & 0x3ff;
  double result = fraction * power_of_two(-24);
  if (exponent == 0x1f)
    return float_of((value.bits & 0x8000u) << 16 | 0x7f800000u | static_cast<unsigned>(fraction) << 13);
  if (exponent > 0) result = (1024 + fraction) * power_of_two(exponent - 25);
  return static_cast<float>(value.bits & 0x8000 ? -result : result);
}

/// Stores a number that the format holds exactly.
CT1D_HD inline void store(void* target, int64 index, float value, Storage storage) {
  const unsigned bits = bits_of(value);
  if (storage == Storage::f32) {
    static_cast<float*>(target)[index] = value;
  } else if (storage == Storage::bf16) {
    static_cast<unsigned short*>(target)[index] = static_cast<unsigned short>(bits >> 16);
  } else {
    const unsigned sign = bits >> 16 & 0x8000u;
    const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
    unsigned half = (static_cast<unsigned>(exponent + 15) << 10) | (bits >> 13 & 0x3ffu);
    if (exponent == 128) half = 0x7c00u | (bits & 0x7fffffu ? 0x200u : 0u);
    if (exponent < -14) half = static_cast<unsigned>(magnitude(value) * 16777216.0);  // units of 2^-24
    static_cast<unsigned short*>(target)[index] = static_cast<unsigned short>(sign | half);
  }
}

}  // namespace ct1d::check
