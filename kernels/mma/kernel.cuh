// mma: transposed convolution on the matrix units of sm_80 and newer (mma.sync), any stride, dilation, groups.
//
// A block computes a tile of positions by columns (layout.h). Raw x and packed weights of a step, 16 terms for each of
// `taps` products, come through a ring of asynchronous copies. A warp turns x into the products' A in registers: fp32
// scaled by a power of two for each pair of rows and split into two fp16 parts, of whose products three are formed.
// Every step's sums are promoted into fp32 registers. What scales do not serve, and what is not finite, is computed
// again exactly.
#pragma once

#include "kernels/common/async_copy.cuh"
#include "kernels/mma/instance.cuh"
#include "kernels/mma/pack.cuh"

namespace ct1d::mma {

/// What a block works on.
struct Tile {
  int64 batch;
  int64 group;
  int64 panel;  // of the group
  int64 m;      // first position
};

__device__ __forceinline__ Tile tile_at(const Plan& p, const Geometry& g, int64 index, int positions) {
  Tile tile{};
  int64 rest = index / p.panels;
  tile.panel = index - rest * p.panels;
  const int64 row = rest / p.m_tiles;
  tile.m = p.m_first + (rest - row * p.m_tiles) * positions;
  tile.batch = row / g.groups;
  tile.group = row - tile.batch * g.groups;
  return tile;
}

/// In shared memory: what is read anew where it is used takes no registers across the products.
struct Job {
  Plan plan;
  Tile tile;
};
static_assert(sizeof(Job) <= kHeaderBytes, "the header must hold a job");

/// Positions that a window's stage begins with, and elements before them that make copies aligned.
struct Window {
  int64 first;
  int before;
};
template <class I>
__device__ __forceinline__ Window window_at(const typename I::Element* x, const Geometry& g, const Plan& p,
                                            const Tile& tile, int64 window) {
  Window w{tile.m - window * (I::kTaps * p.folded) * p.distance - halo_of(I::tunables(), p), 0};
  if (g.x_row_stride % I::kVector == 0) {
    const auto place = static_cast<int64>(reinterpret_cast<unsigned long long>(x) / I::kBytes) + w.first;
    w.before = static_cast<int>(place & (I::kVector - 1));
  }
  return w;
}

/// Asks for a step: x of the group's channels from `first` on, then its weights.
template <class I>
__device__ __forceinline__ void ask(unsigned char* stage, const typename I::Element* x, const unsigned char* weights,
                                    const Geometry& g, const Plan& p, const Window& w, int64 first) {
  using Element = typename I::Element;
  const int pitch = static_cast<int>(pitch_of(I::tunables(), p, I::kBytes));
  const int length = I::kPositions + static_cast<int>(halo_of(I::tunables(), p)) + w.before;
  const int thread = static_cast<int>(threadIdx.x);
  const int64 begin = w.first - w.before;
  Element* const rows = reinterpret_cast<Element*>(stage);
  const bool wide = g.x_row_stride % I::kVector == 0;
  const int pieces = wide ? (length + I::kVector - 1) / I::kVector : length;
#pragma unroll 1
  for (int channel = thread / 32; channel < p.channels; channel += I::kThreads / 32) {
    const Element* const from = x + (first + channel) * g.x_row_stride + begin;
    Element* const row = rows + channel * pitch;
    const bool exists = first + channel < g.in_per_group();
#pragma unroll 1
    for (int piece = thread % 32; piece < pieces; piece += 32) {
      if (wide) {
        const int at = piece * I::kVector;
        const int64 position = begin + at;
        const bool some = exists && position + I::kVector > 0 && position < g.length;
        if (some && (position < 0 || position + I::kVector > g.length)) {
#pragma unroll 1
          for (int e = 0; e < I::kVector; ++e)
            row[at + e] = position + e >= 0 && position + e < g.length ? from[at + e] : from_float<Element>(0.0f);
        } else {
          copy_async<16>(row + at, from + at, some);
        }
      } else {
        const bool some = exists && begin + piece >= 0 && begin + piece < g.length;
        if constexpr (I::kBytes == 4) {
          copy_async<4>(row + piece, from + piece, some);
        } else {
          row[piece] = some ? from[piece] : from_float<Element>(0.0f);
        }
      }
    }
  }
  unsigned char* const to = stage + round_up(p.channels * pitch * I::kBytes, 16);
#pragma unroll 1
  for (int i = thread * 16; i < step_bytes(I::tunables()); i += I::kThreads * 16)
    copy_async<16>(to + i, weights + i, true);
}

/// A of one tile of 16 positions for all taps of a step, the inverse of its scale, and whether that serves.
template <class I>
struct Fragment {
  uint32 hi[I::kTaps][4];
  uint32 lo[I::kSplits ? I::kTaps : 1][4];
  float inverse;
  bool bad;
};

/// `x` is position g of the tile in channel 0; `places` of the thread's four terms from there.
template <class I>
__device__ __forceinline__ void take(Fragment<I>& f, const typename I::Element* x, const int (&places)[4],
                                     int tap_distance) {
  if constexpr (I::kScales) {
    float v[I::kTaps][4][2];
    float most = 0.0f;
    uint32 least = 0xFFFFFFFFu;
#pragma unroll
    for (int t = 0; t < I::kTaps; ++t) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float value = x[places[e] - t * tap_distance + 8 * row];
          v[t][e][row] = value;
          most = max_or_nan(most, fabsf(value));
          const uint32 bits = (bits_of_float(value) & 0x7FFFFFFFu) - 1;
          least = bits < least ? bits : least;
        }
      }
    }
    most = max_or_nan(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
    most = max_or_nan(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
    const uint32 bits = bits_of_float(most) & 0x7FFFFFFFu;
    const Scale scale = scale_of(bits, 0);
    f.inverse = scale.inverse;
    f.bad = !serves<I>(bits, least, scale.scale);
#pragma unroll
    for (int t = 0; t < I::kTaps; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float a = v[t][i / 2 * 2][i % 2] * scale.scale;
        const float b = v[t][i / 2 * 2 + 1][i % 2] * scale.scale;
        f.hi[t][i] = I::kSplits ? half_pair(a, b) : half_pair_away(a, b);  // one part is a TF32 number
        if constexpr (I::kSplits) f.lo[t][i] = half_pair(a - low_half(f.hi[t][i]), b - high_half(f.hi[t][i]));
      }
    }
  } else {
    constexpr uint32 kNoNumber = kIsBfloat16<typename I::Element> ? 0x7F80u : 0x7C00u;
    f.inverse = 1.0f;
    f.bad = false;
#pragma unroll
    for (int t = 0; t < I::kTaps; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32 a = x[places[i / 2 * 2] - t * tap_distance + 8 * (i % 2)].bits;
        const uint32 b = x[places[i / 2 * 2 + 1] - t * tap_distance + 8 * (i % 2)].bits;
        f.bad = f.bad || (a & kNoNumber) == kNoNumber || (b & kNoNumber) == kNoNumber;
        f.hi[t][i] = a | b << 16;
      }
    }
  }
}

