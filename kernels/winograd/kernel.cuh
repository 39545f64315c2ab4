// winograd: minimal filtering along t on the fp32 units (transform.h). A block computes T outputs of one phase
// (phases.h) and OC_TILE channels of one batch item and group, in segments of points - taps + 1 outputs. Each of the
// `points` products is an outer-product GEMM of its own, segments by channels; a thread keeps a patch of sums of `held`
// of them, so that warps share a block by product. x is transformed once a block on its way from one shared-memory
// buffer to another; weights are transformed once in a prepare step. At the end the sums of a segment meet in shared
// memory. Phases of more taps are taken in chunks that add to the same sums.
//
// Accuracy. A transform mixes neighbours, so it rounds relative to the largest of a window. Where an output's own
// products may be much smaller than others of its window (transform.h says when), and where a result is not finite, the
// segment is computed again directly, by products of existing taps alone. Weights are scaled by powers of two, an
// output channel at a time.
#pragma once

#include "kernels/common/async_copy.cuh"
#include "kernels/common/thread_index.cuh"
#include "kernels/winograd/layout.h"
#include "kernels/winograd/transform.h"

namespace ct1d::winograd {

template <int kFloats>
struct alignas(4 * kFloats) Piece {
  float v[kFloats];
};

/// Compile-time facts of one instance.
template <int TILE_T, int OC_TILE_, int IC_TILE_, int BLOCK_X, int BLOCK_Y, int POINTS, int TAPS, int HELD, int WARP_T,
          int STAGES, int UNROLL, int MIN_BLOCKS>
struct Instance {
  CT1D_HD static constexpr Tunables tunables() {
    return {TILE_T, OC_TILE_, IC_TILE_, {BLOCK_X, BLOCK_Y}, POINTS, TAPS, HELD, WARP_T, STAGES, UNROLL, MIN_BLOCKS};
  }
  CT1D_HD static constexpr Layout layout() { return layout_of(tunables()); }
  static constexpr int kT = TILE_T;
  static constexpr int kOcTile = OC_TILE_;
  static constexpr int kIcTile = IC_TILE_;
  static constexpr int kBlockX = BLOCK_X;
  static constexpr int kThreads = BLOCK_X * BLOCK_Y;
  static constexpr int kPoints = POINTS;
  static constexpr int kTaps = TAPS;
  static constexpr int kHeld = HELD;
  static constexpr int kStages = STAGES;
  static constexpr int kUnroll = UNROLL;
  static constexpr int kOutputs = POINTS - TAPS + 1;
  static constexpr int kSegments = TILE_T / kOutputs;
  static constexpr int kSliceY = BLOCK_Y * HELD / POINTS;
  static constexpr int kSliceThreads = BLOCK_X * kSliceY;
  static constexpr int kTs = kSegments / BLOCK_X;
  static constexpr int kOcs = OC_TILE_ / kSliceY;
  static constexpr int kTVector = vector_of(kTs);
  static constexpr int kOcVector = vector_of(kOcs);
  static constexpr int kRowsAtOnce = kThreads / kSegments;

  static_assert(POINTS == 4 || POINTS == 6, "points: 4 or 6");
  static_assert(TAPS == 2 || TAPS == 3, "taps: 2 or 3");
  static_assert(POINTS % HELD == 0 && BLOCK_Y % (POINTS / HELD) == 0, "warps must share the products evenly");
  static_assert(TILE_T % kOutputs == 0 && TILE_T % 4 == 0, "T must be a multiple of 4 and of points - taps + 1");
  static_assert(kSegments % BLOCK_X == 0, "the tile's segments must be a multiple of block.x");
  static_assert(OC_TILE_ % kSliceY == 0 && OC_TILE_ % 4 == 0, "OC_TILE must be a multiple of 4 and of its threads");
  static_assert(kThreads % kSegments == 0, "the block's threads must be a multiple of the tile's segments");
  static_assert(kSliceThreads % 32 == 0, "the threads of a product must be whole warps");
  static_assert(32 % WARP_T == 0 && BLOCK_X % WARP_T == 0 && kSliceY % (32 / WARP_T) == 0,
                "a warp of warp_t by 32 / warp_t threads must divide the threads of a product");
  static_assert(IC_TILE_ % UNROLL == 0, "IC_TILE must be a multiple of unroll");
  static_assert(IC_TILE_ <= kThreads, "a thread copies the importance of a channel");
  static_assert(STAGES >= 2, "the pipeline needs two stages or more");

