// wgmma: the exact path. Outputs that one scale does not serve, once more with plain fp32 multiply-adds over the taps
// that exist.
#pragma once

#include "kernels/common/phases.h"
#include "kernels/wgmma/fragments.cuh"

namespace ct1d::wgmma {

/// Whether some column's weights have a range that its scale does not serve. All lanes ask together.
template <class I>
__device__ __forceinline__ bool weights_unserved(const RunArguments& a, int panel) {
  const float* const flags = reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.weights) +
                                                            packed_of(I::tunables(), a.geometry).flag) +
                             static_cast<int64>(panel) * I::kColumns;
  bool any = false;
  for (int i = lane_of_warp(); i < I::kColumns; i += 32) any = any || load_constant(flags + i) != 0.0f;
  return __any_sync(0xFFFFFFFFu, any);
}

/// A quad's four positions of columns 8 * First on, Count eights: a lane has every 32nd.
template <class I, int First, int Count>
__device__ __forceinline__ void repair_quad(const RunArguments& a, uint32 shared, int panel_number, const Quad& quad) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  constexpr int kMine = (8 * Count + 31) / 32;
  const int lane = lane_of_warp();
  const Panel panel = find_panel<I>(g, shared, panel_number);
  const Offsets offsets = offsets_of(g);
  const int64 channels = panel.in_channels;
  const Element* x = static_cast<const Element*>(a.x) + quad.batch * g.x_batch_stride + panel.first_in * g.x_row_stride;
  const float* w =
      reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.weights) + packed_of(I::tunables(), g).plain) +
      panel_number * channels * offsets.count * I::kColumns;
  float sum[4][kMine];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int c = 0; c < kMine; ++c) sum[i][c] = 0.0f;
  }
  // Loads of several products are in flight together: a quad's time is their latency.
  constexpr int kTogether = 4;
  const int64 products = channels * offsets.count;
  const Element* row = x;
  int64 tap = 0;
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
        weight[k][c] = within && 32 * c + lane < 8 * Count
                           ? load_constant(w + (first + k) * I::kColumns + 8 * First + 32 * c + lane)
                           : float_of_bits(kNoTap);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64 at = quad.position + i - tap * offsets.step;
        const bool exists = within && at >= 0 && at < g.length;
        value[k][i] = load_element(exists ? row + at : x);
        exist |= exists ? 1u << (4 * k + i) : 0u;  // a product with no x is not 0 times infinity
      }
      if (++tap == offsets.count) {
        tap = 0;
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
    const int column = 8 * First + lane + 32 * c;
    const bool exists = column < panel.columns && column < 8 * (First + Count);
    const int64 stride = g.stride;
    const int64 within = (panel.first_column + column) / stride;
    const int64 phase = (panel.first_column + column) % stride;
    const int64 channel = panel.first_out + within;
    const float bias = a.bias != nullptr && exists ? load_element(static_cast<const Element*>(a.bias) + channel) : 0.0f;
    Element* const y = static_cast<Element*>(a.y) + quad.batch * g.y_batch_stride + channel * g.y_row_stride;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64 t = (quad.position + i) * stride + phase - g.padding;
      store_element(y + t, sum[i][c] + bias, exists && t >= 0 && t < g.length_out);
    }
  }
}

/// Whether some output of the four positions may have fewer than 16 products: two fp16 parts leave one product an error
/// of up to 2^-21, which sums of fewer do not average enough. Sums with all of their taps are never as short
/// (family.cpp). Asked of classes that split, with less than 16 channels.
template <class I>
__device__ __forceinline__ bool short_sums(const Geometry& g, int in_channels, int position) {
  const Offsets offsets = offsets_of(g);
  const int64 first = max_of(0, floor_div(position + 3 - g.length, offsets.step) + 1);
  const int64 last = min_of(offsets.count - 1, position / offsets.step);
  const int64 reached = last - first + 1;
  if (reached == offsets.count) return false;
  // A phase's taps lie `x_step` offsets apart, and the last of them may not exist.
  const int64 taps = g.dilation % g.stride == 0 ? reached : reached / x_step(g) - 1;
  return taps * in_channels < 16;
}

/// The warp's quads of a tile that bit g of `flags` marks or whose sums are short.
template <class I, int First, int Count>
__device__ __forceinline__ void repair_marked(const RunArguments& a, uint32 shared, const Tile& tile, uint32 flags) {
  const int in_channels = find_panel<I>(a.geometry, shared, tile.panel).in_channels;
#pragma unroll 1
  for (int number = 0; number < 8; ++number) {
    const bool marked = (flags >> number & 1) != 0;
    if (!marked && (!I::kSplits || in_channels >= 16)) continue;
    const Quad quad = find_quad<I>(a.geometry, shared, tile, 8 * warp_of_group() + number);
    if (quad.exists && (marked || short_sums<I>(a.geometry, in_channels, quad.position))) {
      repair_quad<I, First, Count>(a, shared, tile.panel, quad);
    }
  }
}

/// What this warp's tiles have marked, by the warp that stored it before.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, uint32 shared, int consumer) {
  __syncwarp();  // this warp's stores are overwritten
  int panel = -1;
  bool all = false;
#pragma unroll 1
  for (unsigned n = 0; n < tiles_of<I>(shared); ++n) {
    const Tile tile = find_tile<I>(shared, consumer, n);
    if (!tile.exists) continue;
    if (tile.panel != panel) {
      panel = tile.panel;
      all = weights_unserved<I>(a, panel);
    }
    repair_marked<I, 0, I::kTiles>(a, shared, tile, all ? 0xFFu : marks_of<I>(shared, n));
  }
}

}  // namespace ct1d::wgmma
