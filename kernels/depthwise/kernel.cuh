// depthwise: few output channels a group, bound by memory. A thread computes a piece of a row: neighbouring outputs of
// all phases from one window of x in registers. Pieces begin on 32-byte boundaries of y, wherever its rows do, so that
// stores are of whole vectors; the phase of their first output and the place of their window in aligned loads are the
// same throughout a row, and there is code for each, in which every tap of every output is known.
//
// Positions outside x read as zeros, which meet weights. Zero times a weight that is not finite shows as NaN, and such
// outputs, if their window reaches beyond x, are computed again over the existing products alone.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/geometry.h"
#include "kernels/depthwise/layout.h"
#include "kernels/depthwise/vectors.cuh"

namespace ct1d::depthwise {

template <int BLOCK_X, int BLOCK_Y, int RUN, int CHUNKS, int UNROLL, int OC_TILE, int X_VECTOR, int WEIGHTS,
          int EXCHANGE, int STREAMING, int SPECIALISE, int MIN_BLOCKS, int STRIDE, int TAPS, int DILATION, int CHANNELS,
          int OUT_CHANNELS, class Item>
struct Instance {
  using Element = Item;
  static CT1D_HD constexpr Tunables tunables() {
    return {{BLOCK_X, BLOCK_Y}, RUN,       CHUNKS,     UNROLL,    OC_TILE, X_VECTOR, WEIGHTS,
            EXCHANGE,           STREAMING, SPECIALISE, MIN_BLOCKS};
  }
  static constexpr bool kSpecialised = SPECIALISE != 0;
  static constexpr int kBytes = static_cast<int>(sizeof(Element));
  static constexpr int kBlockX = BLOCK_X;
  static constexpr int kBlockY = BLOCK_Y;
  static constexpr int kChunks = CHUNKS;
  static constexpr int kUnroll = UNROLL;
  static constexpr int kOcs = OC_TILE;
  static constexpr int kLoad = X_VECTOR;
  static constexpr int kWeights = WEIGHTS;
  static constexpr bool kExchange = EXCHANGE != 0;
  static constexpr bool kStreaming = STREAMING != 0;
  static constexpr int kStride = kSpecialised ? STRIDE : 1;
  static constexpr int kTaps = kSpecialised ? TAPS : 1;
  static constexpr int kDilation = kSpecialised ? DILATION : 1;
  static constexpr int kChannels = CHANNELS;
  static __device__ __forceinline__ int64 in_per_group(const Geometry& g) {
    return CHANNELS > 0 ? CHANNELS : g.in_per_group();
  }
  static __device__ __forceinline__ int64 out_per_group(const Geometry& g) {
    return OUT_CHANNELS > 0 ? OUT_CHANNELS : g.out_per_group();
  }
  static constexpr int kVector = 16 / kBytes;
  static constexpr int kLength = static_cast<int>(piece_length(tunables(), kStride, kBytes));
  static constexpr int kStep = kLength / kStride;  // positions of x between neighbouring pieces
  static constexpr int kCopies = kStride * kLoad;
  static constexpr int kLowest = static_cast<int>(lowest(0, kStride, kTaps, kDilation));  // of all copies' windows
  static constexpr int kHighest = static_cast<int>(highest(kStride - 1, kStride, kLength));
  static constexpr int kLanes = BLOCK_X < 32 ? BLOCK_X : 32;  // of a warp that work on one row

