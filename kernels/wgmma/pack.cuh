// wgmma: weights as the products read them. Once per weights, a block a column of a panel.
#pragma once

#include "kernels/common/placed.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

/// One column of w by offsets; 0 where there is no channel, column or tap.
template <class Element>
struct Column {
  const Element* w;
  Geometry geometry;
  int64 channels;
  int64 taps;  // offsets
  int64 row;   // from one channel to the next
  int64 phase;
  bool exists;
  __device__ __forceinline__ int64 tap(int64 offset) const { return tap_at(geometry, phase, offset); }
  __device__ __forceinline__ float at(int64 ic, int64 offset) const {
    if (!exists || ic >= channels) return 0.0f;
    const int64 k = tap(offset);
    return k >= 0 ? to_float(w[ic * row + k]) : 0.0f;
  }
};
template <class I>
__device__ __forceinline__ Column<typename I::Element> column_at(const PrepareArguments& a, int panel, int column) {
  const Geometry& g = a.geometry;
  const Panel p =
      panel_of(panel, I::kColumns, static_cast<int>(extent_of(I::tunables(), g).group_panels),
               static_cast<int>(g.in_per_group()), static_cast<int>(g.out_per_group()), static_cast<int>(g.stride));
  const int64 row = g.out_per_group() * g.kernel_size;
  const int64 channel = (p.first_column + column) / g.stride;
  const int64 phase = (p.first_column + column) % g.stride;
  const typename I::Element* const w =
      static_cast<const typename I::Element*>(a.w) + p.first_in * row + channel * g.kernel_size;
  return {w, g, g.in_per_group(), offsets_of(g).count, row, phase, column < p.columns};
}

/// Bits of a column's largest magnitude, and the least of what 16 channels of a tap have for theirs, less one, so that
/// zeros count as the largest of all: some outputs have one tap alone. All threads of the block.
struct WeightRange {
  uint32 most;
  uint32 least;
};
template <class I>
__device__ __forceinline__ WeightRange range_of(const Column<typename I::Element>& column, int64 steps_channels) {
  // Dynamic, so that the unit has no static shared memory to be added to what `kernel` asks for.
  extern __shared__ __align__(16) unsigned char pack_memory[];
  uint32* const warp_most = reinterpret_cast<uint32*>(pack_memory);
  uint32* const warp_least = warp_most + kPackThreads / 32;
  const int thread = static_cast<int>(threadIdx.x);
  WeightRange range{0, 0xFFFFFFFFu};
  for (int64 first = 0; first < steps_channels; first += kPackThreads) {
    for (int64 tap = 0; tap < column.taps; ++tap) {
      uint32 of_step = bits_of_float(column.at(first + thread, tap)) & 0x7FFFFFFFu;
      for (int i = 1; i < kStepChannels; i *= 2) {
        const uint32 other = __shfl_xor_sync(0xFFFFFFFFu, of_step, i);
        of_step = other > of_step ? other : of_step;
      }
      range.most = of_step > range.most ? of_step : range.most;
      range.least = of_step - 1 < range.least ? of_step - 1 : range.least;
    }
  }
  for (int i = kStepChannels; i < 32; i *= 2) {
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
  for (int i = 0; i < kPackThreads / 32; ++i) {
    range.most = warp_most[i] > range.most ? warp_most[i] : range.most;
    range.least = warp_least[i] < range.least ? warp_least[i] : range.least;
  }
  return range;
}

/// Whether some channel's weights are, in every column of the panel, too far below the column's largest for fp16 parts:
/// what x has more of there would then be multiplied with too few bits. All threads of the block, a column each.
template <class I>
__device__ __forceinline__ bool unbalanced(const Column<typename I::Element>& column) {
  static_assert(I::kColumns <= kPackThreads, "a thread has a column");
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
  constexpr uint32 kBits = (I::kSplits ? 18u : 29u) << 23;  // two parts, or one, have all of theirs down to there
  bool some = false;
  for (int64 ic = 0; ic < column.channels; ++ic) {
    const uint32 here = largest(ic);
    const bool good = here + kBits >= most && here > 0;
    if (__syncthreads_or(good ? 1 : 0) == 0 && __syncthreads_or(here > 0 ? 1 : 0) != 0) some = true;
  }
  return some;
}

template <class I>
__device__ __forceinline__ void pack_column(const PrepareArguments& a) {
  const Geometry& g = a.geometry;
  const Packed places = packed_of(I::tunables(), g);
  const Extent extent = extent_of(I::tunables(), g);
  const int panel = static_cast<int>(blockIdx.x) / I::kColumns;
  const int place = static_cast<int>(blockIdx.x) % I::kColumns;
  const Column<typename I::Element> column = column_at<I>(a, panel, place);
  const int64 padded = ceil_div(column.channels, kStepChannels) * kStepChannels;
  WeightRange range{0, 0};
  Scale scale{1.0f, 1.0f};
  if constexpr (!I::kSmall) {
    range = range_of<I>(column, padded);
    scale = scale_of(range.most, 0);
  }
  unsigned char* const packed = static_cast<unsigned char*>(a.packed);
  float* const plain =
      reinterpret_cast<float*>(packed + places.plain) + panel * column.channels * column.taps * I::kColumns + place;
  for (int64 ic = threadIdx.x; ic < padded; ic += kPackThreads) {
    for (int64 k = 0; k < extent.windows * I::kTaps; ++k) {
      const float exact = column.at(ic, k);
      const float value = exact * scale.scale;
      const uint32 hi =
          I::kSplits || I::kSmall ? operand_pair<typename I::Operand>(value, value) : half_pair_away(value, value);
      const float rest = value - low_half(hi);
      const int64 step = panel * extent.steps + ic / kStepChannels * extent.windows + k / I::kTaps;
      unsigned short* const halves = reinterpret_cast<unsigned short*>(packed + step * I::kStepBytes);
      const int tap = static_cast<int>(k % I::kTaps);
      const int channel = static_cast<int>(ic % kStepChannels);
      halves[pack_place(I::tunables(), 0, tap, channel, place)] = static_cast<unsigned short>(hi);
      if (I::kSplits) {
        halves[pack_place(I::tunables(), 1, tap, channel, place)] = static_cast<unsigned short>(half_pair(rest, rest));
      }
      if (ic < column.channels && k < column.taps) {
        const uint32 bits = exact != exact ? 0x7FC00000u : bits_of_float(exact);
        plain[(ic * column.taps + k) * I::kColumns] = float_of_bits(column.tap(k) >= 0 ? bits : kNoTap);
      }
    }
  }
  const bool unfit = !I::kSmall && place == 0 &&
                     unbalanced<I>(column_at<I>(a, panel, static_cast<int>(threadIdx.x)));  // one block a panel asks
  if (threadIdx.x == 0) {
    constexpr uint32 kRange = (I::kSplits ? 18u : 28u) << 23;  // down to where `serves` goes for x
    const bool serves = range.most < 0x7F800000u && (range.most < kRange || range.least >= range.most - kRange);
    reinterpret_cast<float*>(packed + places.inverse)[blockIdx.x] = scale.inverse;
    reinterpret_cast<float*>(packed + places.flag)[blockIdx.x] = serves && !unfit ? 0.0f : 1.0f;
  }
}

}  // namespace ct1d::wgmma
