// fp32 as fp16 parts: scales by powers of two, and whether packed weights have a range that their scales serve. A
// Column has `channels`, `taps` and at(channel, tap): one column of the weights, 0 where there is no channel, column or
// tap.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/shared_memory.cuh"

namespace ct1d {

/// Power of two that takes magnitudes of at most `max_bits` (the bits of a float without its sign) below
/// 2^(15 - headroom), and its inverse; both are normal numbers.
struct Scale {
  float scale;
  float inverse;
};
__device__ __forceinline__ Scale scale_of(uint32 max_bits, int headroom) {
  const int exponent = static_cast<int>(max_bits >> 23);
  int scale = 268 - headroom - exponent;
  scale = scale > 253 ? 253 : scale;
  return {float_of_bits(static_cast<uint32>(scale) << 23), float_of_bits(static_cast<uint32>(254 - scale) << 23)};
}

/// Bits of a column's largest magnitude, and the least of what 16 channels of a tap have for theirs, less one, so that
/// zeros count as the largest of all: some outputs have one tap alone. All threads of the block.
struct WeightRange {
  uint32 most;
  uint32 least;
};
template <int Threads, class Column>
__device__ __forceinline__ WeightRange range_of(const Column& column) {
  // Dynamic, so that the unit has no static shared memory to be added to what `kernel` asks for.
  extern __shared__ __align__(16) unsigned char pack_memory[];
  uint32* const warp_most = reinterpret_cast<uint32*>(pack_memory);
  uint32* const warp_least = warp_most + Threads / 32;
  const int thread = static_cast<int>(threadIdx.x);
  WeightRange range{0, 0xFFFFFFFFu};
  for (int64 first = 0; first < column.channels; first += Threads) {
    for (int64 tap = 0; tap < column.taps; ++tap) {
      uint32 of_step = bits_of_float(column.at(first + thread, tap)) & 0x7FFFFFFFu;
      for (int i = 1; i < 16; i *= 2) {
        const uint32 other = __shfl_xor_sync(0xFFFFFFFFu, of_step, i);
        of_step = other > of_step ? other : of_step;
      }
      range.most = of_step > range.most ? of_step : range.most;
      range.least = of_step - 1 < range.least ? of_step - 1 : range.least;
    }
  }
  for (int i = 16; i < 32; i *= 2) {
    const uint32 most = __shfl_xor_sync(0xFFFFFFFFu, range.most, i);
    const uint32 least = __shfl_xor_sync(0xFFFFFFFFu, range.least, i);
    range.most = most > range.most ? most : range.most;
    range.least = least < range.least ? least : range.least;
  }
  if (thread % 32 == 0) {
    warp_most[thread / 32] = range.most;
    warp_least[thread / 32] = range.least;
  }
  __syncthreads();
  for (int i = 0; i < Threads / 32; ++i) {
    range.most = warp_most[i] > range.most ? warp_most[i] : range.most;
    range.least = warp_least[i] < range.least ? warp_least[i] : range.least;
  }
  return range;
}

/// Whether some channel's weights are, in every column of a panel, more than 2^Bits below the column's largest, too far
/// for fp16 parts: what x has more of there would then be multiplied with too few bits. All threads of the block, a
/// column each.
template <int Bits, class Column>
__device__ __forceinline__ bool unbalanced(const Column& column) {
  const auto largest = [&](int64 ic) {
    uint32 most = 0;
    for (int64 tap = 0; tap < column.taps; ++tap) {
      const uint32 bits = bits_of_float(column.at(ic, tap)) & 0x7FFFFFFFu;
      most = bits > most ? bits : most;
    }
    return most;
  };
  uint32 most = 0;
  for (int64 ic = 0; ic < column.channels; ++ic) {
    const uint32 here = largest(ic);
    most = here > most ? here : most;
  }
  constexpr uint32 kBits = static_cast<uint32>(Bits) << 23;
  bool some = false;
  for (int64 ic = 0; ic < column.channels; ++ic) {
    const uint32 here = largest(ic);
    const bool good = here + kBits >= most && here > 0;
    if (__syncthreads_or(good ? 1 : 0) == 0 && __syncthreads_or(here > 0 ? 1 : 0) != 0) some = true;
  }
  return some;
}

}  // namespace ct1d
