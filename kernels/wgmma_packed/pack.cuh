// wgmma_packed: weights as the products read them. Once per weights, a block a row of a panel.
#pragma once

#include "kernels/common/offset_column.cuh"
#include "kernels/wgmma_packed/instance.cuh"

namespace ct1d::wgmma_packed {

template <class I>
__device__ __forceinline__ OffsetColumn<typename I::Element> column_at(const PrepareArguments& a, int64 panel,
                                                                       int row) {
  const Geometry& g = a.geometry;
  const int64 flat = panel * I::width(g) + row;
  const int64 channel = flat / g.stride;
  const auto* const w = static_cast<const typename I::Element*>(a.w) + channel * g.kernel_size;
  return {w,
          g,
          g.in_channels,
          I::kOffsets,
          g.out_channels * g.kernel_size,
          flat - channel * g.stride,
          row < I::width(g) && channel < g.out_channels};
}

template <class I>
__device__ __forceinline__ void pack_row(const PrepareArguments& a) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  const Geometry& g = a.geometry;
  const Packed places = packed_of(I::tunables(), g, I::kOffsets);
  const int64 panel = blockIdx.x / kRows;
  const int row = static_cast<int>(blockIdx.x) % kRows;
  const auto column = column_at<I>(a, panel, row);
  const int64 padded = steps_of(g) * kStepChannels;
  WeightRange range{0, 0};
  Scale scale{1.0f, 1.0f};
  if constexpr (!I::kSmall) {
    range = range_of<kPackThreads>(column);
    scale = scale_of(range.most, 0);
  }
  unsigned char* const packed = static_cast<unsigned char*>(a.packed);
  float* const plain =
      reinterpret_cast<float*>(packed + places.plain) + panel * g.in_channels * I::kOffsets * kRows + row;
  for (int64 ic = threadIdx.x; ic < padded; ic += kPackThreads) {
    const int64 step = panel * steps_of(g) + ic / kStepChannels;
    unsigned short* const halves = reinterpret_cast<unsigned short*>(packed + step * I::kPanelBytes);
    const int channel = static_cast<int>(ic % kStepChannels);
    for (int64 offset = 0; offset < I::kOffsets; ++offset) {
      const float exact = column.at(ic, offset);
      const float value = exact * scale.scale;
      const uint32 hi =
          I::kSplits || I::kSmall ? operand_pair<typename I::Operand>(value, value) : half_pair_away(value, value);
      halves[pack_place(I::kOffsets, 0, offset, channel, row)] = static_cast<unsigned short>(hi);
      if constexpr (I::kSplits) {
        const float rest = (value - low_half(hi)) * kLift;
        halves[pack_place(I::kOffsets, 1, offset, channel, row)] = static_cast<unsigned short>(half_pair(rest, rest));
      }
      if (ic < g.in_channels) {
        const uint32 bits = exact != exact ? 0x7FC00000u : bits_of_float(exact);
        const bool tap = column.exists && column.tap(offset) >= 0;
        plain[(ic * I::kOffsets + offset) * kRows] = float_of_bits(tap ? bits : kNoTap);
      }
    }
  }
  // Two parts keep all their bits from there on, one part is normal.
  constexpr int kBits = 28;
  const bool unfit = !I::kSmall && row == 0 && unbalanced<kBits>(column_at<I>(a, panel, static_cast<int>(threadIdx.x)));
  if (threadIdx.x == 0) {
    constexpr uint32 kRange = static_cast<uint32>(I::kSplits ? kBits : kBits - 1) << 23;
    const bool serves = range.most < 0x7F800000u && (range.most < kRange || range.least >= range.most - kRange);
    reinterpret_cast<float*>(packed + places.inverse)[blockIdx.x] = scale.inverse;
    reinterpret_cast<float*>(packed + places.flag)[blockIdx.x] = (serves || I::kSmall) && !unfit ? 0.0f : 1.0f;
  }
}

}  // namespace ct1d::wgmma_packed
