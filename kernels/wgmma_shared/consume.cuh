// wgmma_shared: what a warpgroup does that multiplies: products of a stage after the other, sums of tiles, their
// stores.
#pragma once

#include "kernels/wgmma_shared/products.cuh"
#include "kernels/wgmma_shared/repair.cuh"
#include "kernels/wgmma_shared/store.cuh"
#include "kernels/wgmma_shared/store_halves.cuh"

namespace ct1d::wgmma_shared {

/// What all forms of a consumer's work ask for, by stage from the block's first.
template <class I>
struct Consumer {
  const RunArguments& a;
  uint32 shared;
  int number;
  uint32 weights;  // low words of descriptors, of the first stage
  uint32 x;

  __device__ __forceinline__ Consumer(const RunArguments& arguments, uint32 shared_memory, int consumer)
      : a(arguments),
        shared(shared_memory),
        number(consumer),
        weights(matrix_low_word(shared_memory + consumer * kBlockBytes, 1024)),
        x(matrix_low_word(shared_memory + I::kShared.stages, I::kShared.slab_bytes)) {}

  __device__ __forceinline__ void wait_full(unsigned it) const {
    barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);
  }
  __device__ __forceinline__ void release(unsigned it) const {
    if (one_lane()) barrier_arrive(empty_barrier(shared + I::kShared.barriers, it % I::kStages));
  }
  /// Words are found anew each time: else the descriptors of all stages would be kept in registers.
  template <bool Cross>
  __device__ __forceinline__ void queue(float (&d)[I::kSums], unsigned it, bool fresh) const {
    multiply<I, Cross>(d, a.geometry, fresh_copy(weights) + it % kSteps * (I::kStepBytes >> 4),
                       fresh_copy(x) + it % I::kStages * (I::kShared.stage_bytes >> 4), fresh);
  }
  __device__ __forceinline__ float inverse_of(unsigned n) const {
    return load_shared_float(tile_record<I>(shared, n) + 12);
  }
  __device__ __forceinline__ void store(float (&sum)[I::kSums], float (&carry)[4], unsigned n) const {
    store_tile<I>(sum, carry, a, shared, load_tile<I>(shared, n), number);
  }
  template <int Part>
  __device__ __forceinline__ void store_part(Words<I>& words, unsigned n) const {
    store_words<I, Part>(words, a, load_tile<I>(shared, n), number);
  }
};

/// One product: a tile's sums stay in d as long as they have at most 256 terms. The tile before is stored behind the
/// products of a tile's first stage.
template <class I>
__device__ __forceinline__ void multiply_whole(const Consumer<I>& c, float (&sum)[I::kSums], float (&carry)[4],
                                               unsigned tiles) {
  float d[I::kSums];
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * kSteps;
    c.wait_full(first);
    c.template queue<false>(d, first, true);
    if (n > 0) c.store(sum, carry, n - 1);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < kSteps; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      if (stage % I::kPromoted == 0) {
        matrix_wait<0>();
        c.release(it - 1);
        promote(sum, d, inverse);
        c.template queue<false>(d, it, true);
      } else {
        c.template queue<false>(d, it, false);
        matrix_wait<1>();
        c.release(it - 1);
      }
    }
    matrix_wait<0>();
    c.release(first + kSteps - 1);
    promote(sum, d, inverse);
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
  constexpr bool kPromotes = I::kPromoted < kSteps;
  float d[I::kSums];
  float sum[kPromotes ? I::kSums : 1];
  Words<I> words{};
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * kSteps;
    c.wait_full(first);
    c.template queue<false>(d, first, true);
    if (n > 0) store_behind<I, 0>(c, words, n - 1);
#pragma unroll
    for (unsigned stage = 1; stage < kSteps; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      if (stage % I::kPromoted == 0) {
        matrix_wait<0>();
        c.release(it - 1);
        if constexpr (kPromotes) gather<I>(sum, d, stage == I::kPromoted);
        c.template queue<false>(d, it, true);
      } else {
        c.template queue<false>(d, it, false);
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
    c.release(first + kSteps - 1);
    if constexpr (kPromotes) {
      gather<I>(sum, d, false);
      finish_words<I>(words, sum, c.shared, n, c.number);
    } else {
      pin(d);
      finish_words<I>(words, d, c.shared, n, c.number);
    }
  }
  store_all<I>(c, words, tiles - 1);
}

/// Three products. The queue of the matrix unit: cross(s), high(s), cross(s + 1); high(s) is promoted while cross(s +
/// 1) runs, then high(s + 1) is queued. The tile before is stored behind a tile's first stage, or its cross products.
template <class I>
__device__ __forceinline__ void multiply_split(const Consumer<I>& c, float (&sum)[I::kSums], float (&carry)[4],
                                               unsigned tiles) {
  constexpr float kLowered = 1.0f / static_cast<float>(1 << kLowBits);
  float high[I::kSums];
  float cross[I::kSums];
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * kSteps;
    c.wait_full(first);
    c.template queue<true>(cross, first, true);
    if (I::kShadow == 2) c.template queue<false>(high, first, true);
    if (n > 0) c.store(sum, carry, n - 1);
    if (I::kShadow == 1) c.template queue<false>(high, first, true);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < kSteps; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      c.template queue<true>(cross, it, false);
      matrix_wait<1>();
      c.release(it - 1);
      promote(sum, high, inverse);
      c.template queue<false>(high, it, true);
    }
    matrix_wait<1>();
    promote(sum, cross, inverse * kLowered);
    // ptxas serialises products in flight across a loop's edge: the queue runs empty once a tile, for a moment
    matrix_wait<0>();
    c.release(first + kSteps - 1);
    promote(sum, high, inverse);
  }
}

template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, unsigned tiles, uint32 shared, int consumer) {
  const Consumer<I> c(a, shared, consumer);
  barrier_wait(shared + I::kShared.weights_barrier, 0);
  if constexpr (I::kSmall) {
    multiply_halves<I>(c, tiles);
  } else {
    float sum[I::kSums];
    float carry[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
    if constexpr (I::kSplits) {
      multiply_split<I>(c, sum, carry, tiles);
    } else {
      multiply_whole<I>(c, sum, carry, tiles);
    }
    c.store(sum, carry, tiles - 1);
  }
  const int warp = __shfl_sync(0xFFFFFFFFu, fresh_thread() / 32 - I::kProducers, 0);
  repair<I>(a, tiles, shared, warp);
}

}  // namespace ct1d::wgmma_shared