  /// The thread's place, found anew where it is needed.
  __device__ static __forceinline__ int thread() { return fresh_thread_y() * BLOCK_X + fresh_thread_x(); }
  /// Which products, and where along segments and channels.
  struct Place {
    int slice;
    int tx;
    int ty;
  };
  __device__ static __forceinline__ Place place() {
    const int index = thread();
    const int warp = index % kSliceThreads / 32;
    const int lane = index % 32;
    return {index / kSliceThreads, warp % (BLOCK_X / WARP_T) * WARP_T + lane % WARP_T,
            warp / (BLOCK_X / WARP_T) * (32 / WARP_T) + lane / WARP_T};
  }

  /// Output channel of the tile that is the thread's o-th, and segment that is its i-th.
  __device__ static constexpr int channel(int o, int ty) {
    return (o / kOcVector * kSliceY + ty) * kOcVector + o % kOcVector;
  }
  __device__ static constexpr int segment(int i, int tx) {
    return (i / kTVector * kBlockX + tx) * kTVector + i % kTVector;
  }
  /// Neighbouring segments lie exchanged in the products' rows. Vector accesses tie the parity of the registers of both
  /// x and sums to the segment, and the register file has a bank for even and one for odd ones: this way a multiply-add
  /// finds its sum and its x in different banks.
  __device__ static constexpr int place_of(int segment) { return kTVector > 1 ? segment ^ 1 : segment; }
  /// Back and forth over a row of sums, so that from one multiply-add to the next either the weight or x stays.
  __device__ static constexpr int snake(int o, int step) { return o % 2 == 0 ? step : kTs - 1 - step; }
};

/// What a block works on. One thread finds it out and leaves it in shared memory for all.
struct Tile {
  int64 batch;
  int64 group;
  int64 oc_first;  // within the group
  PhaseOutputs outputs;
  int64 position;  // class and number of the tile's place 0: output class + number * x_step of the phase
  int64 number;    // may be negative
  int64 numbers;   // outputs of the class
  int64 x_first;   // position in x of the first chunk's place 0; may be negative
  const float* w;
  int steps;        // stages until the sums are complete; 0 where no output or no tap is
  int chunk_steps;  // of which a chunk of taps has so many
  int check_at;     // after so many stages transformed a chunk's sizes are looked at alone; 0: never, all taps are even
  int last;         // not 0: the block has no tile after this one
};

template <class I>
__device__ Tile tile_at(const RunArguments& a, int64 index) {
  const Geometry& g = a.geometry;
  Tile tile{};
  const int64 tiles = tile_count(I::tunables(), g);
  tile.last = index + gridDim.x >= tiles;
  if (index >= tiles) return tile;  // of an empty batch: no outputs
  const int64 ocs = oc_tiles(I::tunables(), g);
  const int64 phases = phase_count(g);
  const int64 classes = class_count(g);
  const int64 ts = t_tiles(I::tunables(), g);
  const int64 oc_tile = index % ocs;
  index /= ocs;
  tile.oc_first = oc_tile * I::kOcTile;
  tile.outputs = phase_outputs(g, index % phases);
  index /= phases;
  tile.position = index % classes;
  index /= classes;
  tile.number = index % ts * I::kT;
  index /= ts;
  tile.group = index % g.groups;
  tile.batch = index / g.groups;
  const int64 step = x_step(g);
  tile.numbers = tile.position < tile.outputs.outputs ? ceil_div(tile.outputs.outputs - tile.position, step) : 0;
  tile.x_first = tile.outputs.m_first + tile.position - (I::kTaps - 1) * step;
  if (tiles_shift(I::tunables(), g)) tile.number -= floor_mod(tile.x_first, 4);
  tile.x_first += tile.number * step;
  const Packing p = packing_of(I::tunables(), g);
  tile.chunk_steps = static_cast<int>(p.channels / I::kIcTile);
  if (tile.number < tile.numbers) {
    tile.steps = static_cast<int>(ceil_div(tile.outputs.phase.taps, I::kTaps)) * tile.chunk_steps;
  }
  const int64 block = (tile.group * ocs + oc_tile) * p.phases + tile.outputs.phase.first_tap;
  tile.w = static_cast<const float*>(a.weights) + block * p.chunks * p.channels * I::kPoints * I::kOcTile;
  return tile;
}

/// Where the next stage of x comes from and the next one of weights. In shared memory: one thread moves it on.
struct Source {
  const float* x;           // at the stage's first channel and place 0
  const float* importance;  // at its first channel
  int64 x_first;            // position of place 0
  int64 left;               // channels from this stage on
  const float* w;
  int bytes;  // a copy; 4: with every place checked
};

static_assert(sizeof(Tile) <= kTileFloats * 4 && sizeof(Source) * 2 <= kSourceFloats * 4,
              "the header has to hold them");

template <class I>
__device__ __forceinline__ Source source_of(const RunArguments& a, const Tile& tile, int64 x_first) {
  const Geometry& g = a.geometry;
  const Packing p = packing_of(I::tunables(), g);
  const int64 step = x_step(g);
  Source s{};
  s.x_first = x_first;
  s.left = g.in_per_group();
  s.x = static_cast<const float*>(a.x) + tile.batch * g.x_batch_stride + tile.group * s.left * g.x_row_stride + x_first;
  s.importance = static_cast<const float*>(a.weights) + p.importance + tile.group * p.channels;
  const unsigned misaligned =
      static_cast<unsigned>(reinterpret_cast<unsigned long long>(s.x)) | static_cast<unsigned>(g.x_row_stride * 4);
  const bool inside = step == 1 && x_first >= 0 && x_first + I::layout().x_width <= g.length;
  s.bytes = inside && misaligned % 16 == 0 ? 16 : inside && misaligned % 8 == 0 ? 8 : 4;
  return s;
}

/// After the copies of `step`: x moves to the next stage, and weights once theirs have begun.
template <class I>
__device__ __forceinline__ Source next_source(const RunArguments& a, const Tile& tile, const Source& before, int step) {
  Source s = before;
  const float* w = step + I::kStages > 0 ? before.w + I::layout().w_stage : before.w;
  s.left -= I::kIcTile;
  s.x += I::kIcTile * a.geometry.x_row_stride;
  s.importance += I::kIcTile;
  if (s.left <= 0) s = source_of<I>(a, tile, s.x_first - I::kTaps * x_step(a.geometry));
  s.w = w;
  return s;
}

template <class I, int kFloats, bool kChecked>
__device__ __forceinline__ void copy_rows(float* target, const Source& s, const Geometry& g) {
  const int thread = I::thread();
  constexpr int kPieces = I::layout().x_width / kFloats;
  constexpr int kAll = I::kIcTile * kPieces;
  const int64 step = kChecked ? x_step(g) : 1;
#pragma unroll(kChecked ? 1 : 8)
  for (int i = 0; i < kAll; i += I::kThreads) {
    const int item = i + thread;
    if (kAll % I::kThreads != 0 && item >= kAll) break;
    const int row = item / kPieces;
    const int64 place = item % kPieces * kFloats;
    const int64 at = s.x_first + place * step;
    const bool exists = row < s.left && (!kChecked || (at >= 0 && at < g.length));
    copy_async<4 * kFloats>(target + item * kFloats, s.x + row * g.x_row_stride + place * step, exists);
  }
}

template <class I>
__device__ __forceinline__ void copy_x(float* target, const Source& s, const Geometry& g) {
  if (s.bytes == 16) {
    copy_rows<I, 4, false>(target, s, g);
  } else if (s.bytes == 8) {
    copy_rows<I, 2, false>(target, s, g);
  } else {
    copy_rows<I, 1, true>(target, s, g);
  }
  if (const int thread = I::thread(); thread < I::kIcTile) {
    copy_async<4>(target + I::kIcTile * I::layout().x_width + thread, s.importance + thread, true);
  }
}

template <class I>
__device__ __forceinline__ void copy_weights(float* target, const float* w) {
  const int first = I::thread() * 4;
  constexpr int kAll = I::layout().w_stage;
#pragma unroll 16
  for (int i = 0; i < kAll; i += I::kThreads * 4) {
    const int at = i + first;
    if (kAll % (I::kThreads * 4) == 0 || at < kAll) copy_async<16>(target + at, w + at, true);
  }
}

template <int kFloats>
__device__ __forceinline__ void read_piece(float* to, const float* from) {
  const Piece<kFloats> p = *reinterpret_cast<const Piece<kFloats>*>(from);
#pragma unroll
  for (int i = 0; i < kFloats; ++i) to[i] = p.v[i];
}

template <class I>
__device__ __forceinline__ void read_window(float (&d)[I::kPoints], const float* row) {
  constexpr int kVector = vector_of(I::kOutputs);
#pragma unroll
  for (int p = 0; p < I::kPoints; p += kVector) {
    if (p + kVector <= I::kPoints) {
      read_piece<kVector>(d + p, row + p);
    } else {
      read_piece<2>(d + p, row + p);
    }
  }
}

/// A stage of x into products, and its positions' sizes. A thread has one segment of every kRowsAtOnce-th row.
template <class I>
__device__ __forceinline__ void transform_stage(float* products, float* sizes, const float* x) {
  const int thread = I::thread();
  const int segment = thread % I::kSegments;
  const int first = thread / I::kSegments;
  float size[I::kPoints + 1];
  sizes += first * (I::kPoints + 1) * I::kSegments + segment;
#pragma unroll
  for (int p = 0; p <= I::kPoints; ++p) size[p] = sizes[p * I::kSegments];
#pragma unroll
  for (int pass = 0; pass < I::kIcTile; pass += I::kRowsAtOnce) {
    const int row = pass + first;
    if (pass + I::kRowsAtOnce > I::kIcTile && row >= I::kIcTile) break;
    float d[I::kPoints];
    float v[I::kPoints];
    read_window<I>(d, x + row * I::layout().x_width + segment * I::kOutputs);
    transform_input<I::kPoints>(v, d);
    float* to = products + row * I::kPoints * I::kSegments + I::place_of(segment);
    const float importance = x[I::kIcTile * I::layout().x_width + row];
    float squares = 0.0f;
#pragma unroll
    for (int p = 0; p < I::kPoints; ++p) {
      to[p * I::kSegments] = v[p];
      size[p] += importance * fabsf(d[p]);
      squares += d[p] * d[p];
    }
    size[I::kPoints] += importance * importance * squares;
  }
#pragma unroll
  for (int p = 0; p <= I::kPoints; ++p) sizes[p * I::kSegments] = size[p];
}

/// A stage's products into the thread's sums.
template <class I>
__device__ __forceinline__ void multiply(float (&sum)[I::kHeld][I::kOcs][I::kTs], const float* v, const float* w) {
  const typename I::Place at = I::place();
  v += at.slice * I::kHeld * I::kSegments + I::segment(0, at.tx);
  w += at.slice * I::kHeld * I::kOcTile + I::channel(0, at.ty);
#pragma unroll 1
  for (int ic = 0; ic < I::kIcTile; ic += I::kUnroll) {
#pragma unroll
    for (int u = 0; u < I::kUnroll; ++u) {
#pragma unroll
      for (int h = 0; h < I::kHeld; ++h) {
        float x[I::kTs];
        float f[I::kOcs];
#pragma unroll
        for (int i = 0; i < I::kTs; i += I::kTVector) {
          read_piece<I::kTVector>(x + i, v + (u * I::kPoints + h) * I::kSegments + I::segment(i, 0));
        }
#pragma unroll
        for (int o = 0; o < I::kOcs; o += I::kOcVector) {
          read_piece<I::kOcVector>(f + o, w + (u * I::kPoints + h) * I::kOcTile + I::channel(o, 0));
        }
#pragma unroll
        for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
          for (int step = 0; step < I::kTs; ++step) {
            sum[h][o][I::snake(o, step)] += f[o] * x[I::place_of(I::snake(o, step))];
          }
        }
      }
    }
    v += I::kUnroll * I::kPoints * I::kSegments;
    w += I::kUnroll * I::kPoints * I::kOcTile;
  }
}

