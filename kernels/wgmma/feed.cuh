// wgmma: raw x and streamed weights on their way into shared memory.
#pragma once

#include "kernels/common/async_pieces.cuh"
#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

/// What a warp asks for next: rows 4 * warp of the stage and the three after it. Kept in shared memory.
struct Feed {
  uint64 from;   // address of the warp's first channel of the step, position `first`
  int first;     // of the stage's rows; of the batch item that the tile begins in
  int channels;  // of the group from the warp's first on; 0 where the tile does not exist
  int window;
  int step;
  unsigned n;
  int items;  // from that item on
};

template <class I>
__device__ __forceinline__ uint32 feed_place(uint32 shared) {
  return shared + I::kShared.feeds + fresh_thread() / 32 * kFeedBytes;
}
template <class I>
__device__ __forceinline__ Feed load_feed(uint32 shared) {
  const uint4 a = load_shared_16(feed_place<I>(shared));
  const uint4 b = load_shared_16(feed_place<I>(shared) + 16);
  const uint64 from = static_cast<uint64>(a.y) << 32 | a.x;
  return {from, static_cast<int>(a.z), static_cast<int>(a.w), static_cast<int>(b.x), static_cast<int>(b.y),
          b.z,  static_cast<int>(b.w)};
}
template <class I>
__device__ __forceinline__ void save_feed(const Feed& f, uint32 shared) {
  __syncwarp();
  if (lane_of_warp() == 0) {
    store_shared_16(feed_place<I>(shared), static_cast<uint32>(f.from), static_cast<uint32>(f.from >> 32),
                    static_cast<uint32>(f.first), static_cast<uint32>(f.channels));
    store_shared_16(feed_place<I>(shared) + 16, static_cast<uint32>(f.window), static_cast<uint32>(f.step), f.n,
                    static_cast<uint32>(f.items));
  }
  __syncwarp();
}

/// At the first step of tile f.n.
template <class I>
__device__ __forceinline__ void aim(Feed& f, const RunArguments& a, uint32 shared, int consumer) {
  const Geometry& g = a.geometry;
  const Tile tile = find_tile<I>(shared, consumer, f.n);
  const Panel panel = find_slice<I>(g, shared, tile.panel);
  const int row = 4 * warp_of_group();
  f.window = 0;
  f.step = 0;
  const Period period = find_period<I>(shared);
  const uint32 item = tile.exists ? item_of(period, static_cast<uint32>(tile.first)) : 0;
  f.items = static_cast<int>(g.batch) - static_cast<int>(item);
  f.first = static_cast<int>(static_cast<uint32>(tile.first) - item * period.places) - I::kLead;
  // places of the second warpgroup may lie behind the last item
  const bool exists = tile.exists && f.items > 0;
  f.channels = exists ? panel.in_channels - row : 0;
  f.from = reinterpret_cast<uint64>(a.x);
  if (exists) {
    f.from +=
        (static_cast<int64>(item) * g.x_batch_stride + (panel.first_in + row) * g.x_row_stride + f.first) * I::kBytes;
  }
}

/// Moves on to the next stage: windows of offsets inside, channels outside.
template <class I>
__device__ __forceinline__ void advance(Feed& f, const RunArguments& a, uint32 shared, int consumer) {
  const Geometry& g = a.geometry;
  if (++f.step == steps_of<I>(shared)) {
    ++f.n;
    aim<I>(f, a, shared, consumer);
    return;
  }
  const int shift = I::kTaps * tap_step_of<I>(shared);
  const int windows = windows_of<I>(shared);
  if (++f.window < windows) {
    f.first -= shift;
    f.from -= shift * I::kBytes;
  } else {
    f.window = 0;
    f.first += (windows - 1) * shift;
    f.from += ((windows - 1) * shift + kStepChannels * g.x_row_stride) * I::kBytes;
    f.channels -= kStepChannels;
  }
}

/// Where a stage's place lies.
struct Spot {
  uint64 from;  // of the warp's first channel
  int at;       // position in its batch item
  bool exists;  // there is such an item
};
/// Place `place` of the stage's rows. `several`: they reach beyond the item that the tile begins in.
template <class I>
__device__ __forceinline__ Spot find_spot(const Feed& f, const Geometry& g, uint32 shared, int place, bool several) {
  Spot spot{f.from + place * I::kBytes, f.first + place, true};
  if (several && spot.at >= 0) {
    const Period period = find_period<I>(shared);
    const uint32 item = item_of(period, static_cast<uint32>(spot.at));
    spot.at -= static_cast<int>(item * period.places);
    spot.exists = static_cast<int>(item) < f.items;
    if (spot.exists) spot.from += item * static_cast<uint64>((g.x_batch_stride - period.places) * I::kBytes);
  }
  return spot;
}
/// Elements that exist of a piece of Count there. (None of a piece that begins before x, where its rest is no multiple
/// of the piece away.)
template <int Count>
__device__ __forceinline__ int valid_elements(const Spot& spot, int length) {
  const int left = length - spot.at;
  return spot.at < 0 || left <= 0 || !spot.exists ? 0 : left < Count ? left : Count;
}
template <int Bytes>
__device__ __forceinline__ void load_piece(uint32 to, uint64 from, int valid) {
  piece_load<Bytes>(to, reinterpret_cast<const void*>(from), valid);
}

