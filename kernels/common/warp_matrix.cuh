// Matrix products of one warp (mma.sync.m16n8k16, sm_80 and newer), fp16 or bf16 operands and fp32 sums, and their host
// form.
//
// d (16 by 8) += a (16 by 16) times b (16 by 8). Lane 4 g + q holds d[0], d[1] (row g, columns 2 q, 2 q + 1) and d[2],
// d[3] (row g + 8); pairs of a: a[0] (row g, k = 2 q, 2 q + 1), a[1] (row g + 8), a[2] (row g, k + 8), a[3] (row g + 8,
// k + 8); pairs of b: b0 (k = 2 q, 2 q + 1, column g), b1 (k + 8). All lanes call together.
//
// Host execution computes as Hopper's unit does (tuner/device/matrix_model.h). Ampere's and Ada's keep a bit less of a
// sum's terms, as published: bounds that hold with little to spare here say nothing there.
#pragma once

#include "kernels/common/matrix.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

template <class Element>
inline void warp_multiply(float (&d)[4], const uint32 (&a)[4], uint32 b0, uint32 b1, CT1D_HOST_SITE) {
  static_assert(kMatrixElement<Element>, "the operands of a matrix product are Half or Bfloat16");
  const uint32 b[2] = {b0, b1};
  const ct1d_host::WarpProduct product{d, a, b, kIsBfloat16<Element>};
  ct1d_host::worker()->services->warp_matrix(ct1d_host::worker(), &product, {file, line});
}

#else

template <class Element>
__device__ __forceinline__ void warp_multiply(float (&d)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  static_assert(kMatrixElement<Element>, "the operands of a matrix product are Half or Bfloat16");
  if constexpr (kIsBfloat16<Element>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

#endif

}  // namespace ct1d
