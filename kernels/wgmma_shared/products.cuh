// wgmma_shared: the products of a stage, their promotion to fp32 sums.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// A consumer's sums: 64 output channels of all positions; of the channels beyond kRows 64 positions, which are rows.
template <class I>
struct Sums {
  float at[I::kSums];
  float more[I::kMore > 0 ? I::kMore / 2 : 1];
};

/// Words of a stage's descriptors. Of x's rows, those of a tile's first position, `own` of the consumer's first.
struct StageWords {
  uint32 weights;
  uint32 more;
  uint32 x;
  uint32 own;
};

/// Products of a stage and all taps. Low parts of x by high ones of weights and the other way round (Cross), or
/// high by high. `fresh`: what d held does not count.
template <class I, bool Cross>
__device__ __forceinline__ void multiply(Sums<I>& d, const Geometry& g, const StageWords& words, bool fresh) {
  matrix_fence();
#pragma unroll
  for (int step = 0; step < I::kStageSteps; ++step) {
    const uint32 w_step = words.weights + (step * I::kStepBytes >> 4);
    const uint32 x_step = words.x + (step * I::kShared.step_bytes >> 4) + I::kHalo;
#pragma unroll
    for (int product = 0; product < (Cross ? 2 : 1); ++product) {
#pragma unroll
      for (int tap = 0; tap < I::kTaps; ++tap) {
        const uint32 w_word = w_step + (((Cross && product == 1 ? I::kPartBytes : 0) + tap * 2 * kBlockBytes) >> 4);
        const uint32 x_word = x_step + (Cross && product == 0 ? I::kShared.part_bytes >> 4 : 0) - I::reach(g, tap);
        matrix_multiply<I::kT, typename I::Operand>(d.at, matrix_descriptor(w_word, 128),
                                                    matrix_descriptor(x_word, 128),
                                                    !fresh || step > 0 || product > 0 || tap > 0);
      }
    }
  }
  if constexpr (I::kMore > 0) {
#pragma unroll
    for (int step = 0; step < I::kStageSteps; ++step) {
      const uint32 w_step = words.more + (step * I::kTaps * kMoreBlockBytes >> 4);
      const uint32 x_step = words.own + (step * I::kShared.step_bytes >> 4) + I::kHalo;
#pragma unroll
      for (int tap = 0; tap < I::kTaps; ++tap) {
        matrix_multiply<I::kMore, typename I::Operand>(d.more, matrix_descriptor(x_step - I::reach(g, tap), 128),
                                                       matrix_descriptor(w_step + (tap * kMoreBlockBytes >> 4), 128),
                                                       !fresh || step > 0 || tap > 0);
      }
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

template <class I>
__device__ __forceinline__ void promote_all(Sums<I>& sum, Sums<I>& d, float inverse) {
  promote(sum.at, d.at, inverse);
  if constexpr (I::kMore > 0) promote(sum.more, d.more, inverse);
}

/// sum = d, or sum += d.
template <int Count>
__device__ __forceinline__ void gather(float (&sum)[Count], float (&d)[Count], bool first) {
  pin(d);
#pragma unroll
  for (int i = 0; i < Count; ++i) sum[i] = first ? d[i] : sum[i] + d[i];
}
template <class I>
__device__ __forceinline__ void gather(Sums<I>& sum, Sums<I>& d, bool first) {
  gather(sum.at, d.at, first);
  if constexpr (I::kMore > 0) gather(sum.more, d.more, first);
}

}  // namespace ct1d::wgmma_shared
