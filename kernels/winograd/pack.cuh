// winograd: the prepare steps, once per weights: `scale`, then `weigh`, then `pack`. layout.h says what they write.
#pragma once

#include "kernels/winograd/layout.h"
#include "kernels/winograd/transform.h"

namespace ct1d::winograd {

/// An output channel with weights this far apart, or with weights that are not finite, is computed directly; with six
/// points also one with steep taps (transform.h), or whose weights are whole numbers of at most 11 bits (times a power
/// of two), whose sums over whole x are promised to be exact.
inline constexpr float kWidest = 1.2379400392853803e+27f;  // 2^90

__device__ inline float largest_of_warp(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, bit));
  return value;
}

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xffffffffu, value, bit);
  return value;
}

/// The power of two of which `value` > 0 is 1 to 2 times, 2^-126 at least.
__device__ inline float power_below(float value) {
  const unsigned bits = __float_as_uint(value) & 0x7f800000u;
  return __uint_as_float(bits > 0x00800000u ? bits : 0x00800000u);
}

/// The largest ratio of the norms of two taps of a phase (transform.h), infinity where one of them alone is zero. A
/// warp's: `w` at the output channel's first weight, `unit` about the largest.
template <class Element>
__device__ float tap_ratio(const Element* w, const Geometry& g, float unit) {
  const int64 step = tap_step(g);
  float ratio = 1.0f;
#pragma unroll 1
  for (int64 first = 0; first < step && first < g.kernel_size; ++first) {
    float largest = 0.0f;
    float smallest = kLargest;
#pragma unroll 1
    for (int64 k = first; k < g.kernel_size; k += step) {
      float norm = 0.0f;
#pragma unroll 1
      for (int64 ic = threadIdx.x; ic < g.in_per_group(); ic += kWarpThreads) {
        norm += fabsf(w[ic * g.out_per_group() * g.kernel_size + k]) / unit;
      }
      norm = sum_of_warp(norm);
      largest = fmaxf(largest, norm);
      smallest = fminf(smallest, norm);
    }
    if (largest > 0.0f) ratio = fmaxf(ratio, largest / smallest);
  }
  return ratio;
}

/// unscale: a warp an output channel.
template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int POINTS, int TAPS, int HELD, int WARP_T,
          int STAGES, int UNROLL, int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(kWarpThreads) scale(const CT1D_GRID_CONSTANT PrepareArguments a) {
  constexpr Tunables kTunables{TILE_T, OC_TILE, IC_TILE, {BLOCK_X, BLOCK_Y}, POINTS, TAPS, HELD,
                               WARP_T, STAGES,  UNROLL,  MIN_BLOCKS};
  const Geometry& g = a.geometry;
  const int64 tiles = oc_tiles(kTunables, g);
  float* const unscale = static_cast<float*>(a.packed) + packing_of(kTunables, g).unscale;
  const int lane = static_cast<int>(threadIdx.x);
  for (int64 channel = blockIdx.x; channel < g.out_channels; channel += gridDim.x) {
    const int64 group = channel / g.out_per_group();
    const int64 oc = channel % g.out_per_group();
    const Element* w = static_cast<const Element*>(a.w) + group * g.in_per_group() * g.out_per_group() * g.kernel_size;
    float largest = 0.0f;
    float inverse = 0.0f;  // of the smallest that is not zero, at most the largest float
    bool finite = true;
    for (int64 i = lane; i < g.in_per_group() * g.kernel_size; i += kWarpThreads) {
      const float value = fabsf(w[(i / g.kernel_size * g.out_per_group() + oc) * g.kernel_size + i % g.kernel_size]);
      finite = finite && value <= 3.4028234663852886e38f;
      largest = fmaxf(largest, value);
      if (value > 0.0f) inverse = fmaxf(inverse, 1.0f / value);
    }
    largest = largest_of_warp(largest);
    inverse = largest_of_warp(inverse);
    bool direct = __any_sync(0xffffffffu, finite ? 0 : 1) != 0 || (largest > 0.0f && inverse > kWidest / largest);
    if (POINTS > 4 && !direct && largest > 0.0f) {  // four points compute whole numbers exactly
      const float steps = 2048.0f / power_below(largest);
      bool whole = true;
      for (int64 i = lane; i < g.in_per_group() * g.kernel_size; i += kWarpThreads) {
        const float value = w[(i / g.kernel_size * g.out_per_group() + oc) * g.kernel_size + i % g.kernel_size];
        whole = whole && value * steps == static_cast<float>(static_cast<int>(value * steps));
      }
      direct = __any_sync(0xffffffffu, whole ? 0 : 1) == 0;
    }
    float factor = largest > 0.0f ? power_below(largest) : 1.0f;
    const float ratio = direct ? 1.0f : tap_ratio(w + oc * g.kernel_size, g, factor);
    const int64 channels = g.in_per_group();
    const bool loose = channels < fewest_channels(POINTS);
    direct = direct || (!loose && channels < fewest_channels_of_steep_taps(POINTS) && ratio > kSteepTapRatio);
    if (ratio > (loose ? kLooseTapRatio : kTapRatio)) factor = -factor;
    if (direct) factor = __uint_as_float(0x7fc00000u);
    if (lane == 0) unscale[group * tiles * OC_TILE + oc] = factor;
  }
}

