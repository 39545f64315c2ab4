// wgmma_shared: finished sums to y, in whole sectors of 32 bytes.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// A lane's two rows of outputs: 64-bit places, factors, and which of them exist.
struct Rows {
  float* y;  // of the first row, position 0; the other is 8 rows further
  int64 to_other;
  bool exists[2];
  float scale[2];
  float bias[2];
};

template <class I>
__device__ __forceinline__ Rows rows_of(const RunArguments& a, uint32 shared, int batch, int consumer) {
  const Geometry& g = a.geometry;
  const int thread = fresh_thread();
  const int row = consumer * 64 + thread % 128 / 32 * 16 + thread % 32 / 4;
  const uint32 scales = shared + I::kShared.scales + row * 4;
  Rows r{};
  r.y = static_cast<float*>(a.y) + batch * g.y_batch_stride + row * g.y_row_stride;
  r.to_other = static_cast<int>(fresh_copy(8)) * g.y_row_stride;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    r.exists[i] = row + 8 * i < static_cast<int>(g.out_channels);
    r.scale[i] = load_shared_float(scales + 32 * i);
    r.bias[i] = load_shared_float(scales + I::kChannels * 4 + 32 * i);
  }
  return r;
}

/// A row's outputs lie in a lane's sums as pairs t = 8 j + 2 q, q the lane of the quad. What lies in the upper part of
/// a row's sector is written with this j, the rest with the next, so that a quad's four lanes write one whole sector
/// whatever a row's place; the last of a tile's is carried to the next tile.
///
/// kPairs: rows lie on 8 bytes and all pairs exist. kShifted: a tile in the middle of its strip, all of whose outputs
/// exist; rows that lie between 8 bytes take pairs of the second of a lane and the first of the next, which are of the
/// same sector whatever the row's place. kSingle: single floats.
enum Lie { kPairs, kShifted, kSingle };
template <class I, Lie L>
__device__ __forceinline__ void store_rows(const float (&sum)[I::kSums], const float (&carry)[4], const Rows& r,
                                           const Tile& tile, int length) {
  const int first = lane_of_warp() % 4 * 2;
  const int shift = static_cast<int>(reinterpret_cast<uint64>(r.y) >> 2 & 7);  // floats into its sector the row starts
  const bool odd = L == kShifted && shift % 2 != 0;
  bool wraps[2];
  int t[2];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    wraps[e] = first + e + shift >= 8;
    t[e] = tile.t_first + first + e - (wraps[e] ? 8 : 0);
  }
#pragma unroll
  for (int j = 0; j <= I::kT / 8; ++j) {
    const bool rest = j == I::kT / 8;  // what no next tile takes
    float now[4];
    bool valid[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      valid[e] = t[e] + 8 * j < length && (j > 0 || !tile.first || !wraps[e]) && (!rest || (tile.last && wraps[e]));
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float before = j == 0 ? carry[c] : sum[(j > 0 ? j - 1 : 0) * 4 + c];
      const float here = rest ? before : sum[(rest ? 0 : j) * 4 + c];
      now[c] = fmaf(wraps[c % 2] ? before : here, r.scale[c / 2], r.bias[c / 2]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float* const row = r.y + i * r.to_other + 8 * j;
      if constexpr (L == kPairs) {
        store_pair<I::kStreaming>(row + t[0], now[2 * i], now[2 * i + 1], valid[0] && r.exists[i]);
      } else if constexpr (L == kShifted) {
        const int lane = lane_of_warp();
        const float next = __shfl_sync(0xFFFFFFFFu, now[2 * i], lane / 4 * 4 + (lane + 1) % 4);
        store_pair<I::kStreaming>(row + (odd ? t[1] : t[0]), odd ? now[2 * i + 1] : now[2 * i],
                                  odd ? next : now[2 * i + 1], !rest && r.exists[i]);
      } else {
        store_one<I::kStreaming>(row + t[0], now[2 * i], valid[0] && r.exists[i]);
        store_one<I::kStreaming>(row + t[1], now[2 * i + 1], valid[1] && r.exists[i]);
      }
    }
  }
}

/// 64 output channels of a tile; its sums start anew at 0.
template <class I>
__device__ __forceinline__ void store_tile(float (&sum)[I::kSums], float (&carry)[4], const RunArguments& a,
                                           uint32 shared, const Tile& tile, int consumer) {
  const Geometry& g = a.geometry;
  const Rows rows = rows_of<I>(a, shared, tile.batch, consumer);
  const int length = tile.exists ? static_cast<int>(g.length_out) : -(1 << 30);
  const uint32 place = static_cast<uint32>(
      reinterpret_cast<uint64>(static_cast<float*>(a.y) + tile.batch * g.y_batch_stride) / 4 | g.y_row_stride);
  const bool pairs = place % 2 == 0 && (length % 2 == 0 || tile.t_first + I::kT <= length);
  if (__any_sync(0xFFFFFFFFu, pairs)) {
    store_rows<I, kPairs>(sum, carry, rows, tile, length);
  } else if (__any_sync(0xFFFFFFFFu, !tile.first && !tile.last && tile.t_first + I::kT <= length)) {
    store_rows<I, kShifted>(sum, carry, rows, tile, length);
  } else {
    store_rows<I, kSingle>(sum, carry, rows, tile, length);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) carry[c] = sum[I::kSums - 4 + c];
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
}

}  // namespace ct1d::wgmma_shared
