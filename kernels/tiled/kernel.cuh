// tiled: fp32 multiply-adds with operands in registers. A block computes T outputs of one phase (phase: geometry.h) and
// OC_TILE channels of one batch item and group; a thread a patch of T / block.x by OC_TILE / block.y of them. IC_TILE
// channels of the x window and of the weights go through `stages` buffers filled by asynchronous copies. With TAPS > 0
// each run of neighbouring outputs reads its window of x once and uses it for every tap of the chunk.
#pragma once

#include "kernels/common/async_copy.cuh"
#include "kernels/common/geometry.h"
#include "kernels/tiled/layout.h"

namespace ct1d::tiled {

struct alignas(16) Float4 {
  float v[4];
};

/// Compile-time facts of one instance. TAPS is the chunk length and X_STEP the distance between taps, or 0 and 0.
template <int TILE_T, int OC_TILE_, int IC_TILE_, int BLOCK_X, int BLOCK_Y, int RUN, int WARP_T, int STAGES, int UNROLL,
          int SPECIALISE, int PACKED, int MIN_BLOCKS, int TAPS, int X_STEP>
struct Instance {
  CT1D_HD static constexpr Tunables tunables() {
    return {TILE_T, OC_TILE_,   IC_TILE_, {BLOCK_X, BLOCK_Y}, RUN, WARP_T, STAGES,
            UNROLL, SPECIALISE, PACKED,   MIN_BLOCKS};
  }
  CT1D_HD static constexpr Stage compile_time_stage() { return stage_of(tunables(), TAPS > 0 ? TAPS : 1, X_STEP); }
  static constexpr int kT = TILE_T;
  static constexpr int kOcTile = OC_TILE_;
  static constexpr int kIcTile = IC_TILE_;
  static constexpr int kBlockX = BLOCK_X;
  static constexpr int kBlockY = BLOCK_Y;
  static constexpr int kThreads = BLOCK_X * BLOCK_Y;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kRun = RUN;
  static constexpr int kRuns = TILE_T / BLOCK_X / RUN;
  static constexpr int kTs = RUN * kRuns;
  static constexpr int kOcs = OC_TILE_ / BLOCK_Y;
  static constexpr int kOcVector = kOcs % 4 == 0 ? 4 : kOcs % 2 == 0 ? 2 : 1;
  static constexpr int kWarpT = WARP_T;
  static constexpr int kStages = STAGES;
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kSpecialised = SPECIALISE != 0;
  static constexpr bool kPacked = PACKED != 0;
  static constexpr int kPackedFloats = OC_TILE_ % 4 == 0 ? 4 : 1;  // of one copy
  static constexpr int kTaps = TAPS;
  static constexpr int kXStep = X_STEP;
  static constexpr int kWindow = RUN + (TAPS > 0 ? (TAPS - 1) * X_STEP : 0);
  static constexpr int kPieces = (kWindow + 3) / 4;  // 16-byte pieces of a window

  static_assert(TILE_T % (BLOCK_X * RUN) == 0, "T must be a multiple of block.x * run");
  static_assert(TILE_T % 4 == 0, "T must be a multiple of 4: windows start on 16 bytes");
  static_assert(OC_TILE_ % BLOCK_Y == 0, "OC_TILE must be a multiple of block.y");
  static_assert(IC_TILE_ % UNROLL == 0, "IC_TILE must be a multiple of unroll");
  static_assert(32 % WARP_T == 0 && BLOCK_X % WARP_T == 0 && BLOCK_Y % (32 / WARP_T) == 0,
                "a warp of warp_t by 32 / warp_t threads must divide the block");
  static_assert(STAGES >= 2, "the pipeline needs two stages or more");
  static_assert(kSpecialised == (TAPS > 0) && kSpecialised == (X_STEP > 0), "TAPS and X_STEP are the specialisation");
  static_assert(kSpecialised ? RUN % 4 == 0 : RUN == 1, "run: a multiple of 4 if specialised, else 1");
  static_assert(RUN <= 4 || BLOCK_X % 8 == 0, "runs above 4 need block.x to be a multiple of 8");

