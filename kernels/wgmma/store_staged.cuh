// wgmma: finished sums to y by way of shared memory, for strides that no exchange between lanes serves (staging.h).
// Runs of an output channel are stored in pieces of 16 bytes.
#pragma once

#include "kernels/wgmma/store_phases.cuh"

namespace ct1d::wgmma {

template <class I>
struct Stage {
  static constexpr int S = I::kStride;
  static constexpr Staging kStaging = staging_of(I::kColumns, S, I::kBytes);
  static constexpr int kChannels = kStaging.channels;
  static constexpr int kColumns = kChannels * S;
  static constexpr int kChunks = (I::kWidth + kColumns - 1) / kColumns;
  static constexpr int kPitchBytes = kStaging.pitch * I::kBytes;
  static constexpr int kPiece = 16 / I::kBytes;
  static constexpr int kPieces = 32 * S / kPiece + 1;  // of a run, wherever it begins
  static_assert(kChannels <= 32, "a lane knows of one channel");
};

/// Where a chunk's runs lie in shared memory and in y: channel c `pitch` and y_row_stride from the one before it, and
/// late(c) elements later, as it lies in y.
template <class I>
struct Runs {
  uint32 at;
  int begin;
  int step;
  __device__ __forceinline__ int late(int c) const { return (begin + c * step) & (Stage<I>::kPiece - 1); }
  __device__ __forceinline__ uint32 run(int c) const { return at + c * Stage<I>::kPitchBytes; }
  __device__ __forceinline__ bool even() const { return ((begin | step) & 1) == 0; }
};

/// Of column k of a chunk, or one that begins in the chunk before it.
template <class I>
__device__ __forceinline__ int channel_of(int k) {
  return k < 0 ? 0 : static_cast<int>(static_cast<uint32>(k) / Stage<I>::S);
}

/// Values of four positions of two neighbouring columns to places to[0] and to[1], those that `in` has. `even`: the
/// first is a multiple of two elements.
template <class I>
__device__ __forceinline__ void lay_down(const float (&v)[4][2], const uint32 (&to)[2], const bool (&in)[2],
                                         bool even) {
  constexpr int kStep = Stage<I>::S * I::kBytes;
  if (Stage<I>::S % 2 == 0 && even) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (!in[0]) continue;
      if constexpr (I::kSmall) {
        store_shared_4(to[0] + p * kStep, operand_pair<typename I::Operand>(v[p][0], v[p][1]));
      } else {
        store_shared_8(to[0] + p * kStep, bits_of_float(v[p][0]), bits_of_float(v[p][1]));
      }
    }
    return;
  }
  // Of floats the upper two lanes of a quad store their second column first: all banks are met then.
  const bool swapped = !I::kSmall && lane_of_warp() % 4 >= 2;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const uint32 place = swapped ? to[1 - e] : to[e];
    const bool valid = swapped ? in[1 - e] : in[e];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const float value = swapped ? v[p][1 - e] : v[p][e];
      if (!valid) continue;
      if constexpr (I::kSmall) {
        store_shared_2(place + p * kStep, static_cast<unsigned short>(operand_pair<typename I::Operand>(value, value)));
      } else {
        store_shared_float(place + p * kStep, value);
      }
    }
  }
}

/// The chunk's columns, finished. Lane c knows of its channel c, of `channels` from `channel` on. Returns the largest
/// magnitude, NaN above all.
template <class I>
__device__ __forceinline__ float stage_chunk(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                             const RunArguments& a, int64 channel, int channels, const float* factors,
                                             const Runs<I>& runs, int chunk, float inverse) {
  using Element = typename I::Element;
  using G = Stage<I>;
  const int lane = lane_of_warp();
  const uint32 own_place = runs.run(lane) + (runs.late(lane) - lane * G::S) * I::kBytes;
  float own_bias = 0.0f;
  if (a.bias != nullptr && lane < channels)
    own_bias = load_element(static_cast<const Element*>(a.bias) + channel + lane);
  float most = 0.0f;
#pragma unroll
  for (int j = 0; j < I::kTiles; ++j) {
    const int first = 8 * j - chunk * G::kColumns;  // known when compiled
    if (first + 8 <= 0 || first >= G::kColumns) continue;
    const bool whole = first >= 0 && first + 8 <= G::kColumns;
    float factor[2];
    float shift[2];
    uint32 to[2];
    bool in[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int k = first + 2 * (lane % 4) + e;
      const int c = channel_of<I>(k);
      in[e] = whole || (k >= 0 && k < G::kColumns);
      factor[e] = I::kSmall ? 1.0f : load_constant(factors + 8 * j + 2 * (lane % 4) + e);
      if (e == 0 || G::S % 2 != 0) {
        shift[e] = __shfl_sync(0xFFFFFFFFu, own_bias, c);
        to[e] = __shfl_sync(0xFFFFFFFFu, own_place, c) + (k + lane / 4 * 4 * G::S) * I::kBytes;
      } else {
        shift[1] = shift[0];
        to[1] = to[0] + I::kBytes;
      }
    }
    float v[4][2];
    finish_pair<I>(v, s0, s1, j, factor, shift, inverse);
    most = largest_of(most, v);
    lay_down<I>(v, to, in, runs.even());
  }
  return most;
}

template <class I>
__device__ __forceinline__ void store_single(typename I::Element* to, uint32 from, bool valid) {
  if constexpr (I::kSmall) {
    const uint32 word = load_shared_4(from & ~3u);
    store_two_bytes<I::kStreaming>(to, (from & 2) != 0 ? word >> 16 : word, valid);
  } else {
    store_one<I::kStreaming>(to, load_shared_float(from), valid);
  }
}

