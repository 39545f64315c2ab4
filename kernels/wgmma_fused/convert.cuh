// wgmma_fused: a warp's values as an image in shared memory: fp16 parts of fp32, or 16 bits as they are; and what a
// scale does not serve.
#pragma once

#include "kernels/wgmma_fused/load.cuh"

namespace ct1d::wgmma_fused {

using wgmma_packed::unserved;

/// Sixteen channels of a place into its row of an image, 8 a slab.
template <class I>
__device__ __forceinline__ void store_row(uint32 image, int row, int part, const uint32 (&words)[8]) {
#pragma unroll
  for (int slab = 0; slab < 2; ++slab) {
    const uint32* const w = words + 4 * slab;
    store_shared_16(image + static_cast<uint32>((part * 2 + slab) * I::kSlabBytes + row * 16), w[0], w[1], w[2], w[3]);
  }
}

/// fp32 x: scaled, as fp16 parts.
template <class I, bool Each>
__device__ __forceinline__ void store_scaled(const float (&v)[kStepChannels], float scale, uint32 image, int row,
                                             Seen& seen) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  const float factor = part_factor<I::kSplits, Each>(scale);
  uint32 high[8];
  uint32 low[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float a = v[2 * i] * factor;
    const float b = v[2 * i + 1] * factor;
    high[i] = first_parts<I::kSplits, Each>(a, b);
    seen.most = larger_halves(seen.most, high[i]);
    seen.least = lesser_halves(seen.least, high[i]);
    if constexpr (I::kSplits) {
      low[i] = half_pair((a - low_half(high[i])) * kLift, (b - high_half(high[i])) * kLift);
    }
  }
  store_row<I>(image, row, 0, high);
  if constexpr (I::kSplits) store_row<I>(image, row, 1, low);
}
template <class I>
__device__ __forceinline__ void store_one_scaled(float v, float scale, uint32 image, int row, int channel) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  const uint32 to = image + static_cast<uint32>(channel / 8 * I::kSlabBytes + row * 16 + channel % 8 * 2);
  const float value = v * scale;
  const uint32 high = first_parts<I::kSplits, true>(value, value);
  store_shared_2(to, static_cast<unsigned short>(high));
  if constexpr (I::kSplits) {
    const float rest = (value - low_half(high)) * kLift;
    store_shared_2(to + 2 * I::kSlabBytes, static_cast<unsigned short>(half_pair(rest, rest)));
  }
}

/// The largest finite magnitude that a warp's lanes hold, of the whole halo too: its bits.
template <class I>
__device__ __forceinline__ uint32 largest_of(const Values<I>& v, const RunArguments& a, uint32 shared, const Job& job) {
  float most = 0.0f;
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) most = fmaxf(most, fabsf(v.at[j][c]));  // without NaN
  }
  if constexpr (I::kHalo > 0) most = fmaxf(most, fabsf(v.before));
#pragma unroll 1
  for (int i = 32 + lane_of_warp(); i < I::kHalo * kStepChannels; i += 32)
    most = fmaxf(most, fabsf(load_before<I>(a, shared, job, i)));
  const uint32 largest = __reduce_max_sync(0xFFFFFFFFu, bits_of_float(most));
  if (largest < kInfinity) return largest;
  most = 0.0f;
  const auto see = [&most](float value) {
    const float magnitude = fabsf(value);
    most = bits_of_float(magnitude) < kInfinity ? fmaxf(most, magnitude) : most;
  };
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) see(v.at[j][c]);
  }
#pragma unroll 1
  for (int i = lane_of_warp(); i < I::kHalo * kStepChannels; i += 32) see(load_before<I>(a, shared, job, i));
  return __reduce_max_sync(0xFFFFFFFFu, bits_of_float(most));
}

/// Bits left above the largest value of the places before: it lies below 2^(15 - kHeadroom), fp16 ends at 2^16.
inline constexpr int kHeadroom = 5;
/// A value beyond kNoOverflow has a scale whose inverse is larger.
inline constexpr float kHuge = 0x1p88f;