  /// Compile-time where it can be.
  __device__ static constexpr int pitch(const Stage& s) {
    return static_cast<int>(kSpecialised ? compile_time_stage().pitch : s.pitch);
  }
  __device__ static constexpr int width(const Stage& s) {
    return static_cast<int>(kSpecialised ? compile_time_stage().width : s.width);
  }
  __device__ static constexpr int taps(const Stage& s) {
    return static_cast<int>(kSpecialised ? compile_time_stage().taps : s.taps);
  }
  __device__ static constexpr int x_size(const Stage& s) {
    return static_cast<int>(kSpecialised ? compile_time_stage().x_size : s.x_size);
  }
  __device__ static constexpr int size(const Stage& s) {
    return static_cast<int>(kSpecialised ? compile_time_stage().size : s.size);
  }

  /// Channels that are multiplied where that many exist.
  __device__ static constexpr int rows(int channels) { return (channels + UNROLL - 1) / UNROLL * UNROLL; }

  /// The order in which a patch is walked: back and forth, so that from one multiply-add to the next either the weight
  /// or x stays. The register file delivers two operands of an instruction a cycle (one a bank); the third has to come
  /// from the operand that was kept, or a cycle is lost.
  __device__ static constexpr int snake(int o, int step) { return o % 2 == 0 ? step : kTs - 1 - step; }

  /// Output channel of the tile that is the thread's o-th, for ty = 0.
  __device__ static constexpr int channel(int o) { return o / kOcVector * BLOCK_Y * kOcVector + o % kOcVector; }