/// `channels` runs of which elements [low, high) exist; the first lies at `y`.
template <class I>
__device__ __forceinline__ void store_runs(typename I::Element* y, int64 row_stride, const Runs<I>& runs, int channels,
                                           int low, int high) {
  using G = Stage<I>;
  constexpr int kPiece = G::kPiece;
  constexpr int kRounds = (G::kPieces + 31) / 32;
  constexpr int kTogether = kRounds < 4 ? kRounds : 4;  // loads in flight
  const int lane = lane_of_warp();
#pragma unroll 2
  for (int c = 0; c < channels; ++c) {
    const int late = runs.late(c);
    typename I::Element* const to = y - late;
    typename I::Element* const own = to + lane * kPiece;
    // from here on elements count from the piece in which the run begins; pieces from `whole` to `rest` are whole
    const int begin = low + late;
    const int end = high + late;
    const int up = (begin + kPiece - 1) & -kPiece;
    const int whole = up < end ? up : end;
    const int down = end & -kPiece;
    const int rest = down > whole ? down : whole;
#pragma unroll
    for (int round = 0; round < kRounds; round += kTogether) {
      uint4 v[kTogether]{};
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int piece = (round + i) * 32 + lane;
        if (piece < G::kPieces) v[i] = load_shared_16(runs.run(c) + piece * 16);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int at = ((round + i) * 32 + lane) * kPiece;
        store_quad<I::kStreaming>(reinterpret_cast<float*>(own + (round + i) * 32 * kPiece), float_of_bits(v[i].x),
                                  float_of_bits(v[i].y), float_of_bits(v[i].z), float_of_bits(v[i].w),
                                  at >= whole && at < rest);
      }
    }
    if (begin < whole || rest < end) {  // what is not whole at either end
      const int single = lane < kPiece ? begin + lane : rest + lane - kPiece;
      const bool valid = lane < 2 * kPiece && single < (lane < kPiece ? whole : end);
      store_single<I>(to + single, runs.run(c) + (valid ? single * I::kBytes : 0), valid);
    }
    y += row_stride;
  }
}

/// The warp's quads one by one, each wherever it belongs: some lie in different items of the batch.
template <class I>
__device__ __forceinline__ void store_quads(const RunArguments& a, uint32 shared, const Tile& tile, int64 channel,
                                            const Runs<I>& runs, int channels) {
  using Element = typename I::Element;
  using G = Stage<I>;
  const Geometry& g = a.geometry;
#pragma unroll 1
  for (int n = 0; n < 8; ++n) {
    const Quad quad = find_quad<I>(g, shared, tile, 8 * warp_of_group() + n);
    const int t = quad.position * G::S - static_cast<int>(g.padding);
    Element* const y = static_cast<Element*>(a.y) + quad.batch * g.y_batch_stride + channel * g.y_row_stride + t;
#pragma unroll 1
    for (int i = lane_of_warp(); i < G::kChannels * 4 * G::S; i += 32) {
      const int c = i / (4 * G::S);
      const int k = i - c * 4 * G::S;
      const uint32 from = runs.run(c) + (runs.late(c) + n * 4 * G::S + k) * I::kBytes;
      const bool valid = quad.exists && c < channels && t + k >= 0 && t + k < static_cast<int>(g.length_out);
      store_single<I>(y + c * g.y_row_stride + k, from, valid);
    }
  }
}

/// All columns. Returns the largest magnitude, NaN above all.
template <class I>
__device__ __forceinline__ float store_staged(const float (&s0)[I::kSums], const float (&s1)[I::kSums],
                                              const RunArguments& a, uint32 shared, const Tile& tile, float inverse) {
  using Element = typename I::Element;
  using G = Stage<I>;
  const Geometry& g = a.geometry;
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const float* const factors = factors_of<I>(a, shared, tile.panel);
  const Quad first = find_quad<I>(g, shared, tile, 8 * warp_of_group());
  const Quad last = find_quad<I>(g, shared, tile, 8 * warp_of_group() + 7);
  const bool together = last.exists && first.batch == last.batch && first.position + 28 == last.position;
  const int t = first.position * G::S - static_cast<int>(g.padding);
  const int low = t < 0 ? -t : 0;
  const int left = static_cast<int>(g.length_out) - t;
  int64 channel = panel.first_out + panel.first_column / G::S;
  int channels = panel.columns / G::S;
  Runs<I> runs{shared + I::kShared.staging + fresh_thread() / 32 * G::kStaging.bytes, 0,
               static_cast<int>(g.y_row_stride) & (G::kPiece - 1)};
  float most = 0.0f;
#pragma unroll
  for (int chunk = 0; chunk < G::kChunks; ++chunk) {
    Element* const y = static_cast<Element*>(a.y) + first.batch * g.y_batch_stride + channel * g.y_row_stride + t;
    runs.begin = static_cast<int>(reinterpret_cast<uint64>(y) / I::kBytes) & (G::kPiece - 1);
    const int here = channels < G::kChannels ? channels : G::kChannels;
    __syncwarp();  // what was stored before is read
    most = max_or_nan(most, stage_chunk<I>(s0, s1, a, channel, here, factors, runs, chunk, inverse));
    __syncwarp();
    if (together) {
      store_runs<I>(y, g.y_row_stride, runs, here, low, left < 32 * G::S ? left : 32 * G::S);
    } else {
      store_quads<I>(a, shared, tile, channel, runs, here);
    }
    channel += G::kChannels;
    channels -= G::kChannels;
  }
  return most;
}

}  // namespace ct1d::wgmma
