// mma: weights as the products read them. Once per weights, a block a column of a panel.
#pragma once

#include "kernels/mma/instance.cuh"

namespace ct1d::mma {

/// One column; 0 where there is no channel, column or tap.
template <class Element>
struct Column {
  const Element* w;
  int64 phase;
  bool exists;
  __device__ __forceinline__ float at(const Geometry& g, int64 ic, int64 j) const {
    if (!exists || ic >= g.in_per_group()) return 0.0f;
    const int64 k = tap_at(g, phase, j);
    return k < 0 ? 0.0f : to_float(w[ic * g.out_per_group() * g.kernel_size + k]);
  }
};
template <class I>
__device__ __forceinline__ Column<typename I::Element> column_at(const PrepareArguments& a, const Plan& p, int64 panel,
                                                                 int place) {
  const Geometry& g = a.geometry;
  const int64 group = panel / p.panels;
  const int64 column = (panel - group * p.panels) * p.width + place;
  const int64 oc = column / g.stride;
  const auto* w = static_cast<const typename I::Element*>(a.w);
  return {w + (group * g.in_per_group() * g.out_per_group() + oc) * g.kernel_size, column - oc * g.stride,
          place < p.width && oc < g.out_per_group()};
}

__device__ __forceinline__ uint32 magnitude(float v) { return bits_of_float(v) & 0x7FFFFFFFu; }

/// The largest of all threads' values. `memory` holds one of each.
__device__ __forceinline__ uint32 largest_of(uint32 value, uint32* memory) {
  __syncthreads();
  memory[threadIdx.x] = value;
  __syncthreads();
  for (int i = 0; i < kPackThreads; ++i) value = memory[i] > value ? memory[i] : value;
  return value;
}

/// Whether weights of some step, of some tap (all that an output near an end may meet), are too far below the column's
/// largest for its scale.
template <class I>
__device__ __forceinline__ bool uneven(const Geometry& g, const Plan& p, const Column<typename I::Element>& column,
                                       uint32 most, uint32* memory) {
  constexpr uint32 kRange = (I::kSplits ? 18u : 29u) << 23;
  const uint32 least = most > kRange ? most - kRange : 0;
  bool some = false;
  for (int64 step = threadIdx.x; step < p.steps; step += kPackThreads) {
    const int64 chunk = step / p.windows;
    const int64 window = step - chunk * p.windows;
    uint32 here = 0;
    for (int ic = 0; ic < p.channels; ++ic) {
      for (int j = 0; j < I::kTaps * p.folded; ++j) {
        const uint32 bits = magnitude(column.at(g, chunk * p.channels + ic, window * I::kTaps * p.folded + j));
        here = bits > here ? bits : here;
      }
    }
    some = some || (here != 0 && here < least);
  }
  for (int64 j = threadIdx.x; j < p.taps; j += kPackThreads) {
    uint32 here = 0;
    for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
      const uint32 bits = magnitude(column.at(g, ic, j));
      here = bits > here ? bits : here;
    }
    some = some || (here != 0 && here < least);
  }
  return largest_of(some ? 1 : 0, memory) != 0;
}

/// Whether some channel's weights are, in every column of the panel, too far below the column's largest: what x has
/// more of there would be multiplied with too few bits.
template <class I>
__device__ __forceinline__ bool unbalanced(const PrepareArguments& a, const Plan& p, int64 panel, uint32* memory) {
  const Geometry& g = a.geometry;
  constexpr uint32 kRange = (I::kSplits ? 18u : 29u) << 23;
  constexpr int kEach = (I::kColumns + kPackThreads - 1) / kPackThreads;
  const auto largest = [&](int64 ic, int i) {
    const auto column = column_at<I>(a, p, panel, static_cast<int>(threadIdx.x) + i * kPackThreads);
    uint32 most = 0;
    for (int64 j = 0; j < p.taps; ++j) {
      const uint32 bits = magnitude(column.at(g, ic, j));
      most = bits > most ? bits : most;
    }
    return most;
  };
  uint32 most[kEach] = {};
  for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
    for (int i = 0; i < kEach; ++i) {
      const uint32 here = largest(ic, i);
      most[i] = here > most[i] ? here : most[i];
    }
  }
  bool some = false;
  for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
    uint32 found = 0;  // bit 0: weights that are not zero; bit 1: such as are large enough
    for (int i = 0; i < kEach; ++i) {
      const uint32 here = largest(ic, i);
      if (here > 0) found |= here + kRange >= most[i] ? 3u : 1u;
    }
    const uint32 any = largest_of(found, memory);
    some = some || any == 1u;
  }
  return some;
}