  /// Where position p of a row lies. Lanes read pieces run / 4 apart; exchanging pieces within groups of run / 4
  /// spreads any 8 such lanes over all banks.
  __device__ static constexpr int place(int p) {
    constexpr int kMask = RUN >= 4 ? RUN / 4 - 1 : 0;
    return p ^ ((p >> 5 & kMask) << 2);
  }
};

/// Some taps of a tile: what to copy, and which of it exists.
struct Chunk {
  int64 first;    // tap of the phase
  int64 x_first;  // position in x of the window's place 0; may be negative
  int taps;       // at most those of a stage
  int low, high;  // places within x
  int edge;       // not 0: some output would meet a place outside x, or some tap is missing
};

/// Where a stage comes from: x at its first channel and place 0; packed weights at its first float, others at its first
/// channel and tap and the tile's first output channel.
struct Source {
  const float* x;
  const float* w;
  int x_bytes;  // a copy; 4: with every place checked
};

/// What a block works on. One thread finds it out and leaves it in shared memory for all.
struct Tile {
  int64 batch;
  int64 group;
  int64 oc_first;  // within the group
  PhaseOutputs outputs;
  int64 n_first;  // output of the phase at the tile's place 0; may be negative
  int64 n_begin;  // outputs that exist, in [n_begin, n_end)
  int64 n_end;
  int64 steps;  // stages until the sums are complete; 0 where no output or no tap is
  Chunk first_chunk;
  Source first_source;
  int last;  // not 0: the block has no tile after this one
};
static_assert(sizeof(Tile) <= kTileBytes && sizeof(Stage) <= kStageBytes, "the header has to hold them");

/// What a reader of a stage needs to know, beside it in shared memory.
struct alignas(16) Note {
  int rows;
  int taps;
  int low, high;
  int edge;
};
static_assert(sizeof(Note) == kNoteBytes, "kNoteBytes has to hold a Note");

template <class I>
__device__ Chunk chunk_at(const Geometry& g, const Tile& tile, const Stage& s, int64 first) {
  const PhaseOutputs& p = tile.outputs;
  const int64 step = p.phase.x_step;
  Chunk c{};
  c.first = first;
  c.taps = static_cast<int>(min_of(I::taps(s), p.phase.taps - first));
  c.x_first = p.m_first + tile.n_first - (first + I::taps(s) - 1) * step;
  c.low = static_cast<int>(min_of(I::width(s), max_of(0, -c.x_first)));
  c.high = static_cast<int>(max_of(c.low, min_of(I::width(s), g.length - c.x_first)));
  c.edge = c.taps < I::taps(s) || p.m_first + tile.n_begin - (first + c.taps - 1) * step < 0 ||
           p.m_first + tile.n_end - 1 - first * step >= g.length;
  return c;
}

template <class I>
__device__ Source source_of(const RunArguments& a, const Tile& tile, const Chunk& c, const Stage& s) {
  const Geometry& g = a.geometry;
  const int64 channel = tile.group * g.in_per_group();
  Source source{};
  source.x = static_cast<const float*>(a.x) + tile.batch * g.x_batch_stride + channel * g.x_row_stride + c.x_first;
  const unsigned misaligned =
      static_cast<unsigned>(reinterpret_cast<unsigned long long>(source.x)) | static_cast<unsigned>(g.x_row_stride * 4);
  const bool inside = c.low == 0 && c.high == I::width(s);
  source.x_bytes = inside && misaligned % 16 == 0 ? 16 : inside && misaligned % 8 == 0 ? 8 : 4;
  source.w = static_cast<const float*>(a.weights);
  if constexpr (I::kPacked) {
    const Packing p = packing_of(I::tunables(), g, I::taps(s));
    const int64 block = (tile.group * oc_tiles(I::tunables(), g) + tile.oc_first / I::kOcTile) * p.phases +
                        tile.outputs.phase.first_tap;
    source.w += (block * p.chunks + c.first / I::taps(s)) * p.chunk_size;
  } else {
    const int64 k = tile.outputs.phase.first_tap + c.first * tile.outputs.phase.tap_step;
    source.w += (channel * g.out_per_group() + tile.oc_first) * g.kernel_size + k;
  }
  return source;
}

template <class I>
__device__ Tile tile_at(const RunArguments& a, const Stage& s, int64 index) {
  const Geometry& g = a.geometry;
  Tile tile{};
  const int64 tiles = tile_count(I::tunables(), g);
  tile.last = index + gridDim.x >= tiles;
  if (index >= tiles) return tile;  // of an empty batch: no outputs
  const int64 ocs = oc_tiles(I::tunables(), g);
  const int64 phases = phase_count(g);
  const int64 ts = t_tiles(I::tunables(), g);
  tile.oc_first = index % ocs * I::kOcTile;
  index /= ocs;
  tile.outputs = phase_outputs(g, index % phases);
  index /= phases;
  tile.n_first = index % ts * I::kT;
  index /= ts;
  tile.group = index % g.groups;
  tile.batch = index / g.groups;
  if (tiles_shift(I::tunables(), g)) {
    tile.n_first -= floor_mod(tile.outputs.m_first - (I::kTaps - 1) * I::kXStep, 4);
  }
  tile.n_begin = max_of(0, tile.n_first);
  tile.n_end = min_of(tile.outputs.outputs, tile.n_first + I::kT);
  if (tile.n_begin < tile.n_end) {
    tile.steps = ceil_div(tile.outputs.phase.taps, I::taps(s)) * ceil_div(g.in_per_group(), I::kIcTile);
  }
  tile.first_chunk = chunk_at<I>(g, tile, s, 0);
  tile.first_source = source_of<I>(a, tile, tile.first_chunk, s);
  return tile;
}

template <class I>
__device__ __forceinline__ void advance(Source& source, const Geometry& g, const Stage& s) {
  source.x += I::kIcTile * g.x_row_stride;
  source.w += I::kIcTile * (I::kPacked ? int64{I::taps(s)} * I::kOcTile : g.out_per_group() * g.kernel_size);
}

/// Rows of x by copies of 4 * kFloats bytes, a warp a row; only places in [low, high) if kChecked. Rows from `channels`
/// on are zeros up to a multiple of `unroll`; if kFull there are none.
template <class I, int kFloats, bool kChecked, bool kFull>
__device__ __forceinline__ void copy_rows(float* target, const float* source, int64 row_stride, int channels,
                                          const Stage& s, const Chunk& c, int thread) {
  const int lane = thread % 32;
  const float* from = source + thread / 32 * row_stride + lane * kFloats;
#pragma unroll
  for (int pass = 0; pass < (I::kIcTile + I::kWarps - 1) / I::kWarps; ++pass) {
    const int row = pass * I::kWarps + thread / 32;
    if ((kFull && I::kIcTile % I::kWarps == 0) || row < (kFull ? I::kIcTile : I::rows(channels))) {
      float* to = target + row * I::pitch(s);
#pragma unroll(kChecked ? 1 : 8)
      for (int first = 0; first < I::width(s); first += 32 * kFloats) {
        const int place = first + lane * kFloats;
        const bool exists = (kFull || row < channels) && (!kChecked || (place >= c.low && place < c.high));
        if (place < I::width(s)) copy_async<4 * kFloats>(to + I::place(place), from + first, exists);
      }
    }
    from += I::kWarps * row_stride;
  }
}

/// Weights of a stage, [channel][tap][oc]. Packed ones lie in that order.
template <class I, bool kFull>
__device__ __forceinline__ void copy_weights(float* target, const Source& source, const Geometry& g, const Tile& tile,
                                             int channels, const Stage& s, const Chunk& c, int thread) {
  const int rows = kFull ? I::kIcTile : I::rows(channels);
  if constexpr (I::kPacked) {
    constexpr int kFloats = I::kPackedFloats;
    constexpr int kRound = I::kThreads * kFloats;
    constexpr bool kEven = kFull && I::kSpecialised && I::kIcTile * I::kTaps * I::kOcTile % kRound == 0;
    const int first = thread * kFloats;
    const float* from = source.w + first;
    float* to = target + first;
#pragma unroll(I::kSpecialised ? 16 : 1)
    for (int i = 0; i < I::kIcTile * I::taps(s) * I::kOcTile; i += kRound) {
      if (kEven || i + first < rows * I::taps(s) * I::kOcTile) copy_async<4 * kFloats>(to + i, from + i, true);
    }
  } else {
    constexpr int kLanes = I::kThreads < I::kOcTile ? I::kThreads : I::kOcTile;  // along output channels
    const int64 row_stride = g.out_per_group() * g.kernel_size;
    const int64 tap_stride = tile.outputs.phase.tap_step;
    for (int oc = thread % kLanes; oc < I::kOcTile; oc += kLanes) {
      const bool oc_exists = tile.oc_first + oc < g.out_per_group();
      const float* channel = source.w + thread / kLanes * row_stride + oc * g.kernel_size;
#pragma unroll 1
      for (int ic = thread / kLanes; ic < rows; ic += I::kThreads / kLanes) {
        float* to = target + ic * I::taps(s) * I::kOcTile + oc;
        const float* from = channel;
#pragma unroll(I::kSpecialised ? 16 : 1)
        for (int tap = 0; tap < I::taps(s); ++tap) {
          copy_async<4>(to, from, oc_exists && (kFull || ic < channels) && tap < c.taps);
          to += I::kOcTile;
          from += tap_stride;
        }
        channel += I::kThreads / kLanes * row_stride;
      }
    }
  }
}

template <class I, bool kFull>
__device__ __forceinline__ void copy_stage(float* target, const Source& source, const Geometry& g, const Tile& tile,
                                           int channels, const Stage& s, const Chunk& c, int thread) {
  if (source.x_bytes == 16) {
    copy_rows<I, 4, false, kFull>(target, source.x, g.x_row_stride, channels, s, c, thread);
  } else if (source.x_bytes == 8) {
    copy_rows<I, 2, false, kFull>(target, source.x, g.x_row_stride, channels, s, c, thread);
  } else {
    copy_rows<I, 1, true, kFull>(target, source.x, g.x_row_stride, channels, s, c, thread);
  }
  copy_weights<I, kFull>(target + I::x_size(s), source, g, tile, channels, s, c, thread);
}

template <class I>
__device__ __forceinline__ void read_weights(float (&w)[I::kOcs], const float* row, int ty) {
  constexpr int kVector = I::kOcVector;
  struct alignas(4 * kVector) Piece {
    float v[kVector];
  };
#pragma unroll
  for (int piece = 0; piece < I::kOcs / kVector; ++piece) {
    const Piece p = *reinterpret_cast<const Piece*>(row + (piece * I::kBlockY + ty) * kVector);
#pragma unroll
    for (int i = 0; i < kVector; ++i) w[piece * kVector + i] = p.v[i];
  }
}

/// One channel, specialised: the window once, then every tap from registers. At an edge, products with places outside x
/// and with missing taps are left out: a zero there times an infinite weight would not be zero.
template <class I, bool kEdge>
__device__ __forceinline__ void multiply_channel(float (&sum)[I::kOcs][I::kTs], const float* x_row, const float* w_row,
                                                 const Note& c, int tx, int ty) {
  float x[I::kRuns][I::kPieces * 4];
#pragma unroll
  for (int r = 0; r < I::kRuns; ++r) {
#pragma unroll
    for (int piece = 0; piece < I::kPieces; ++piece) {
      const int place = I::place(tx * I::kRun + piece * 4) + r * I::kBlockX * I::kRun;
      const Float4 p = *reinterpret_cast<const Float4*>(x_row + place);
#pragma unroll
      for (int i = 0; i < 4; ++i) x[r][piece * 4 + i] = p.v[i];
    }
  }
#pragma unroll
  for (int tap = 0; tap < I::kTaps; ++tap) {
    if (kEdge && tap >= c.taps) break;
    float w[I::kOcs];
    read_weights<I>(w, w_row + tap * I::kOcTile, ty);
    if constexpr (kEdge) {
#pragma unroll
      for (int i = 0; i < I::kTs; ++i) {
        const int in_window = i % I::kRun + (I::kTaps - 1 - tap) * I::kXStep;
        const int place = i / I::kRun * I::kBlockX * I::kRun + tx * I::kRun + in_window;
        if (place >= c.low && place < c.high) {
#pragma unroll
          for (int o = 0; o < I::kOcs; ++o) sum[o][i] += w[o] * x[i / I::kRun][in_window];
        }
      }
    } else {
#pragma unroll
      for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
        for (int step = 0; step < I::kTs; ++step) {
          const int i = I::snake(o, step);
          sum[o][i] += w[o] * x[i / I::kRun][i % I::kRun + (I::kTaps - 1 - tap) * I::kXStep];
        }
      }
    }
  }
}