  static_assert(WEIGHTS != in_registers || !kSpecialised || CHANNELS > 0, "weights in registers are counted");
  static_assert(CHUNKS % UNROLL == 0, "chunks must be a multiple of unroll");
  static_assert(!kSpecialised || kStep % kLoad == 0, "windows of neighbours must lie alike in their loads");
  static_assert(BLOCK_X * BLOCK_Y % 32 == 0 && 32 % kLanes == 0 && BLOCK_X % kLanes == 0, "a warp holds whole rows");
};

/// What a thread works on: the group's input channels of a batch item and OC_TILE of its output channels.
template <class Element>
struct Row {
  const Element* x;
  Element* y;
  const Element* w;  // of the tile's first output channel
  const Element* bias;
  int channels;  // of the tile that exist
  int64 first;   // output at which piece 0 begins: -(32 bytes) < first <= 0
  int64 base;    // position of x that its phase 0 meets with tap 0
  int phase;     // of that output
};

template <class I>
__device__ __forceinline__ Row<typename I::Element> row_at(const RunArguments& a, int64 index) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const int64 tiles = ceil_div(I::out_per_group(g), I::kOcs);
  const int64 batch_and_group = index / tiles;
  const int64 oc = (index - batch_and_group * tiles) * I::kOcs;
  const int64 batch = quotient(batch_and_group, g.groups);
  const int64 group = batch_and_group - batch * g.groups;
  const int64 channel = group * I::out_per_group(g) + oc;
  Row<Element> row{};
  row.x = static_cast<const Element*>(a.x) + batch * g.x_batch_stride + group * I::in_per_group(g) * g.x_row_stride;
  row.y = static_cast<Element*>(a.y) + batch * g.y_batch_stride + channel * g.y_row_stride;
  row.w =
      static_cast<const Element*>(a.weights) + (group * I::in_per_group(g) * I::out_per_group(g) + oc) * g.kernel_size;
  row.bias = a.bias != nullptr ? static_cast<const Element*>(a.bias) + channel : nullptr;
  row.channels = static_cast<int>(min_of(I::kOcs, I::out_per_group(g) - oc));
  if (I::kSpecialised) {
    row.first = -static_cast<int64>(reinterpret_cast<unsigned long long>(row.y) % 32 / I::kBytes);
    row.base = floor_div(g.padding + row.first, I::kStride);
    row.phase = static_cast<int>(g.padding + row.first - row.base * I::kStride);
  }
  return row;
}

template <class Element>
__device__ __forceinline__ float bias_of(const Row<Element>& row, int o) {
  return row.bias != nullptr && o < row.channels ? to_float(row.bias[o]) : 0.0f;
}

/// One output over the products that exist, whatever the geometry.
template <class Element>
__device__ __forceinline__ float exact_output(const Geometry& g, const Walk& walk, const Row<Element>& row, int o,
                                              int64 t) {
  const Meeting m = meeting_of(g, walk, t);
  float sum = bias_of(row, o);
  const Element* x = row.x + m.position;
  const Element* w = row.w + o * g.kernel_size + m.first_tap;
#pragma unroll 1
  for (int64 ic = 0; ic < g.in_per_group(); ++ic) {
#pragma unroll 1
    for (int64 j = m.begin; j < m.end; ++j) sum += to_float(x[-j * walk.x_step]) * to_float(w[j * walk.tap_step]);
    x += g.x_row_stride;
    w += g.out_per_group() * g.kernel_size;
  }
  return sum;
}

/// For a thread whose pieces begin in kPhase, their windows kOffset elements after a place for aligned loads.
template <class I, int kPhase, int kOffset>
struct Piece {
  using Element = typename I::Element;
  static constexpr int kLow = static_cast<int>(lowest(kPhase, I::kStride, I::kTaps, I::kDilation));
  static constexpr int kWindow = static_cast<int>(highest(kPhase, I::kStride, I::kLength)) - kLow + 1;
  static constexpr int kLoads = (kWindow + kOffset + I::kLoad - 1) / I::kLoad;
  static constexpr int kHeld = kLoads * I::kLoad;