/// Flags segments that must be computed directly (transform.h). `common`: taps that every chunk of the sizes has; only
/// places that meet one of these count as an output's own. `least`: share of the largest size that each of these needs.
template <class I>
__device__ __forceinline__ void flag_segments(int* flags, const float* sizes, const Geometry& g, int common,
                                              float least) {
  const int thread = I::thread();
  if (thread >= I::kSegments) return;
  float size[I::kPoints + 1];
  float largest = 0.0f;
  float smallest = kLargest;
  float squares = 0.0f;  // of sizes; size[kPoints] has those of single channels
#pragma unroll
  for (int p = 0; p <= I::kPoints; ++p) {
    size[p] = 0.0f;
    for (int row = 0; row < I::kRowsAtOnce; ++row) {
      size[p] += sizes[(row * (I::kPoints + 1) + p) * I::kSegments + thread];
    }
    if (p == I::kPoints) break;
    largest = fmaxf(largest, size[p]);
    if (p >= I::kTaps - common) smallest = fminf(smallest, size[p]);
    squares += size[p] * size[p];
  }
  bool even = largest == 0.0f || (largest >= kSmallest && least * largest <= smallest);
  if (g.in_per_group() >= fewest_channels(I::kPoints)) {
    even = even && squares <= kLargest && fewest_effective(I::kPoints) * size[I::kPoints] <= squares;
  }
#pragma unroll
  for (int j = 0; j < I::kOutputs; ++j) {
    float own = 0.0f;
#pragma unroll
    for (int tap = 0; tap < I::kTaps; ++tap) own += tap < common ? size[j + I::kTaps - 1 - tap] : 0.0f;
    even = even && static_cast<float>(common) * largest <= kSpread * own;
  }
  if (!even) flags[thread] = 1;
}

