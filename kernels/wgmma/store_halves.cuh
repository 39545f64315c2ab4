// wgmma: finished sums to y of 16 bits, rounded once, in pieces of 16 bytes: eight elements.
#pragma once

#include "kernels/wgmma/store_phases.cuh"

namespace ct1d::wgmma {

/// As store_shifted: eight elements of each lane, four words.
template <int Stride, bool kStreaming>
__device__ __forceinline__ void store_shifted_words(unsigned short* y, const uint32 (&v)[4], bool valid) {
  const int lane = lane_of_warp();
  const int skip = (8 - static_cast<int>(reinterpret_cast<uint64>(y) / 2 % 8)) % 8;
  uint32 w[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = v[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) w[4 + i] = __shfl_sync(0xFFFFFFFFu, v[i], next_lane<Stride>(lane) % 32);
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = (skip & 4) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = (skip & 2) != 0 ? w[i + 1] : w[i];
  const uint32 selector = (skip & 1) != 0 ? 0x5432u : 0x3210u;
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = bytes_of_two(w[i], w[i + 1], selector);
  const bool first = is_first<Stride>(lane);
  const bool last = is_last<Stride>(lane);
  float* const piece = reinterpret_cast<float*>(y + skip);
  store_quad<kStreaming>(piece, float_of_bits(w[0]), float_of_bits(w[1]), float_of_bits(w[2]), float_of_bits(w[3]),
                         valid && (!last || skip == 0));
  // the ends of what the warp has
  const int single = first ? 0 : skip;
  const int singles = first ? skip : last && skip != 0 ? 8 - skip : 0;
  if (__all_sync(0xFFFFFFFFu, skip % 2 == 0)) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      store_one<kStreaming>(reinterpret_cast<float*>(y + single + 2 * i), float_of_bits(first ? v[i] : w[i]),
                            valid && 2 * i < singles);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      store_two_bytes<kStreaming>(y + single + i, (first ? v[i / 2] : w[i / 2]) >> i % 2 * 16, valid && i < singles);
    }
  }
}

/// Columns 8 j to 8 j + 7, j in [First, First + Count), stride 1, 2, 4 or a multiple of 8. Returns the largest
/// magnitude, NaN above all.
template <class I, int First, int Count>
__device__ __forceinline__ float store_halves(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                              const RunArguments& a, uint32 shared, const Tile& tile) {
  constexpr int S = I::kStride;
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const int lane = lane_of_warp();
  const int q = lane % 4;
  const bool odd = lane / 4 % 2 != 0;
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const Quad quad = find_own_quad<I>(g, shared, tile);
  const int warp_first = first_of_warp(quad);
  const int length = static_cast<int>(g.length_out);
  const int padding = static_cast<int>(g.padding);
  const int position = quad.position + (S == 1 ? (odd ? -4 : 0) : S == 2 ? 0 : S == 4 ? q % 2 * 2 : q);
  const bool inside = warp_first * S >= padding && (warp_first + 32) * S - padding <= length;
  const Element* const bias = static_cast<const Element*>(a.bias);
  unsigned short* const y = static_cast<unsigned short*>(a.y) + quad.batch * g.y_batch_stride;
  float most = 0.0f;
#pragma unroll
  for (int j = First; j < First + Count; ++j) {
    constexpr float kOnes[2] = {1.0f, 1.0f};
    float shift[2] = {0.0f, 0.0f};
    if (bias != nullptr) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * j + 2 * q + e;
        if (column < panel.columns) {
          shift[e] = load_element(bias + panel.first_out + (panel.first_column + column) / S);
        }
      }
    }
    float v[4][2];
    finish_pair<I>(v, s0, s1, j, kOnes, shift, 1.0f);
    most = largest_of(most, v);
    uint32 out[4];
    if constexpr (S == 1) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32 mine = operand_pair<Element>(v[2 * i][0], v[2 * i + 1][0]);
        const uint32 other = operand_pair<Element>(v[2 * i][1], v[2 * i + 1][1]);
        const uint32 got = __shfl_xor_sync(0xFFFFFFFFu, odd ? mine : other, 4);
        out[i] = odd ? got : mine;
        out[2 + i] = odd ? other : got;
      }
    } else {
      uint32 words[4][1];
#pragma unroll
      for (int p = 0; p < 4; ++p) words[p][0] = operand_pair<Element>(v[p][0], v[p][1]);
      gather<S, 1>(out, words, q);
    }
    const int column = 8 * j + (S == 1 ? 2 * q + (odd ? 1 : 0) : S == 2 ? 2 * q : S == 4 ? q / 2 * 4 : 0);
    const int within = panel.first_column + column;
    const int t = position * S + within % S - padding;
    const bool valid = column < panel.columns;
    unsigned short* const to = y + (panel.first_out + within / S) * g.y_row_stride + t;
    const int off = static_cast<int>(reinterpret_cast<uint64>(to) / 2 % 8);
    if (!__all_sync(0xFFFFFFFFu, inside)) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        store_two_bytes<I::kStreaming>(to + k, out[k / 2] >> k % 2 * 16, valid && t + k >= 0 && t + k < length);
      }
    } else if (__all_sync(0xFFFFFFFFu, off == 0)) {
      store_quad<I::kStreaming>(reinterpret_cast<float*>(to), float_of_bits(out[0]), float_of_bits(out[1]),
                                float_of_bits(out[2]), float_of_bits(out[3]), valid);
    } else if constexpr (S <= 8) {
      store_shifted_words<S, I::kStreaming>(to, out, valid);
    } else {
      const bool even = off % 2 == 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        store_one<I::kStreaming>(reinterpret_cast<float*>(to + 2 * k), float_of_bits(out[k]), valid && even);
        store_two_bytes<I::kStreaming>(to + 2 * k, out[k], valid && !even);
        store_two_bytes<I::kStreaming>(to + 2 * k + 1, out[k] >> 16, valid && !even);
      }
    }
  }
  return most;
}

}  // namespace ct1d::wgmma