template <class I>
using Sums = float[I::kMs][I::kNs][4];

/// A step's products, the small ones first, and their promotion. `weights`: the warp's first columns'.
template <class I>
__device__ __forceinline__ void multiply(Sums<I>& sum, const Fragment<I> (&f)[I::kMs], const unsigned char* weights) {
#pragma unroll
  for (int n = 0; n < I::kNs; ++n) {
    uint32 b[I::kTaps][I::kParts][2];
#pragma unroll
    for (int t = 0; t < I::kTaps; ++t) {
      const unsigned char* const at = weights + t * product_bytes(I::tunables()) + n * (32 * 8 * I::kParts);
      if constexpr (I::kSplits) {
        const uint4 v = *reinterpret_cast<const uint4*>(at);
        b[t][0][0] = v.x;
        b[t][0][1] = v.y;
        b[t][I::kParts - 1][0] = v.z;
        b[t][I::kParts - 1][1] = v.w;
      } else {
        const uint2 v = *reinterpret_cast<const uint2*>(at);
        b[t][0][0] = v.x;
        b[t][0][1] = v.y;
      }
    }
#pragma unroll
    for (int m = 0; m < I::kMs; ++m) {
      float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if constexpr (I::kSplits) {
#pragma unroll
        for (int t = 0; t < I::kTaps; ++t) warp_multiply<typename I::Operand>(d, f[m].lo[t], b[t][0][0], b[t][0][1]);
#pragma unroll
        for (int t = 0; t < I::kTaps; ++t) {
          warp_multiply<typename I::Operand>(d, f[m].hi[t], b[t][I::kParts - 1][0], b[t][I::kParts - 1][1]);
        }
      }
#pragma unroll
      for (int t = 0; t < I::kTaps; ++t) warp_multiply<typename I::Operand>(d, f[m].hi[t], b[t][0][0], b[t][0][1]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[m][n][i] = fmaf(d[i], f[m].inverse, sum[m][n][i]);
    }
  }
}

/// Element (row m of the tile, column of the panel) of y, if it exists.
struct Output {
  int64 oc;  // of the group
  int64 phase;
  int64 t;
  bool exists;
};
__device__ __forceinline__ Output output_at(const Geometry& g, const Plan& p, const Tile& tile, int column, int64 m) {
  const int64 flat = tile.panel * p.width + column;
  const int64 oc = flat / g.stride;
  const int64 phase = flat - oc * g.stride;
  const int64 t = g.stride * m + phase - g.padding;
  return {oc, phase, t, column < p.width && oc < g.out_per_group() && t >= 0 && t < g.length_out};
}

/// The tile from shared memory to y, in runs along t.
template <class I>
__device__ __forceinline__ void store(const RunArguments& a, const Plan& p, const Tile& tile, const float* held) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  constexpr int kPitch = I::kPositions + 4;
  const int thread = static_cast<int>(threadIdx.x);
  const int64 first_column = tile.panel * p.width;
  Element* const y = static_cast<Element*>(a.y) + tile.batch * g.y_batch_stride;
  const auto* const bias = static_cast<const Element*>(a.bias);
  const int64 channel = tile.group * g.out_per_group();
  if (g.stride <= I::kColumns) {
    const int stride = static_cast<int>(g.stride);
    const int64 t0 = g.stride * tile.m - g.padding;
    const int count = I::kPositions * stride;
    const int64 first_oc = first_column / g.stride;
    const int channels = static_cast<int>(min_of(p.width / g.stride, g.out_per_group() - first_oc));
#pragma unroll 1
    for (int oc = 0; oc < channels; ++oc) {
      const int64 c = channel + first_oc + oc;
      const float start = bias != nullptr ? to_float(bias[c]) : 0.0f;
      Element* const row = y + c * g.y_row_stride + t0;
      // So that warps begin on sectors.
      int i = thread - static_cast<int>(reinterpret_cast<unsigned long long>(row) % 32 / I::kBytes);
      if (i < 0) i += I::kThreads;
      int m = i / stride;
      int phase = i - m * stride;
      const int m_step = I::kThreads / stride;
      const int phase_step = I::kThreads - m_step * stride;
#pragma unroll 2
      for (; i < count; i += I::kThreads) {
        if (t0 + i >= 0 && t0 + i < g.length_out)
          row[i] = from_float<Element>(held[(oc * stride + phase) * kPitch + m] + start);
        m += m_step;
        phase += phase_step;
        if (phase >= stride) {
          phase -= stride;
          ++m;
        }
      }
    }
  } else {
#pragma unroll 1
    for (int i = thread; i < I::kPositions * I::kColumns; i += I::kThreads) {
      const int m = i / I::kColumns;
      const int column = i % I::kColumns;
      const Output out = output_at(g, p, tile, column, tile.m + m);
      if (!out.exists) continue;
      const int64 c = channel + out.oc;
      const float start = bias != nullptr ? to_float(bias[c]) : 0.0f;
      y[c * g.y_row_stride + out.t] = from_float<Element>(held[column * kPitch + m] + start);
    }
  }
}