  /// The window about `x`, the position of the piece's phase 0.
  static __device__ __forceinline__ void load(float (&to)[kHeld], const Element* x) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) load_vector<I::kLoad>(to + i * I::kLoad, x + (kLow - kOffset + i * I::kLoad));
  }
  /// The same of positions [low, high) about x, zeros elsewhere.
  static __device__ __forceinline__ void load(float (&to)[kHeld], const Element* x, int low, int high) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int position = kLow - kOffset + i;
      to[i] = position >= low && position < high ? to_float(x[position]) : 0.0f;
    }
  }

  /// Adds tap k's products of one channel. All indices are known when this is compiled.
  static __device__ __forceinline__ void multiply(float (&sum)[I::kLength], const float (&x)[kHeld], float w, int k) {
    const int at = k * I::kDilation - kPhase;
    const int first = at >= 0 ? at % I::kStride : (I::kStride - -at % I::kStride) % I::kStride;
#pragma unroll
    for (int n = 0; n < I::kLength; ++n) {
      if (n % I::kStride != first) continue;
      sum[n] += w * x[(n - at) / I::kStride - kLow + kOffset];
    }
  }
};

template <class I>
__device__ __forceinline__ bool is_nan(const float (&sum)[I::kLength]) {
  bool nan = false;
#pragma unroll
  for (int n = 0; n < I::kLength; ++n) nan = nan || sum[n] != sum[n];
  return nan;
}

/// A piece by its thread, whose row's first piece lies `place` bytes after a multiple of 16: in vectors.
template <class I>
__device__ __forceinline__ void store_piece(typename I::Element* y, const float (&sum)[I::kLength], int place) {
  using Element = typename I::Element;
  if (place == 0) {
#pragma unroll
    for (int i = 0; i < I::kLength; i += I::kVector)
      store_words<I::kStreaming>(y + i, pack_vector<I::kVector, Element>(sum + i));
  } else if (place == 8) {
#pragma unroll
    for (int i = 0; i < I::kLength; i += I::kVector / 2)
      store_words<I::kStreaming>(y + i, pack_vector<I::kVector / 2, Element>(sum + i));
  } else {
#pragma unroll
    for (int i = 0; i < I::kLength; ++i) y[i] = from_float<Element>(sum[i]);
  }
}
/// The same of its outputs from `begin` to before `end` alone.
template <class I>
__device__ __forceinline__ void store_part(typename I::Element* y, const float (&sum)[I::kLength], int begin, int end) {
#pragma unroll
  for (int i = 0; i < I::kLength; ++i)
    if (i >= begin && i < end) y[i] = from_float<typename I::Element>(sum[i]);
}

/// The pieces of a warp's lanes on one row, by way of shared memory; `y` is the first one's first output, and those
/// from `begin` to before `end` exist. Vectors lie at multiples of 16 bytes whatever the row's alignment; single
/// elements before and after them.
template <class I, bool kWhole>
__device__ __forceinline__ void exchange_pieces(typename I::Element* y, int begin, int end,
                                                const float (&sum)[I::kLength], unsigned char* buffer, int lane,
                                                unsigned mask) {
  using Element = typename I::Element;
  constexpr int kAll = I::kLanes * I::kLength;
  const Element* held = reinterpret_cast<const Element*>(buffer);
  __syncwarp(mask);  // all have read what lay here before
#pragma unroll
  for (int i = 0; i < I::kLength; i += I::kVector)
    store_words<false>(buffer + (lane * I::kLength + i) * I::kBytes, pack_vector<I::kVector, Element>(sum + i));
  __syncwarp(mask);
  const int place = I::kOcs > 1 ? static_cast<int>(reinterpret_cast<unsigned long long>(y) % 16) / I::kBytes : 0;
  const int head = (I::kVector - place) % I::kVector;
#pragma unroll
  for (int i = 0; i < kAll; i += I::kLanes * I::kVector) {
    const int at = i + lane * I::kVector + head;
    if (I::kOcs > 1 && at + I::kVector > kAll) continue;
    if (kWhole || (at >= begin && at + I::kVector <= end)) {
      if (head == 0) {
        store_words<I::kStreaming>(y + at, *reinterpret_cast<const uint4*>(held + at));
      } else {
        float values[I::kVector];
#pragma unroll
        for (int j = 0; j < I::kVector; ++j) values[j] = to_float(held[at + j]);
        store_words<I::kStreaming>(y + at, pack_vector<I::kVector, Element>(values));
      }
    } else {
#pragma unroll
      for (int j = 0; j < I::kVector; ++j)
        if (at + j >= begin && at + j < end) y[at + j] = held[at + j];
    }
  }
  if (head != 0 && lane < I::kVector) {
    const int at = lane < head ? lane : kAll - I::kVector + lane;
    if (kWhole || (at >= begin && at < end)) y[at] = held[at];
  }
}

