// wgmma_shared: the exact path. Outputs that a tile's scale does not serve, once more with plain fp32 multiply-adds.
#pragma once

#include "kernels/common/exact_sums.cuh"
#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// Four outputs from t of all channels, by a warp: a lane has every 32nd.
template <class I>
__device__ __forceinline__ void repair_four(const RunArguments& a, uint32 shared, int batch, int t) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  constexpr int kMine = (I::kChannels + 31) / 32;
  const float* const w =
      reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.weights) + packed_of(I::tunables(), g).plain);
  float sum[4][kMine];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < kMine; ++c) sum[i][c] = 0.0f;
  }
  add_exact<I::kChannels>(sum, static_cast<const Element*>(a.x) + batch * g.x_batch_stride, g.x_row_stride, w,
                          g.in_channels, g, t + static_cast<int>(g.padding));
#pragma unroll
  for (int c = 0; c < kMine; ++c) {
    const int channel = lane_of_warp() + 32 * c;
    if (channel >= I::kChannels) continue;
    const float bias = load_shared_float(shared + I::kShared.scales + (I::kChannels + channel) * 4);
    Element* const y = static_cast<Element*>(a.y) + batch * g.y_batch_stride + channel * g.y_row_stride + t;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      store_element(y + i, sum[i][c] + bias, channel < g.out_channels && t + i < g.length_out);
    }
  }
}

/// By all warps of both consumers, `warp` of 8, after the last tile is stored: each takes the next four outputs that
/// are flagged.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, unsigned tiles, uint32 shared, int warp) {
  const Geometry& g = a.geometry;
  named_barrier<3, 256>();  // what was stored is overwritten
  const uint32 flags = shared + I::kShared.flags;
  const bool all = load_shared_4(flags + kFlagWords * 4) != 0;
  const uint4 s = load_shared_16(shared + I::kShared.schedule);
  const uint4 start = load_shared_16(shared + I::kShared.walks + 8 * 16);
  const Steps steps = {s.x, s.y, s.z, s.w};
  Walk walk = {start.x, start.y, start.z};
  const bool few = I::kSplits && g.in_channels < 16;
  int turn = 0;
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n, walk = next_of(steps, walk)) {
    const uint32 word = all ? 0xFFFFFFFFu : load_shared_4(flags + n % kFlagWords * 4);
    if (word == 0 && !few) continue;
    const Tile tile = tile_at(steps, I::kT, walk, static_cast<int>(g.batch));
    if (!tile.exists) continue;
#pragma unroll 1
    for (int four = 0; four < I::kT / 4; ++four) {
      const int t = tile.t_first + 4 * four;
      if (t >= g.length_out) break;
      const bool due = (word >> 4 * four / I::kFlagged & 1) != 0 ||
                       (few && short_sums(g, static_cast<int>(g.in_channels), t + static_cast<int>(g.padding)));
      if (due && (turn++ & 7) == warp) repair_four<I>(a, shared, tile.batch, t);
    }
  }
}

}  // namespace ct1d::wgmma_shared