/// The same for the chunk that `stages` complete, by its sizes alone; those of the next one begin at zero.
template <class I>
__device__ __forceinline__ void flag_chunk(Tile& tile, int* flags, float* sizes, const Geometry& g, int stages) {
  const int64 left = tile.outputs.phase.taps - (stages / tile.chunk_steps - 1) * I::kTaps;
  const bool few = g.in_per_group() < fewest_channels(I::kPoints);
  flag_segments<I>(flags, sizes, g, static_cast<int>(min_of(left, I::kTaps)),
                   1.0f / (few ? kLoosePositionSpread : position_spread(I::kPoints)));
  const int thread = I::thread();
  if (thread == 0) tile.check_at += tile.chunk_steps;
  if (thread >= I::kSegments) return;
  for (int i = 0; i < I::kRowsAtOnce * (I::kPoints + 1); ++i) sizes[i * I::kSegments + thread] = 0.0f;
}

/// A segment's outputs: where they go for the tile's first channel, and which of them exist.
struct Target {
  float* to;
  int64 step;
  int begin, end;
  bool whole;  // all, side by side
};
template <class I>
__device__ __forceinline__ Target target_of(const RunArguments& a, const Tile& tile, int segment) {
  const Geometry& g = a.geometry;
  const int64 number = tile.number + segment * I::kOutputs;
  const int64 output = tile.position + number * x_step(g);
  const int64 channel = tile.group * g.out_per_group() + tile.oc_first;
  Target t{};
  t.to = static_cast<float*>(a.y) + tile.batch * g.y_batch_stride + channel * g.y_row_stride + tile.outputs.t_first +
         output * g.stride;
  t.step = x_step(g) * g.stride;
  t.begin = static_cast<int>(min_of(I::kOutputs, max_of(0, -number)));
  t.end = static_cast<int>(max_of(0, min_of(I::kOutputs, tile.numbers - number)));
  t.whole = t.begin == 0 && t.end == I::kOutputs && t.step == 1;
  return t;
}

