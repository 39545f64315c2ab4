// wgmma_packed: finished sums to y, through shared memory in the order of y, four neighbouring outputs at a time.
#pragma once

#include "kernels/wgmma_packed/instance.cuh"

namespace ct1d::wgmma_packed {

template <class I>
__device__ __forceinline__ void consumer_barrier(int consumer) {
  numbered_barrier<128>(1 + consumer);
}

/// Four neighbouring places: where in a row of y they begin (an element of the first row of their item), the first's
/// output t; such that none exists where there is no item.
struct Quad {
  int64 from;
  int t;
};
inline constexpr int kNowhere = -(1 << 30);
template <class I>
__device__ __forceinline__ uint32 quad_place(uint32 shared, int consumer, int quad) {
  return shared + I::kShared.quads + static_cast<uint32>(consumer * quads_bytes(I::kT) + quad * 16);
}
template <class I>
__device__ __forceinline__ void save_quad(const Geometry& g, uint32 shared, const Tile& tile, int consumer, int quad) {
  const Position at = find_position<I>(shared, static_cast<unsigned>(tile.places * I::kT + 4 * quad));
  const bool exists = at.batch < g.batch;
  const int t = exists ? at.m * I::stride(g) - static_cast<int>(g.padding) : kNowhere;
  const uint64 from = exists ? static_cast<uint64>(at.batch * g.y_batch_stride + t) : 0;
  store_shared_16(quad_place<I>(shared, consumer, quad), static_cast<uint32>(from), static_cast<uint32>(from >> 32),
                  static_cast<uint32>(t), 0);
}
template <class I>
__device__ __forceinline__ Quad load_quad(uint32 shared, int consumer, int quad) {
  const uint4 v = load_shared_16(quad_place<I>(shared, consumer, quad));
  return {static_cast<int64>(static_cast<uint64>(v.y) << 32 | v.x), static_cast<int>(v.z)};
}

/// Of a value on its way to y. Where four phases lie side by side a place's rows do, else a row's places; the pitches
/// keep both writing and reading off each other's banks.
template <class I>
__device__ __forceinline__ uint32 staging_place(uint32 shared, int consumer, int row, int place) {
  const int word = I::kByPlace ? place * kPlacePitch + row : row * (I::kStored + 1) + place;
  return shared + I::kShared.staging + static_cast<uint32>(consumer * I::kStagingBytes + word * 4);
}

template <class I>
__device__ __forceinline__ uint32 flags_place(uint32 shared, unsigned n, int consumer) {
  return shared + I::kShared.flags + (n % kFlagTiles * kConsumers + static_cast<uint32>(consumer)) * 8;
}

/// What a row's sums are multiplied with and what is added.
struct Row {
  float factor;
  float shift;
};
template <class I>
__device__ __forceinline__ Row row_of(const RunArguments& a, const Tile& tile, int row) {
  const Geometry& g = a.geometry;
  const int channel = tile.panel * I::width(g) / I::stride(g);  // of the panel's first row
  const int64 own = I::stride(g) <= kRows ? channel + row / I::stride(g)
                                          : (static_cast<int64>(tile.panel) * I::width(g) + row) / I::stride(g);
  Row r{1.0f, 0.0f};
  if constexpr (!I::kSmall) {
    const auto* const packed =
        static_cast<const unsigned char*>(a.weights) + packed_of(I::tunables(), g, I::kOffsets).inverse;
    r.factor = load_constant(reinterpret_cast<const float*>(packed) + tile.panel * kRows + row);
  }
  if (a.bias != nullptr && row < I::width(g) && own < g.out_channels)
    r.shift = load_element(static_cast<const typename I::Element*>(a.bias) + own);
  return r;
}
/// The first of a thread's two rows, 8 apart; found anew each time.
__device__ __forceinline__ int first_row() {
  const int thread = fresh_thread() % 128;
  return thread / 32 * 16 + thread % 32 / 4;
}

/// Four neighbouring elements of a row of y from output t on, in the largest pieces that their address allows.
__device__ __forceinline__ void store_four(float* y, const float (&v)[4], int t, int length) {
  const bool whole = t >= 0 && t + 3 < length;
  const uint64 at = reinterpret_cast<uint64>(y);
  const bool quad = whole && at % 16 == 0;
  const bool pairs = whole && at % 16 == 8;
  store_quad(y, v[0], v[1], v[2], v[3], quad);
  store_pair(y, v[0], v[1], pairs);
  store_pair(y + 2, v[2], v[3], pairs);
#pragma unroll
  for (int i = 0; i < 4; ++i) store_one(y + i, v[i], !quad && !pairs && t + i >= 0 && t + i < length);
}
template <class Element>
__device__ __forceinline__ void store_four(Element* y, const float (&v)[4], int t, int length) {
  const bool whole = t >= 0 && t + 3 < length;
  const uint64 at = reinterpret_cast<uint64>(y);
  const bool pair = whole && at % 8 == 0;
  const bool words = whole && at % 8 == 4;
  float w[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) w[i] = float_of_bits(operand_pair<Element>(v[2 * i], v[2 * i + 1]));
  float* const to = reinterpret_cast<float*>(y);
  store_pair(to, w[0], w[1], pair);
  store_one(to, w[0], words);
  store_one(to + 1, w[1], words);
#pragma unroll
  for (int i = 0; i < 4; ++i) store_element(y + i, v[i], !pair && !words && t + i >= 0 && t + i < length);
}

/// The elements of kStored places from `first` of the tile, four at a time: neighbouring threads take neighbouring
/// ones. Four neighbours of a channel never lie in two fours of places.
template <class I>
__device__ __forceinline__ void store_chunk(const RunArguments& a, uint32 shared, const Tile& tile, int consumer,
                                            int first) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const int stride = I::stride(g);
  const int width = I::width(g);
  const int phases = stride <= kRows ? stride : kRows;  // that lie side by side
  const int length = static_cast<int>(g.length_out);
  Element* const y = static_cast<Element*>(a.y);
#pragma unroll 2
  for (int i = fresh_thread() % 128; i < width * (I::kStored / 4); i += 128) {
    const int run = i / (phases * (I::kStored / 4));
    const int within = 4 * (i - run * (phases * (I::kStored / 4)));
    const int place = within / phases;
    int phase = within - place * phases;
    const int flat = tile.panel * width + run * phases + phase;
    const int channel = flat / stride;
    const Quad quad = load_quad<I>(shared, consumer, (first + place) / 4);
    const int beyond = place % 4 * stride + (flat - channel * stride);
    float v[4];
    if constexpr (I::kByPlace) {
      const uint4 bits = load_shared_16(staging_place<I>(shared, consumer, run * phases + phase, place));
      v[0] = float_of_bits(bits.x);
      v[1] = float_of_bits(bits.y);
      v[2] = float_of_bits(bits.z);
      v[3] = float_of_bits(bits.w);
    } else {
#pragma unroll
      for (int k = 0, at = place; k < 4; ++k) {
        v[k] = load_shared_float(staging_place<I>(shared, consumer, run * phases + phase, at));
        const bool wraps = ++phase == phases;
        phase = wraps ? 0 : phase;
        at += wraps ? 1 : 0;
      }
    }
    const int channels = static_cast<int>(g.out_channels);
    if (stride > kRows && stride % 4 != 0) {  // the four may be of two channels
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int other = (flat + k) / stride;
        const int more = place % 4 * stride + (flat + k - other * stride);
        const int t = quad.t + more;
        store_element(y + other * g.y_row_stride + (quad.from + more), v[k], other < channels && t >= 0 && t < length);
      }
    } else {
      store_four(y + channel * g.y_row_stride + (quad.from + beyond), v,
                 channel < channels ? quad.t + beyond : kNowhere, length);
    }
  }
}