/// A thread's weights where it holds them itself; one float where not.
template <class I>
struct Held {
  static constexpr int kCount = I::kWeights == in_registers ? I::kChannels * I::kOcs * I::kTaps : 1;
  float w[kCount];
};

template <class I>
__device__ __forceinline__ Held<I> hold_weights(const Geometry& g, const Row<typename I::Element>& row) {
  Held<I> held{};
  if (I::kWeights == in_registers) {
#pragma unroll
    for (int i = 0; i < Held<I>::kCount; ++i) {
      const int o = i / I::kTaps % I::kOcs;
      const int exists = o < row.channels ? o : 0;
      const int ic = i / I::kTaps / I::kOcs;
      held.w[i] = to_float(row.w[(ic * I::out_per_group(g) + exists) * I::kTaps + i % I::kTaps]);
    }
  }
  return held;
}

/// All products of kPieces pieces, neighbours of which are kBlockX apart; `x` is the position of the first one's phase
/// 0 and `weights` the row's in shared memory, if they lie there. Unless kInner only positions [low, high) about x
/// exist.
template <class I, int kPieces, bool kInner, int kPhase, int kOffset>
__device__ __forceinline__ void accumulate(float (&sum)[kPieces][I::kOcs][I::kLength], const Geometry& g,
                                           const Row<typename I::Element>& row, const typename I::Element* x, int low,
                                           int high, const Held<I>& held, const float* weights) {
  using P = Piece<I, kPhase, kOffset>;
  const auto add_channel = [&](int ic, const typename I::Element* x_row, const typename I::Element* w_row) {
    float window[kPieces][P::kHeld];
#pragma unroll
    for (int u = 0; u < kPieces; ++u) {
      if constexpr (kInner) {
        P::load(window[u], x_row + u * (I::kBlockX * I::kStep));
      } else {
        P::load(window[u], x_row, low, high);
      }
    }
#pragma unroll
    for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
      for (int k = 0; k < I::kTaps; ++k) {
        const int at = (ic * I::kOcs + o) * I::kTaps + k;
        float w;
        if constexpr (I::kWeights == in_registers) {
          w = held.w[at];
        } else if constexpr (I::kWeights == in_shared) {
          w = weights[at];
        } else {
          w = to_float(w_row[(o < row.channels ? o : 0) * I::kTaps + k]);
        }
#pragma unroll
        for (int u = 0; u < kPieces; ++u) P::multiply(sum[u][o], window[u], w, k);
      }
    }
  };
  const typename I::Element* w = row.w;
  const int channels = static_cast<int>(I::in_per_group(g));
#pragma unroll(I::kChannels > 0 ? I::kChannels : 1)
  for (int ic = 0; ic < channels; ++ic) {
    add_channel(ic, x, w);
    x += g.x_row_stride;
    w += I::out_per_group(g) * I::kTaps;
  }
}

/// By the code for the row's phase and place in aligned loads: copy = phase * kLoad + place.
template <class I, int kPieces, bool kInner, int kCopy>
__device__ __forceinline__ void dispatch(int copy, float (&sum)[kPieces][I::kOcs][I::kLength], const Geometry& g,
                                         const Row<typename I::Element>& row, const typename I::Element* x, int low,
                                         int high, const Held<I>& held, const float* weights) {
  constexpr int kStep = kInner ? 1 : I::kLoad;  // single elements have no place
  if constexpr (kCopy + kStep == I::kCopies) {
    accumulate<I, kPieces, kInner, kCopy / I::kLoad, kCopy % I::kLoad>(sum, g, row, x, low, high, held, weights);
  } else {
    if (copy < kCopy + kStep) {
      accumulate<I, kPieces, kInner, kCopy / I::kLoad, kCopy % I::kLoad>(sum, g, row, x, low, high, held, weights);
    } else {
      dispatch<I, kPieces, kInner, kCopy + kStep>(copy, sum, g, row, x, low, high, held, weights);
    }
  }
}

