// wgmma: raw x and streamed weights on their way into shared memory.
#pragma once

#include "kernels/common/async_pieces.cuh"
#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

/// What a warp asks for next: rows 4 * warp of the stage and the three after it. Kept in shared memory.
struct Feed {
  uint64 from;   // address of the warp's first channel of the step, position `first`
  int first;     // of the stage's rows
  int channels;  // of the group from the warp's first on; 0 where the tile does not exist
  int window;
  int step;
  unsigned n;
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
  return {from, static_cast<int>(a.z), static_cast<int>(a.w), static_cast<int>(b.x), static_cast<int>(b.y), b.z};
}
template <class I>
__device__ __forceinline__ void save_feed(const Feed& f, uint32 shared) {
  __syncwarp();
  if (lane_of_warp() == 0) {
    store_shared_16(feed_place<I>(shared), static_cast<uint32>(f.from), static_cast<uint32>(f.from >> 32),
                    static_cast<uint32>(f.first), static_cast<uint32>(f.channels));
    store_shared_16(feed_place<I>(shared) + 16, static_cast<uint32>(f.window), static_cast<uint32>(f.step), f.n, 0);
  }
  __syncwarp();
}

/// At the first step of tile f.n.
template <class I>
__device__ __forceinline__ void aim(Feed& f, const RunArguments& a, uint32 shared, int consumer) {
  const Geometry& g = a.geometry;
  const Tile tile = find_tile<I>(shared, consumer, f.n);
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const int row = 4 * warp_of_group();
  f.window = 0;
  f.step = 0;
  f.first = tile.first - I::kLead;
  f.channels = tile.exists ? panel.in_channels - row : 0;
  f.from = reinterpret_cast<uint64>(a.x);
  if (tile.exists) {
    f.from += (tile.batch * g.x_batch_stride + (panel.first_in + row) * g.x_row_stride + f.first) * I::kBytes;
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

/// Bytes that exist of a piece of 4 or 16 at `place` of the warp's channel `row`. (None of a piece that begins before
/// x, where its rest is no multiple of the piece away.)
template <class I, int Bytes>
__device__ __forceinline__ int valid_bytes(const Feed& f, int length, int row, int place) {
  const int at = f.first + place;
  const int left = length - at;
  return at < 0 || left <= 0 || row >= f.channels ? 0 : left < Bytes / I::kBytes ? left * I::kBytes : Bytes;
}
template <int Bytes>
__device__ __forceinline__ void load_piece(uint32 to, uint64 from, int valid) {
  piece_load<Bytes>(to, reinterpret_cast<const void*>(from), valid);
}

/// Positions [first, first + 128 + lead) of the warp's four channels in pieces of 16 bytes; zeros where there is no x.
template <class I>
__device__ __forceinline__ void ask_wide(const Feed& f, int length, int64 row_bytes, uint32 to) {
  constexpr int kPiece = 16 / I::kBytes;
  constexpr int kRow = (kPositions + I::kLead) / kPiece;
  constexpr int kWhole = kPositions / kPiece;  // 32 or 16: of one row or of two together
  constexpr int kTogether = 32 / kWhole;
  constexpr int kRest = kRow - kWhole;
  const int lane = lane_of_warp();
#pragma unroll
  for (int i = 0; i < 4; i += kTogether) {
    const int row = i + lane / kWhole;
    const int piece = lane % kWhole;
    load_piece<16>(to + row * I::kPitchBytes + piece * 16, f.from + row * row_bytes + piece * 16,
                   valid_bytes<I, 16>(f, length, row, piece * kPiece));
  }
#pragma unroll
  for (int i = 0; i < 4 * kRest; i += 32) {
    constexpr int kDivisor = kRest > 0 ? kRest : 1;
    const int row = (i + lane) / kDivisor;
    const int piece = kWhole + (i + lane) % kDivisor;
    if (row < 4) {
      load_piece<16>(to + row * I::kPitchBytes + piece * 16, f.from + row * row_bytes + piece * 16,
                     valid_bytes<I, 16>(f, length, row, piece * kPiece));
    }
  }
}
/// The same in pieces of 4 bytes, wherever the rows lie. Takes few registers. A row of 16-bit elements that begins
/// within a word begins one element later in the stage (parity_of).
template <class I>
__device__ __forceinline__ void ask_narrow(const Feed& f, int length, int64 row_bytes, uint32 to) {
  constexpr int kPiece = 4 / I::kBytes;
  uint64 from = f.from;
#pragma unroll 1
  for (int row = 0; row < 4; ++row) {
    const int late = static_cast<int>(from % 4 / I::kBytes);
#pragma unroll 1
    for (int piece = lane_of_warp(); piece < (kPositions + I::kLead) / kPiece + kPiece - 1; piece += 32) {
      const int place = piece * kPiece - late;
      const uint64 source = from + place * I::kBytes;
      if (I::kSmall && f.first + place == -1 && row < f.channels) {
        const unsigned short first = *reinterpret_cast<const unsigned short*>(source + 2);
        store_shared_4(to + piece * 4, static_cast<uint32>(first) << 16);
        __threadfence_block();
      } else {
        load_piece<4>(to + piece * 4, source, valid_bytes<I, 4>(f, length, row, place));
      }
    }
    to += I::kPitchBytes;
    from += row_bytes;
  }
}

/// A stage into its slot, by all threads of the warpgroup.
template <class I>
__device__ __forceinline__ void ask(const Feed& f, const Geometry& g, uint32 slot, uint32 full) {
  const uint32 to = slot + 4 * warp_of_group() * I::kPitchBytes;
  const int length = static_cast<int>(g.length);
  const int64 row_bytes = g.x_row_stride * I::kBytes;
  const uint32 low = static_cast<uint32>(f.from) | static_cast<uint32>(row_bytes);
  if (low % 16 == 0 && f.first % (16 / I::kBytes) == 0) {
    ask_wide<I>(f, length, row_bytes, to);
  } else {
    ask_narrow<I>(f, length, row_bytes, to);
  }
  barrier_arrive_after_copies(full);
}

/// Whether position 0 of the tile's first channel, of 16 bits, lies in the upper half of a word.
template <class I>
__device__ __forceinline__ uint32 parity_of(const RunArguments& a, uint32 shared, int consumer, unsigned n) {
  const Geometry& g = a.geometry;
  const Tile tile = find_tile<I>(shared, consumer, n);
  const Panel panel = find_panel<I>(g, shared, tile.panel);
  const int64 from = tile.exists ? tile.batch * g.x_batch_stride + panel.first_in * g.x_row_stride : 0;
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
