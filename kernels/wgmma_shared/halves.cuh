// wgmma_shared: a step of 16-bit x, 16 channels, in a producer warp's registers, and its way into shared memory.
// Nothing is scaled, split or tested.
//
// A lane loads words: pairs of neighbouring positions of a channel. Where a row begins within a word, its pairs begin a
// position earlier. Rows of all channels lie alike, or those of even and odd channels take turns.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

inline constexpr int kSingles = 2;  // values of a lane that no pair holds, loaded together with the pairs

/// Channel c's pairs of positions 2 * lane + 64 * j, one earlier in late rows; single values (single_at) lane and lane
/// + 32.
template <class I>
struct Pairs {
  uint32 at[I::kT / 64][kStepChannels];
  uint32 single[kSingles];
};

/// 1 where rows of even, and of odd channels have a tile's first position in a word's upper half.
struct Late {
  uint32 rows[2];
  __device__ __forceinline__ bool in_turns() const { return rows[0] != rows[1]; }
  __device__ __forceinline__ uint32 any() const { return rows[0] | rows[1]; }
};

/// Where a tile's x lies for a warp.
struct PairSource {
  const unsigned short* x;  // channel 0 at the tile's first position
  int first;                // that position; such that nothing exists for a tile that does not
  Late late;
};

template <class I>
__device__ __forceinline__ PairSource pair_source_of(const RunArguments& a, const Tile& tile) {
  const Geometry& g = a.geometry;
  const int batch = tile.exists ? tile.batch : 0;
  const int position = tile.t_first + static_cast<int>(g.padding);
  const unsigned short* const x = static_cast<const unsigned short*>(a.x) + batch * g.x_batch_stride + position;
  const uint32 late = static_cast<uint32>(reinterpret_cast<uint64>(x) >> 1);
  return {x,
          tile.exists ? position : static_cast<int>(g.length) + I::kT + I::kHalo,
          {{late & 1, (late + static_cast<uint32>(g.x_row_stride)) & 1}}};
}

/// Single value `index` of a step: those before the tile, then the tile's last ones.
struct Single {
  int channel;
  int place;  // position, counted from the tile's first
};
template <class I>
__device__ __forceinline__ Single single_at(int index) {
  const int k = index / kStepChannels;
  return {index % kStepChannels, k < I::kHalo ? k - I::kHalo : I::kT - 1};
}
/// How many there are: the last position's only where late rows leave it out.
template <class I>
__device__ __forceinline__ int single_count(const Late& late) {
  return (I::kHalo + static_cast<int>(late.any())) * kStepChannels;
}

/// 0 where there is none.
template <class I>
__device__ __forceinline__ uint32 load_single(const PairSource& s, const Geometry& g, int step, int index) {
  const Single single = single_at<I>(index);
  const int position = s.first + single.place;
  const int channel = step * kStepChannels + single.channel;
  const bool exists = index < single_count<I>(s.late) && position >= 0 && position < static_cast<int>(g.length) &&
                      channel < static_cast<int>(g.in_channels);
  if (!exists) return 0;
  return load_constant(step_pointer(s.x, static_cast<uint32>(g.x_row_stride), static_cast<uint32>(channel)) +
                       single.place);
}

template <class I>
__device__ __forceinline__ void load_pairs(Pairs<I>& v, const PairSource& s, const Geometry& g, int step) {
  const int length = static_cast<int>(g.length);
  const int channels = static_cast<int>(g.in_channels) - step * kStepChannels;
  const uint32 stride = static_cast<uint32>(g.x_row_stride);
  const unsigned short* const x = step_pointer(s.x, stride, static_cast<uint32>(step * kStepChannels));
  const int lane = lane_of_warp();
  v.single[0] = load_single<I>(s, g, step, lane);
  v.single[1] = 0;
  if (single_count<I>(s.late) > 32) v.single[1] = load_single<I>(s, g, step, lane + 32);
  if (s.first >= static_cast<int>(s.late.any()) && s.first + I::kT <= length && channels >= kStepChannels) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      const unsigned short* const row =
          step_pointer(x + 2 * lane - static_cast<int>(s.late.rows[c % 2]), stride, static_cast<uint32>(c));
#pragma unroll
      for (int j = 0; j < I::kT / 64; ++j) v.at[j][c] = load_constant(reinterpret_cast<const uint32*>(row + 64 * j));
    }
  } else {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      const int to_first = 2 * lane - static_cast<int>(s.late.rows[c % 2]);
      const unsigned short* const row = step_pointer(x + to_first, stride, static_cast<uint32>(c));
      const int left = c < channels ? length - s.first - to_first : 0;
      const bool before = s.first + to_first < 0;  // the pair's first position is before x
      const uint32 first = load_pair(row + (before ? 1 : 0), before ? min(left - 1, 1) : left);
      v.at[0][c] = bytes_of_two(first, 0, before ? 0x1044u : 0x3210u);
#pragma unroll
      for (int j = 1; j < I::kT / 64; ++j) v.at[j][c] = load_pair(row + 64 * j, left - 64 * j);
    }
  }
}