template <class I>
__device__ __forceinline__ void store_segment(float* to, const float (&y)[I::kOutputs], const Target& target) {
  constexpr int kVector = vector_of(I::kOutputs);
  const unsigned misaligned = static_cast<unsigned>(reinterpret_cast<unsigned long long>(to));
  if (kVector == 4 && target.whole && misaligned % 16 == 0) {
#pragma unroll
    for (int j = 0; j < I::kOutputs; j += kVector) {
      Piece<kVector> p;
#pragma unroll
      for (int i = 0; i < kVector; ++i) p.v[i] = y[j + i];
      *reinterpret_cast<Piece<kVector>*>(to + j) = p;
    }
  } else if (kVector >= 2 && target.whole && misaligned % 8 == 0) {
#pragma unroll
    for (int j = 0; j + 1 < I::kOutputs; j += 2) *reinterpret_cast<Piece<2>*>(to + j) = {{y[j], y[j + 1]}};
  } else if (target.whole) {
#pragma unroll
    for (int j = 0; j < I::kOutputs; ++j) to[j] = y[j];
  } else {
#pragma unroll
    for (int j = 0; j < I::kOutputs; ++j) {
      if (j >= target.begin && j < target.end) to[j * target.step] = y[j];
    }
  }
}

/// The thread's sums by way of shared memory to outputs. What is not finite is flagged.
template <class I>
__device__ __forceinline__ void finish(const RunArguments& a, const Tile& tile, float (&sum)[I::kHeld][I::kOcs][I::kTs],
                                       float* exchange, const float* factors, int* flags) {
  constexpr Layout l = I::layout();
  constexpr int kProductPitch = l.exchange_channels * l.exchange_pitch;
  const typename I::Place at = I::place();
  const int segment = I::thread() % I::kSegments;
  const int first_row = I::thread() / I::kSegments;
  const int channels = static_cast<int>(min_of(I::kOcTile, a.geometry.out_per_group() - tile.oc_first));
  const Target target = target_of<I>(a, tile, segment);
  const int64 row_stride = a.geometry.y_row_stride;
  float* const to_sums =
      exchange + at.slice * I::kHeld * kProductPitch + at.ty * I::kOcVector * l.exchange_pitch + I::segment(0, at.tx);
  const float* const from = exchange + first_row * l.exchange_pitch + segment;
#pragma unroll
  for (int first = 0; first < I::kOcs; first += I::kOcVector) {
    __syncthreads();  // what lies in the exchange's place has been read
#pragma unroll
    for (int h = 0; h < I::kHeld; ++h) {
#pragma unroll
      for (int o = 0; o < I::kOcVector; ++o) {
#pragma unroll
        for (int i = 0; i < I::kTs; i += I::kTVector) {
          Piece<I::kTVector> piece;
#pragma unroll
          for (int j = 0; j < I::kTVector; ++j) piece.v[j] = sum[h][first + o][i + j];
          float* const row = to_sums + h * kProductPitch + o * l.exchange_pitch;
          *reinterpret_cast<Piece<I::kTVector>*>(row + I::segment(i, 0)) = piece;
        }
      }
    }
    __syncthreads();
    float* to = target.to + (first * I::kSliceY + first_row) * row_stride;
#pragma unroll 2
    for (int row = 0; row < l.exchange_channels; row += I::kRowsAtOnce) {
      const int oc = first * I::kSliceY + row + first_row;
      if (row + first_row >= l.exchange_channels || oc >= channels) break;
      float m[I::kPoints];
      float y[I::kOutputs];
#pragma unroll
      for (int c = 0; c < I::kPoints; ++c) m[c] = from[c * kProductPitch + row * l.exchange_pitch];
      transform_output<I::kPoints>(y, m);
      const float factor = factors[oc];
      const float bias = factors[I::kOcTile + oc];
      float finite = 0.0f;
#pragma unroll
      for (int j = 0; j < I::kOutputs; ++j) {
        y[j] = y[j] * factor + bias;
        finite += 0.0f * y[j];
      }
      if (!(finite == 0.0f)) flags[segment] = 1;
      store_segment<I>(to, y, target);
      to += I::kRowsAtOnce * row_stride;
    }
  }
}