/// A consumer's sums. What rows are multiplied with lies in shared memory: registers have no room for it.
template <class I>
__device__ __forceinline__ void store_by_fours(const float (&sum)[I::kSums], const RunArguments& a, uint32 shared,
                                               const Tile& tile, int consumer) {
  const int thread = fresh_thread() % 128;
  const uint32 rows = quad_place<I>(shared, consumer, I::kT / 4);
  consumer_barrier<I>(consumer);  // all have left what is written now
  if (thread < I::kT / 4) save_quad<I>(a.geometry, shared, tile, consumer, thread);
  if (thread < kRows) {
    const Row row = row_of<I>(a, tile, thread);
    store_shared_8(rows + static_cast<uint32>(thread) * 8, bits_of_float(row.factor), bits_of_float(row.shift));
  }
  consumer_barrier<I>(consumer);
#pragma unroll
  for (int chunk = 0; chunk < I::kT / I::kStored; ++chunk) {
    if (chunk > 0) consumer_barrier<I>(consumer);  // all have stored the chunk before
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int own = first_row() + 8 * i;
      const uint2 row = load_shared_8(rows + static_cast<uint32>(own) * 8);
#pragma unroll
      for (int j = 0; j < I::kStored / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const float v = scaled_here(sum[4 * (chunk * (I::kStored / 8) + j) + 2 * i + k], float_of_bits(row.x),
                                      float_of_bits(row.y));
          store_shared_float(staging_place<I>(shared, consumer, own, 8 * j + lane_of_warp() % 4 * 2 + k), v);
        }
      }
    }
    consumer_barrier<I>(consumer);
    store_chunk<I>(a, shared, tile, consumer, chunk * I::kStored);
  }
}

/// Flags the fours of places of which a thread has an output that is not finite.
template <class I>
__device__ __forceinline__ void flag_unfinished(const float (&sum)[I::kSums], uint32 flags) {
#pragma unroll
  for (int j = 0; j < I::kT / 8; ++j) {
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) most = max_or_nan(most, fabsf(sum[4 * j + i]));
    const int quad = 2 * j + lane_of_warp() % 4 / 2;
    if (!(most < float_of_bits(0x7F800000u))) or_shared_4(flags + quad / 32 * 4, 1u << quad % 32);
  }
}

/// A consumer's finished sums of a tile; they start anew at 0. 16-bit outputs that are not finite, as where an infinity
/// met a zero that only fills a product, are flagged (64 bits) to be done again. By the block's tile n.
template <class I>
__device__ __forceinline__ void store_tile(float (&sum)[I::kSums], const RunArguments& a, uint32 shared, int consumer,
                                           unsigned n) {
  const Tile tile = own_tile<I>(find_tile<I>(shared, n), consumer);
  if constexpr (I::kSmall) flag_unfinished<I>(sum, flags_place<I>(shared, n, consumer));
  store_by_fours<I>(sum, a, shared, tile, consumer);
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
}

}  // namespace ct1d::wgmma_packed