/// One channel with taps and x step known at run time: one word of x an output and tap.
template <class I, bool kEdge>
__device__ __forceinline__ void multiply_channel_general(float (&sum)[I::kOcs][I::kTs], const float* x_row,
                                                         const float* w_row, const Stage& s, const Note& c, int tx,
                                                         int ty) {
  int place = tx + static_cast<int>((s.taps - 1) * s.x_step);
#pragma unroll 1
  for (int tap = 0; tap < c.taps; ++tap) {
    float w[I::kOcs];
    read_weights<I>(w, w_row + tap * I::kOcTile, ty);
    if constexpr (kEdge) {
#pragma unroll
      for (int i = 0; i < I::kTs; ++i) {
        const int at = place + i * I::kBlockX;
        if (at >= c.low && at < c.high) {
          const float x = x_row[at];
#pragma unroll
          for (int o = 0; o < I::kOcs; ++o) sum[o][i] += w[o] * x;
        }
      }
    } else {
      float x[I::kTs];
#pragma unroll
      for (int i = 0; i < I::kTs; ++i) x[i] = x_row[place + i * I::kBlockX];
#pragma unroll
      for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
        for (int step = 0; step < I::kTs; ++step) sum[o][I::snake(o, step)] += w[o] * x[I::snake(o, step)];
      }
    }
    place -= static_cast<int>(s.x_step);
  }
}