/// Flagged segments once more, directly: the sum over existing taps, a thread a channel.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, const Tile& tile, const int* flags) {
  const int thread = I::thread();
  const Geometry& g = a.geometry;
  const int64 step = x_step(g);
  const int64 channels = min_of(I::kOcTile, g.out_per_group() - tile.oc_first);
  const int64 first_channel = tile.group * g.in_per_group();
  const float* w = static_cast<const float*>(a.weights) + packing_of(I::tunables(), g).original +
                   (first_channel * g.out_per_group() + tile.oc_first) * g.kernel_size;
  const float* x = static_cast<const float*>(a.x) + tile.batch * g.x_batch_stride + first_channel * g.x_row_stride;
#pragma unroll 1
  for (int segment = 0; segment < I::kSegments; ++segment) {
    if (flags[segment] == 0) continue;
    const Target target = target_of<I>(a, tile, segment);
    const int64 output = tile.position + (tile.number + segment * I::kOutputs) * step;
#pragma unroll 1
    for (int64 oc = thread; oc < channels; oc += I::kThreads) {
      float y[I::kOutputs];
#pragma unroll
      for (int j = 0; j < I::kOutputs; ++j) {
        y[j] = a.bias == nullptr
                   ? 0.0f
                   : static_cast<const float*>(a.bias)[tile.group * g.out_per_group() + tile.oc_first + oc];
      }
#pragma unroll 1
      for (int64 tap = 0; tap < tile.outputs.phase.taps; ++tap) {
        const int64 k = tile.outputs.phase.first_tap + tap * tile.outputs.phase.tap_step;
        const int64 at = tile.outputs.m_first + output - tap * step;
#pragma unroll 4
        for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
          const float factor = w[(ic * g.out_per_group() + oc) * g.kernel_size + k];
#pragma unroll
          for (int j = 0; j < I::kOutputs; ++j) {
            const int64 position = at + j * step;
            if (position >= 0 && position < g.length) y[j] += factor * x[ic * g.x_row_stride + position];
          }
        }
      }
      store_segment<I>(target.to + oc * g.y_row_stride, y, target);
    }
  }
}

