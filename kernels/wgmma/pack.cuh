// wgmma: weights as the products read them. Once per weights, a block a column of a panel.
#pragma once

#include "kernels/common/fp16_parts.cuh"
#include "kernels/common/offset_column.cuh"
#include "kernels/common/placed.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

template <class I>
__device__ __forceinline__ OffsetColumn<typename I::Element> column_at(const PrepareArguments& a, int panel,
                                                                       int column) {
  const Geometry& g = a.geometry;
  const Panel p =
      panel_of(panel, I::kWidth, static_cast<int>(extent_of(I::tunables(), g).group_panels),
               static_cast<int>(g.in_per_group()), static_cast<int>(g.out_per_group()), static_cast<int>(g.stride));
  const int64 row = g.out_per_group() * g.kernel_size;
  const int64 channel = (p.first_column + column) / g.stride;
  const int64 phase = (p.first_column + column) % g.stride;
  const typename I::Element* const w =
      static_cast<const typename I::Element*>(a.w) + p.first_in * row + channel * g.kernel_size;
  return {w, g, g.in_per_group(), offsets_of(g).count, row, phase, column < p.columns};
}

template <class I>
__device__ __forceinline__ void pack_column(const PrepareArguments& a) {
  const Geometry& g = a.geometry;
  const Packed places = packed_of(I::tunables(), g);
  const Extent extent = extent_of(I::tunables(), g);
  const int panel = static_cast<int>(blockIdx.x) / I::kColumns;
  const int place = static_cast<int>(blockIdx.x) % I::kColumns;
  const OffsetColumn<typename I::Element> column = column_at<I>(a, panel, place);
  const int64 padded = extent.slice_channels * I::kSplit;
  WeightRange range{0, 0};
  Scale scale{1.0f, 1.0f};
  if constexpr (!I::kSmall) {
    range = range_of<kPackThreads>(column);
    scale = scale_of_halves(range.most, 0);
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
      const int64 step = panel * I::kSplit * extent.steps + ic / kStepChannels * extent.windows + k / I::kTaps;
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
  static_assert(I::kColumns <= kPackThreads, "a thread has a column");
  constexpr int kBits = I::kSplits ? 18 : 29;  // two parts, or one, have all of theirs down to there
  const bool unfit =
      !I::kSmall && place == 0 &&
      unbalanced<kBits>(column_at<I>(a, panel, static_cast<int>(threadIdx.x)));  // one block a panel asks
  if (threadIdx.x == 0) {
    constexpr uint32 kRange = (I::kSplits ? 18u : 28u) << 23;  // down to where `serves` goes for x
    const bool serves = range.most < 0x7F800000u && (range.most < kRange || range.least >= range.most - kRange);
    reinterpret_cast<float*>(packed + places.inverse)[blockIdx.x] = scale.inverse;
    reinterpret_cast<float*>(packed + places.flag)[blockIdx.x] = serves && !unfit ? 0.0f : 1.0f;
  }
}

}  // namespace ct1d::wgmma
