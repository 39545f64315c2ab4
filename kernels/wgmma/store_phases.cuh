// wgmma: finished sums to y where columns are phases too: even strides have neighbouring ones in a thread.
#pragma once

#include "kernels/common/placed.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

/// Of the panel's columns: what takes a sum back to the weights' scale.
template <class I>
__device__ __forceinline__ const float* factors_of(const RunArguments& a, uint32 shared, int panel) {
  return reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.weights) + inverses_at<I>(shared)) +
         static_cast<int64>(panel) * I::kColumns;
}

/// A thread's values of columns 8 j + 2 q and the next at four positions, finished.
template <class I>
__device__ __forceinline__ void finish_pair(float (&v)[4][2], const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                            int j, const float (&factor)[2], const float (&shift)[2], float inverse) {
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const float raw[4] = {s0[4 * j + e], s1[4 * j + e], s0[4 * j + 2 + e], s1[4 * j + 2 + e]};
#pragma unroll
    for (int p = 0; p < 4; ++p) v[p][e] = scaled_here(I::kPromotes ? raw[p] : raw[p] * inverse, factor[e], shift[e]);
  }
}

/// The larger of `most` and the magnitudes, NaN above all.
__device__ __forceinline__ float largest_of(float most, const float (&v)[4][2]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) most = max_or_nan(most, fabsf(v[i / 2][i % 2]));
  return most;
}

/// Of a quad's eight columns of one output channel the phases that lie side by side: eight elements a lane that belong
/// into neighbouring places of a row, from v[position], two phases in Units words. Stride 2: a lane's own. 4: two
/// positions, lane q ^ 1 has the others. Multiples of 8: one position.
template <int Stride, int Units, class Word>
__device__ __forceinline__ void gather(Word (&out)[4 * Units], const Word (&v)[4][Units], int q) {
  if constexpr (Stride == 2) {
#pragma unroll
    for (int i = 0; i < 4 * Units; ++i) out[i] = v[i / Units][i % Units];
  } else {
    const bool odd = (q & 1) != 0;
    Word low[2][Units];  // by position; of the lanes with the lower phases
    Word high[2][Units];
    constexpr int kAway = Stride == 4 ? 1 : 2;
    const bool upper = (q & kAway) != 0;
#pragma unroll
    for (int i = 0; i < 2 * Units; ++i) {
      const int p = i / Units;
      const int e = i % Units;
      const Word got = __shfl_xor_sync(0xFFFFFFFFu, upper ? v[p][e] : v[p + 2][e], kAway);
      const Word kept = upper ? v[p + 2][e] : v[p][e];
      low[p][e] = upper ? got : kept;
      high[p][e] = upper ? kept : got;
    }
    if constexpr (Stride == 4) {
#pragma unroll
      for (int i = 0; i < 4 * Units; ++i) {
        const int within = i % (2 * Units);
        out[i] = within < Units ? low[i / (2 * Units)][within] : high[i / (2 * Units)][within - Units];
      }
    } else {
#pragma unroll
      for (int e = 0; e < Units; ++e) {
        const Word low_got = __shfl_xor_sync(0xFFFFFFFFu, odd ? low[0][e] : low[1][e], 1);
        const Word high_got = __shfl_xor_sync(0xFFFFFFFFu, odd ? high[0][e] : high[1][e], 1);
        const Word low_kept = odd ? low[1][e] : low[0][e];
        const Word high_kept = odd ? high[1][e] : high[0][e];
        out[e] = odd ? low_got : low_kept;
        out[Units + e] = odd ? low_kept : low_got;
        out[2 * Units + e] = odd ? high_got : high_kept;
        out[3 * Units + e] = odd ? high_kept : high_got;
      }
    }
  }
}