/// The copies of a step: x of stage step + kStages, weights of the stage before that.
template <class I>
__device__ __forceinline__ void copy_stage(const RunArguments& a, const Tile& tile, Source* sources, float* x,
                                           float* weights, int step) {
  const Source& source = sources[step & 1];
  if (step + I::kStages > 0 && step + I::kStages <= tile.steps) copy_weights<I>(weights, source.w);
  if (step + I::kStages < tile.steps) copy_x<I>(x, source, a.geometry);
  copy_commit();
  if (I::thread() == 0) sources[step & 1 ^ 1] = next_source<I>(a, tile, source, step);
}

template <class I>
__device__ __forceinline__ void begin_tile(const RunArguments& a, Tile& tile, Source* sources, int* flags, float* sizes,
                                           float* factors, int64 index) {
  const int thread = I::thread();
  if (thread == 0) {
    tile = tile_at<I>(a, index);
    Source first = source_of<I>(a, tile, tile.x_first);
    first.w = tile.w;
    sources[I::kStages & 1] = first;
  }
  if (thread < I::kSegments) flags[thread] = 0;
  sizes += thread / I::kSegments * (I::kPoints + 1) * I::kSegments + thread % I::kSegments;
#pragma unroll
  for (int p = 0; p <= I::kPoints; ++p) sizes[p * I::kSegments] = 0.0f;
  __syncthreads();
  const Geometry& g = a.geometry;
  const Packing p = packing_of(I::tunables(), g);
  const float* unscale = static_cast<const float*>(a.weights) + p.unscale +
                         (tile.group * oc_tiles(I::tunables(), g) * I::kOcTile + tile.oc_first);
  const float* bias = static_cast<const float*>(a.bias);
  for (int oc = thread; oc < I::kOcTile; oc += I::kThreads) {
    const bool exists = tile.oc_first + oc < g.out_per_group();
    const float unit = exists ? unscale[oc] : 1.0f;
    factors[oc] = fabsf(unit);
    if (unit < 0.0f) tile.check_at = tile.chunk_steps;
    factors[I::kOcTile + oc] =
        bias != nullptr && exists ? bias[tile.group * g.out_per_group() + tile.oc_first + oc] : 0.0f;
  }
}

