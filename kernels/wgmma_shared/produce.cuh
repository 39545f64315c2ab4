// wgmma_shared: warps that fill the ring of converted x.
#pragma once

#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma_shared/convert.cuh"
#include "kernels/wgmma_shared/halves.cuh"

namespace ct1d::wgmma_shared {

/// The largest magnitude that the producers met in tile n, as bits.
template <class I>
__device__ __forceinline__ uint32 largest_of_tile(uint32 shared, int n) {
  const uint32 words = shared + I::kShared.maxima + n % kRing * 32;
  const uint4 p = load_shared_16(words);
  uint32 most = max(max(p.x, p.y), max(p.z, p.w));
  if constexpr (I::kProducers == 8) {
    const uint4 q = load_shared_16(words + 16);
    most = max(most, max(max(q.x, q.y), max(q.z, q.w)));
  }
  return most;
}

/// Each warp has every kProducers-th stage to itself: while its loads are on their way the others convert. (One warp's
/// loads of several stages would be waited for together: they share a scoreboard.)
///
/// The scale of tile n comes from tiles n - 2 and n - 3, of tiles 0 and 1 from tile 0. What was posted of them is
/// complete when `empty` lets a stage of tile n in: the consumers have then seen the slot's last stage, which is of
/// tile n - 1 or later since a ring has no more stages than a tile, and all before it as full.
template <class I>
__device__ __forceinline__ void produce(const RunArguments& a, int total, uint32 shared, int warp) {
  const Geometry& g = a.geometry;
  const uint32 walk = shared + I::kShared.walks + warp * 16;
  Values<I> v[I::kStageSteps];
  float scale = 1.0f;
  float running = 0.0f;                                    // the tile's largest magnitude
  uint32 before = load_shared_4(shared + I::kShared.top);  // the largest of a tile before
  if (before == 0) before = 127u << 23;

  const auto tile_now = [&] { return find_tile<I>(shared, walk, static_cast<int>(g.batch)); };
  const auto begin_tile = [&](int n) {
    uint32 top = before;
    if (n >= 2) {
      uint32 now = largest_of_tile<I>(shared, n - 2);
      if (now == 0 || now >= kInfinity) now = before;
      top = min(now, before);  // one tile's peak is no reason to lose the small values of the next
      before = now;
    }
    scale = scale_of(top, kHeadroom).scale;
  };

  const auto load = [&](int it) {
    const Source source = source_of<I>(a, tile_now());
#pragma unroll
    for (int i = 0; i < I::kStageSteps; ++i) {
      load_step<I>(v[i], source, g, it % I::kTileStages * I::kStageSteps + i);
    }
  };

  int it = warp;
  load(it);
#pragma unroll 1
  for (; it < total; it += I::kProducers) {
    const int slot = it % I::kStages;
    const int n = it / I::kTileStages;
    const uint32 stage = shared + I::kShared.stages + slot * I::kShared.stage_bytes;
    const uint32 flags = shared + I::kShared.flags + n % kFlagWords * 4;
    if (it >= I::kStages) barrier_wait(empty_barrier(shared + I::kShared.barriers, slot), (it / I::kStages - 1) & 1);
    if (it % I::kTileStages < I::kProducers) begin_tile(n);
    if (it % I::kTileStages == 0 && one_lane()) save_tile<I>(shared, n, tile_now(), inverse_of(scale));
#pragma unroll
    for (int i = 0; i < I::kStageSteps; ++i) {
      const uint32 to = stage + static_cast<uint32>(i * I::kShared.step_bytes);
      Seen seen;
      if (!I::kSplits && rounds_each(g)) {
        store_step<I, true>(v[i], scale, to, seen);
      } else {
        store_step<I, false>(v[i], scale, to, seen);
      }
      if (I::kHalo > 0 && lane_of_warp() < I::kHalo * kStepChannels) {
        store_before<I>(v[i].before, scale, to, lane_of_warp());
      }
      test_step<I>(v[i], seen, scale, g, running, flags);
      if constexpr (I::kHalo > 2) {
        convert_long_halo<I>(source_of<I>(a, tile_now()), scale, g, it % I::kTileStages * I::kStageSteps + i, to,
                             flags);
      }
    }
    if (it % I::kTileStages >= I::kTileStages - I::kProducers) {
      const uint32 most = __reduce_max_sync(0xFFFFFFFFu, bits_of_float(running));
      running = 0.0f;
      if (one_lane()) store_shared_4(shared + I::kShared.maxima + n % kRing * 32 + warp * 4, most);
    }
    async_proxy_fence();
    __syncwarp();
    if (one_lane()) barrier_arrive(full_barrier(shared + I::kShared.barriers, slot));

    const int next = it + I::kProducers;
    if (next < total) {
      if (next / I::kTileStages != n) advance<I>(shared, walk);
      load(next);
    }
  }
}

/// The same of x of 16 bits. No scale waits for other warps: a tile may have less stages than there are producers.
template <class I>
__device__ __forceinline__ void produce_halves(const RunArguments& a, int total, uint32 shared, int warp) {
  const Geometry& g = a.geometry;
  const uint32 walk = shared + I::kShared.walks + warp * 16;
  const auto source_now = [&] { return pair_source_of<I>(a, find_tile<I>(shared, walk, static_cast<int>(g.batch))); };
  Pairs<I> v[I::kStageSteps];
  Late late{};
  const auto load = [&](int it) {
    const PairSource source = source_now();
    late = source.late;
#pragma unroll
    for (int i = 0; i < I::kStageSteps; ++i) {
      load_pairs<I>(v[i], source, g, it % I::kTileStages * I::kStageSteps + i);
    }
  };
  int it = warp;
  constexpr bool kTwoTiles = I::kProducers > I::kTileStages;  // the producers' stages are of two, each of every second
  if (kTwoTiles && it >= I::kTileStages) advance<I>(shared, walk);
  load(it);
#pragma unroll 1
  for (; it < total; it += I::kProducers) {
    const int slot = it % I::kStages;
    const int n = it / I::kTileStages;
    const uint32 stage = shared + I::kShared.stages + slot * I::kShared.stage_bytes;
    if (it >= I::kStages) barrier_wait(empty_barrier(shared + I::kShared.barriers, slot), (it / I::kStages - 1) & 1);
    if (it % I::kTileStages == 0 && one_lane()) {
      save_tile<I>(shared, n, find_tile<I>(shared, walk, static_cast<int>(g.batch)), 1.0f);
    }
#pragma unroll
    for (int i = 0; i < I::kStageSteps; ++i) {
      const uint32 to = stage + static_cast<uint32>(i * I::kShared.step_bytes);
      store_pairs<I>(v[i], late, to);
      if constexpr ((I::kHalo + 1) * kStepChannels > 32 * kSingles) {
        store_long_halo<I>(source_now(), g, it % I::kTileStages * I::kStageSteps + i, to);
      }
    }
    async_proxy_fence();
    __syncwarp();
    if (one_lane()) barrier_arrive(full_barrier(shared + I::kShared.barriers, slot));

    const int next = it + I::kProducers;
    if (next < total) {
      if (next / I::kTileStages != n) advance<I>(shared, walk);
      if (kTwoTiles) advance<I>(shared, walk);
      load(next);
    }
  }
}

/// The largest magnitude of the block's first tile, of what a thread sees, by all threads.
template <class I>
__device__ __forceinline__ uint32 largest_of_first(const RunArguments& a, const Schedule& schedule) {
  const Geometry& g = a.geometry;
  const Tile tile = tile_at(steps_of(schedule), I::kT, walk_of(schedule, blockIdx.x), static_cast<int>(g.batch));
  const int within = static_cast<int>(threadIdx.x) % 128;
  const int position = tile.t_first + static_cast<int>(g.padding) + within;
  float most = 0.0f;
  if (tile.exists && within < I::kT && position < g.length) {
    const float* const x = static_cast<const float*>(a.x) + tile.batch * g.x_batch_stride + position;
#pragma unroll 16
    for (int ic = static_cast<int>(threadIdx.x) / 128; ic < static_cast<int>(g.in_channels); ic += I::kThreads / 128) {
      const float v = fabsf(load_constant(x + ic * g.x_row_stride));
      most = bits_of_float(v) < kInfinity ? fmaxf(most, v) : most;
    }
  }
  return __reduce_max_sync(0xFFFFFFFFu, bits_of_float(most));
}

}  // namespace ct1d::wgmma_shared
