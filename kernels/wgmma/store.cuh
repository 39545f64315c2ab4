// wgmma: finished sums to y. A thread holds four neighbouring positions of two neighbouring columns, eight lanes 32 of
// them: where the stride is even the columns are neighbouring phases.
#pragma once

#include "kernels/wgmma/store_halves.cuh"
#include "kernels/wgmma/store_phases.cuh"
#include "kernels/wgmma/store_staged.cuh"

namespace ct1d::wgmma {

/// How a warp's pieces of a row lie: on 16 bytes, off by 8, anyhow (or at an end of the row).
enum Lie { kAligned, kOffBy8, kAnyhow };

/// Where a thread's first row of outputs lies, and what of it exists.
struct Target {
  float* y;
  int t;        // of the thread's first position
  int columns;  // how many of the columns from the thread's first exist
  int length;
};

/// Rows that a thread stores between loads of their factors.
CT1D_HD constexpr int store_batch(int count) {
  return count % 4 == 0 ? 4 : count % 3 == 0 ? 3 : count % 2 == 0 ? 2 : 1;
}

/// Rows 8 j, j in [First, First + Count), from the target's, element E of the column pairs. `factors`, `bias`: of the
/// thread's first column; bias may be null.
template <class I, int First, int Count, int E, Lie L>
__device__ __forceinline__ void store_rows(const float (&s0)[I::kSums], const float (&s1)[I::kSums], Target to,
                                           int64 row_step, const float* factors, const float* bias, float inverse) {
  const int lane = lane_of_warp();
  constexpr int kBatch = store_batch(Count);
#pragma unroll
  for (int j = First; j < First + Count; j += kBatch) {
    float factor[kBatch];
    float shift[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) factor[i] = load_constant(factors + 8 * (j - First + i));
#pragma unroll
    for (int i = 0; i < kBatch; ++i) shift[i] = 0.0f;
    if (bias != nullptr) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (8 * (j - First + i) < to.columns) shift[i] = load_constant(bias + 8 * (j - First + i));
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int at = 4 * (j + i) + E;
      const bool valid = 8 * (j - First + i) < to.columns;
      float v[4] = {s0[at], s1[at], s0[at + 2], s1[at + 2]};
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = scaled_here(I::kPromotes ? v[k] : v[k] * inverse, factor[i], shift[i]);
      if constexpr (L == kAligned) {
        store_quad<I::kStreaming>(to.y, v[0], v[1], v[2], v[3], valid);
      } else if constexpr (L == kOffBy8 && !I::kWideStores) {
        store_pair<I::kStreaming>(to.y, v[0], v[1], valid);
        store_pair<I::kStreaming>(to.y + 2, v[2], v[3], valid);
      } else if constexpr (L == kOffBy8) {
        // lane + 4 has the next four positions
        const float next_0 = __shfl_down_sync(0xFFFFFFFFu, v[0], 4);
        const float next_1 = __shfl_down_sync(0xFFFFFFFFu, v[1], 4);
        const bool first = lane < 4;
        store_quad<I::kStreaming>(to.y + 2, v[2], v[3], next_0, next_1, valid && lane < 28);
        store_pair<I::kStreaming>(first ? to.y : to.y + 2, first ? v[0] : v[2], first ? v[1] : v[3],
                                  valid && (first || lane >= 28));
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          store_one<I::kStreaming>(to.y + k, v[k], valid && to.t + k >= 0 && to.t + k < to.length);
      }
      to.y += row_step;
    }
  }
}

template <class I, int First, int Count, int E>
__device__ __forceinline__ void store_pairs(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                            const RunArguments& a, uint32 shared, const Tile& tile, float inverse) {
  const Geometry& g = a.geometry;
  const int lane = lane_of_warp();
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const int column = 8 * First + 2 * (lane % 4) + E;
  const int64 channel = panel.first_out + panel.first_column + column;
  const Quad quad = find_own_quad<I>(g, shared, tile);
  const int t_warp = first_of_warp(quad) - static_cast<int>(g.padding);
  Target to;
  to.t = t_warp + lane / 4 * 4;
  to.columns = panel.columns - column;
  to.length = static_cast<int>(g.length_out);
  to.y = static_cast<float*>(a.y) + quad.batch * g.y_batch_stride + channel * g.y_row_stride + to.t;
  const float* const factors = factors_of<I>(a, shared, tile.panel) + column;
  const float* const bias = a.bias != nullptr ? static_cast<const float*>(a.bias) + channel : nullptr;
  const int64 row_step = 8 * g.y_row_stride;
  // even row strides put rows 2 q apart at the same residue, so these are the whole warp's
  const int residue = static_cast<int>(reinterpret_cast<uint64>(to.y) / 4 % 4);
  const bool even = t_warp >= 0 && t_warp + 32 <= to.length && g.y_row_stride % 2 == 0;
  if (__any_sync(0xFFFFFFFFu, even && residue == 0)) {
    store_rows<I, First, Count, E, kAligned>(s0, s1, to, row_step, factors, bias, inverse);
  } else if (__any_sync(0xFFFFFFFFu, even && residue == 2)) {
    store_rows<I, First, Count, E, kOffBy8>(s0, s1, to, row_step, factors, bias, inverse);
  } else {
    store_rows<I, First, Count, E, kAnyhow>(s0, s1, to, row_step, factors, bias, inverse);
  }
}

/// Columns 8 j + 2 q and the next, j in [First, First + Count): finished sums of the thread's four positions.
/// `inverse`: of x's scale, where the products' sums were not promoted. Promoted sums start anew at 0. Returns whether
/// some 16-bit output is to be done again: not finite, as where an infinity met a zero that only fills a product.
template <class I, int First, int Count>
__device__ __forceinline__ bool store_columns(float (&s0)[I::kSums], float (&s1)[I::kSums], const RunArguments& a,
                                              uint32 shared, const Tile& tile, float inverse) {
  float most = 0.0f;
  if (tile.exists) {
    constexpr int S = I::kStride;
    constexpr bool kPieces = S == 2 || S == 4 || (S > 0 && S % 8 == 0);
    if constexpr (I::kSmall && (S == 1 || kPieces)) {
      most = store_halves<I, First, Count>(s0, s1, a, shared, tile);
    } else if constexpr (I::kStaged) {
      static_assert(First == 0 && Count == I::kTiles, "staged columns are stored together");
      most = store_staged<I>(s0, s1, a, shared, tile, inverse);
    } else if constexpr (S == 1) {
      store_pairs<I, First, Count, 0>(s0, s1, a, shared, tile, inverse);
      store_pairs<I, First, Count, 1>(s0, s1, a, shared, tile, inverse);
    } else if constexpr (kPieces) {
      store_pieces<I, First, Count>(s0, s1, a, shared, tile, inverse);
    } else {
      most = store_each<I, First, Count>(s0, s1, a, shared, tile, inverse);
    }
  }
  if constexpr (I::kPromotes) {
#pragma unroll
    for (int i = 4 * First; i < 4 * (First + Count); ++i) {
      clear_here(s0[i]);
      clear_here(s1[i]);
    }
  }
  return I::kSmall && !(most < float_of_bits(0x7F800000u));
}

}  // namespace ct1d::wgmma