/// A lane's two rows of a slab: eight channels of two neighbouring positions. The lanes of a quarter warp whose rows
/// would meet in the same banks store the second one first.
__device__ __forceinline__ void store_two_rows(uint32 to, const uint32 (&first)[4], const uint32 (&second)[4]) {
  const uint32 swap = static_cast<uint32>(lane_of_warp()) << 2 & 16;
  store_shared_16(to + swap, first[0], first[1], first[2], first[3]);
  store_shared_16(to + (16 - swap), second[0], second[1], second[2], second[3]);
}

/// Rows of all channels lie alike.
template <class I>
__device__ __forceinline__ void store_alike(const Pairs<I>& v, uint32 base, uint32 late) {
  const int lane = lane_of_warp();
  const uint32 low = 0x5410u;
  const uint32 high = 0x7632u;
  const uint32 first = (lane & 4) != 0 ? high : low;
  const uint32 second = (lane & 4) != 0 ? low : high;
  const uint32 to = base + (static_cast<uint32>(I::kHalo + 2 * lane) - late) * 16;
#pragma unroll
  for (int j = 0; j < I::kT / 64; ++j) {
#pragma unroll
    for (int slab = 0; slab < 2; ++slab) {
      uint32 rows[2][4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const uint32 even = v.at[j][8 * slab + 2 * c];
        const uint32 odd = v.at[j][8 * slab + 2 * c + 1];
        rows[0][c] = bytes_of_two(even, odd, first);
        rows[1][c] = bytes_of_two(even, odd, second);
      }
      store_two_rows(to + static_cast<uint32>(slab * I::kShared.slab_bytes + 64 * j * 16), rows[0], rows[1]);
    }
  }
}

/// Rows of even and odd channels take turns: a late row's next value comes from the next lane. The last lane's last one
/// does not: a single value that is stored after it.
template <class I>
__device__ __forceinline__ void store_in_turns(const Pairs<I>& v, uint32 base, bool even_late) {
  const int lane = lane_of_warp();
  const bool swap = (lane & 4) != 0;
  // bytes of a timely row's word, 0 to 3, and of a late one's, 4 to 7; the even channel's are the lower half
  const uint32 here = even_late ? 0x1076u : 0x7610u;
  const uint32 next = even_late ? 0x3254u : 0x5432u;
  const uint32 first = swap ? next : here;
  const uint32 second = swap ? here : next;
  const uint32 to = base + static_cast<uint32>(I::kHalo + 2 * lane) * 16;
#pragma unroll
  for (int j = 0; j < I::kT / 64; ++j) {
#pragma unroll
    for (int slab = 0; slab < 2; ++slab) {
      uint32 rows[2][4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int channel = 8 * slab + 2 * c;
        const int further = j + 1 < I::kT / 64 ? j + 1 : j;
        const uint32 timely = even_late ? v.at[j][channel + 1] : v.at[j][channel];
        const uint32 late = even_late ? v.at[j][channel] : v.at[j][channel + 1];
        const uint32 beyond = even_late ? v.at[further][channel] : v.at[further][channel + 1];
        const uint32 after = __shfl_sync(0xFFFFFFFFu, lane == 0 ? beyond : late, (lane + 1) % 32);
        rows[0][c] = bytes_of_two(timely, swap ? after : late, first);
        rows[1][c] = bytes_of_two(timely, swap ? late : after, second);
      }
      store_two_rows(to + static_cast<uint32>(slab * I::kShared.slab_bytes + 64 * j * 16), rows[0], rows[1]);
    }
  }
  __syncwarp();  // the last position's single values come after it
}

template <class I>
__device__ __forceinline__ void store_single(uint32 value, uint32 base, int index) {
  const Single single = single_at<I>(index);
  store_shared_2(base + static_cast<uint32>(single.channel / 8 * I::kShared.slab_bytes +
                                            (single.place + I::kHalo) * 16 + single.channel % 8 * 2),
                 static_cast<unsigned short>(value));
}

/// All of the step but what a long halo has beyond Pairs.
template <class I>
__device__ __forceinline__ void store_pairs(const Pairs<I>& v, const Late& late, uint32 base) {
  static_assert(I::kHalo >= 1, "a late row's pairs begin a position before the tile");
  if (late.in_turns()) {
    store_in_turns<I>(v, base, late.rows[0] != 0);
  } else {
    store_alike<I>(v, base, late.rows[0]);
  }
  const int count = single_count<I>(late);
  const int lane = lane_of_warp();
#pragma unroll
  for (int i = 0; i < kSingles; ++i) {
    if (lane + 32 * i < count) store_single<I>(v.single[i], base, lane + 32 * i);
  }
}

/// The rest of a long halo: loaded here, a value of each lane at a time.
template <class I>
__device__ __forceinline__ void store_long_halo(const PairSource& s, const Geometry& g, int step, uint32 base) {
  const int count = single_count<I>(s.late);
#pragma unroll 1
  for (int index = 32 * kSingles + lane_of_warp(); index < count; index += 32) {
    store_single<I>(load_single<I>(s, g, step, index), base, index);
  }
}

}  // namespace ct1d::wgmma_shared