/// One output over the products that exist.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, const Plan& p, const Tile& tile, int column, int64 m) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const Output out = output_at(g, p, tile, column, m);
  if (!out.exists) return;
  const int64 c = tile.group * g.out_per_group() + out.oc;
  const Element* x = static_cast<const Element*>(a.x) + tile.batch * g.x_batch_stride +
                     tile.group * g.in_per_group() * g.x_row_stride + m;
  const Element* w = reinterpret_cast<const Element*>(static_cast<const unsigned char*>(a.weights) +
                                                      packed_of(I::tunables(), p, g, I::kBytes).plain) +
                     (tile.group * g.in_per_group() * g.out_per_group() + out.oc) * g.kernel_size;
  float sum = 0.0f;
#pragma unroll 1
  for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
#pragma unroll 1
    for (int64 j = 0; j < p.taps; ++j) {
      const int64 position = m - j * p.distance;
      if (position < 0) break;
      const int64 k = tap_at(g, out.phase, j);
      if (position < g.length && k >= 0) sum = fmaf(to_float(x[-j * p.distance]), to_float(w[k]), sum);
    }
    x += g.x_row_stride;
    w += g.out_per_group() * g.kernel_size;
  }
  const float bias = a.bias != nullptr ? to_float(static_cast<const Element*>(a.bias)[c]) : 0.0f;
  static_cast<Element*>(a.y)[tile.batch * g.y_batch_stride + c * g.y_row_stride + out.t] =
      from_float<Element>(sum + bias);
}