template <class I, bool kEdge>
__device__ __forceinline__ void multiply(float (&sum)[I::kOcs][I::kTs], const float* x, const float* w, const Stage& s,
                                         const Note& c, int tx, int ty) {
  constexpr int kUnroll = kEdge ? 1 : I::kUnroll;
  if constexpr (I::kSpecialised) {
    constexpr int kPitch = static_cast<int>(I::compile_time_stage().pitch);
#pragma unroll 1
    for (int ic = 0; ic < c.rows; ic += kUnroll) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        multiply_channel<I, kEdge>(sum, x + u * kPitch, w + u * I::kTaps * I::kOcTile, c, tx, ty);
      }
      x += kUnroll * kPitch;
      w += kUnroll * I::kTaps * I::kOcTile;
    }
  } else {
#pragma unroll 1
    for (int ic = 0; ic < c.rows; ++ic) {
      multiply_channel_general<I, kEdge>(sum, x, w, s, c, tx, ty);
      x += s.pitch;
      w += s.taps * I::kOcTile;
    }
  }
}

template <class I>
__device__ __forceinline__ void set_to_bias(float (&sum)[I::kOcs][I::kTs], const RunArguments& a, const Tile& tile,
                                            int ty) {
  const int64 channels = a.geometry.out_per_group();
  const int64 first = tile.oc_first + ty * I::kOcVector;
#pragma unroll
  for (int o = 0; o < I::kOcs; ++o) {
    const bool exists = a.bias != nullptr && first + I::channel(o) < channels;
    const float bias = exists ? static_cast<const float*>(a.bias)[tile.group * channels + first + I::channel(o)] : 0.0f;
#pragma unroll
    for (int i = 0; i < I::kTs; ++i) sum[o][i] = bias;
  }
}