/// Places [0, 128 + lead) of the stage's rows, four channels of the warp, in pieces of 16 bytes; zeros where there is
/// no x. All of one batch item.
template <class I>
__device__ __forceinline__ void ask_wide(const Feed& f, int length, int64 row_bytes, uint32 to) {
  constexpr int kPiece = 16 / I::kBytes;
  constexpr int kRow = (kPositions + I::kLead) / kPiece;
  constexpr int kWhole = kPositions / kPiece;  // 32 or 16: of one row or of two together
  constexpr int kTogether = 32 / kWhole;
  constexpr int kRest = kRow - kWhole;
  const int lane = lane_of_warp();
  const auto load = [&](int row, int piece) {
    const Spot spot{f.from + row * row_bytes + piece * 16, f.first + piece * kPiece, row < f.channels};
    load_piece<16>(to + row * I::kPitchBytes + piece * 16, spot.from, valid_elements<kPiece>(spot, length) * I::kBytes);
  };
#pragma unroll
  for (int i = 0; i < 4; i += kTogether) load(i + lane / kWhole, lane % kWhole);
#pragma unroll
  for (int i = 0; i < 4 * kRest; i += 32) {
    constexpr int kDivisor = kRest > 0 ? kRest : 1;
    const int row = (i + lane) / kDivisor;
    if (row < 4) load(row, kWhole + (i + lane) % kDivisor);
  }
}

/// Pieces at the same place of the warp's rows from `row` on, every `step`th.
template <class I, int Bytes>
__device__ __forceinline__ void load_rows(const Feed& f, uint32 to, uint64 from, int64 row_bytes, int row, int step,
                                          int valid) {
  to += row * I::kPitchBytes;
  from += row * row_bytes;
#pragma unroll 1
  for (; row < 4; row += step) {
    load_piece<Bytes>(to, from, row < f.channels ? valid : 0);
    to += step * I::kPitchBytes;
    from += step * row_bytes;
  }
}
/// The same of any items, each piece in one of them. Takes few registers.
template <class I, int Bytes>
__device__ __forceinline__ void ask_pieces(const Feed& f, const Geometry& g, uint32 shared, bool several, uint32 to) {
  constexpr int kPiece = Bytes / I::kBytes;
#pragma unroll 1
  for (int piece = lane_of_warp(); piece < (kPositions + I::kLead) / kPiece; piece += 32) {
    const Spot spot = find_spot<I>(f, g, shared, piece * kPiece, several);
    load_rows<I, Bytes>(f, to + piece * Bytes, spot.from, g.x_row_stride * I::kBytes, 0, 1,
                        valid_elements<kPiece>(spot, static_cast<int>(g.length)) * I::kBytes);
  }
}
/// The same for two neighbouring 16-bit elements that do not lie side by side.
template <class I>
__device__ __forceinline__ void join_rows(const Feed& f, uint32 to, const Spot& a, const Spot& b, int64 row_bytes,
                                          int row, int step, int length) {
#pragma unroll 1
  for (; row < 4; row += step) {
    uint32 word = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Spot& spot = i == 0 ? a : b;
      if (row < f.channels && valid_elements<1>(spot, length) != 0) {
        const uint32 bits = *reinterpret_cast<const unsigned short*>(spot.from + row * row_bytes);
        word |= bits << 16 * i;
      }
    }
    store_shared_4(to + row * I::kPitchBytes, word);
  }
  __threadfence_block();
}
/// Whether 16-bit rows of one channel begin in different halves of a word.
CT1D_HD constexpr bool items_differ(const Geometry& g) { return g.batch > 1 && g.x_batch_stride % 2 != 0; }

/// 16-bit x in words, wherever the rows lie. A row that begins within a word begins one element later in the stage
/// (parity_of).
template <class I>
__device__ __forceinline__ void ask_words(const Feed& f, const Geometry& g, uint32 shared, bool several, uint32 to) {
  const int length = static_cast<int>(g.length);
  const int64 row_bytes = g.x_row_stride * I::kBytes;
  const bool differ = items_differ(g);
  const int step = g.x_row_stride % 2 != 0 && !differ ? 2 : 1;  // rows that begin alike
#pragma unroll 1
  for (int word = lane_of_warp(); word <= (kPositions + I::kLead) / 2; word += 32) {
#pragma unroll 1
    for (int row = 0; row < step; ++row) {
      const int late = differ ? 0 : static_cast<int>((f.from + row * row_bytes) % 4 / 2);
      const int place = 2 * word - late;
      const Spot second = find_spot<I>(f, g, shared, place + 1, several);
      if (differ || second.at == 0) {
        const Spot first = find_spot<I>(f, g, shared, place, several);
        join_rows<I>(f, to + word * 4, first, second, row_bytes, row, step, length);
      } else {
        const Spot both{second.from - I::kBytes, second.at - 1, second.exists};
        load_rows<I, 4>(f, to + word * 4, both.from, row_bytes, row, step, valid_elements<2>(both, length) * I::kBytes);
      }
    }
  }
}