/// Which lane has the next eight elements of the row of 32 positions that the warp has. Stride 1: of those that hold 8
/// positions of one of two columns.
template <int Stride>
__device__ __forceinline__ int next_lane(int lane) {
  return Stride == 1   ? lane + 8
         : Stride == 2 ? lane + 4
         : Stride == 4 ? (lane % 2 == 0 ? lane + 1 : lane + 3)
                       : lane + 1;
}
template <int Stride>
__device__ __forceinline__ bool is_first(int lane) {
  return Stride == 1 ? lane < 8 : Stride == 2 ? lane < 4 : Stride == 4 ? lane == 0 || lane == 2 : lane == 0;
}
template <int Stride>
__device__ __forceinline__ bool is_last(int lane) {
  return Stride == 1 ? lane >= 24 : Stride == 2 ? lane >= 28 : Stride == 4 ? lane == 29 || lane == 31 : lane == 31;
}

/// Eight floats of each lane to `y`, all of whose places exist if `valid`, in pieces of 16 bytes that begin where they
/// may: a lane stores from its first such place on, with what it lacks at the end from the next lane.
template <int Stride, bool kStreaming>
__device__ __forceinline__ void store_shifted(float* y, const float (&v)[8], bool valid) {
  const int lane = lane_of_warp();
  const int skip = (4 - static_cast<int>(reinterpret_cast<uint64>(y) / 4 % 4)) % 4;
  float w[11];
#pragma unroll
  for (int i = 0; i < 8; ++i) w[i] = v[i];
#pragma unroll
  for (int i = 0; i < 3; ++i) w[8 + i] = __shfl_sync(0xFFFFFFFFu, v[i], next_lane<Stride>(lane) % 32);
#pragma unroll
  for (int i = 0; i < 9; ++i) w[i] = (skip & 2) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 8; ++i) w[i] = (skip & 1) != 0 ? w[i + 1] : w[i];
  const bool first = is_first<Stride>(lane);
  const bool last = is_last<Stride>(lane);
  store_quad<kStreaming>(y + skip, w[0], w[1], w[2], w[3], valid);
  store_quad<kStreaming>(y + skip + 4, w[4], w[5], w[6], w[7], valid && (!last || skip == 0));
  // the ends of what the warp has: before the first lane's first piece, instead of the last lane's last
  const int single = first ? 0 : skip + 4;
  const int singles = first ? skip : last && skip != 0 ? 4 - skip : 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) store_one<kStreaming>(y + single + i, first ? v[i] : w[4 + i], valid && i < singles);
}

/// Columns 8 j to 8 j + 7, j in [First, First + Count), stride 2, 4 or a multiple of 8.
template <class I, int First, int Count>
__device__ __forceinline__ void store_pieces(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                             const RunArguments& a, uint32 shared, const Tile& tile, float inverse) {
  constexpr int S = I::kStride;
  const Geometry& g = a.geometry;
  const int lane = lane_of_warp();
  const int q = lane % 4;
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const Quad quad = find_own_quad<I>(g, shared, tile);
  const int warp_first = first_of_warp(quad);
  const int length = static_cast<int>(g.length_out);
  const int padding = static_cast<int>(g.padding);
  const int position = quad.position + (S == 2 ? 0 : S == 4 ? q % 2 * 2 : q);
  const bool inside = warp_first * S >= padding && (warp_first + 32) * S - padding <= length;
  const float* const factors = factors_of<I>(a, shared, tile.panel) + 2 * q;
  const float* const bias = static_cast<const float*>(a.bias);
  float* const y = static_cast<float*>(a.y) + quad.batch * g.y_batch_stride;
  constexpr int kBatch = Count % 2 == 0 ? 2 : 1;
#pragma unroll
  for (int j = First; j < First + Count; j += kBatch) {
    float factor[kBatch][2];
    float shift[kBatch][2];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      factor[i][0] = load_constant(factors + 8 * (j + i));
      factor[i][1] = load_constant(factors + 8 * (j + i) + 1);
      shift[i][0] = 0.0f;
      const int column = 8 * (j + i) + 2 * q;
      if (bias != nullptr && column < panel.columns) {
        shift[i][0] = load_constant(bias + panel.first_out + (panel.first_column + column) / S);
      }
      shift[i][1] = shift[i][0];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float v[4][2];
      float out[8];
      finish_pair<I>(v, s0, s1, j + i, factor[i], shift[i], inverse);
      gather<S, 2>(out, v, q);
      const int column = 8 * (j + i) + (S == 2 ? 2 * q : S == 4 ? q / 2 * 4 : 0);
      const int within = panel.first_column + column;
      const int t = position * S + within % S - padding;
      const bool valid = column < panel.columns;
      float* const to = y + (panel.first_out + within / S) * g.y_row_stride + t;
      const int off = static_cast<int>(reinterpret_cast<uint64>(to) / 4 % 4);
      if (!__all_sync(0xFFFFFFFFu, inside)) {
#pragma unroll
        for (int k = 0; k < 8; ++k) store_one<I::kStreaming>(to + k, out[k], valid && t + k >= 0 && t + k < length);
      } else if (__all_sync(0xFFFFFFFFu, off == 0)) {
        store_quad<I::kStreaming>(to, out[0], out[1], out[2], out[3], valid);
        store_quad<I::kStreaming>(to + 4, out[4], out[5], out[6], out[7], valid);
      } else if constexpr (S <= 8) {
        store_shifted<S, I::kStreaming>(to, out, valid);
      } else {
        const bool even = off % 2 == 0;
#pragma unroll
        for (int k = 0; k < 8; k += 2) {
          store_pair<I::kStreaming>(to + k, out[k], out[k + 1], valid && even);
          store_one<I::kStreaming>(to + k, out[k], valid && !even);
          store_one<I::kStreaming>(to + k + 1, out[k + 1], valid && !even);
        }
      }
    }
  }
}

