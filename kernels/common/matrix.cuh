// Hopper's warpgroup matrix products (wgmma, sm_90a) with 16-bit operands and fp32 sums, and their host form.
//
// d (64 by N) = a (64 by 16) times b (N by 16) transposed, plus d if `accumulate`. All 128 threads of a warpgroup
// (threads 128 i to 128 i + 127 of the block) call each function together.
//
// Thread i of the warpgroup holds rows r = 16 * (i / 32) + i % 32 / 4 and r + 8 and columns c = 8 * j + i % 4 * 2 and
// c + 1 of d: d[4 j] (r, c), d[4 j + 1] (r, c + 1), d[4 j + 2] (r + 8, c), d[4 j + 3] (r + 8, c + 1). Of a it holds, as
// pairs with the lower k in the low half, with k = i % 4 * 2: a[0] (r, k), a[1] (r + 8, k), a[2] (r, k + 8),
// a[3] (r + 8, k + 8).
//
// A product is in flight until a matrix_wait() that covers its group. Until then d holds nothing that may be read, d
// and a may not be written (ptxas does not protect a: pin() it after the wait), and what descriptors point to may not
// change. Products into the same d are done in order. matrix_fence() comes after ordinary accesses to d or a and before
// the products that use them; async_proxy_fence() after ordinary writes to what descriptors point to.
//
// Host execution computes as the hardware does, bit for bit (tuner/device/matrix_model.h), at a moment between issue
// and wait that the seed chooses; d is poisoned until the wait. It fails where d or a was written in flight, where a
// warpgroup issues different products, where d or a of a product that was issued before has changed since the thread's
// last matrix_fence(), and on reads that no proxy fence covers (shared_memory.cuh). a is known by its place in memory:
// copies made after the fence are writes to registers, and an array that goes out of scope before the wait may be
// overwritten.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/matrix_operands.cuh"
#include "kernels/common/shared_memory.cuh"