template <class I>
__device__ __forceinline__ void compute_tile(const RunArguments& a, const Job& job, unsigned char* shared) {
  using Element = typename I::Element;
  const Plan& p = job.plan;
  const Tile& tile = job.tile;
  const Geometry& g = a.geometry;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_m = thread / 32 % I::kWarpsM;
  const int warp_n = thread / 32 / I::kWarpsM;
  const int stage_size = static_cast<int>(stage_bytes(I::tunables(), p, I::kBytes));
  const int pitch = static_cast<int>(pitch_of(I::tunables(), p, I::kBytes));
  const int weights_at = static_cast<int>(round_up(p.channels * pitch * I::kBytes, 16));
  const int halo = static_cast<int>(halo_of(I::tunables(), p));
  const int tap_distance = static_cast<int>(p.folded * p.distance);
  const Element* const x =
      static_cast<const Element*>(a.x) + tile.batch * g.x_batch_stride + tile.group * g.in_per_group() * g.x_row_stride;
  const int64 panel = tile.group * p.panels + tile.panel;
  const unsigned char* const packed = static_cast<const unsigned char*>(a.weights);
  const unsigned char* weights = packed + panel * p.steps * step_bytes(I::tunables());
  int places[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int term = lane % 4 + 4 * e;
    const int folded = term / p.channels;
    places[e] = (term - folded * p.channels) * pitch - folded * static_cast<int>(p.distance) + halo +
                warp_m * I::kMs * 16 + lane / 4;
  }

  Sums<I> sum;
#pragma unroll
  for (int m = 0; m < I::kMs; ++m) {
#pragma unroll
    for (int n = 0; n < I::kNs; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[m][n][i] = 0.0f;
    }
  }
  uint32 bad = 0;  // a bit for each of the warp's tiles
  if constexpr (I::kSplits) {
#pragma unroll
    for (int m = 0; m < I::kMs; ++m) {
      const int64 row = tile.m + (warp_m * I::kMs + m) * 16 + lane / 4;
      if (few_products(p, g, row) || few_products(p, g, row + 8)) bad |= 1u << m;
    }
  }
  int asked_channel = 0, asked_window = 0, window = 0;
  int filled = 0, used = 0;
#pragma unroll 1
  for (int step = 1 - I::kStages; step < static_cast<int>(p.steps); ++step) {
    if (step >= 0) {
      copy_wait<I::kStages - 2>();
      __syncthreads();  // the stage is there for all, and all have left the one that is filled next
    }
    if (step + I::kStages - 1 < static_cast<int>(p.steps)) {
      ask<I>(shared + filled * stage_size, x, weights, g, p, window_at<I>(x, g, p, tile, asked_window), asked_channel);
      weights += step_bytes(I::tunables());
      filled = filled + 1 < I::kStages ? filled + 1 : 0;
      if (++asked_window == p.windows) {
        asked_window = 0;
        asked_channel += p.channels;
      }
    }
    copy_commit();
    if (step < 0) continue;
    const unsigned char* const stage = shared + used * stage_size;
    const Element* const rows = reinterpret_cast<const Element*>(stage) + window_at<I>(x, g, p, tile, window).before;
    Fragment<I> f[I::kMs];
#pragma unroll
    for (int m = 0; m < I::kMs; ++m) {
      take<I>(f[m], rows + 16 * m, places, tap_distance);
      bad |= f[m].bad ? 1u << m : 0u;
    }
    multiply<I>(sum, f, stage + weights_at + (warp_n * I::kNs * 32 + lane) * (8 * I::kParts));
    used = used + 1 < I::kStages ? used + 1 : 0;
    if (++window == p.windows) window = 0;
  }
  copy_wait<0>();
  __syncthreads();  // all have left the stages

  constexpr int kPitch = I::kPositions + 4;
  float* const held = reinterpret_cast<float*>(shared);
  const Packed places_of = packed_of(I::tunables(), p, g, I::kBytes);
  const auto* const inverse = reinterpret_cast<const float*>(packed + places_of.inverse) + panel * I::kColumns;
  const auto* const flags = reinterpret_cast<const float*>(packed + places_of.flag) + panel * I::kColumns;
#pragma unroll
  for (int n = 0; n < I::kNs; ++n) {
    const int column = (warp_n * I::kNs + n) * 8 + lane % 4 * 2;
    const float scale0 = inverse[column];
    const float scale1 = inverse[column + 1];
#pragma unroll
    for (int m = 0; m < I::kMs; ++m) {
      const int row = (warp_m * I::kMs + m) * 16 + lane / 4;
      held[column * kPitch + row] = sum[m][n][0] * scale0;
      held[(column + 1) * kPitch + row] = sum[m][n][1] * scale1;
      held[column * kPitch + row + 8] = sum[m][n][2] * scale0;
      held[(column + 1) * kPitch + row + 8] = sum[m][n][3] * scale1;
    }
  }
  bool unserved = false;
  for (int column = thread; column < I::kColumns; column += I::kThreads) unserved = unserved || flags[column] != 0.0f;
  const bool all = __syncthreads_or(unserved ? 1 : 0) != 0;
  store<I>(a, p, tile, held);
  __syncthreads();  // what was stored is overwritten; and shared memory is free
#pragma unroll 1
  for (int m = 0; m < I::kMs; ++m) {
    const uint32 lanes = all ? 0xFFFFFFFFu : __ballot_sync(0xFFFFFFFFu, (bad >> m & 1) != 0);
    if (lanes == 0) continue;
#pragma unroll 1
    for (int row = 0; row < 16; ++row) {
      if ((lanes >> row % 8 * 4 & 15u) == 0) continue;
#pragma unroll 1
      for (int column = lane; column < I::kNs * 8; column += 32) {
        repair<I>(a, p, tile, warp_n * I::kNs * 8 + column, tile.m + (warp_m * I::kMs + m) * 16 + row);
      }
    }
  }
}

