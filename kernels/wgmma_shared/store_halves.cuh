// wgmma_shared: finished sums of a tile, rounded once to y's 16 bits, to y in whole sectors of 32 bytes.
//
// A row's outputs lie in a quad of lanes as words: word 4 j + q, positions 8 j + 2 q and the next one, in lane q's j-th
// (late rows, which begin within a word, are first moved by an element). A row begins `shift` words into a sector, so
// of each sector a lane has the word at place (q + shift) % 4 and the one four further. Two neighbouring lanes exchange
// one of theirs, and each stores two words side by side: a quad one whole sector. What does not fill a sector is
// carried to the next tile.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// Words of a lane's two rows: at[2 j + row]; the last two j of the tile before.
template <class I>
struct Words {
  uint32 at[I::kSums / 2];
  uint32 carry[4];

  __device__ __forceinline__ uint32 word(int row, int j) const {
    return j < -2 || j >= I::kT / 8 ? 0 : j < 0 ? carry[(j + 2) * 2 + row] : at[2 * j + row];
  }
};

/// A lane's first row of outputs; the other is eight further.
template <class I>
__device__ __forceinline__ int row_of_lane(int consumer) {
  const int thread = fresh_thread();
  return consumer * 64 + thread % 128 / 32 * 16 + thread % 32 / 4;
}

/// Rounds a tile's sums, and flags those that are not finite.
template <class I>
__device__ __forceinline__ void finish_words(Words<I>& words, const float (&sum)[I::kSums], uint32 shared, unsigned n,
                                             int consumer) {
  using Element = typename I::Element;
  const uint32 biases = shared + I::kShared.scales + (I::kChannels + row_of_lane<I>(consumer)) * 4;
  uint32 most = 0;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float bias = load_shared_float(biases + 32 * row);
#pragma unroll
    for (int j = 0; j < I::kT / 8; ++j) {
      const uint32 word = operand_pair<Element>(sum[4 * j + 2 * row] + bias, sum[4 * j + 2 * row + 1] + bias);
      most = kIsBfloat16<Element> ? larger_bfloats(most, word) : larger_halves(most, word);
      words.at[2 * j + row] = word;
    }
  }
  if (!not_finite<Element>(most)) return;
  uint32 bits = 0;
#pragma unroll
  for (int j = 0; j < I::kT / 8; ++j) {
    const bool bad = not_finite<Element>(words.at[2 * j]) || not_finite<Element>(words.at[2 * j + 1]);
    if (bad) bits |= 1u << (8 * j + lane_of_warp() % 4 * 2) / I::kFlagged;
  }
  or_shared_4(shared + I::kShared.flags + n % kFlagWords * 4, bits);
}

/// Where a lane's two rows go: the tile's first position, and which of the rows exist.
struct WordRows {
  unsigned short* y;
  int64 to_other;
  bool exists[2];
  int from;  // of the tile's positions those in [from, to) are stored
  int to;
};

/// Four elements at y that a lane has of a sector; not all of them where they reach beyond [from, to).
template <bool kStreaming>
__device__ __forceinline__ void store_some(unsigned short* y, uint32 low, uint32 high, int t, const WordRows& r,
                                           bool exists) {
  const bool whole = t >= r.from && t + 4 <= r.to;
  store_pair<kStreaming>(reinterpret_cast<float*>(y), float_of_bits(low), float_of_bits(high), exists && whole);
  if (!__any_sync(0xFFFFFFFFu, !whole && t + 4 > r.from && t < r.to)) return;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    store_two_bytes<kStreaming>(y + e, (e < 2 ? low : high) >> e % 2 * 16,
                                exists && !whole && t + e >= r.from && t + e < r.to);
  }
}

