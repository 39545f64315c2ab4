// wgmma_fused: what the producer warps do: images of x one after the other, their scales, and the copies of weights.
#pragma once

#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma_fused/convert.cuh"

namespace ct1d::wgmma_fused {

/// Of a group of places, image by image. What a warp looks back at is there: kBehind.
template <class I>
__device__ __forceinline__ uint32 maximum_place(uint32 shared, unsigned place, unsigned image) {
  return shared + I::kShared.maxima + (place % I::kRounds * I::kImages + image) * 4;
}
/// The scale of a group of places comes from the data before it: of the images that the block's warps convert first,
/// then of the group kBehind before. It leaves kHeadroom bits; what it does not serve is found as values are converted.
template <class I>
__device__ __forceinline__ Scale scale_for(uint32 shared, unsigned place) {
  uint32 top = load_shared_4(shared + I::kShared.top);
  if (place >= I::kBehind) {
    uint32 most = 0;
#pragma unroll 1
    for (unsigned i = static_cast<unsigned>(lane_of_warp()); i < I::kImages; i += 32)
      most = max(most, load_shared_4(maximum_place<I>(shared, place - I::kBehind, i)));
    most = __reduce_max_sync(0xFFFFFFFFu, most);
    if (most > 0) top = most;
  }
  return scale_of(top == 0 ? 127u << 23 : top, kHeadroom);
}

/// By a converting warp: every kConverters-th image of the block's.
template <class I>
__device__ __forceinline__ void produce(const RunArguments& a, uint32 shared, int warp) {
  const uint32 barriers = shared + I::kShared.image_barriers;
  const unsigned total = load_share<I>(shared).places * I::kImages;
  unsigned image = static_cast<unsigned>(warp);
  Values<I> v;
  if (image < total) load_values<I>(v, a, shared, job_of<I>(shared, image));
  if constexpr (!I::kSmall) {
    if (image < total) {
      const uint32 first = largest_of<I>(v, a, shared, job_of<I>(shared, image));
      if (one_lane()) max_shared_4(shared + I::kShared.top, first);
    }
    numbered_barrier<32 * I::kConverters>(4);
  }
#pragma unroll 1
  for (; image < total; image += I::kConverters) {
    const unsigned slot = image % I::kStages;
    const Job job = job_of<I>(shared, image);
    const uint32 to = shared + I::kShared.images + slot * I::kShared.image_bytes;
    if (image >= I::kStages) {
      barrier_wait(empty_barrier(barriers, static_cast<int>(slot)), (image / I::kStages - 1) & 1);
    }
    if constexpr (I::kSmall) {
      copy_values<I>(v, a, shared, job, to);
    } else {
      const Scale scale = scale_for<I>(shared, job.place);
      const uint32 most = convert<I>(v, a, shared, job, scale, to);
      if (one_lane()) {
        store_shared_float(shared + I::kShared.inverses + slot * 4, scale.inverse);
        store_shared_4(maximum_place<I>(shared, job.place, image - job.place * I::kImages), most);
      }
    }
    async_proxy_fence();
    __syncwarp();
    if (one_lane()) barrier_arrive(full_barrier(barriers, static_cast<int>(slot)));
    if (image + I::kConverters < total) load_values<I>(v, a, shared, job_of<I>(shared, image + I::kConverters));
  }
}

/// Copies weights, by one thread: those of the block's groups of rows once where all stay, else those of its tiles one
/// after the other.
template <class I>
__device__ __forceinline__ void fill(const RunArguments& a, uint32 shared) {
  const Extent e = extent_of(I::tunables(), a.geometry);
  const uint32 barriers = shared + I::kShared.weight_barriers;
  const auto* const weights = static_cast<const unsigned char*>(a.weights);
  const Share share = load_share<I>(shared);
  const unsigned tiles = share.places * I::kPasses;
  const unsigned total = I::kResident ? min_of(static_cast<unsigned>(I::kPasses), tiles) : tiles;
  unsigned it = 0;
#pragma unroll 1
  for (unsigned n = 0; n < total; ++n) {
    const int panel = tile_of(I::tunables(), share, n).panel;
    // What does not exist is read from the last that does, and not stored.
    const unsigned char* panels[I::kRowTiles];
#pragma unroll
    for (int i = 0; i < I::kRowTiles; ++i)
      panels[i] = weights + min_of(panel + i, e.panels - 1) * e.steps * I::kPanelBytes;
#pragma unroll 1
    for (int step = 0; step < I::kSteps; ++step, ++it) {
      const unsigned slot = it % I::kWeightSlots;
      const uint32 full = full_barrier(barriers, static_cast<int>(slot));
      if (it >= I::kWeightSlots) {
        barrier_wait(empty_barrier(barriers, static_cast<int>(slot)), (it / I::kWeightSlots - 1) & 1);
      }
      barrier_expect(full, I::kShared.weight_bytes);
#pragma unroll
      for (int i = 0; i < I::kRowTiles; ++i) {
        bulk_load(shared + slot * I::kShared.weight_bytes + static_cast<uint32>(i * I::kPanelBytes), panels[i],
                  I::kPanelBytes, full);
        panels[i] += I::kPanelBytes;
      }
    }
  }
}

}  // namespace ct1d::wgmma_fused