template <int TILE_T, int OC_TILE, int IC_TILE, int BLOCK_X, int BLOCK_Y, int POINTS, int TAPS, int HELD, int WARP_T,
          int STAGES, int UNROLL, int MIN_BLOCKS, class Element>
__global__ void __launch_bounds__(BLOCK_X* BLOCK_Y, MIN_BLOCKS) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I =
      Instance<TILE_T, OC_TILE, IC_TILE, BLOCK_X, BLOCK_Y, POINTS, TAPS, HELD, WARP_T, STAGES, UNROLL, MIN_BLOCKS>;
  static_assert(sizeof(Element) == 4, "winograd computes on fp32 tensors");
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr Layout l = I::layout();

  float* const floats = reinterpret_cast<float*>(shared);
  Tile& tile = *reinterpret_cast<Tile*>(shared);
  Source* const sources = reinterpret_cast<Source*>(floats + kTileFloats);  // of even and odd steps
  int* const flags = reinterpret_cast<int*>(floats + l.flags);
  float* const sizes = floats + l.sizes;
  float* const factors = floats + l.factors;

  for (int64 index = blockIdx.x;; index += gridDim.x) {
    begin_tile<I>(a, tile, sources, flags, sizes, factors, index);
    float sum[HELD][I::kOcs][I::kTs];
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
#pragma unroll
      for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
        for (int i = 0; i < I::kTs; ++i) sum[h][o][i] = 0.0f;
      }
    }
    // Step s multiplies stage s and transforms stage s + 1, whose x therefore is copied one step before its weights.
    int slot = 0;  // of stage `step`, in weights and x
#pragma unroll 1
    for (int step = -STAGES; step < tile.steps; ++step) {
      if (step >= -1) copy_wait<STAGES - 2>();
      __syncthreads();  // the stages are there for all, and all have left the ones that are filled next
      const int after = slot + 1 < STAGES ? slot + 1 : 0;
      const int before = slot > 0 ? slot - 1 : STAGES - 1;
      copy_stage<I>(a, tile, sources, floats + l.x + slot * l.x_stage, floats + l.weights + before * l.w_stage, step);
      if (step >= -1 && step + 1 < tile.steps) {
        transform_stage<I>(floats + l.products + (step & 1 ^ 1) * l.v_stage, sizes, floats + l.x + after * l.x_stage);
        if (step + 2 == tile.check_at) {
          __syncthreads();  // the sizes are complete
          flag_chunk<I>(tile, flags, sizes, a.geometry, step + 2);
        }
      }
      if (step >= 0) {
        multiply<I>(sum, floats + l.products + (step & 1) * l.v_stage, floats + l.weights + slot * l.w_stage);
      }
      slot = after;
    }
    if (tile.number < tile.numbers) {
      const int common = static_cast<int>((tile.outputs.phase.taps + I::kTaps - 1) % I::kTaps) + 1;
      flag_segments<I>(flags, sizes, a.geometry, common, 0.0f);
      finish<I>(a, tile, sum, floats + l.exchange, factors, flags);
      __syncthreads();  // outputs and flags are there
      repair<I>(a, tile, flags);
    }
    if (tile.last != 0) break;
    __syncthreads();  // all have read this tile's description and flags before the next ones replace them
  }
}

}  // namespace ct1d::winograd