/// The outputs of a piece over the products that exist, once more; `m` is the position of its phase 0.
template <class I>
__device__ __forceinline__ void repair(const Geometry& g, const Row<typename I::Element>& row, int64 t, int64 m) {
#pragma unroll 1
  for (int i = 0; i < row.channels * I::kLength; ++i) {
    const int o = i / I::kLength;
    const int n = i % I::kLength;
    if (t + n < 0 || t + n >= g.length_out) continue;
    float sum = bias_of(row, o);
    const typename I::Element* x = row.x + m;
    const typename I::Element* w = row.w + o * I::kTaps;
#pragma unroll 1
    for (int64 ic = 0; ic < I::in_per_group(g); ++ic) {
#pragma unroll 1
      for (int k = 0; k < I::kTaps; ++k) {
        const int at = n + row.phase - k * I::kDilation;
        const int position = at >= 0 ? at / I::kStride : -((I::kStride - 1 - at) / I::kStride);
        if (position * I::kStride != at || m + position < 0 || m + position >= g.length) continue;
        sum += to_float(x[position]) * to_float(w[k]);
      }
      x += g.x_row_stride;
      w += I::out_per_group(g) * I::kTaps;
    }
    row.y[o * g.y_row_stride + t + n] = from_float<typename I::Element>(sum);
  }
}

template <class I, int kPieces>
__device__ __forceinline__ void set_to_bias(float (&sum)[kPieces][I::kOcs][I::kLength], const float (&bias)[I::kOcs]) {
#pragma unroll
  for (int u = 0; u < kPieces; ++u) {
#pragma unroll
    for (int o = 0; o < I::kOcs; ++o) {
#pragma unroll
      for (int n = 0; n < I::kLength; ++n) sum[u][o][n] = bias[o];
    }
  }
}

CT1D_HD constexpr int clamp(int64 value, int64 low, int64 high) {
  return static_cast<int>(max_of(low, min_of(high, value)));
}

/// What the threads of a row do; `piece` is the first one's first, of `count` in the row.
template <class I>
struct Worker {
  using Element = typename I::Element;
  const Geometry& g;
  const Row<Element>& row;
  const float* weights;
  unsigned char* buffer;
  int lane;
  unsigned mask;
  int copy;
  Held<I> held;
  float bias[I::kOcs];

  /// kUnroll pieces that lie within x and y with all that their windows' loads touch.
  __device__ __forceinline__ void inner(const Element* x, Element* y) {
    float sum[I::kUnroll][I::kOcs][I::kLength];
    set_to_bias<I, I::kUnroll>(sum, bias);
    dispatch<I, I::kUnroll, true, 0>(copy, sum, g, row, x, 0, 0, held, weights);
#pragma unroll
    for (int u = 0; u < I::kUnroll; ++u) {
#pragma unroll
      for (int o = 0; o < I::kOcs; ++o) {
        if (o >= row.channels) continue;
        Element* const to = y + o * g.y_row_stride + u * (I::kBlockX * I::kLength);
        if constexpr (I::kExchange) {
          exchange_pieces<I, true>(to - lane * I::kLength, 0, 0, sum[u][o], buffer, lane, mask);
        } else {
          const int place = I::kOcs > 1 ? static_cast<int>(reinterpret_cast<unsigned long long>(to) % 16) : 0;
          store_piece<I>(to, sum[u][o], place);
        }
      }
    }
  }

