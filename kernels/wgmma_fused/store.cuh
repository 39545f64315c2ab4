// wgmma_fused: finished sums to y, through shared memory: where a panel has whole channels, a run a channel, which
// leaves by a bulk copy; else wgmma_packed's four neighbouring outputs at a time.
#pragma once

#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma_fused/instance.cuh"
#include "kernels/wgmma_packed/store.cuh"

namespace ct1d::wgmma_fused {

using wgmma_packed::consumer_barrier;
using wgmma_packed::first_row;
using wgmma_packed::operand_pair;
using wgmma_packed::Position;
using wgmma_packed::position_of;
using wgmma_packed::Row;
using wgmma_packed::row_of;

/// The places of a chunk: the first one's item and position in it. Those of one item lie side by side in y.
struct Places {
  int batch;
  int m;
  int period;
};
template <class I>
__device__ __forceinline__ Places places_of(uint32 shared, const Tile& tile, int chunk) {
  const uint4 p = load_shared_16(shared + I::kShared.schedule + 32);
  const Position at = position_of({p.x, p.y, p.z}, static_cast<unsigned>(tile.places * I::kT + chunk * I::kStored));
  return {at.batch, at.m, static_cast<int>(p.x)};
}

/// Places of a chunk that are of its item number `number`: [first, end).
struct Piece {
  int first;
  int end;
  int batch;
  int t;  // the first place's first output
};
template <class I>
__device__ __forceinline__ Piece piece_of(const Geometry& g, const Places& p, int number) {
  const int first = number == 0 ? 0 : number * p.period - p.m;
  const int end = (number + 1) * p.period - p.m;
  const int m = number == 0 ? p.m : 0;
  return {first, end < I::kStored ? end : I::kStored, p.batch + number, m * I::stride(g) - static_cast<int>(g.padding)};
}

/// How many elements the first of a row's outputs in `piece` lies above a multiple of 16 bytes.
template <class I>
__device__ __forceinline__ uint32 phase_of(const RunArguments& a, const Piece& piece, int channel) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const uint32 base = static_cast<uint32>(reinterpret_cast<uint64>(a.y) / sizeof(Element));
  return (base + static_cast<uint32>(piece.batch) * static_cast<uint32>(g.y_batch_stride) +
          static_cast<uint32>(channel) * static_cast<uint32>(g.y_row_stride) + static_cast<uint32>(piece.t)) %
         (16 / sizeof(Element));
}

template <class Element>
__device__ __forceinline__ void store_shared_element(uint32 to, float v) {
  if constexpr (sizeof(Element) == 4) {
    store_shared_float(to, v);
  } else {
    store_shared_2(to, static_cast<unsigned short>(operand_pair<Element>(v, v)));
  }
}

/// The runs of a piece that lie in shared memory, each with the alignment of its place in y, a run a channel: whole
/// pieces of 16 bytes leave by one bulk copy, the elements before and after them one by one.
template <class I>
__device__ __forceinline__ void store_runs(const RunArguments& a, uint32 staging, const Tile& tile,
                                           const Piece& piece) {
  using Element = typename I::Element;
  constexpr int kBytes = static_cast<int>(sizeof(Element));
  constexpr int kElements = 16 / kBytes;
  const Geometry& g = a.geometry;
  const int stride = I::stride(g);
  const int channels = I::width(g) / stride;
  const int thread = fresh_thread() % 128;
  const int first = piece.t < 0 ? -piece.t : 0;
  const int64 left = g.length_out - piece.t;
  const int count = (piece.end - piece.first) * stride;
  const int last = left < count ? static_cast<int>(left) : count;
  const auto exists = [&](int run) { return run < channels && tile.panel * channels + run < g.out_channels; };
  /// Element 0 of a run's staging in y, and its first and last elements that exist.
  const auto place = [&](int run, int& from, int& to) {
    const int channel = tile.panel * channels + run;
    const int phase = static_cast<int>(phase_of<I>(a, piece, channel));
    from = phase + first;
    to = phase + last;
    return static_cast<Element*>(a.y) + piece.batch * g.y_batch_stride + channel * g.y_row_stride + (piece.t - phase);
  };
  int from = 0;
  int to = 0;
  if (exists(thread)) {
    Element* const y = place(thread, from, to);
    const int begin = (from + kElements - 1) / kElements * kElements;
    const int bytes = (to / kElements * kElements - begin) * kBytes;
    const uint32 own = staging + static_cast<uint32>((thread * I::pitch(g) + begin) * kBytes);
    if (bytes > 0) bulk_store(y + begin, own, bytes);
  }
  bulk_commit();
#pragma unroll 1
  for (int i = thread; i < channels * 2 * kElements; i += 128) {
    const int run = i / (2 * kElements);
    const int edge = i % (2 * kElements);
    if (!exists(run)) break;
    Element* const y = place(run, from, to);
    const int begin = (from + kElements - 1) / kElements * kElements;
    const int end = to / kElements * kElements;
    const int at = edge < kElements ? from + edge : (end > begin ? end : begin) + (edge - kElements);
    const bool is_edge = edge < kElements ? at < begin && at < to : at < to;
    if (!is_edge) continue;
    const uint32 own = staging + static_cast<uint32>((run * I::pitch(g) + at) * kBytes);
    if constexpr (kBytes == 4) {
      store_one(y + at, load_shared_float(own), true);
    } else {
      store_two_bytes(y + at, load_shared_2(own), true);
    }
  }
}

