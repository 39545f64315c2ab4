// fault: an output a thread, and a fault where FAULT names one (layout.h). Right where it does not.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/geometry.h"
#include "tests/families/fault/layout.h"

#if defined(CT1D_HOST_EXECUTION)
extern "C" int raise(int) noexcept;
extern "C" void __assert_fail(const char*, const char*, unsigned, const char*) noexcept;
#endif

namespace ct1d::fault {

__device__ unsigned launches = 0;  // of this loaded module

__device__ inline void fail_assertion(int line) {
#if defined(CT1D_HOST_EXECUTION)
  __assert_fail("launched_by_mistake", "tests/families/fault/kernel.cuh", static_cast<unsigned>(line), "kernel");
#else
  __assertfail("launched_by_mistake", "tests/families/fault/kernel.cuh", static_cast<unsigned>(line), "kernel", 1);
#endif
}

/// Only what FAULT names is compiled: each is the last thing that its thread does.
template <int FAULT>
__device__ void misbehave(const RunArguments& a, float* shared) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if constexpr (FAULT == kIllegalAddress) {
    if (first) *reinterpret_cast<volatile int*>(8) = 1;
  } else if constexpr (FAULT == kMisalignedAddress) {
    if (first) *reinterpret_cast<volatile int*>(static_cast<char*>(a.y) + 1);
  } else if constexpr (FAULT == kSharedOutOfBounds) {
#if defined(CT1D_HOST_EXECUTION)
    shared[blockDim.x + threadIdx.x] = 1;
#else
    // Beyond what any GPU gives to an SM: within it, hardware does not notice.
    if (first) static_cast<volatile float*>(shared)[(1 << 20) + a.geometry.batch] = 1;
#endif
  } else if constexpr (FAULT == kInfiniteLoop) {
    while (first) asm volatile("");  // a loop without an effect may be left out
  } else if constexpr (FAULT == kTrap) {
    if (first) __trap();
  } else if constexpr (FAULT == kDeviceAssert) {
    if (first) fail_assertion(__LINE__);
  } else if constexpr (FAULT == kLate) {
    if (first && atomicAdd(&launches, 1u) + 1 >= kFatalLaunch) __trap();
  } else if constexpr (FAULT == kWorkerKilled || FAULT == kWorkerStopped) {
#if defined(CT1D_HOST_EXECUTION)
    raise(FAULT == kWorkerKilled ? 9 : 19);
#endif
  }
  (void)a;
  (void)shared;
}

template <int FAULT, int BLOCK_X, int BLOCK_Y, int REPEAT, class Element>
__global__ void kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  static_assert(FAULT != kSyntaxError, "the fault that was asked for: a kernel that no compiler takes");
  extern __shared__ __align__(16) unsigned char shared[];
  const Geometry& g = a.geometry;
  misbehave<FAULT>(a, reinterpret_cast<float*>(shared));
  const int64 outputs = g.batch * g.out_channels * g.length_out;
  const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
  volatile int zero = 0;  // read anew each time, so that no repetition is left out
  for (int64 at = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; at < outputs; at += step) {
    const int64 t = at % g.length_out;
    const int64 channel = at / g.length_out % g.out_channels;
    const int64 batch = at / (g.length_out * g.out_channels);
    const int64 first_in = channel / g.out_per_group() * g.in_per_group();
    float sum = 0;
    for (int r = 0; r < REPEAT; ++r) {
      const Element* x = static_cast<const Element*>(a.x) + batch * g.x_batch_stride + first_in * g.x_row_stride + zero;
      const Element* w = static_cast<const Element*>(a.weights) +
                         (first_in * g.out_per_group() + channel % g.out_per_group()) * g.kernel_size + zero;
      sum = 0;
      for (int64 ic = 0; ic < g.in_per_group(); ++ic)
        for (int64 k = 0; k < g.kernel_size; ++k) {
          const int64 place = t + g.padding - k * g.dilation;
          if (place < 0 || place % g.stride != 0 || place / g.stride >= g.length) continue;
          sum += to_float(x[ic * g.x_row_stride + place / g.stride]) *
                 to_float(w[ic * g.out_per_group() * g.kernel_size + k]);
        }
    }
    if (a.bias != nullptr) sum += to_float(static_cast<const Element*>(a.bias)[channel]);
    static_cast<Element*>(a.y)[batch * g.y_batch_stride + channel * g.y_row_stride + t] = from_float<Element>(sum);
  }
}

}  // namespace ct1d::fault