/// Writes a thread's patch in pieces of 4 * kFloats bytes; `to` is its first output. If kChecked, only places in
/// [begin, end) of the tile and `channels` output channels exist.
template <class I, int kFloats, bool kChecked>
__device__ __forceinline__ void store_patch(float* to, int64 row_stride, int64 stride,
                                            const float (&sum)[I::kOcs][I::kTs], int tx, int begin, int end,
                                            int64 channels) {
  struct alignas(4 * kFloats) Piece {
    float v[kFloats];
  };
#pragma unroll
  for (int o = 0; o < I::kOcs; ++o) {
    if (kChecked && I::channel(o) >= channels) return;
#pragma unroll
    for (int i = 0; i < I::kTs; i += kFloats) {
      const int place = i / I::kRun * I::kBlockX * I::kRun + i % I::kRun;
      if (kChecked && (place + tx * I::kRun < begin || place + tx * I::kRun >= end)) continue;
      Piece piece;
#pragma unroll
      for (int j = 0; j < kFloats; ++j) piece.v[j] = sum[o][i + j];
      *reinterpret_cast<Piece*>(to + place * stride) = piece;
    }
    to += o + 1 < I::kOcs ? (I::channel(o + 1) - I::channel(o)) * row_stride : 0;
  }
}

template <class I>
__device__ __forceinline__ void store(const RunArguments& a, const Tile& tile, const float (&sum)[I::kOcs][I::kTs],
                                      int tx, int ty) {
  const Geometry& g = a.geometry;
  const int64 channel = tile.group * g.out_per_group() + tile.oc_first + ty * I::kOcVector;
  const int64 channels = g.out_per_group() - tile.oc_first - ty * I::kOcVector;
  float* to = static_cast<float*>(a.y) + tile.batch * g.y_batch_stride + channel * g.y_row_stride +
              tile.outputs.t_first + (tile.n_first + tx * I::kRun) * g.stride;
  const int begin = static_cast<int>(tile.n_begin - tile.n_first);
  const int end = static_cast<int>(tile.n_end - tile.n_first);
  const bool whole = begin == 0 && end == I::kT && channels >= I::channel(I::kOcs - 1) + 1;
  const unsigned misaligned =
      static_cast<unsigned>(reinterpret_cast<unsigned long long>(to)) | static_cast<unsigned>(g.y_row_stride * 4);
  constexpr int kFloats = I::kRun % 4 == 0 ? 4 : 1;
  if (kFloats == 4 && whole && g.stride == 1 && misaligned % 16 == 0) {
    store_patch<I, kFloats, false>(to, g.y_row_stride, 1, sum, tx, begin, end, channels);
  } else if (kFloats == 4 && whole && g.stride == 1 && misaligned % 8 == 0) {
    store_patch<I, kFloats == 4 ? 2 : 1, false>(to, g.y_row_stride, 1, sum, tx, begin, end, channels);
  } else if (whole) {
    store_patch<I, 1, false>(to, g.y_row_stride, g.stride, sum, tx, begin, end, channels);
  } else {
    store_patch<I, 1, true>(to, g.y_row_stride, g.stride, sum, tx, begin, end, channels);
  }
}

template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int RUN, int WARP_T, int STAGES, int UNROLL,
          int SPECIALISE, int PACKED, int MIN_BLOCKS, int TAPS, int X_STEP, class Element>