namespace ct1d {

/// A K-major operand in shared memory without swizzle: cores of 8 rows by 16 bytes, rows 16 bytes apart, `row_groups`
/// bytes between groups of 8 rows, `k_slabs` bytes between the two halves of a k-step; multiples of 16 below 2^18.
///
/// In two words, for kernels that add offsets: to the low one in units of 16 bytes.
CT1D_HD constexpr uint32 matrix_low_word(uint32 address, uint32 k_slabs) {
  return (address & 0x3FFFFu) >> 4 | ((k_slabs & 0x3FFFFu) >> 4) << 16;
}
CT1D_HD constexpr uint64 matrix_descriptor(uint32 low_word, uint32 row_groups) {
  return static_cast<uint64>(low_word) | static_cast<uint64>((row_groups & 0x3FFFFu) >> 4) << 32;
}

template <class Element>
constexpr bool kMatrixElement = false;
template <>
inline constexpr bool kMatrixElement<Half> = true;
template <>
inline constexpr bool kMatrixElement<Bfloat16> = true;

template <class Element>
constexpr bool kIsBfloat16 = false;
template <>
inline constexpr bool kIsBfloat16<Bfloat16> = true;

#define CT1D_MATRIX_ASSERTS                                                                           \
  static_assert(N >= 8 && N <= 256 && N % 8 == 0, "a matrix product has 8 to 256 columns in eights"); \
  static_assert(kMatrixElement<Element>, "the operands of a matrix product are Half or Bfloat16")

#if defined(CT1D_HOST_EXECUTION)

inline void matrix_fence() { ct1d_host::worker()->services->matrix_fence(ct1d_host::worker()); }
inline void matrix_commit() { ct1d_host::worker()->services->matrix_commit(ct1d_host::worker()); }
template <int Groups>
inline void matrix_wait(CT1D_HOST_SITE) {
  static_assert(Groups >= 0 && Groups <= 7, "matrix_wait<N> leaves 0 to 7 groups in flight");
  ct1d_host::worker()->services->matrix_wait(ct1d_host::worker(), Groups, {file, line});
}
/// What is pinned stays in its place in memory until here.
template <class Value, int Count>
inline void pin(Value (&values)[Count]) {
  asm volatile("" : "+m"(values)::"memory");
}

template <int N, class Element = Half>
void matrix_multiply(float (&d)[N / 2], uint64 a, uint64 b, bool accumulate, CT1D_HOST_SITE) {
  CT1D_MATRIX_ASSERTS;
  const ct1d_host::MatrixProduct product{d, N, kIsBfloat16<Element>, accumulate, {}, a, b};
  ct1d_host::worker()->services->matrix_multiply(ct1d_host::worker(), &product, {file, line});
}
template <int N, class Element = Half>
void matrix_multiply(float (&d)[N / 2], const uint32& a0, const uint32& a1, const uint32& a2, const uint32& a3,
                     uint64 b, bool accumulate, CT1D_HOST_SITE) {
  CT1D_MATRIX_ASSERTS;
  const ct1d_host::MatrixProduct product{d, N, kIsBfloat16<Element>, accumulate, {&a0, &a1, &a2, &a3}, 0, b};
  ct1d_host::worker()->services->matrix_multiply(ct1d_host::worker(), &product, {file, line});
}
template <int N, class Element = Half>
void matrix_multiply(float (&d)[N / 2], const uint32 (&a)[4], uint64 b, bool accumulate, CT1D_HOST_SITE) {
  matrix_multiply<N, Element>(d, a[0], a[1], a[2], a[3], b, accumulate, file, line);
}

#else

__device__ __forceinline__ void matrix_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void matrix_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Returns when at most the `Groups` most recent groups are in flight.
template <int Groups>
__device__ __forceinline__ void matrix_wait() {
  static_assert(Groups >= 0 && Groups <= 7, "matrix_wait<N> leaves 0 to 7 groups in flight");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

/// Keeps the compiler from moving uses of registers across.
template <int Count>
__device__ __forceinline__ void pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int Count>
__device__ __forceinline__ void pin(uint32 (&a)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

#define CT1D_WGMMA_HEAD(N, type, n_predicate)     \
  "{ .reg .pred p; setp.ne.b32 p, %" #n_predicate \
  ", 0; "                                         \
  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {"
#define CT1D_WGMMA_SHARED(type, N, tiles, n0, n1, n2)                                                          \
  asm volatile(CT1D_WGMMA_HEAD(N, type, n2) CT1D_WGMMA_NAMES_##tiles "}, %" #n0 ", %" #n1 ", p, 1, 1, 0, 0; }" \
               : CT1D_WGMMA_SUMS_##tiles                                                                       \
               : "l"(a), "l"(b), "r"(accumulate ? 1 : 0))
#define CT1D_WGMMA_REGISTERS(type, N, tiles, n0, n1, n2, n3, n4, n5)                                           \
  asm volatile(CT1D_WGMMA_HEAD(N, type, n5) CT1D_WGMMA_NAMES_##tiles "}, {%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 \
                                                                     "}, %" #n4 ", p, 1, 1, 0; }"              \
               : CT1D_WGMMA_SUMS_##tiles                                                                       \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate ? 1 : 0))

/// Both operands in shared memory; descriptors are the same in all threads.
template <int N, class Element = Half>
__device__ __forceinline__ void matrix_multiply(float (&d)[N / 2], uint64 a, uint64 b, bool accumulate) {
  CT1D_MATRIX_ASSERTS;
#define CT1D_WGMMA_CASE(columns, tiles, n0, n1, n2, n3, n4, n5) \
  if constexpr (N == columns) {                                 \
    if constexpr (kIsBfloat16<Element>) {                       \
      CT1D_WGMMA_SHARED("bf16", columns, tiles, n0, n1, n2);    \
    } else {                                                    \
      CT1D_WGMMA_SHARED("f16", columns, tiles, n0, n1, n2);     \
    }                                                           \
  }
  CT1D_WGMMA_CASES(CT1D_WGMMA_CASE)
#undef CT1D_WGMMA_CASE
}

/// a in registers, wherever they are.
template <int N, class Element = Half>
__device__ __forceinline__ void matrix_multiply(float (&d)[N / 2], const uint32& a0, const uint32& a1, const uint32& a2,
                                                const uint32& a3, uint64 b, bool accumulate) {
  CT1D_MATRIX_ASSERTS;
#define CT1D_WGMMA_CASE(columns, tiles, n0, n1, n2, n3, n4, n5)             \
  if constexpr (N == columns) {                                             \
    if constexpr (kIsBfloat16<Element>) {                                   \
      CT1D_WGMMA_REGISTERS("bf16", columns, tiles, n0, n1, n2, n3, n4, n5); \
    } else {                                                                \
      CT1D_WGMMA_REGISTERS("f16", columns, tiles, n0, n1, n2, n3, n4, n5);  \
    }                                                                       \
  }
  CT1D_WGMMA_CASES(CT1D_WGMMA_CASE)
#undef CT1D_WGMMA_CASE
}
template <int N, class Element = Half>
__device__ __forceinline__ void matrix_multiply(float (&d)[N / 2], const uint32 (&a)[4], uint64 b, bool accumulate) {
  matrix_multiply<N, Element>(d, a[0], a[1], a[2], a[3], b, accumulate);
}

#undef CT1D_WGMMA_HEAD
#undef CT1D_WGMMA_SHARED
#undef CT1D_WGMMA_REGISTERS

#endif

}  // namespace ct1d
