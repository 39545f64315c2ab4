// Plain fp32 sums of four neighbouring outputs, for what the fp16 parts of a matrix product do not serve. Stride 1.
#pragma once

#include "kernels/common/placed.cuh"

namespace ct1d {

/// Adds to sum[i][c] what positions position + i of columns 32 c + lane are: the products of taps that exist. By a
/// warp. x: of the first channel, position 0; w: [channel][tap][column].
template <int Columns, class Element>
__device__ __forceinline__ void add_exact(float (&sum)[4][(Columns + 31) / 32], const Element* x, int64 x_row_stride,
                                          const float* w, int64 channels, const Geometry& g, int position) {
  constexpr int kMine = (Columns + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int64 ic = 0; ic < channels; ++ic, x += x_row_stride) {
#pragma unroll 2
    for (int64 tap = 0; tap < g.kernel_size; ++tap, w += Columns) {
      float weight[kMine];
#pragma unroll
      for (int c = 0; c < kMine; ++c) {
        weight[c] = 32 * c + lane < Columns ? load_constant(w + 32 * c + lane) : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64 at = position + i - tap * g.dilation;
        if (at < 0 || at >= g.length) continue;  // not 0 times infinity
        const float value = load_element(x + at);
#pragma unroll
        for (int c = 0; c < kMine; ++c) sum[i][c] = fmaf(value, weight[c], sum[i][c]);
      }
    }
  }
}

/// Whether some output of the four positions may have fewer than 16 products: two fp16 parts leave one product an error
/// of up to 2^-21, which sums of fewer do not average enough. Sums with all of their taps are never as short
/// (the families refuse it).
__device__ __forceinline__ bool short_sums(const Geometry& g, int in_channels, int position) {
  if (in_channels >= 16) return false;
  const int64 least = floor_div(position + 3 - g.length, g.dilation) + 1;
  const int64 first = max_of(0, least);
  const int64 last = min_of(g.kernel_size - 1, position / g.dilation);
  return (last - first + 1) * in_channels < 16;
}

}  // namespace ct1d
