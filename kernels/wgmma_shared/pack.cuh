// wgmma_shared: weights as the products read them. Once per weights, a block an output channel of 128.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// One column of w; 0 where there is no channel, column or tap.
template <class Element>
struct Column {
  const Element* w;
  int64 channels;
  int64 taps;
  int64 row;  // from one channel to the next
  bool exists;
  __device__ __forceinline__ float at(int64 ic, int64 tap) const {
    return exists && ic < channels && tap < taps ? to_float(w[ic * row + tap]) : 0.0f;
  }
};

template <class Element>
__device__ __forceinline__ Column<Element> column_at(const PrepareArguments& a, int oc) {
  const Geometry& g = a.geometry;
  return {static_cast<const Element*>(a.w) + oc * g.kernel_size, g.in_channels, g.kernel_size,
          g.out_channels * g.kernel_size, oc < g.out_channels};
}

template <class I>
__device__ __forceinline__ void pack_channel(const PrepareArguments& a) {
  static_assert(kPackThreads <= kRows, "a thread asks for an output channel of which there are weights");
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  // two parts keep all their bits from there on, one part is normal
  constexpr int kBits = 28;
  const Packed places = packed_of(I::tunables(), a.geometry);
  const int oc = static_cast<int>(blockIdx.x);
  using Element = typename I::Element;
  const Column<Element> column = column_at<Element>(a, oc);
  WeightRange range{0, 0};
  Scale scale{1.0f, 1.0f};
  if constexpr (!I::kSmall) {
    range = range_of<kPackThreads>(column);
    scale = scale_of(range.most, 0);
  }
  unsigned char* const packed = static_cast<unsigned char*>(a.packed);
  unsigned short* const halves = reinterpret_cast<unsigned short*>(packed);
  float* const plain = reinterpret_cast<float*>(packed + places.plain);
  for (int i = static_cast<int>(threadIdx.x); i < I::kSteps * kStepChannels * I::kTaps; i += kPackThreads) {
    const int ic = i / I::kTaps;
    const int tap = i % I::kTaps;
    const float exact = column.at(ic, tap);
    const float value = exact * scale.scale;
    const uint32 hi =
        I::kSplits || I::kSmall ? operand_pair<typename I::Operand>(value, value) : half_pair_away(value, value);
    const float rest = (value - low_half(hi)) * kLift;
    halves[pack_place(I::kTaps, I::kSteps, I::kTunables.parts(), 0, tap, ic, oc)] = static_cast<unsigned short>(hi);
    if (I::kSplits) {
      halves[pack_place(I::kTaps, I::kSteps, I::kTunables.parts(), 1, tap, ic, oc)] =
          static_cast<unsigned short>(half_pair(rest, rest));
    }
    if (ic < a.geometry.in_channels) plain[(ic * I::kTaps + tap) * I::kChannels + oc] = exact;
  }
  const bool unfit = !I::kSmall && oc == 0 && unbalanced<kBits>(column_at<Element>(a, static_cast<int>(threadIdx.x)));
  if (threadIdx.x == 0) {
    constexpr uint32 kRange = static_cast<uint32>(I::kSplits ? kBits : kBits - 1) << 23;
    const bool serves = range.most < 0x7F800000u && (range.most < kRange || range.least >= range.most - kRange);
    reinterpret_cast<float*>(packed + places.inverse)[oc] = scale.inverse;
    reinterpret_cast<float*>(packed + places.flag)[oc] = serves && !unfit ? 0.0f : 1.0f;
  }
}

}  // namespace ct1d::wgmma_shared