/// Part of kShadow of a tile's sectors. AreWords: rows lie on words. Whole: all elements exist.
template <class I, bool AreWords, bool Whole, int Part>
__device__ __forceinline__ void store_sectors(const Words<I>& words, const WordRows& r) {
  constexpr int kSectors = I::kT / 16 / I::kShadow;
  constexpr int kFirst = Part * kSectors;
  constexpr int kEnd = kFirst + kSectors + (!Whole && Part + 1 == I::kShadow ? 1 : 0);  // what no next tile takes
  constexpr int kWords = 2 * (kEnd - kFirst) + 3;                                       // from j = 2 * kFirst - 3 on
  const int lane = lane_of_warp();
  const int q = lane % 4;
  const uint32 address = static_cast<uint32>(reinterpret_cast<uint64>(r.y));
  const int late = static_cast<int>(address >> 1 & 1);
  const int shift = static_cast<int>(address >> 2 & 7);
  const int place = (q + shift) % 4;
  const bool odd = place % 2 != 0;
  const bool one = ((q + shift) / 4 & 1) != 0;  // j are that many and
  const bool two = (q + shift) / 8 != 0;        // twice that many behind the sector
  const int partner = (lane & 28) | ((q + (odd ? 3 : 1)) & 3);
  const int t = 2 * ((odd ? place + 3 : place) - shift) - late;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    uint32 w[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) w[i] = words.word(row, 2 * kFirst - 3 + i);
    if constexpr (!AreWords) {
      const uint32 selector = late != 0 ? 0x5432u : 0x7654u;
#pragma unroll
      for (int i = kWords - 1; i > 0; --i) {
        const uint32 before = __shfl_sync(0xFFFFFFFFu, q == 3 ? w[i - 1] : w[i], (lane & 28) | ((q + 3) & 3));
        w[i] = bytes_of_two(before, w[i], selector);
      }
    }
    unsigned short* const y = r.y + row * r.to_other + t;
    uint32 kept = 0;
    uint32 sent = 0;
#pragma unroll
    for (int i = 0; i < kWords - 1; i += 2) {
      const uint32 low = one ? w[i] : w[i + 1];
      const uint32 high = one ? w[i + 1] : w[i + 2];
      const uint32 keep = odd ? high : low;
      const uint32 send = odd ? low : high;
      if (i > 0) {
        const int sector = kFirst + i / 2 - 1;
        const uint32 mine = two ? kept : keep;
        const uint32 got = __shfl_sync(0xFFFFFFFFu, two ? sent : send, partner);
        unsigned short* const to = y + 16 * sector;
        if constexpr (Whole) {
          store_pair<I::kStreaming>(reinterpret_cast<float*>(to), float_of_bits(odd ? got : mine),
                                    float_of_bits(odd ? mine : got), r.exists[row]);
        } else {
          store_some<I::kStreaming>(to, odd ? got : mine, odd ? mine : got, t + 16 * sector, r, r.exists[row]);
        }
      }
      kept = keep;
      sent = send;
    }
  }
}

/// The same for 64 output channels of a tile; after the last part the words are carried on.
template <class I, int Part>
__device__ __forceinline__ void store_words(Words<I>& words, const RunArguments& a, const Tile& tile, int consumer) {
  const Geometry& g = a.geometry;
  const int row = row_of_lane<I>(consumer);
  WordRows r{};
  r.y = static_cast<unsigned short*>(a.y) + tile.batch * g.y_batch_stride + row * g.y_row_stride + tile.t_first;
  r.to_other = static_cast<int>(fresh_copy(8)) * g.y_row_stride;
  r.exists[0] = row < static_cast<int>(g.out_channels);
  r.exists[1] = row + 8 < static_cast<int>(g.out_channels);
  const uint32 address = static_cast<uint32>(reinterpret_cast<uint64>(r.y));
  const int rest = tile.exists ? static_cast<int>(g.length_out) - tile.t_first : -I::kT;
  r.from = tile.first ? 0 : -16;
  r.to = tile.last || !tile.exists
             ? (rest < I::kT ? rest : I::kT)
             : I::kT - 2 * static_cast<int>(address >> 2 & 7) - static_cast<int>(address >> 1 & 1);
  const bool are_words = __all_sync(0xFFFFFFFFu, (address >> 1 & 1) == 0);
  if (!tile.exists || tile.first || tile.last) {
    store_sectors<I, false, false, Part>(words, r);
  } else if (are_words) {
    store_sectors<I, true, true, Part>(words, r);
  } else {
    store_sectors<I, false, true, Part>(words, r);
  }
  if constexpr (Part + 1 == I::kShadow) {
#pragma unroll
    for (int c = 0; c < 4; ++c) words.carry[c] = words.at[I::kSums / 2 - 4 + c];
  }
}

}  // namespace ct1d::wgmma_shared
