// wgmma_shared: what a warpgroup does that multiplies: products of a stage after the other, sums of tiles, their
// stores.
#pragma once

#include "kernels/wgmma_shared/products.cuh"
#include "kernels/wgmma_shared/repair.cuh"
#include "kernels/wgmma_shared/store.cuh"
#include "kernels/wgmma_shared/store_columns.cuh"
#include "kernels/wgmma_shared/store_halves.cuh"

namespace ct1d::wgmma_shared {

/// What all forms of a consumer's work ask for, by stage from the block's first.
template <class I>
struct Consumer {
  const RunArguments& a;
  uint32 shared;
  int number;
  uint32 weights;  // low words of descriptors, of the first stage
  uint32 more;
  uint32 x;

  __device__ __forceinline__ Consumer(const RunArguments& arguments, uint32 shared_memory, int consumer)
      : a(arguments),
        shared(shared_memory),
        number(consumer),
        weights(matrix_low_word(shared_memory + consumer * kBlockBytes, 1024)),
        more(matrix_low_word(shared_memory + I::kShared.more, kMoreChannels * 16)),
        x(matrix_low_word(shared_memory + I::kShared.stages, I::kShared.slab_bytes)) {}

  __device__ __forceinline__ void wait_full(unsigned it) const {
    barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);
  }
  __device__ __forceinline__ void release(unsigned it) const {
    if (one_lane()) barrier_arrive(empty_barrier(shared + I::kShared.barriers, it % I::kStages));
  }
  /// Words are found anew each time: else the descriptors of all stages would be kept in registers.
  template <bool Cross>
  __device__ __forceinline__ void queue(Sums<I>& d, unsigned first, unsigned stage, bool fresh) const {
    StageWords words{};
    words.weights = fresh_copy(weights) + stage * (I::kStageSteps * I::kStepBytes >> 4);
    words.x = fresh_copy(x) + (first + stage) % I::kStages * (I::kShared.stage_bytes >> 4);
    if constexpr (I::kMore > 0) {
      words.more = fresh_copy(more) + stage * (I::kStageSteps * I::kTaps * kMoreBlockBytes >> 4);
      words.own = words.x + static_cast<uint32>(64 * number);
    }
    multiply<I, Cross>(d, a.geometry, words, fresh);
  }
  __device__ __forceinline__ float inverse_of(unsigned n) const {
    return load_shared_float(tile_record<I>(shared, n) + 12);
  }
  __device__ __forceinline__ void store(float (&sum)[I::kSums], float (&carry)[4], unsigned n) const {
    store_tile<I>(sum, carry, a, shared, load_tile<I>(shared, n), number);
  }
  /// The channels beyond kRows; their sums start anew at 0.
  __device__ __forceinline__ void store_more(float (&sum)[I::kMore > 0 ? I::kMore / 2 : 1], unsigned n) const {
    if constexpr (I::kMore > 0) store_columns<I>(sum, a, shared, load_tile<I>(shared, n), n, number);
  }
  template <int Part>
  __device__ __forceinline__ void store_part(Words<I>& words, unsigned n) const {
    store_words<I, Part>(words, a, load_tile<I>(shared, n), number);
  }
};

/// One product: a tile's sums stay in d as long as they have at most kMostTerms. The tile before is stored behind the
/// products of a tile's first stage.
template <class I>
__device__ __forceinline__ void multiply_whole(const Consumer<I>& c, Sums<I>& sum, float (&carry)[4], unsigned tiles) {
  Sums<I> d;
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * I::kTileStages;
    c.wait_full(first);
    c.template queue<false>(d, first, 0, true);
    if (n > 0) c.store(sum.at, carry, n - 1);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < I::kTileStages; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      if (stage % I::kPromoted == 0) {
        matrix_wait<0>();
        c.release(it - 1);
        promote_all<I>(sum, d, inverse);
        c.template queue<false>(d, first, stage, true);
      } else {
        c.template queue<false>(d, first, stage, false);
        matrix_wait<1>();
        c.release(it - 1);
      }
    }
    matrix_wait<0>();
    c.release(first + I::kTileStages - 1);
    promote_all<I>(sum, d, inverse);
    c.store_more(sum.more, n);
  }
}