/// A chunk of a consumer's sums: for each item that its places are of, outputs to shared memory and from there to y.
template <class I>
__device__ __forceinline__ void store_by_runs(const float (&sum)[I::kSums], const RunArguments& a, uint32 shared,
                                              const Tile& tile, int consumer, int chunk) {
  using Element = typename I::Element;
  constexpr int kBytes = static_cast<int>(sizeof(Element));
  const Geometry& g = a.geometry;
  const int stride = I::stride(g);
  const uint32 staging = shared + I::kShared.staging + static_cast<uint32>(consumer * I::kStagingBytes);
  const Places places = places_of<I>(shared, tile, chunk);
#pragma unroll 1
  for (int number = 0;; ++number) {
    const Piece piece = piece_of<I>(g, places, number);
    if (piece.first >= I::kStored || piece.batch >= g.batch) break;
    bulk_wait_read<0>();
    consumer_barrier<I>(consumer);  // all have left what is written now
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int own = first_row() + 8 * i;
      if (own >= I::width(g)) continue;
      const Row row = row_of<I>(a, tile, own);
      const int pair = lane_of_warp() % 4 * 2;
      const int run = own / stride;
      const int channel = tile.panel * (I::width(g) / stride) + run;
      const int first = run * I::pitch(g) + static_cast<int>(phase_of<I>(a, piece, channel)) + (own - run * stride) +
                        (pair - piece.first) * stride;
      const uint32 to = staging + static_cast<uint32>(first * kBytes);
      const auto put = [&](int j, int k) {
        const float v = scaled_here(sum[4 * (chunk * (I::kStored / 8) + j) + 2 * i + k], row.factor, row.shift);
        store_shared_element<Element>(to + static_cast<uint32>((8 * j + k) * stride * kBytes), v);
      };
      if (piece.first == 0 && piece.end == I::kStored) {
#pragma unroll
        for (int j = 0; j < I::kStored / 8; ++j) {
          put(j, 0);
          put(j, 1);
        }
      } else {
#pragma unroll
        for (int j = 0; j < I::kStored / 8; ++j) {
          const int place = 8 * j + pair;  // pieces begin and end at fours of places
          if (place < piece.first || place >= piece.end) continue;
          put(j, 0);
          put(j, 1);
        }
      }
    }
    async_proxy_fence();
    consumer_barrier<I>(consumer);
    store_runs<I>(a, staging, tile, piece);
  }
}

/// A consumer's finished sums of a tile; they start anew at 0. 16-bit outputs that are not finite, as where an infinity
/// met a zero that only fills a product, are flagged at `flags` (64 bits) to be done again.
template <class I>
__device__ __forceinline__ void store_sums(float (&sum)[I::kSums], const RunArguments& a, uint32 shared,
                                           const Tile& tile, int consumer, uint32 flags) {
  if constexpr (I::kSmall) wgmma_packed::flag_unfinished<I>(sum, flags);
  if (I::stride(a.geometry) <= kRows) {
#pragma unroll
    for (int chunk = 0; chunk < I::kT / I::kStored; ++chunk) store_by_runs<I>(sum, a, shared, tile, consumer, chunk);
  } else {
    wgmma_packed::store_by_fours<I>(sum, a, shared, tile, consumer);
  }
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
}

}  // namespace ct1d::wgmma_fused