/// a.weights: what `pack` wrote.
template <int M_TILES, int N_TILES, int WARPS_M, int WARPS_N, int STAGES, int PRODUCTS, int TAPS, int FOLD,
          int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, MIN_BLOCKS) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<M_TILES, N_TILES, WARPS_M, WARPS_N, STAGES, PRODUCTS, TAPS, FOLD, MIN_BLOCKS, Element>;
  extern __shared__ __align__(16) unsigned char shared[];
  Job& job = *reinterpret_cast<Job*>(shared);
  if (threadIdx.x == 0) job.plan = plan_of(I::tunables(), a.geometry);
#pragma unroll 1
  for (int64 index = blockIdx.x;; index += gridDim.x) {
    __syncthreads();  // all have read the last one
    if (index >= job.plan.tiles) break;
    if (threadIdx.x == 0) job.tile = tile_at(job.plan, a.geometry, index, I::kPositions);
    __syncthreads();
    compute_tile<I>(a, job, shared + kHeaderBytes);
  }
}

template <int M_TILES, int N_TILES, int WARPS_M, int WARPS_N, int STAGES, int PRODUCTS, int TAPS, int FOLD,
          int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(kPackThreads, 1) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  pack_all<Instance<M_TILES, N_TILES, WARPS_M, WARPS_N, STAGES, PRODUCTS, TAPS, FOLD, MIN_BLOCKS, Element>>(a);
}

}  // namespace ct1d::mma