/// The same for any stride: each output by itself, pairs of phases together where they may be. Returns the largest
/// magnitude, NaN above all.
template <class I, int First, int Count>
__device__ __forceinline__ float store_each(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                            const RunArguments& a, uint32 shared, const Tile& tile, float inverse) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  constexpr bool kPairs = I::kStride % 2 == 0 && I::kStride > 0;
  float most = 0.0f;
  const int lane = lane_of_warp();
  const int stride = stride_of<I>(g);
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const int length = static_cast<int>(g.length_out);
  const Quad quad = find_own_quad<I>(g, shared, tile);
  const int position = quad.position;
  const float* const factors = factors_of<I>(a, shared, tile.panel);
  const Element* const bias = static_cast<const Element*>(a.bias);
  Element* const y = static_cast<Element*>(a.y) + quad.batch * g.y_batch_stride;
#pragma unroll
  for (int j = First; j < First + Count; ++j) {
    float factor[2];
    float shift[2];
    Element* to[2];
    int t[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int column = 8 * j + lane % 4 * 2 + e;
      const int within = panel.first_column + column;
      const int64 channel = panel.first_out + within / stride;
      const bool exists = column < panel.columns;
      factor[e] = I::kSmall ? 1.0f : load_constant(factors + column);
      shift[e] = bias != nullptr && exists ? load_element(bias + channel) : 0.0f;
      t[e] = exists ? position * stride + within % stride - static_cast<int>(g.padding) : length;
      to[e] = y + channel * g.y_row_stride + t[e];
    }
    float v[4][2];
    finish_pair<I>(v, s0, s1, j, factor, shift, inverse);
    most = largest_of(most, v);
    const bool pairs =
        kPairs && t[0] >= 0 && t[0] + 3 * stride + 1 < length && reinterpret_cast<uint64>(to[0]) % (2 * I::kBytes) == 0;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if constexpr (kPairs && I::kSmall) {
        store_one<I::kStreaming>(reinterpret_cast<float*>(to[0] + p * stride),
                                 float_of_bits(operand_pair<typename I::Operand>(v[p][0], v[p][1])), pairs);
      } else if constexpr (kPairs) {
        store_pair<I::kStreaming>(to[0] + p * stride, v[p][0], v[p][1], pairs);
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = t[e] + p * stride;
        store_element<I::kStreaming>(to[e] + p * stride, v[p][e], !pairs && at >= 0 && at < length);
      }
    }
  }
  return most;
}

}  // namespace ct1d::wgmma