/// 16-bit operands. Sums stay in d as long as a class allows; rounded, they leave it at a tile's end, and are stored in
/// kShadow parts behind the products of the next tile's first stages.
template <class I, int Part>
__device__ __forceinline__ void store_behind(const Consumer<I>& c, Words<I>& words, unsigned n) {
  if constexpr (Part < I::kShadow) c.template store_part<Part>(words, n);
}
template <class I>
__device__ __forceinline__ void store_all(const Consumer<I>& c, Words<I>& words, unsigned n) {
  store_behind<I, 0>(c, words, n);
  store_behind<I, 1>(c, words, n);
  store_behind<I, 2>(c, words, n);
  store_behind<I, 3>(c, words, n);
}
template <class I>
__device__ __forceinline__ void multiply_halves(const Consumer<I>& c, unsigned tiles) {
  constexpr bool kPromotes = I::kPromoted < I::kTileStages;
  Sums<I> d;
  Sums<I> sum;
  Words<I> words{};
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * I::kTileStages;
    c.wait_full(first);
    c.template queue<false>(d, first, 0, true);
    if (n > 0) store_behind<I, 0>(c, words, n - 1);
#pragma unroll
    for (unsigned stage = 1; stage < I::kTileStages; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      if (stage % I::kPromoted == 0) {
        matrix_wait<0>();
        c.release(it - 1);
        gather<I>(sum, d, stage == I::kPromoted);
        c.template queue<false>(d, first, stage, true);
      } else {
        c.template queue<false>(d, first, stage, false);
        matrix_wait<1>();
        c.release(it - 1);
      }
      if (n > 0) {
        if (stage == 1) store_behind<I, 1>(c, words, n - 1);
        if (stage == 2) store_behind<I, 2>(c, words, n - 1);
        if (stage == 3) store_behind<I, 3>(c, words, n - 1);
      }
    }
    matrix_wait<0>();
    c.release(first + I::kTileStages - 1);
    gather<I>(sum, d, !kPromotes);
    finish_words<I>(words, sum.at, c.shared, n, c.number);
    c.store_more(sum.more, n);
  }
  store_all<I>(c, words, tiles - 1);
}

/// Three products. The queue of the matrix unit: cross(s), high(s), cross(s + 1); high(s) is promoted while cross(s +
/// 1) runs, then high(s + 1) is queued. The tile before is stored behind a tile's first stage, or its cross products.
template <class I>
__device__ __forceinline__ void multiply_split(const Consumer<I>& c, float (&sum)[I::kSums], float (&carry)[4],
                                               unsigned tiles) {
  constexpr float kLowered = 1.0f / static_cast<float>(1 << kLowBits);
  Sums<I> high;
  Sums<I> cross;
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * I::kTileStages;
    c.wait_full(first);
    c.template queue<true>(cross, first, 0, true);
    if (I::kShadow == 2) c.template queue<false>(high, first, 0, true);
    if (n > 0) c.store(sum, carry, n - 1);
    if (I::kShadow == 1) c.template queue<false>(high, first, 0, true);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < I::kTileStages; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      c.template queue<true>(cross, first, stage, false);
      matrix_wait<1>();
      c.release(it - 1);
      promote(sum, high.at, inverse);
      c.template queue<false>(high, first, stage, true);
    }
    matrix_wait<1>();
    promote(sum, cross.at, inverse * kLowered);
    // ptxas serialises products in flight across a loop's edge: the queue runs empty once a tile, for a moment
    matrix_wait<0>();
    c.release(first + I::kTileStages - 1);
    promote(sum, high.at, inverse);
  }
}

template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, unsigned tiles, uint32 shared, int consumer) {
  const Consumer<I> c(a, shared, consumer);
  barrier_wait(shared + I::kShared.weights_barrier, 0);
  if constexpr (I::kSmall) {
    multiply_halves<I>(c, tiles);
  } else {
    Sums<I> sum{};
    float carry[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (I::kSplits) {
      multiply_split<I>(c, sum.at, carry, tiles);
    } else {
      multiply_whole<I>(c, sum, carry, tiles);
    }
    c.store(sum.at, carry, tiles - 1);
  }
  const int warp = __shfl_sync(0xFFFFFFFFu, fresh_thread() / 32 - I::kProducers, 0);
  repair<I>(a, tiles, shared, warp);
}

}  // namespace ct1d::wgmma_shared
