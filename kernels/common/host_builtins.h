// Vector types, collectives, atomics and arithmetic of CUDA C++ for Host execution. Part of host_runtime.h.
#pragma once

#define CT1D_HOST_VECTOR(name, element, bytes)                                         \
  struct __attribute__((aligned(sizeof(element) * 2))) name##2 {                       \
    element x, y;                                                                      \
  };                                                                                   \
  struct name##3 {                                                                     \
    element x, y, z;                                                                   \
  };                                                                                   \
  struct __attribute__((aligned(bytes))) name##4 {                                     \
    element x, y, z, w;                                                                \
  };                                                                                   \
  inline name##2 make_##name##2(element x, element y) { return {x, y}; }               \
  inline name##3 make_##name##3(element x, element y, element z) { return {x, y, z}; } \
  inline name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; }
CT1D_HOST_VECTOR(char, signed char, 4)
CT1D_HOST_VECTOR(uchar, unsigned char, 4)
CT1D_HOST_VECTOR(short, short, 8)
CT1D_HOST_VECTOR(ushort, unsigned short, 8)
CT1D_HOST_VECTOR(int, int, 16)
CT1D_HOST_VECTOR(uint, unsigned, 16)
CT1D_HOST_VECTOR(float, float, 16)
CT1D_HOST_VECTOR(longlong, long long, 16)
CT1D_HOST_VECTOR(ulonglong, unsigned long long, 16)
CT1D_HOST_VECTOR(double, double, 16)
#undef CT1D_HOST_VECTOR
using dim3 = ct1d_host::Dim3;

// Barriers and warp-wide operations.
inline void __syncthreads(CT1D_HOST_SITE) {
  ct1d_host::worker()->services->barrier(ct1d_host::worker(), 0, 0, false, {file, line});
}
inline int __syncthreads_count(int predicate, CT1D_HOST_SITE) {
  const auto tally = ct1d_host::worker()->services->barrier(ct1d_host::worker(), 0, 0, predicate != 0, {file, line});
  return static_cast<int>(tally.held);
}
inline int __syncthreads_or(int predicate, CT1D_HOST_SITE) { return __syncthreads_count(predicate, file, line) != 0; }
inline int __syncthreads_and(int predicate, CT1D_HOST_SITE) { return __syncthreads_count(!predicate, file, line) == 0; }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, CT1D_HOST_SITE) {
  using namespace ct1d_host;
  worker()->services->exchange(worker(), WarpOperation::sync, mask, lane(), 0, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CT1D_HOST_SITE) {
  return ct1d_host::vote(mask, predicate != 0, {file, line});
}
inline int __any_sync(unsigned mask, int predicate, CT1D_HOST_SITE) {
  return ct1d_host::vote(mask, predicate != 0, {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CT1D_HOST_SITE) {
  return ct1d_host::vote(mask, predicate == 0, {file, line}) == 0;
}
template <class Value>
Value __shfl_sync(unsigned mask, Value value, int source, int width = 32, CT1D_HOST_SITE) {
  const unsigned segment = static_cast<unsigned>(width) - 1;
  const unsigned from = (ct1d_host::lane() & ~segment) | (static_cast<unsigned>(source) & segment);
  return ct1d_host::shuffle(mask, value, from, {file, line});
}
template <class Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned delta, int width = 32, CT1D_HOST_SITE) {
  const unsigned lane = ct1d_host::lane();
  const unsigned within = lane & (static_cast<unsigned>(width) - 1);
  return ct1d_host::shuffle(mask, value, delta <= within ? lane - delta : lane, {file, line});
}
template <class Value>
Value __shfl_down_sync(unsigned mask, Value value, unsigned delta, int width = 32, CT1D_HOST_SITE) {
  const unsigned lane = ct1d_host::lane();
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  return ct1d_host::shuffle(mask, value, delta <= last - lane ? lane + delta : lane, {file, line});
}
template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int bits, int width = 32, CT1D_HOST_SITE) {
  const unsigned lane = ct1d_host::lane();
  const unsigned from = lane ^ static_cast<unsigned>(bits);
  return ct1d_host::shuffle(mask, value, from <= (lane | (static_cast<unsigned>(width) - 1)) ? from : lane,
                            {file, line});
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, CT1D_HOST_SITE) {
  for (int bits = 16; bits > 0; bits /= 2) {
    const unsigned other = __shfl_xor_sync(mask, value, bits, 32, file, line);
    value = other > value ? other : value;
  }
  return value;
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() {}
inline void __trap(CT1D_HOST_SITE) { ct1d_host::fail("the kernel executed __trap()", {file, line}); }

// Atomics: blocks run on several OS threads.
template <class Value, class Combine>
Value ct1d_host_atomic(Value* address, Combine combine) {
  Value before;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  Value after = combine(before);
  while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    after = combine(before);
  return before;
}
#define CT1D_HOST_ATOMICS(type)                                                      \
  inline type atomicAdd(type* a, type v) {                                           \
    return ct1d_host_atomic(a, [v](type old) -> type { return old + v; });           \
  }                                                                                  \
  inline type atomicMax(type* a, type v) {                                           \
    return ct1d_host_atomic(a, [v](type old) { return old < v ? v : old; });         \
  }                                                                                  \
  inline type atomicMin(type* a, type v) {                                           \
    return ct1d_host_atomic(a, [v](type old) { return v < old ? v : old; });         \
  }                                                                                  \
  inline type atomicExch(type* a, type v) {                                          \
    return ct1d_host_atomic(a, [v](type) { return v; });                             \
  }                                                                                  \
  inline type atomicCAS(type* a, type expected, type v) {                            \
    return ct1d_host_atomic(a, [=](type old) { return old == expected ? v : old; }); \
  }                                                                                  \
  inline type min(type a, type b) { return b < a ? b : a; }                          \
  inline type max(type a, type b) { return a < b ? b : a; }
CT1D_HOST_ATOMICS(int)
CT1D_HOST_ATOMICS(unsigned)
CT1D_HOST_ATOMICS(long)
CT1D_HOST_ATOMICS(unsigned long)
CT1D_HOST_ATOMICS(long long)
CT1D_HOST_ATOMICS(unsigned long long)
CT1D_HOST_ATOMICS(float)
CT1D_HOST_ATOMICS(double)
#undef CT1D_HOST_ATOMICS

// Loads and stores with cache hints.
template <class Value>
Value __ldg(const Value* address) {
  return *address;
}
template <class Value>
Value __ldcg(const Value* address) {
  return *address;
}
template <class Value>
Value __ldcs(const Value* address) {
  return *address;
}
template <class Value>
void __stcg(Value* address, Value value) {
  *address = value;
}
template <class Value>
void __stcs(Value* address, Value value) {
  *address = value;
}

// Arithmetic and bits.
extern "C" {
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
float fminf(float, float) noexcept;
float fmaxf(float, float) noexcept;
float fabsf(float) noexcept;
float sqrtf(float) noexcept;
float ldexpf(float, int) noexcept;
}
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
template <class To, class From>
To ct1d_host_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
inline unsigned __float_as_uint(float v) { return ct1d_host_bits<unsigned>(v); }
inline int __float_as_int(float v) { return ct1d_host_bits<int>(v); }
inline float __uint_as_float(unsigned v) { return ct1d_host_bits<float>(v); }
inline float __int_as_float(int v) { return ct1d_host_bits<float>(v); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif
