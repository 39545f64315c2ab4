// wgmma_packed: the exact path. Outputs that the scales do not serve, once more with plain fp32 multiply-adds over the
// taps that exist.
#pragma once

#include "kernels/wgmma_packed/store.cuh"

namespace ct1d::wgmma_packed {

/// Four places of all rows of a panel, by a warp: a lane has every 32nd.
template <class I>
__device__ __forceinline__ void repair_quad(const RunArguments& a, uint32 shared, int64 panel, unsigned place) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  constexpr int kMine = kRows / 32;
  constexpr int kTogether = 4;  // products whose loads are in flight together: a quad's time is their latency
  const int lane = lane_of_warp();
  const int64 stride = I::stride(g);
  const Position at = find_position<I>(shared, place);
  if (at.batch >= g.batch) return;
  const Element* row = static_cast<const Element*>(a.x) + at.batch * g.x_batch_stride;
  const auto* const packed = static_cast<const unsigned char*>(a.weights);
  const float* const w = reinterpret_cast<const float*>(packed + packed_of(I::tunables(), g, I::kOffsets).plain) +
                         panel * g.in_channels * I::kOffsets * kRows;
  float sum[4][kMine];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < kMine; ++c) sum[i][c] = 0.0f;
  }
  const int64 products = g.in_channels * I::kOffsets;
  int64 offset = 0;
#pragma unroll 1
  for (int64 first = 0; first < products; first += kTogether) {
    float weight[kTogether][kMine];
    float value[kTogether][4];
    uint32 exist = 0;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const bool within = first + k < products;
#pragma unroll
      for (int c = 0; c < kMine; ++c) {
        weight[k][c] = within ? load_constant(w + (first + k) * kRows + 32 * c + lane) : float_of_bits(kNoTap);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64 position = at.m + i - offset * I::step(g);
        const bool exists = within && position >= 0 && position < g.length;
        value[k][i] = exists ? load_element(row + position) : 0.0f;
        exist |= exists ? 1u << (4 * k + i) : 0u;  // a product with no x is not 0 times infinity
      }
      if (++offset == I::kOffsets) {
        offset = 0;
        row += g.x_row_stride;
      }
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
#pragma unroll
      for (int c = 0; c < kMine; ++c) {
        const bool has_tap = bits_of_float(weight[k][c]) != kNoTap;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float more = fmaf(value[k][i], weight[k][c], sum[i][c]);
          sum[i][c] = has_tap && (exist >> (4 * k + i) & 1) != 0 ? more : sum[i][c];
        }
      }
    }
  }
#pragma unroll
  for (int c = 0; c < kMine; ++c) {
    const int own = lane + 32 * c;
    const int64 flat = panel * I::width(g) + own;
    const int64 channel = flat / stride;
    const bool exists = own < I::width(g) && channel < g.out_channels;
    const float bias = a.bias != nullptr && exists ? load_element(static_cast<const Element*>(a.bias) + channel) : 0.0f;
    Element* const y = static_cast<Element*>(a.y) + at.batch * g.y_batch_stride + channel * g.y_row_stride;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64 t = (at.m + i) * stride + (flat - channel * stride) - g.padding;
      store_element(y + t, sum[i][c] + bias, exists && t >= 0 && t < g.length_out);
    }
  }
}

/// Whether the scales of some of a panel's weights do not serve.
template <class I>
__device__ __forceinline__ bool any_unfit(const RunArguments& a, int panel) {
  const auto* const unfit = reinterpret_cast<const uint4*>(static_cast<const unsigned char*>(a.weights) +
                                                           packed_of(I::tunables(), a.geometry, I::kOffsets).flag) +
                            panel * (kRows / 4);
  uint32 any = 0;
#pragma unroll
  for (int i = 0; i < kRows / 4; ++i) any |= unfit[i].x | unfit[i].y | unfit[i].z | unfit[i].w;
  return any != 0;
}

/// The fours of places of a consumer's tile that are to be done again: 64 bits.
template <class I>
__device__ __forceinline__ uint64 flags_of(const RunArguments& a, uint32 shared, const Tile& tile, unsigned n,
                                           int consumer) {
  const Geometry& g = a.geometry;
  const Extent e = extent_of(I::tunables(), g);
  if (tile.panel >= e.panels || tile.places >= e.place_tiles) return 0;
  if constexpr (I::kSmall) {
    const uint2 bits = load_shared_8(flags_place<I>(shared, n, consumer));
    return static_cast<uint64>(bits.y) << 32 | bits.x;
  } else {
    if (any_unfit<I>(a, tile.panel)) return ~0ull;
    const Workspace w = workspace_of(I::tunables(), g, I::facts(), 4);
    const auto* const words =
        reinterpret_cast<const uint64*>(static_cast<const unsigned char*>(a.workspace) + w.flags) +
        tile.places * w.flag_blocks;
    uint64 bits = 0;
    for (int64 i = 0; i < w.flag_blocks; ++i) bits |= words[i];
    return bits;
  }
}

/// Those of a tile that the bits name, by a consumer's four warps.
template <class I>
__device__ __forceinline__ void repair_quads(const RunArguments& a, uint32 shared, const Tile& tile, int warp,
                                             uint32 low, uint32 high) {
#pragma unroll 1
  for (int quad = warp; quad < I::kT / 4; quad += 4) {
    if (((quad < 32 ? low : high) >> quad % 32 & 1) == 0) continue;
    repair_quad<I>(a, shared, tile.panel, static_cast<unsigned>(tile.places * I::kT + 4 * quad));
  }
}

/// By a consumer's four warps, of `tiles` tiles: tile_at(n), of which flags_at(n) names the fours of places that are to
/// be done again. Each lane looks after a tile of its own.
template <class I, class TileAt, class FlagsAt>
__device__ __forceinline__ void repair_tiles(const RunArguments& a, uint32 shared, unsigned tiles,
                                             const TileAt& tile_at, const FlagsAt& flags_at) {
  const int lane = lane_of_warp();
  const int warp = fresh_thread() / 32 % 4;
#pragma unroll 1
  for (unsigned first = 0; first < tiles; first += 32) {
    const unsigned own = first + static_cast<unsigned>(lane);
    uint64 flags = 0;
    if (own < tiles) flags = flags_at(own);
    uint32 due = __ballot_sync(0xFFFFFFFFu, flags != 0);
#pragma unroll 1
    for (int i = 0; due != 0; ++i, due >>= 1) {
      if ((due & 1) == 0) continue;
      const uint32 low = __shfl_sync(0xFFFFFFFFu, static_cast<uint32>(flags), i);
      const uint32 high = __shfl_sync(0xFFFFFFFFu, static_cast<uint32>(flags >> 32), i);
      repair_quads<I>(a, shared, tile_at(first + static_cast<unsigned>(i)), warp, low, high);
    }
  }
}

/// After the block's last tile.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, uint32 shared, int consumer) {
  consumer_barrier<I>(consumer);  // what was stored is overwritten
  const auto tile_at = [&](unsigned n) { return own_tile<I>(find_tile<I>(shared, n), consumer); };
  repair_tiles<I>(a, shared, tiles_of<I>(shared), tile_at,
                  [&](unsigned n) { return flags_of<I>(a, shared, tile_at(n), n, consumer); });
}

}  // namespace ct1d::wgmma_packed