/// The fours of the tile's places that values have a part in which the scale does not serve.
template <class I>
__device__ __forceinline__ unsigned long long unserved_fours(const Values<I>& v, const Geometry& g, float scale) {
  unsigned long long bad = 0;
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
    bool any = false;
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) any = any || unserved(v.at[j][c], scale);
    if (any) bad |= wgmma_packed::fours_of<I>(g, 32 * j + lane_of_warp());
  }
  return bad;
}

/// A warp's values of fp32 into an image; what the scale does not serve is flagged. The largest finite magnitude, or
/// nearly, as bits.
template <class I>
__device__ __forceinline__ uint32 convert(const Values<I>& v, const RunArguments& a, uint32 shared, const Job& job,
                                          const Scale& scale, uint32 image) {
  const Geometry& g = a.geometry;
  const int lane = lane_of_warp();
  unsigned long long bad = 0;
  Seen seen;
  if (!I::kSplits && rounds_each(g)) {
#pragma unroll
    for (int j = 0; j < I::kColumns; ++j)
      store_scaled<I, true>(v.at[j], scale.scale, image, I::kHalo + 32 * j + lane, seen);
  } else {
#pragma unroll
    for (int j = 0; j < I::kColumns; ++j)
      store_scaled<I, false>(v.at[j], scale.scale, image, I::kHalo + 32 * j + lane, seen);
  }
  // High parts tell most lanes that all is well; zeros, and what became zero, are looked at one by one.
  const uint32 most = max(seen.most & 0xFFFFu, seen.most >> 16);
  const uint32 least = min(seen.least & 0xFFFFu, seen.least >> 16);
  const bool huge = scale.inverse > kHuge;
  const uint32 limit = half_pair(kMost, 0.0f);
  if (most > limit || least < 0x0400u || huge) bad = unserved_fours<I>(v, g, scale.scale);
  const auto convert_before = [&](float value, int index) {
    const int row = index / kStepChannels;
    if (unserved(value, scale.scale)) bad |= wgmma_packed::fours_of<I>(g, row - I::kHalo);
    store_one_scaled<I>(value, scale.scale, image, row, index % kStepChannels);
  };
  if (lane < I::kHalo * kStepChannels) convert_before(v.before, lane);
#pragma unroll 1
  for (int i = 32 + lane; i < I::kHalo * kStepChannels; i += 32) convert_before(load_before<I>(a, shared, job, i), i);
  if (bad != 0) {
    const uint32 flags = flags_place<I>(shared, job.place, job.half);
    or_shared_4(flags, static_cast<uint32>(bad));
    or_shared_4(flags + 4, static_cast<uint32>(bad >> 32));
  }
  const uint32 highest = __reduce_max_sync(0xFFFFFFFFu, most);
  return highest <= limit ? bits_of_float(low_half(highest) * scale.inverse) : largest_of<I>(v, a, shared, job);
}

/// The same of 16 bits, as they are.
template <class I>
__device__ __forceinline__ void copy_values(const Values<I>& v, const RunArguments& a, uint32 shared, const Job& job,
                                            uint32 image) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
    uint32 words[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i] = v.at[j][2 * i] | v.at[j][2 * i + 1] << 16;
    store_row<I>(image, I::kHalo + 32 * j + lane, 0, words);
  }
  const auto copy_before = [&](uint32 value, int index) {
    const int channel = index % kStepChannels;
    store_shared_2(
        image + static_cast<uint32>(channel / 8 * I::kSlabBytes + index / kStepChannels * 16 + channel % 8 * 2),
        static_cast<unsigned short>(value));
  };
  if (lane < I::kHalo * kStepChannels) copy_before(v.before, lane);
#pragma unroll 1
  for (int i = 32 + lane; i < I::kHalo * kStepChannels; i += 32) copy_before(load_before<I>(a, shared, job, i), i);
}

}  // namespace ct1d::wgmma_fused
