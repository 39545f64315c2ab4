// direct: a block computes T x OC_TILE outputs of one batch item and group. The x window and the weights of IC_TILE
// channels are staged in shared memory, and each multiply reads one word of either: the honest starting point, bound by
// shared memory whatever its tiles.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/geometry.h"
#include "kernels/direct/layout.h"

namespace ct1d::direct {

/// One output tile and the taps of one pass, in window coordinates: output i and tap last - j of the pass meet at
/// position (phase + i + j * dilation) / stride of the window, if that is whole and within [low, high).
struct Pass {
  int64 batch;
  int64 group;
  int64 t_first;
  int64 oc_first;  // within the group
  int64 tap_first;
  int taps;
  int64 x_first;  // position in x of window position 0; may be negative
  int64 phase;    // 0 .. stride - 1
  int window;
  int low, high;  // the part of the window that exists
};

__device__ inline void set_taps(Pass& p, const Geometry& g, int64 tap_first, int64 taps, int T) {
  const int64 origin = p.t_first + g.padding - (tap_first + taps - 1) * g.dilation;
  p.tap_first = tap_first;
  p.taps = static_cast<int>(taps);
  p.x_first = floor_div(origin, g.stride);
  p.phase = origin - p.x_first * g.stride;
  p.window = static_cast<int>(window_length(T, taps, g));
  p.low = static_cast<int>(min_of(p.window, max_of(0, -p.x_first)));
  p.high = static_cast<int>(max_of(p.low, min_of(p.window, g.length - p.x_first)));
}

/// x as [channel][window position] (zeros outside x), w as [channel][oc][tap of the pass, last first].
template <int OC_TILE, class Element>
__device__ void stage(const RunArguments& a, const Pass& p, int64 ic_first, int channels, Element* x_tile,
                      Element* w_tile, int thread, int threads) {
  const Geometry& g = a.geometry;
  const int64 channel = p.group * g.in_per_group() + ic_first;
  const Element* x = static_cast<const Element*>(a.x) + p.batch * g.x_batch_stride + channel * g.x_row_stride;
  for (int i = thread; i < channels * p.window; i += threads) {
    const int ic = i / p.window;
    const int position = i - ic * p.window;
    const bool exists = position >= p.low && position < p.high;
    x_tile[i] = exists ? x[ic * g.x_row_stride + p.x_first + position] : from_float<Element>(0.0f);
  }
  const Element* w = static_cast<const Element*>(a.weights);
  for (int i = thread; i < channels * OC_TILE * p.taps; i += threads) {
    const int row = i / p.taps;
    const int64 tap = p.tap_first + p.taps - 1 - (i - row * p.taps);
    const int64 oc = p.oc_first + row % OC_TILE;
    const bool exists = oc < g.out_per_group();
    w_tile[i] = exists ? w[((channel + row / OC_TILE) * g.out_per_group() + oc) * g.kernel_size + tap]
                       : from_float<Element>(0.0f);
  }
}

/// Adds the staged products of one output. Positions outside x take no part: a zero there times an infinite weight
/// would not be zero.
template <int OC_TILE, bool kStrided, bool kEdge, class Element>
__device__ float accumulate(float sum, const Geometry& g, const Pass& p, int channels, const Element* x_tile,
                            const Element* w_tile, int i, int oc) {
  const int64 start = p.phase + i;
  const int first = static_cast<int>(kStrided ? start / g.stride : start);
  const int64 first_rest = kStrided ? start - first * g.stride : 0;
  // With one tap a pass the step is unused, and may be wider than an int.
  const int step = p.taps > 1 ? static_cast<int>(kStrided ? g.dilation / g.stride : g.dilation) : 0;
  const int64 step_rest = kStrided ? g.dilation % g.stride : 0;
#pragma unroll 1
  for (int ic = 0; ic < channels; ++ic) {
    const Element* w = w_tile + (ic * OC_TILE + oc) * p.taps;
    const Element* x = x_tile + ic * p.window;
    int position = first;
    int64 rest = first_rest;
    for (int j = 0; j < p.taps; ++j) {
      const bool whole = !kStrided || rest == 0;
      const bool exists = !kEdge || (position >= p.low && position < p.high);
      if (whole && exists) sum += to_float(x[position]) * to_float(w[j]);
      position += step;
      if (kStrided) {
        rest += step_rest;
        if (rest >= g.stride) {
          rest -= g.stride;
          ++position;
        }
      }
    }
  }
  return sum;
}

/// The same for stride 1, away from edges, in a pass of TAPS taps.
template <int OC_TILE, int TAPS, class Element>
__device__ float accumulate_taps(float sum, const Geometry& g, const Pass& p, int channels, const Element* x_tile,
                                 const Element* w_tile, int i, int oc) {
  const int step = TAPS > 1 ? static_cast<int>(g.dilation) : 0;
  const Element* x = x_tile + i;
  const Element* w = w_tile + oc * TAPS;
#pragma unroll 4
  for (int ic = 0; ic < channels; ++ic) {
#pragma unroll
    for (int j = 0; j < TAPS; ++j) sum += to_float(x[j * step]) * to_float(w[j]);
    x += p.window;
    w += OC_TILE * TAPS;
  }
  return sum;
}

/// TAPS is taps_a_pass where the instance is specialised, 0 where not.
template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int SPECIALISE, int TAPS, class Element>
__global__ void __launch_bounds__(BLOCK_X* BLOCK_Y, BLOCK_X* BLOCK_Y <= 256 ? 2 : 1)
    kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  static_assert(TILE_T % BLOCK_X == 0, "T must be a multiple of block.x");
  static_assert((SPECIALISE != 0) == (TAPS > 0), "TAPS is the specialisation");
  static_assert(OC_TILE % BLOCK_Y == 0, "OC_TILE must be a multiple of block.y");
  constexpr int kTs = TILE_T / BLOCK_X;
  constexpr int kOcs = OC_TILE / BLOCK_Y;
  constexpr Tunables kTunables{TILE_T, OC_TILE, IC_TILE, {BLOCK_X, BLOCK_Y}, SPECIALISE};
  extern __shared__ __align__(16) unsigned char shared[];

