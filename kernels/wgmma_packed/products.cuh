// wgmma_packed: the products of a stage, their promotion to fp32 sums, and the loops over stages.
#pragma once

#include "kernels/wgmma_packed/instance.cuh"

namespace ct1d::wgmma_packed {

/// Products of 16 channels and half `Half` of the offsets (of kHalves); low words of descriptors: a panel's weights and
/// an image of x. Low parts of x by high ones of weights and the other way round (Cross), or high by high. `fresh`:
/// what d held does not count.
template <class I, bool Cross, int Half_>
__device__ __forceinline__ void multiply(float (&d)[I::kSums], uint32 weights, uint32 x, int step, bool fresh) {
  constexpr int kFirst = Half_ * I::kHalfOffsets;
  constexpr int kEnd = kFirst + I::kHalfOffsets < I::kOffsets ? kFirst + I::kHalfOffsets : I::kOffsets;
  matrix_fence();
#pragma unroll
  for (int product = 0; product < (Cross ? 2 : 1); ++product) {
#pragma unroll
    for (int offset = kFirst; offset < kEnd; ++offset) {
      const int part = Cross && product == 1 ? I::kOffsets : 0;
      const uint32 w_word = weights + ((part + offset) * kBlockBytes >> 4);
      const uint32 x_word = x + (Cross && product == 0 ? 2 * I::kSlabBytes >> 4 : 0) + I::kHalo - offset * step;
      matrix_multiply<I::kT, typename I::Operand>(d, matrix_descriptor(w_word, 128), matrix_descriptor(x_word, 128),
                                                  !fresh || product > 0 || offset > kFirst);
    }
  }
  matrix_commit();
}

template <int Count>
__device__ __forceinline__ void promote(float (&sum)[Count], float (&d)[Count], float inverse) {
  pin(d);
#pragma unroll
  for (int i = 0; i < Count; ++i) add_scaled_here(sum[i], d[i], inverse);
}

/// What a consumer's loops ask for, by stage from the block's first.
template <class I>
struct Stages {
  uint32 shared;
  uint32 weights;  // low words of descriptors, of slot 0
  uint32 x;
  int step;  // places between offsets

  __device__ __forceinline__ Stages(const Geometry& g, uint32 shared_memory, int consumer)
      : shared(shared_memory),
        weights(matrix_low_word(shared_memory + (I::kRowTiles == 2 ? consumer * I::kPanelBytes : 0), 1024)),
        x(matrix_low_word(shared_memory + I::kShared.image + (I::kPlaceTiles == 2 ? consumer * I::kImageBytes : 0),
                          I::kSlabBytes)),
        step(I::step(g)) {}

  __device__ __forceinline__ void wait_full(unsigned it) const {
    barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);
  }
  /// By a warp: it has left the slot, which each block of the cluster may write to.
  __device__ __forceinline__ void release(unsigned it) const {
    if constexpr (I::kCluster > 1) {
      const int rank = lane_of_warp();
      if (rank < static_cast<int>(I::kCluster))
        barrier_arrive_of_block(empty_barrier(shared + I::kShared.barriers, it % I::kStages), rank);
    } else {
      if (one_lane()) barrier_arrive(empty_barrier(shared + I::kShared.barriers, it % I::kStages));
    }
  }
  /// Words are found anew each time: else the descriptors of all stages would be kept in registers.
  template <bool Cross, int Half_ = 0>
  __device__ __forceinline__ void queue(float (&d)[I::kSums], unsigned it, bool fresh) const {
    const uint32 slot = it % I::kStages * (I::kShared.slot_bytes >> 4);
    multiply<I, Cross, Half_>(d, fresh_copy(weights) + slot, fresh_copy(x) + slot, step, fresh);
  }
};

/// One product: a group's sums stay in d. `behind` runs once the first stages are queued; `find_inverse` gives 1 /
/// scale of x once the first is there.
template <class I, class Ring, class Inverse, class Behind>
__device__ __forceinline__ void multiply_group(const Ring& s, float (&sum)[I::kSums], float (&d)[I::kSums],
                                               unsigned first, const Inverse& find_inverse, const Behind& behind) {
  float inverse = 1.0f;
#pragma unroll
  for (unsigned stage = 0; stage < I::kGroup; ++stage) {
    const unsigned it = first + stage;
    s.wait_full(it);
    if (stage == 0) inverse = find_inverse();
    s.template queue<false>(d, it, stage == 0);
    if (stage + 1 < I::kAhead) continue;
    if (stage + 1 == I::kAhead) behind();
    if (stage > 0) {
      matrix_wait<1>();
      if (stage + 1 == I::kAhead) {
#pragma unroll
        for (unsigned done = 0; done + 1 < I::kAhead; ++done) s.release(first + done);
      } else {
        s.release(it - 1);
      }
    }
  }
  matrix_wait<0>();
  s.release(first + I::kGroup - 1);
  promote(sum, d, inverse);
}

/// Three products. The queue of the matrix unit: cross(u), high(u), cross(u + 1), u being a stage or half of its
/// offsets; high(u) is promoted while cross(u + 1) runs, then high(u + 1) is queued. The cross products, 2^-11 of the
/// sum, stay in an accumulator of their own.
template <class I, class Ring, class Inverse, class Behind>
__device__ __forceinline__ void multiply_group_split(const Ring& s, float (&sum)[I::kSums], float (&high)[I::kSums],
                                                     float (&cross)[I::kSums], unsigned first,
                                                     const Inverse& find_inverse, const Behind& behind) {
  constexpr float kLowered = 1.0f / static_cast<float>(1 << kLowBits);
  constexpr int kLast = I::kHalves - 1;
  s.wait_full(first);
  const float inverse = find_inverse();
  s.template queue<true>(cross, first, true);
  behind();
  s.template queue<false>(high, first, true);
#pragma unroll
  for (unsigned stage = 0; stage < I::kGroup; ++stage) {
    const unsigned it = first + stage;
    if (stage > 0) {
      s.wait_full(it);
      s.template queue<true>(cross, it, false);
      matrix_wait<1>();
      s.release(it - 1);
      promote(sum, high, inverse);
      s.template queue<false>(high, it, true);
    }
    if constexpr (kLast > 0) {
      s.template queue<true, kLast>(cross, it, false);
      matrix_wait<1>();
      promote(sum, high, inverse);
      s.template queue<false, kLast>(high, it, true);
    }
  }
  matrix_wait<1>();
  promote(sum, cross, inverse * kLowered);
  // ptxas serialises products in flight across a loop's edge: the queue runs empty once a group, for a moment
  matrix_wait<0>();
  s.release(first + I::kGroup - 1);
  promote(sum, high, inverse);
}

}  // namespace ct1d::wgmma_packed