__global__ void __launch_bounds__(BLOCK_X* BLOCK_Y, MIN_BLOCKS) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<TILE_T, OC_TILE, IC_TILE, BLOCK_X, BLOCK_Y, RUN, WARP_T, STAGES, UNROLL, SPECIALISE, PACKED,
                     MIN_BLOCKS, TAPS, X_STEP>;
  static_assert(sizeof(Element) == 4, "tiled computes on fp32 tensors");
  extern __shared__ __align__(16) unsigned char shared[];

  const Geometry& g = a.geometry;
  const int thread = static_cast<int>(threadIdx.y) * BLOCK_X + static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int tx = warp % (BLOCK_X / WARP_T) * WARP_T + lane % WARP_T;
  const int ty = warp / (BLOCK_X / WARP_T) * (32 / WARP_T) + lane / WARP_T;
  Tile& tile = *reinterpret_cast<Tile*>(shared);
  Stage& s = *reinterpret_cast<Stage*>(shared + kTileBytes);
  Note* const notes = reinterpret_cast<Note*>(shared + kTileBytes + kStageBytes);
  float* const buffers = reinterpret_cast<float*>(shared + header_bytes(I::tunables()));

  if (!I::kSpecialised && thread == 0) s = stage_of(I::tunables(), chunk_taps(I::tunables(), g), x_step(g));
  for (int64 index = blockIdx.x;; index += gridDim.x) {
    if (thread == 0) tile = tile_at<I>(a, s, index);
    __syncthreads();
    float sum[I::kOcs][I::kTs];
    set_to_bias<I>(sum, a, tile, ty);
    Chunk chunk = tile.first_chunk;
    Source source = tile.first_source;
    int64 left = g.in_per_group();
    int filled = 0;
    int used = 0;
    const int64 steps = tile.steps;
    for (int64 step = 1 - STAGES; step < steps; ++step) {
      if (step >= 0) {
        copy_wait<STAGES - 2>();
        __syncthreads();  // the stage is there for all, and all have left the one that is filled next
      }
      if (step + STAGES - 1 < steps) {
        const int channels = static_cast<int>(min_of(left, IC_TILE));
        float* target = buffers + filled * I::size(s);
        if (channels == IC_TILE) {
          copy_stage<I, true>(target, source, g, tile, channels, s, chunk, thread);
        } else {
          copy_stage<I, false>(target, source, g, tile, channels, s, chunk, thread);
        }
        if (thread == 0) notes[filled] = {I::rows(channels), chunk.taps, chunk.low, chunk.high, chunk.edge};
        filled = filled + 1 < STAGES ? filled + 1 : 0;
        left -= IC_TILE;
        if (left > 0) {
          advance<I>(source, g, s);
        } else if (step + STAGES < steps) {
          left = g.in_per_group();
          chunk = chunk_at<I>(g, tile, s, chunk.first + I::taps(s));
          source = source_of<I>(a, tile, chunk, s);
        }
      }
      copy_commit();
      if (step >= 0) {
        const float* x = buffers + used * I::size(s);
        const Note note = notes[used];
        if (note.edge != 0) {
          multiply<I, true>(sum, x, x + I::x_size(s), s, note, tx, ty);
        } else {
          multiply<I, false>(sum, x, x + I::x_size(s), s, note, tx, ty);
        }
        used = used + 1 < STAGES ? used + 1 : 0;
      }
    }
    store<I>(a, tile, sum, tx, ty);
    if (tile.last != 0) break;
    __syncthreads();  // all have read this tile's description and last stage before the next ones replace them
  }
}

/// Once per weights: from (in_channels, out_channels / groups, kernel_size) to the order of Packing.
template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int RUN, int WARP_T, int STAGES, int UNROLL,
          int SPECIALISE, int PACKED, int MIN_BLOCKS, int TAPS, int X_STEP, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  constexpr Tunables kTunables{TILE_T, OC_TILE,    IC_TILE, {BLOCK_X, BLOCK_Y}, RUN, WARP_T, STAGES,
                               UNROLL, SPECIALISE, PACKED,  MIN_BLOCKS};
  const Geometry& g = a.geometry;
  const Packing p = packing_of(kTunables, g, TAPS > 0 ? TAPS : chunk_taps(kTunables, g));
  const int64 floats = g.groups * oc_tiles(kTunables, g) * p.phases * p.chunks * p.chunk_size;
  const int64 threads = static_cast<int64>(gridDim.x) * kPackThreads;
  for (int64 i = static_cast<int64>(blockIdx.x) * kPackThreads + threadIdx.x; i < floats; i += threads) {
    int64 rest = i / OC_TILE;
    const int64 tap_in_chunk = rest % p.taps;
    rest /= p.taps;
    const int64 ic = rest % p.channels;
    rest /= p.channels;
    const int64 tap = rest % p.chunks * p.taps + tap_in_chunk;
    rest /= p.chunks;
    const int64 k = rest % p.phases + tap * tap_step(g);
    rest /= p.phases;
    const int64 oc = rest % oc_tiles(kTunables, g) * OC_TILE + i % OC_TILE;
    const int64 group = rest / oc_tiles(kTunables, g);
    const bool exists = k < g.kernel_size && ic < g.in_per_group() && oc < g.out_per_group();
    const int64 channel = group * g.in_per_group() + ic;
    static_cast<Element*>(a.packed)[i] =
        exists ? static_cast<const Element*>(a.w)[(channel * g.out_per_group() + oc) * g.kernel_size + k] : Element{};
  }
}

}  // namespace ct1d::tiled