/// A stage into its slot, by all threads of the warpgroup.
template <class I>
__device__ __forceinline__ void ask(const Feed& f, const Geometry& g, uint32 shared, uint32 slot, uint32 full) {
  const uint32 to = slot + 4 * warp_of_group() * I::kPitchBytes;
  const bool several = f.first + kPositions + I::kLead > static_cast<int>(find_period<I>(shared).places);
  uint32 apart = static_cast<uint32>(g.x_row_stride) | (several ? static_cast<uint32>(g.x_batch_stride) : 0);
  if (I::kSmall && several) apart |= find_period<I>(shared).places;  // always whole pieces of floats
  const uint32 low = static_cast<uint32>(f.from) | apart * I::kBytes;
  if (low % 16 == 0 && f.first % (16 / I::kBytes) == 0) {
    if (several) {
      ask_pieces<I, 16>(f, g, shared, true, to);
    } else {
      ask_wide<I>(f, static_cast<int>(g.length), g.x_row_stride * I::kBytes, to);
    }
  } else if (low % 8 == 0 && f.first % (8 / I::kBytes) == 0) {
    ask_pieces<I, 8>(f, g, shared, several, to);
  } else if constexpr (I::kSmall) {
    ask_words<I>(f, g, shared, several, to);
  } else {
    ask_pieces<I, 4>(f, g, shared, several, to);
  }
  barrier_arrive_after_copies(full);
}

/// Whether position 0 of the tile's first channel, of 16 bits, lies in the upper half of a word.
template <class I>
__device__ __forceinline__ uint32 parity_of(const RunArguments& a, uint32 shared, int consumer, unsigned n) {
  const Geometry& g = a.geometry;
  const Tile tile = find_tile<I>(shared, consumer, n);
  const Panel panel = find_slice<I>(g, shared, tile.panel);
  const int64 from = tile.exists ? panel.first_in * g.x_row_stride : 0;
  return static_cast<uint32>(reinterpret_cast<uint64>(a.x) / 2 + from) & 1;
}

// ---- weights
// ---------------------------------------------------------------------------------------------------------

/// Bytes, a multiple of 256, in pieces; by one thread.
__device__ __forceinline__ void ask_weights(uint32 to, const unsigned char* from, int bytes, uint32 barrier) {
  constexpr int kPiece = 8192;
  barrier_expect(barrier, bytes);
#pragma unroll 1
  for (int i = 0; i < bytes; i += kPiece) bulk_load(to + i, from + i, bytes - i < kPiece ? bytes - i : kPiece, barrier);
}

/// The next step of streamed weights that is not asked for yet, and the slot it goes to. Kept in shared memory.
struct Stream {
  int slot;
  uint32 round;
  int step;
  unsigned n;
};
template <class I>
__device__ __forceinline__ Stream load_stream(uint32 shared) {
  const uint4 a = load_shared_16(shared + I::kShared.stream);
  return {static_cast<int>(a.x), a.y, static_cast<int>(a.z), a.w};
}
template <class I>
__device__ __forceinline__ void save_stream(const Stream& s, uint32 shared) {
  store_shared_16(shared + I::kShared.stream, static_cast<uint32>(s.slot), s.round, static_cast<uint32>(s.step), s.n);
}
template <class I>
__device__ __forceinline__ void ask_stream(Stream& s, const RunArguments& a, uint32 shared) {
  const int steps = steps_of<I>(shared);
  const int panel = find_tile<I>(shared, 0, s.n).panel;
  const int64 at = (static_cast<int64>(panel) * steps + s.step) * I::kStepBytes;
  ask_weights(shared + s.slot * I::kStepBytes, static_cast<const unsigned char*>(a.weights) + at, I::kStepBytes,
              full_barrier(shared + I::kShared.weight_barriers, s.slot));
  if (++s.slot == I::kSlots) {
    s.slot = 0;
    ++s.round;
  }
  if (++s.step == steps) {
    s.step = 0;
    ++s.n;
  }
}

/// Before the first step: as many as there are slots.
template <class I>
__device__ __forceinline__ void begin_stream(const RunArguments& a, uint32 shared) {
  Stream s{0, 0, 0, 0};
#pragma unroll 1
  for (int i = 0; i < I::kSlots && s.n < tiles_of<I>(shared); ++i) ask_stream<I>(s, a, shared);
  save_stream<I>(s, shared);
}
/// In step `i` of the block (from 0): the slot of step i - kRefillLag gets its next content once both warpgroups have
/// multiplied by it.
template <class I>
__device__ __forceinline__ void refill_stream(const RunArguments& a, uint32 shared, bool early) {
  if (early) return;
  Stream s = load_stream<I>(shared);
  if (s.n >= tiles_of<I>(shared)) return;
  barrier_wait(empty_barrier(shared + I::kShared.weight_barriers, s.slot), (s.round - 1) & 1);
  ask_stream<I>(s, a, shared);
  save_stream<I>(s, shared);
}

}  // namespace ct1d::wgmma
