// wgmma: from raw x of 16 bits in shared memory to the registers of a product's A: pairs of positions become pairs of
// channels.
#pragma once

#include "kernels/wgmma/fragments.cuh"

namespace ct1d::wgmma {

/// Channels q, q + 4, q + 8, q + 12 in words of two positions, the first at t0 - halo or one before it.
template <class I>
struct Words {
  static constexpr int kBefore = (I::kHalo + 1) / 2;  // words before t0
  static constexpr int kCount = kBefore + 2;
  uint32 v[4][kCount];
};

/// Rows that begin where they should.
template <class I>
__device__ __forceinline__ void read_words(Words<I>& x, uint32 at) {
  constexpr int kBefore = Words<I>::kBefore;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const uint32 row = at + 4 * c * I::kPitchBytes - kBefore * 4;
    if constexpr (kBefore % 2 != 0) x.v[c][0] = load_shared_4(row);
#pragma unroll
    for (int i = kBefore % 2; i < Words<I>::kCount; i += 2) {
      const uint2 two = load_shared_8(row + i * 4);
      x.v[c][i] = two.x;
      x.v[c][i + 1] = two.y;
    }
  }
}
/// Rows that may begin one element later.
template <class I>
__device__ __forceinline__ void read_late_words(Words<I>& x, uint32 at, bool late) {
  const uint32 selector = late ? 0x5432u : 0x3210u;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const uint32 row = at + 4 * c * I::kPitchBytes - Words<I>::kBefore * 4;
    uint32 word = load_shared_4(row);
#pragma unroll
    for (int i = 0; i < Words<I>::kCount; ++i) {
      const uint32 next = load_shared_4(row + (i + 1) * 4);
      x.v[c][i] = bytes_of_two(word, next, selector);
      word = next;
    }
  }
}

/// A slot's stage into registers; gives the slot back. `odd`: whether any row may begin late, and bit 0 of `parity`
/// whether the thread's own do.
template <class I>
__device__ __forceinline__ void take_words(Words<I>& x, uint32 slot, uint32 full, uint32 empty, uint32 round, bool odd,
                                           uint32 parity) {
  const int lane = lane_of_warp();
  const uint32 at = slot + lane % 4 * I::kPitchBytes + (I::kLead + 4 * (8 * warp_of_group() + lane / 4)) * 2;
  barrier_wait(full, round);
  if (odd) {
    read_late_words<I>(x, at, (parity & 1) != 0);
  } else {
    read_words<I>(x, at);
  }
  __syncwarp();
  if (lane_of_warp() == 0) barrier_arrive(empty);
}

/// As convert().
template <class I>
__device__ __forceinline__ void weave(const Words<I>& x, uint32 zero, Fragments<I>& a) {
  constexpr int kSkip = Words<I>::kBefore * 2 - I::kHalo;
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
    for (int p = 0; p < I::kSpan; ++p) {
      const int word = (p + kSkip) / 2;
      const uint32 both =
          bytes_of_two(x.v[2 * pair][word], x.v[2 * pair + 1][word], (p + kSkip) % 2 == 0 ? 0x5410u : 0x7632u);
      if (p < I::kFragments) a.f[p][2 * pair] = both;
      if (p >= 2) a.f[p - 2][2 * pair + 1] = p < I::kFragments ? both ^ zero : both;
    }
  }
}

}  // namespace ct1d::wgmma
