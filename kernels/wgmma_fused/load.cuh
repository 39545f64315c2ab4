// wgmma_fused: x of a tile of places and 16 channels in a producer warp's registers.
#pragma once

#include "kernels/wgmma_fused/instance.cuh"
#include "kernels/wgmma_packed/pack_x.cuh"

namespace ct1d::wgmma_fused {

using wgmma_packed::Source;

/// Bits of an element as the products read it: of fp32 the number itself.
__device__ __forceinline__ float load_raw(const float* p) { return load_constant(p); }
template <class Element>
__device__ __forceinline__ uint32 load_raw(const Element* p) {
  return load_constant(&p->bits);
}

/// 16 channels of the tile's places lane, lane + 32, ...; and the first 32 values before the tile: place lane / 16 of
/// the halo, channel lane % 16.
template <class I>
struct Values {
  using Raw = decltype(load_raw(static_cast<const typename I::Element*>(nullptr)));
  Raw at[I::kColumns][kStepChannels];
  Raw before;
};

/// What a warp converts: the block's place group, the step, the tile of places.
struct Job {
  unsigned place;  // of the block's groups of places
  int half;
  int step;
  int first;  // the tile's first place
};
template <class I>
__device__ __forceinline__ Job job_of(uint32 shared, unsigned image) {
  const Share s = load_share<I>(shared);
  Job job{};
  job.place = image / I::kImages;
  const int within = static_cast<int>(image - job.place * I::kImages);
  job.half = within % I::kPlaceTiles;
  job.step = within / I::kPlaceTiles;
  job.first = static_cast<int>((s.first + job.place * s.step) * I::kPlaceTiles + job.half) * I::kT;
  return job;
}

/// Where a place lies in x, from channel `channel` on; `exists`: that it does.
template <class I>
__device__ __forceinline__ Source<typename I::Element> source_at(const RunArguments& a, uint32 shared, int place,
                                                                 int channel) {
  const Geometry& g = a.geometry;
  const uint4 p = load_shared_16(shared + I::kShared.schedule + 32);
  Source<typename I::Element> source = wgmma_packed::source_of<I>(a, {p.x, p.y, p.z}, place);
  source.x += channel * g.x_row_stride;
  return source;
}

/// Value `index` of those before a tile: 0 where there is none.
template <class I>
__device__ __forceinline__ typename Values<I>::Raw load_before(const RunArguments& a, uint32 shared, const Job& job,
                                                               int index) {
  const int channel = job.step * kStepChannels + index % kStepChannels;
  if (index >= I::kHalo * kStepChannels || channel >= a.geometry.in_channels) return 0;
  const auto source = source_at<I>(a, shared, job.first - I::kHalo + index / kStepChannels, channel);
  return source.exists ? load_raw(source.x) : 0;
}

template <class I>
__device__ __forceinline__ void load_values(Values<I>& v, const RunArguments& a, uint32 shared, const Job& job) {
  const Geometry& g = a.geometry;
  const int lane = lane_of_warp();
  const int channel = job.step * kStepChannels;
  const int channels = static_cast<int>(g.in_channels) - channel;
  const uint32 stride = static_cast<uint32>(g.x_row_stride);
  if constexpr (I::kHalo > 0) v.before = load_before<I>(a, shared, job, lane);
  const auto own = source_at<I>(a, shared, job.first + lane, channel);
  const auto end = source_at<I>(a, shared, job.first + I::kT - 1, channel);
  // Whole, all of one item: neighbouring places are neighbours in x.
  const bool whole = __all_sync(0xFFFFFFFFu, own.exists && end.exists && end.x - own.x == I::kT - 1 - lane);
  if (whole && channels >= kStepChannels) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      const auto* const row = c == 0 ? own.x : step_pointer(own.x, stride, static_cast<uint32>(c));
#pragma unroll
      for (int j = 0; j < I::kColumns; ++j) v.at[j][c] = load_raw(row + 32 * j);
    }
  } else {
#pragma unroll
    for (int j = 0; j < I::kColumns; ++j) {
      const auto source = j == 0 ? own : source_at<I>(a, shared, job.first + 32 * j + lane, channel);
      const int here = source.exists ? channels : 0;
#pragma unroll
      for (int c = 0; c < kStepChannels; ++c) {
        const auto* const row = step_pointer(source.x, stride, static_cast<uint32>(c));
        v.at[j][c] = c < here ? load_raw(row) : 0;
      }
    }
  }
}

}  // namespace ct1d::wgmma_fused