  const Geometry& g = a.geometry;
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int64 taps = TAPS > 0 ? TAPS : taps_a_pass(kTunables, g, sizeof(Element));
  const int64 tiles = tile_count(kTunables, g);
  const int64 oc_tiles = ceil_div(g.out_per_group(), OC_TILE);
  const int64 t_tiles = ceil_div(g.length_out, TILE_T);

  for (int64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    Pass p{};
    p.oc_first = tile % oc_tiles * OC_TILE;
    p.t_first = tile / oc_tiles % t_tiles * TILE_T;
    p.group = tile / (oc_tiles * t_tiles) % g.groups;
    p.batch = tile / (oc_tiles * t_tiles * g.groups);

    float sum[kOcs][kTs] = {};
    for (int64 tap = 0; tap < g.kernel_size; tap += taps) {
      set_taps(p, g, tap, min_of(taps, g.kernel_size - tap), TILE_T);
      const bool edge = p.low > 0 || p.high < p.window;
      Element* x_tile = reinterpret_cast<Element*>(shared);
      Element* w_tile = x_tile + IC_TILE * p.window;
      for (int64 ic = 0; ic < g.in_per_group(); ic += IC_TILE) {
        const int channels = static_cast<int>(min_of(IC_TILE, g.in_per_group() - ic));
        __syncthreads();
        stage<OC_TILE>(a, p, ic, channels, x_tile, w_tile, ty * BLOCK_X + tx, BLOCK_X * BLOCK_Y);
        __syncthreads();
#pragma unroll
        for (int o = 0; o < kOcs; ++o) {
#pragma unroll
          for (int i = 0; i < kTs; ++i) {
            const int t = tx + i * BLOCK_X;
            const int oc = ty + o * BLOCK_Y;
            if (g.stride > 1) {
              sum[o][i] = accumulate<OC_TILE, true, true>(sum[o][i], g, p, channels, x_tile, w_tile, t, oc);
            } else if (TAPS > 0 && !edge && p.taps == TAPS) {
              sum[o][i] = accumulate_taps<OC_TILE, TAPS>(sum[o][i], g, p, channels, x_tile, w_tile, t, oc);
            } else if (TAPS > 0 || edge) {
              sum[o][i] = accumulate<OC_TILE, false, true>(sum[o][i], g, p, channels, x_tile, w_tile, t, oc);
            } else {
              sum[o][i] = accumulate<OC_TILE, false, false>(sum[o][i], g, p, channels, x_tile, w_tile, t, oc);
            }
          }
        }
      }
    }

#pragma unroll
    for (int o = 0; o < kOcs; ++o) {
#pragma unroll
      for (int i = 0; i < kTs; ++i) {
        const int64 oc = p.oc_first + ty + o * BLOCK_Y;
        const int64 t = p.t_first + tx + i * BLOCK_X;
        if (oc >= g.out_per_group() || t >= g.length_out) continue;
        const int64 channel = p.group * g.out_per_group() + oc;
        const float bias = a.bias != nullptr ? to_float(static_cast<const Element*>(a.bias)[channel]) : 0.0f;
        static_cast<Element*>(a.y)[p.batch * g.y_batch_stride + channel * g.y_row_stride + t] =
            from_float<Element>(sum[o][i] + bias);
      }
    }
  }
}

}  // namespace ct1d::direct
