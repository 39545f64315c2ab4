// Storage types of x, w, bias and y, and their conversions: 16-bit floats without cuda_fp16.h, so that NVRTC, nvcc and
// the host compiler read the same text. Arithmetic is done in float; from_float rounds to nearest, ties to even.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {

struct Half {
  unsigned short bits;
};
struct Bfloat16 {
  unsigned short bits;
};

CT1D_HD inline float float_of_bits(unsigned bits) {
  union {
    unsigned word;
    float value;
  } both{bits};
  return both.value;
}
CT1D_HD inline unsigned bits_of_float(float value) {
  union {
    float value;
    unsigned word;
  } both{value};
  return both.word;
}

CT1D_HD inline float to_float(float value) { return value; }

CT1D_HD inline float to_float(Bfloat16 value) { return float_of_bits(static_cast<unsigned>(value.bits) << 16); }

CT1D_HD inline float to_float(Half value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const unsigned sign = (value.bits & 0x8000u) << 16;
  const unsigned magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x0400u) return float_of_bits(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * (1.0f / 16777216.0f);  // units of 2^-24
  return sign != 0 ? -subnormal : subnormal;
#endif
}

template <class Element>
CT1D_HD Element from_float(float value);

template <>
CT1D_HD inline float from_float<float>(float value) {
  return value;
}

template <>
CT1D_HD inline Bfloat16 from_float<Bfloat16>(float value) {
  const unsigned word = bits_of_float(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return {static_cast<unsigned short>(word >> 16 | 0x40u)};  // NaN stays NaN
  return {static_cast<unsigned short>((word + 0x7fffu + (word >> 16 & 1u)) >> 16)};
}

template <>
CT1D_HD inline Half from_float<Half>(float value) {
#if defined(__CUDA_ARCH__)
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const unsigned word = bits_of_float(value);
  const unsigned sign = word >> 16 & 0x8000u;
  const unsigned magnitude = word & 0x7fffffffu;
  unsigned bits;
  if (magnitude > 0x7f800000u) {
    bits = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    bits = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {
    const unsigned rebased = magnitude - (112u << 23);
    bits = (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13;
  } else {  // subnormal: adding 0.5 leaves the value in units of 2^-24, rounded, in the low bits
    bits = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
  }
  return {static_cast<unsigned short>(sign | bits)};
#endif
}

}  // namespace ct1d
