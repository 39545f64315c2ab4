// Neighbouring elements as floats: loads and stores of 2 to 16 bytes at addresses that are multiples of their size.
#pragma once

#include "kernels/common/element.cuh"

namespace ct1d::depthwise {

template <int Bytes>
struct Words;
template <>
struct Words<16> {
  using Type = uint4;
};
template <>
struct Words<8> {
  using Type = uint2;
};
template <>
struct Words<4> {
  using Type = unsigned;
};
template <>
struct Words<2> {
  using Type = unsigned short;
};

__device__ __forceinline__ unsigned word(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ __forceinline__ unsigned word(const uint2& v, int i) { return i == 0 ? v.x : v.y; }
__device__ __forceinline__ unsigned word(unsigned v, int) { return v; }
__device__ __forceinline__ unsigned word(unsigned short v, int) { return v; }
__device__ __forceinline__ void set_word(uint4& v, int i, unsigned w) {
  (i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w) = w;
}
__device__ __forceinline__ void set_word(uint2& v, int i, unsigned w) { (i == 0 ? v.x : v.y) = w; }
__device__ __forceinline__ void set_word(unsigned& v, int, unsigned w) { v = w; }
__device__ __forceinline__ void set_word(unsigned short& v, int, unsigned w) { v = static_cast<unsigned short>(w); }

template <class Element>
struct Bits {  // a 16-bit element
  static __device__ __forceinline__ float value(unsigned word, int i) {
    return to_float(Element{static_cast<unsigned short>(word >> 16 * i)});
  }
  static __device__ __forceinline__ unsigned bits(float value) { return from_float<Element>(value).bits; }
};
template <>
struct Bits<float> {
  static __device__ __forceinline__ float value(unsigned word, int) { return float_of_bits(word); }
  static __device__ __forceinline__ unsigned bits(float value) { return bits_of_float(value); }
};

template <class Element>
CT1D_HD constexpr int elements_a_word() {
  return sizeof(Element) >= 4 ? 1 : 4 / static_cast<int>(sizeof(Element));
}

/// Through the read-only path: nothing writes x during the kernel.
template <int N, class Element>
__device__ __forceinline__ void load_vector(float* to, const Element* from) {
  constexpr int kEach = elements_a_word<Element>();
  const auto v = __ldg(reinterpret_cast<const typename Words<N * sizeof(Element)>::Type*>(from));
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = Bits<Element>::value(word(v, i / kEach), i % kEach);
}

template <int N, class Element>
__device__ __forceinline__ typename Words<N * sizeof(Element)>::Type pack_vector(const float* from) {
  constexpr int kEach = elements_a_word<Element>();
  typename Words<N * sizeof(Element)>::Type v;
#pragma unroll
  for (int i = 0; i < N; i += kEach) {
    unsigned w = 0;
#pragma unroll
    for (int j = 0; j < kEach && i + j < N; ++j) w |= Bits<Element>::bits(from[i + j]) << (16 * j % 32);
    set_word(v, i / kEach, w);
  }
  return v;
}

template <bool kStreaming, class Word>
__device__ __forceinline__ void store_words(void* to, const Word& v) {
  if (kStreaming) {
    __stcs(static_cast<Word*>(to), v);
  } else {
    *static_cast<Word*>(to) = v;
  }
}

}  // namespace ct1d::depthwise