  /// A piece at t that may reach beyond x or y; `m` is the position of its phase 0.
  __device__ __forceinline__ void edge(const Element* x, Element* y, int64 m, int64 t) {
    float sum[1][I::kOcs][I::kLength];
    set_to_bias<I, 1>(sum, bias);
    const int low = clamp(-m, I::kLowest, I::kHighest + 1);
    const int high = clamp(g.length - m, I::kLowest, I::kHighest + 1);
    dispatch<I, 1, false, 0>(copy, sum, g, row, x, low, high, held, weights);
    const int64 of_lanes = t - lane * I::kLength;
    bool again = false;
#pragma unroll
    for (int o = 0; o < I::kOcs; ++o) {
      if (o >= row.channels) continue;
      Element* const to = y + o * g.y_row_stride;
      if constexpr (I::kExchange) {
        exchange_pieces<I, false>(to - lane * I::kLength, clamp(-of_lanes, 0, I::kLanes * I::kLength),
                                  clamp(g.length_out - of_lanes, 0, I::kLanes * I::kLength), sum[0][o], buffer, lane,
                                  mask);
      } else if (I::kOcs == 1 && t >= 0 && t + I::kLength <= g.length_out) {
        store_piece<I>(to, sum[0][o], 0);
      } else {
        store_part<I>(to, sum[0][o], clamp(-t, 0, I::kLength), clamp(g.length_out - t, 0, I::kLength));
      }
      again = again || is_nan<I>(sum[0][o]);
    }
    if (I::kExchange) __syncwarp(mask);  // what others stored for this thread is overwritten
    if (again && (low > I::kLowest || high <= I::kHighest)) repair<I>(g, row, t, m);
  }

  __device__ __forceinline__ void work(int64 piece, int64 count) {
    constexpr int kAll = I::kBlockX * I::kChunks;
    const int tx = static_cast<int>(threadIdx.x);
    // Pieces [begin, end) of the block's are inner ones.
    const int64 x_begin = ceil_div(max_of(0, I::kLoad - 1 - I::kLowest - row.base), I::kStep);
    const int64 x_end = floor_div(g.length - I::kHighest - I::kLoad - row.base, I::kStep) + 1;
    const int64 y_begin = ceil_div(-row.first, I::kLength);
    const int64 y_end = floor_div(g.length_out - row.first, I::kLength);
    const bool aligned = I::kChannels == 1 || g.x_row_stride % I::kLoad == 0;
    const int begin = clamp(max_of(x_begin, y_begin) - piece, 0, kAll);
    const int end = aligned ? clamp(min_of(x_end, y_end) - piece, 0, kAll) : 0;
    const int all = clamp(count - piece, 0, kAll);

    const Element* x = row.x + row.base + (piece + tx) * I::kStep;
    Element* y = row.y + row.first + (piece + tx) * I::kLength;
#pragma unroll 1
    for (int chunk = 0; chunk < all; chunk += I::kBlockX * I::kUnroll) {
      const int first = chunk + tx - lane;  // of the lanes
      if (first >= begin && first + (I::kUnroll - 1) * I::kBlockX + I::kLanes <= end) {
        inner(x, y);
      } else {
#pragma unroll 1
        for (int u = 0; u < I::kUnroll; ++u) {
          const int64 at = piece + first + lane + u * I::kBlockX;
          edge(x + u * (I::kBlockX * I::kStep), y + u * (I::kBlockX * I::kLength), row.base + at * I::kStep,
               row.first + at * I::kLength);
        }
      }
      x += I::kUnroll * I::kBlockX * I::kStep;
      y += I::kUnroll * I::kBlockX * I::kLength;
    }
  }
};

/// A thread's outputs with all geometry at run time.
template <class I>
__device__ __forceinline__ void compute_general(const RunArguments& a, const Row<typename I::Element>& row, int64 piece,
                                                const Walk& walk) {
  const Geometry& g = a.geometry;
#pragma unroll 1
  for (int chunk = 0; chunk < I::kChunks; ++chunk) {
    const int64 t = piece + chunk * I::kBlockX + threadIdx.x;
    if (t >= g.length_out) break;
#pragma unroll 1
    for (int o = 0; o < row.channels; ++o)
      row.y[o * g.y_row_stride + t] = from_float<typename I::Element>(exact_output(g, walk, row, o, t));
  }
}

