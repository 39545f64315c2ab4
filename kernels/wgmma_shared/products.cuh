// wgmma_shared: the products of a stage, their promotion to fp32 sums.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// Products of 16 channels and all taps; words of descriptors: weights and x of the stage. Low parts of x by high ones
/// of weights and the other way round (Cross), or high by high. `fresh`: what d held does not count.
template <class I, bool Cross>
__device__ __forceinline__ void multiply(float (&d)[I::kSums], const Geometry& g, uint32 weights, uint32 x,
                                         bool fresh) {
  matrix_fence();
#pragma unroll
  for (int product = 0; product < (Cross ? 2 : 1); ++product) {
#pragma unroll
    for (int tap = 0; tap < I::kTaps; ++tap) {
      const uint32 w_word = weights + (((Cross && product == 1 ? I::kPartBytes : 0) + tap * 2 * kBlockBytes) >> 4);
      const uint32 x_word = x + (Cross && product == 0 ? I::kShared.part_bytes >> 4 : 0) + I::kHalo - I::reach(g, tap);
      matrix_multiply<I::kT, typename I::Operand>(d, matrix_descriptor(w_word, 128), matrix_descriptor(x_word, 128),
                                                  !fresh || product > 0 || tap > 0);
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

/// sum = d, or sum += d.
template <class I>
__device__ __forceinline__ void gather(float (&sum)[I::kSums], float (&d)[I::kSums], bool first) {
  pin(d);
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = first ? d[i] : sum[i] + d[i];
}

}  // namespace ct1d::wgmma_shared