/// importance: a warp an input channel.
template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int POINTS, int TAPS, int HELD, int WARP_T,
          int STAGES, int UNROLL, int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(kWarpThreads) weigh(const CT1D_GRID_CONSTANT PrepareArguments a) {
  constexpr Tunables kTunables{TILE_T, OC_TILE, IC_TILE, {BLOCK_X, BLOCK_Y}, POINTS, TAPS, HELD,
                               WARP_T, STAGES,  UNROLL,  MIN_BLOCKS};
  const Geometry& g = a.geometry;
  const Packing p = packing_of(kTunables, g);
  float* const packed = static_cast<float*>(a.packed);
  const int lane = static_cast<int>(threadIdx.x);
  for (int64 channel = blockIdx.x; channel < g.in_channels; channel += gridDim.x) {
    const int64 group = channel / g.in_per_group();
    const float* unscale = packed + p.unscale + group * oc_tiles(kTunables, g) * OC_TILE;
    const Element* w = static_cast<const Element*>(a.w) + channel * g.out_per_group() * g.kernel_size;
    float largest = 0.0f;
    for (int64 i = lane; i < g.out_per_group() * g.kernel_size; i += kWarpThreads) {
      const float unit = fabsf(unscale[i / g.kernel_size]);
      if (unit == unit) largest = fmaxf(largest, fabsf(w[i]) / unit);
    }
    largest = largest_of_warp(largest);
    if (lane == 0) packed[p.importance + group * p.channels + channel % g.in_per_group()] = largest;
  }
}

/// Transformed weight at place `i` of the packed ones.
template <class Element>
__device__ float transformed(const Tunables& t, const PrepareArguments& a, const Packing& p, int64 i) {
  const Geometry& g = a.geometry;
  const int64 oc_in_tile = i % t.OC_TILE;
  int64 rest = i / t.OC_TILE;
  const int product = static_cast<int>(rest % t.points);
  rest /= t.points;
  const int64 ic = rest % p.channels;
  rest /= p.channels;
  const int64 chunk = rest % p.chunks;
  rest /= p.chunks;
  const int64 first_tap = rest % p.phases;
  rest /= p.phases;
  const int64 tiles = oc_tiles(t, g);
  const int64 oc = rest % tiles * t.OC_TILE + oc_in_tile;
  const int64 group = rest / tiles;
  if (ic >= g.in_per_group() || oc >= g.out_per_group()) return 0.0f;
  const float unit = fabsf(static_cast<const float*>(a.packed)[p.unscale + group * tiles * t.OC_TILE + oc]);
  if (!(unit == unit)) return 0.0f;  // not used
  const int64 channel = group * g.in_per_group() + ic;
  const Element* w = static_cast<const Element*>(a.w) + (channel * g.out_per_group() + oc) * g.kernel_size;
  double sum = 0.0;
  for (int tap = 0; tap < t.taps; ++tap) {
    // A window runs forward in x, and taps backward.
    const int64 k = first_tap + (chunk * t.taps + t.taps - 1 - tap) * tap_step(g);
    const double factor =
        t.points == 4 ? weight_factor<4>(product, tap, t.taps) : weight_factor<6>(product, tap, t.taps);
    if (k < g.kernel_size) sum += factor * static_cast<double>(w[k]);
  }
  return static_cast<float>(sum / static_cast<double>(unit));
}

template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int POINTS, int TAPS, int HELD, int WARP_T,
          int STAGES, int UNROLL, int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  constexpr Tunables kTunables{TILE_T, OC_TILE, IC_TILE, {BLOCK_X, BLOCK_Y}, POINTS, TAPS, HELD,
                               WARP_T, STAGES,  UNROLL,  MIN_BLOCKS};
  const Geometry& g = a.geometry;
  const Packing p = packing_of(kTunables, g);
  float* const packed = static_cast<float*>(a.packed);
  const int64 threads = static_cast<int64>(gridDim.x) * kPackThreads;
  for (int64 i = static_cast<int64>(blockIdx.x) * kPackThreads + threadIdx.x; i < p.total; i += threads) {
    if (i < p.importance) {
      packed[i] = transformed<Element>(kTunables, a, p, i);
    } else if (i < p.unscale) {
      if ((i - p.importance) % p.channels >= g.in_per_group()) packed[i] = 0.0f;
    } else if (i < p.original) {
      if ((i - p.unscale) % (oc_tiles(kTunables, g) * OC_TILE) >= g.out_per_group()) packed[i] = 1.0f;
    } else {
      packed[i] = static_cast<const Element*>(a.w)[i - p.original];
    }
  }
}

}  // namespace ct1d::winograd