/// By the threads of a row, for themselves.
template <class I>
__device__ __forceinline__ void stage_weights(float* to, const Geometry& g, const Row<typename I::Element>& row) {
  const int count = static_cast<int>(I::in_per_group(g)) * I::kOcs * I::kTaps;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += I::kBlockX) {
    const int o = i / I::kTaps % I::kOcs;
    const int64 ic = i / I::kTaps / I::kOcs;
    to[i] = to_float(row.w[(ic * I::out_per_group(g) + (o < row.channels ? o : 0)) * I::kTaps + i % I::kTaps]);
  }
}

template <int BLOCK_X, int BLOCK_Y, int RUN, int CHUNKS, int UNROLL, int OC_TILE, int X_VECTOR, int WEIGHTS,
          int EXCHANGE, int STREAMING, int SPECIALISE, int MIN_BLOCKS, int STRIDE, int TAPS, int DILATION, int CHANNELS,
          int OUT_CHANNELS, class Element>
__global__ void __launch_bounds__(BLOCK_X* BLOCK_Y, MIN_BLOCKS) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<BLOCK_X, BLOCK_Y, RUN, CHUNKS, UNROLL, OC_TILE, X_VECTOR, WEIGHTS, EXCHANGE, STREAMING, SPECIALISE,
                     MIN_BLOCKS, STRIDE, TAPS, DILATION, CHANNELS, OUT_CHANNELS, Element>;
  extern __shared__ __align__(16) unsigned char shared[];
  const Geometry& g = a.geometry;
  const int64 rows = g.batch * g.groups * ceil_div(I::out_per_group(g), OC_TILE);
  const int64 count = ceil_div(g.length_out + (SPECIALISE != 0 ? 32 / I::kBytes - 1 : 0),
                               I::kLength);  // as layout.h has it, without a division
  const int64 parts = ceil_div(count, BLOCK_X * CHUNKS);
  const int64 tiles = ceil_div(rows, BLOCK_Y) * parts;
  const int ty = static_cast<int>(threadIdx.y);
  Walk walk{};
  if (!I::kSpecialised) walk = walk_of(g);

  for (int64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64 rows_index = quotient(tile, parts);
    const int64 piece = (tile - rows_index * parts) * (BLOCK_X * CHUNKS);
    const bool exists = rows_index * BLOCK_Y + ty < rows;
    const auto row = row_at<I>(a, min_of(rows - 1, rows_index * BLOCK_Y + ty));
    if constexpr (I::kSpecialised) {
      const int each = WEIGHTS == in_shared ? static_cast<int>(I::in_per_group(g)) * OC_TILE * TAPS : 0;
      float* const weights = reinterpret_cast<float*>(shared) + ty * each;
      if (WEIGHTS == in_shared) {
        stage_weights<I>(weights, g, row);
        __syncthreads();
      }
      if (exists) {
        const auto place = static_cast<int64>(reinterpret_cast<unsigned long long>(row.x) / I::kBytes) + row.base +
                           lowest(row.phase, STRIDE, TAPS, DILATION);
        const int warp = (ty * BLOCK_X + static_cast<int>(threadIdx.x)) / I::kLanes;
        unsigned char* const buffer =
            shared + round_up(BLOCK_Y * each * 4, 16) + warp * I::kLanes * I::kLength * I::kBytes;
        Worker<I> worker{g, row, weights, buffer};
        worker.lane = static_cast<int>(threadIdx.x) % I::kLanes;
        worker.mask = I::kLanes == 32 ? 0xFFFFFFFFu : ((1u << I::kLanes % 32) - 1) << (warp * I::kLanes % 32);
        worker.copy = row.phase * X_VECTOR + static_cast<int>(place & (X_VECTOR - 1));
        worker.held = hold_weights<I>(g, row);
#pragma unroll
        for (int o = 0; o < OC_TILE; ++o) worker.bias[o] = bias_of(row, o);
        worker.work(piece, count);
      }
      if (WEIGHTS == in_shared) __syncthreads();  // all have read them
    } else {
      if (exists) compute_general<I>(a, row, piece, walk);
    }
  }
}

}  // namespace ct1d::depthwise
