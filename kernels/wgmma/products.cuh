// wgmma: the products of a step, their promotion to fp32 sums.
#pragma once

#include "kernels/wgmma/fragments.cuh"

namespace ct1d::wgmma {

/// One step's products of block m and half h, the small ones first. `weights`: low word of the step's descriptor.
template <class I>
__device__ __forceinline__ void multiply(float (&d)[I::kN / 2], const Fragments<I>& hi, const Fragments<I>& lo, int m,
                                         int h, uint32 weights, bool accumulate) {
  matrix_fence();
#pragma unroll
  for (int product = I::kSplits ? 0 : 2; product < 3; ++product) {
#pragma unroll
    for (int tap = 0; tap < I::kTaps; ++tap) {
      const int part = product == 1 ? I::kTaps : 0;  // weights' low part
      const uint32 word = weights + (((part + tap) * I::kTapBytes + h * I::kN * 16) >> 4);
      const int f = fragment_of(I::tunables(), I::kTapStep, m, tap);
      const bool first = product == (I::kSplits ? 0 : 2) && tap == 0;
      matrix_multiply<I::kN, typename I::Operand>(d, product == 0 ? lo.f[f] : hi.f[f], matrix_descriptor(word, 128),
                                                  !first || accumulate);
    }
  }
  matrix_commit();
}

template <int First, int Sums, int Count>
__device__ __forceinline__ void promote(float (&sum)[Sums], float (&d)[Count], float inverse) {
  pin(d);
#pragma unroll
  for (int i = 0; i < Count; ++i) add_scaled_here(sum[First + i], d[i], inverse);
}

}  // namespace ct1d::wgmma
