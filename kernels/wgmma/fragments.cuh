// wgmma: from raw x in shared memory to the registers of a product's A, with the scale that fits its data.
#pragma once

#include "kernels/common/placed.cuh"
#include "kernels/wgmma/instance.cuh"

namespace ct1d::wgmma {

/// Channels q, q + 4, q + 8, q + 12 at positions t0 - halo to t0 + 3, of thread q of a quad.
template <class I>
struct Values {
  float v[4][I::kSpan];
};

template <class I>
__device__ __forceinline__ void read_raw(Values<I>& x, uint32 slot) {
  const int lane = lane_of_warp();
  const uint32 at = slot + lane % 4 * I::kPitchBytes + (I::kLead + 4 * (8 * warp_of_group() + lane / 4)) * 4;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const uint32 row = at + 4 * c * I::kPitchBytes;
    float(&v)[I::kSpan] = x.v[c];
    constexpr int kRest = I::kHalo % 4;  // of the halo, before its whole pieces of 16 bytes
    if constexpr (kRest == 1) {
      v[0] = load_shared_float(row - I::kHalo * 4);
    } else if constexpr (kRest > 1) {
      const uint4 piece = load_shared_16(row - (I::kHalo + 4 - kRest) * 4);
      if constexpr (kRest == 3) v[0] = float_of_bits(piece.y);
      v[kRest - 2] = float_of_bits(piece.z);
      v[kRest - 1] = float_of_bits(piece.w);
    }
#pragma unroll
    for (int p = kRest; p < I::kSpan; p += 4) {
      const uint4 piece = load_shared_16(row + (p - I::kHalo) * 4);
      v[p] = float_of_bits(piece.x);
      v[p + 1] = float_of_bits(piece.y);
      v[p + 2] = float_of_bits(piece.z);
      v[p + 3] = float_of_bits(piece.w);
    }
  }
}

/// A slot's stage into the registers of Values; gives the slot back.
template <class I>
__device__ __forceinline__ void take(Values<I>& x, uint32 slot, uint32 full, uint32 empty, uint32 parity) {
  barrier_wait(full, parity);
  read_raw<I>(x, slot);
  __syncwarp();
  if (lane_of_warp() == 0) barrier_arrive(empty);
}

/// Bits of magnitudes: the quad's largest, NaN above all; and twice this thread's least, less one, so that zeros count
/// as the largest of all.
struct Range {
  uint32 most;
  uint32 least;
};
template <class I>
__device__ __forceinline__ Range find_range(const Values<I>& x) {
  Range range{0, 0xFFFFFFFFu};
  float most = 0.0f;
#pragma unroll
  for (int p = 0; p < I::kSpan; ++p) {
    const float here =
        max_or_nan(max_or_nan(fabsf(x.v[0][p]), fabsf(x.v[1][p])), max_or_nan(fabsf(x.v[2][p]), fabsf(x.v[3][p])));
    most = max_or_nan(most, here);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const uint32 twice = 2 * bits_of_float(x.v[c][p]) - 1;
      range.least = twice < range.least ? twice : range.least;
    }
  }
  most = max_or_nan(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
  most = max_or_nan(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
  range.most = bits_of_float(most);
  return range;
}

/// Whether fp16 parts at this scale serve all values: no infinity or NaN (weights of taps that do not exist are 0), no
/// sum that could overflow on the way, nothing too far below the largest or, where the scale is the largest there is,
/// below 2^-130: the matrix unit cuts sums off relative to 2^-14 where a part is a denormal below it.
template <class I>
__device__ __forceinline__ bool serves(const Range& range, float scale) {
  const uint32 exponent = bits_of_float(scale) >> 23;
  // Each value, since weights may favour the smallest: above 2^-4 when scaled two parts leave it 21 bits, above 2^-13
  // one part is normal.
  const int field = (I::kSplits ? 123 : 114) + 127 - static_cast<int>(exponent);
  const uint32 floor = field > 0 ? static_cast<uint32>(field) << 23 : 1u << (22 + field);
  return range.most < (127u + 103u) << 23 && range.least >= 2 * floor - 1;
}

/// A's registers of one part: fragment f holds positions f and f + 2 of Values.
template <class I>
struct Fragments {
  uint32 f[I::kFragments][4];
};

/// `zero` is 0 and the compiler does not know: a position in two fragments becomes two values, else whole fragments are
/// copied for every product.
template <class I>
__device__ __forceinline__ void convert(const Values<I>& x, float scale, uint32 zero, Fragments<I>& hi,
                                        Fragments<I>& lo) {
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
    for (int p = 0; p < I::kSpan; ++p) {
      const float a = x.v[2 * pair][p] * scale;
      const float b = x.v[2 * pair + 1][p] * scale;
      // one part is a TF32 number in all but its exponent
      const uint32 high = I::kSplits ? half_pair(a, b) : half_pair_away(a, b);
      if (p < I::kFragments) hi.f[p][2 * pair] = high;
      if (p >= 2) hi.f[p - 2][2 * pair + 1] = p < I::kFragments ? high ^ zero : high;
      if constexpr (I::kSplits) {
        const uint32 low = half_pair(a - low_half(high), b - high_half(high));
        if (p < I::kFragments) lo.f[p][2 * pair] = low;
        if (p >= 2) lo.f[p - 2][2 * pair + 1] = p < I::kFragments ? low ^ zero : low;
      }
    }
  }
}

template <class I>
__device__ __forceinline__ void pin_fragments(Fragments<I>& a) {
#pragma unroll
  for (int f = 0; f < I::kFragments; ++f) pin(a.f[f]);
}

/// `zero` as in convert(): registers of products are set between them, which the compiler sees of an operation alone.
template <class I>
__device__ __forceinline__ void copy_fragments(Fragments<I>& to, const Fragments<I>& from, uint32 zero) {
#pragma unroll
  for (int f = 0; f < I::kFragments; ++f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to.f[f][i] = from.f[f][i] ^ zero;
  }
}

/// The word with the flags of this warp's tiles n / 4 * 4 to + 3, 8 bits each.
template <class I>
__device__ __forceinline__ uint32 flags_place(uint32 shared, unsigned n) {
  return shared + I::kShared.flags + fresh_thread() / 32 * kFlagTiles + n % kFlagTiles / 4 * 4;
}
template <class I>
__device__ __forceinline__ uint32 marks_of(uint32 shared, unsigned n) {
  return load_shared_4(flags_place<I>(shared, n)) >> n % 4 * 8 & 0xFFu;
}
/// Marks the quads of this warp whose tile `n` is to be done again.
template <class I>
__device__ __forceinline__ void mark(bool bad, uint32 shared, unsigned n) {
  uint32 m = __ballot_sync(0xFFFFFFFFu, bad);
  m = (m | m >> 1 | m >> 2 | m >> 3) & 0x11111111u;
  m = (m | m >> 3) & 0x03030303u;
  m = (m | m >> 6) & 0x000F000Fu;
  m = (m | m >> 12) & 0xFFu;
  const uint32 at = flags_place<I>(shared, n);
  if (lane_of_warp() == 0) store_shared_4(at, load_shared_4(at) | m << n % 4 * 8);
  __syncwarp();
}

}  // namespace ct1d::wgmma