template <class I>
__device__ __forceinline__ void pack_column(const PrepareArguments& a, const Plan& p, int64 index, uint32* memory) {
  const Geometry& g = a.geometry;
  const Packed places = packed_of(I::tunables(), p, g, I::kBytes);
  const int64 panel = index / I::kColumns;
  const int place = static_cast<int>(index - panel * I::kColumns);
  const auto column = column_at<I>(a, p, panel, place);
  unsigned char* const packed = static_cast<unsigned char*>(a.packed);
  uint32 most = 0;
  for (int64 i = threadIdx.x; i < g.in_per_group() * p.taps; i += kPackThreads) {
    const uint32 bits = magnitude(column.at(g, i / p.taps, i % p.taps));
    most = bits > most ? bits : most;
  }
  most = largest_of(most, memory);
  const Scale scale = I::kScales ? scale_of(most, 0) : Scale{1.0f, 1.0f};
  const int64 terms = p.steps * I::kTaps * kTerms;
  for (int64 i = threadIdx.x; i < terms; i += kPackThreads) {
    const int64 step = i / (I::kTaps * kTerms);
    const int within = static_cast<int>(i - step * (I::kTaps * kTerms));
    const int tap = within / kTerms;
    const int term = within % kTerms;
    const int64 chunk = step / p.windows;
    const int64 j = ((step - chunk * p.windows) * I::kTaps + tap) * p.folded + term / p.channels;
    const float value = column.at(g, chunk * p.channels + term % p.channels, j) * scale.scale;
    auto* const to = reinterpret_cast<typename I::Operand*>(
        packed + (panel * p.steps + step) * step_bytes(I::tunables()) + tap * product_bytes(I::tunables()));
    auto high = from_float<typename I::Operand>(value);
    if constexpr (I::kScales && !I::kSplits) high.bits = static_cast<unsigned short>(half_pair_away(value, value));
    to[pack_place(I::tunables(), 0, term, place)] = high;
    if constexpr (I::kSplits)
      to[pack_place(I::tunables(), 1, term, place)] = from_float<typename I::Operand>(value - to_float(high));
  }
  bool unfit = most >= 0x7F800000u;
  if constexpr (I::kScales) {
    const bool bad = uneven<I>(g, p, column, most, memory);
    unfit = unfit || bad;
    if (place == 0) {
      const bool worse = unbalanced<I>(a, p, panel, memory);
      unfit = unfit || worse;
    }
  }
  if (threadIdx.x == 0) {
    reinterpret_cast<float*>(packed + places.inverse)[index] = scale.inverse;
    reinterpret_cast<float*>(packed + places.flag)[index] = unfit ? 1.0f : 0.0f;
  }
}

template <class I>
__device__ __forceinline__ void pack_all(const PrepareArguments& a) {
  extern __shared__ __align__(16) unsigned char pack_memory[];
  const Geometry& g = a.geometry;
  const Plan p = plan_of(I::tunables(), g);
  const int64 columns = p.panels * g.groups * I::kColumns;
  for (int64 i = blockIdx.x; i < columns; i += gridDim.x)
    pack_column<I>(a, p, i, reinterpret_cast<uint32*>(pack_memory));
  const int64 count = g.in_channels * g.out_per_group() * g.kernel_size;
  auto* const plain = reinterpret_cast<typename I::Element*>(static_cast<unsigned char*>(a.packed) +
                                                             packed_of(I::tunables(), p, g, I::kBytes).plain);
  for (int64 i = static_cast<int64>(blockIdx.x) * kPackThreads + threadIdx.x; i < count;
       i += static_cast<int64>(gridDim.x) * kPackThreads)
    plain[i] = static_cast<const typename I::Element*>(a.w)[i];
}

}  // namespace ct1d::mma
