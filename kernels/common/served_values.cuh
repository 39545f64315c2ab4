// Which fp32 values a scale of fp16 parts serves, told by pairs of their high parts.
#pragma once

#include "kernels/common/placed.cuh"

namespace ct1d {

inline constexpr uint32 kInfinity = 0x7F800000u;
inline constexpr float kMost = 60000.0f;        // the largest scaled magnitude that fp16 parts serve
inline constexpr float kLeast = 0x1p-14f;       // the least: it has 11 bits in one part, and 11 more in the other
inline constexpr float kNoOverflow = 0x1p103f;  // sums of products with scaled weights stay finite

/// Largest and least magnitudes of the high parts of values, by pairs.
struct Seen {
  uint32 most = 0;
  uint32 least = 0x7C007C00u;
};
/// One part is a TF32 number in all but its exponent, ties away from zero. Where rows have few outputs each is rounded
/// so; else a scale above the power of two by an ulp takes ties over the middle, and of 8192 values one or two that lie
/// within two ulps of fp32 below it: as large an error as theirs, the other way, which shows only where a row has few.
__device__ __forceinline__ bool rounds_each(const Geometry& g) { return g.length_out < 1024; }
/// What values are multiplied with before they are rounded to parts by first_parts().
template <bool Splits, bool Each>
__device__ __forceinline__ float part_factor(float scale) {
  return Splits || Each ? scale : scale * 0x1.000002p0f;
}
template <bool Splits, bool Each>
__device__ __forceinline__ uint32 first_parts(float low, float high) {
  return !Splits && Each ? half_pair_away(low, high) : half_pair(low, high);
}

}  // namespace ct1d
