// wgmma_shared: a step of x, 16 channels, in a producer warp's registers, its scale, its fp16 parts, and what they do
// not serve.
#pragma once

#include "kernels/common/served_values.cuh"
#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// Bits left above the largest value of the tiles before: it lies below 2^(15 - kHeadroom), fp16 ends at 2^16.
inline constexpr int kHeadroom = 5;

/// 16 channels of positions lane, lane + 32, ... of a tile; and the first 32 values before the tile: position
/// lane / 16 of the halo, channel lane % 16.
template <class I>
struct Values {
  float at[I::kPlaces][kStepChannels];
  float before;
};

/// Where a tile's x lies for one lane.
struct Source {
  const float* x;  // channel 0 at the lane's first position
  int first;       // the tile's first position in x; such that nothing exists for a tile that does not
};

template <class I>
__device__ __forceinline__ Source source_of(const RunArguments& a, const Tile& tile) {
  const Geometry& g = a.geometry;
  const int batch = tile.exists ? tile.batch : 0;
  const int position = tile.t_first + static_cast<int>(g.padding);
  return {static_cast<const float*>(a.x) + batch * g.x_batch_stride + position + lane_of_warp(),
          tile.exists ? position : static_cast<int>(g.length) + I::kT + I::kHalo};
}

/// Value `index` of those before a tile: 0 where there is none.
template <class I>
__device__ __forceinline__ float load_before(const Source& source, const Geometry& g, int step, int index) {
  const int channel = index % kStepChannels;
  const int position = source.first + index / kStepChannels - I::kHalo;
  const bool exists = index < I::kHalo * kStepChannels && position >= 0 && position < static_cast<int>(g.length) &&
                      step * kStepChannels + channel < static_cast<int>(g.in_channels);
  if (!exists) return 0.0f;
  const float* const row =
      step_pointer(source.x, static_cast<uint32>(g.x_row_stride), static_cast<uint32>(step * kStepChannels + channel));
  return load_constant(row + (index / kStepChannels - I::kHalo - lane_of_warp()));
}

template <class I>
__device__ __forceinline__ void load_step(Values<I>& v, const Source& source, const Geometry& g, int step) {
  const int length = static_cast<int>(g.length);
  const int channels = static_cast<int>(g.in_channels) - step * kStepChannels;
  const uint32 stride = static_cast<uint32>(g.x_row_stride);
  const float* const from = step_pointer(source.x, stride, static_cast<uint32>(step * kStepChannels));
  if constexpr (I::kHalo > 0) v.before = load_before<I>(source, g, step, lane_of_warp());
  if (source.first + I::kT <= length && channels >= kStepChannels) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      const float* const row = c == 0 ? from : step_pointer(from, stride, static_cast<uint32>(c));
#pragma unroll
      for (int j = 0; j < I::kPlaces; ++j) v.at[j][c] = load_constant(row + 32 * j);
    }
  } else {
    const int rest = length - source.first - lane_of_warp();
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      const float* const row = step_pointer(from, stride, static_cast<uint32>(c));
      const int here = c < channels ? rest : 0;
#pragma unroll
      for (int j = 0; j < I::kPlaces; ++j) v.at[j][c] = 32 * j < here ? load_constant(row + 32 * j) : 0.0f;
    }
  }
}

/// What a tile's scale serves, of magnitudes before scaling. Found anew from the scale where it is needed.
struct Served {
  float most;
  uint32 least;  // twice the bits of a magnitude, less one: zeros are the largest of all
};
__device__ __forceinline__ float inverse_of(float scale) {
  return float_of_bits((254u << 23) - bits_of_float(scale));  // of a power of two, both normal
}
__device__ __forceinline__ Served served_by(float scale) {
  const float inverse = inverse_of(scale);
  return {fminf(kMost * inverse, kNoOverflow), 2 * bits_of_float(kLeast * inverse) - 1};
}

/// One value before the tile into its place in the step.
template <class I>
__device__ __forceinline__ void store_before(float v, float scale, uint32 base, int index) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  const int channel = index % kStepChannels;
  const uint32 to =
      base + static_cast<uint32>(channel / 8 * I::kShared.slab_bytes + index / kStepChannels * 16 + channel % 8 * 2);
  const float value = v * scale;
  const uint32 hi = first_parts<I::kSplits, true>(value, value);
  store_shared_2(to, static_cast<unsigned short>(hi));
  if constexpr (I::kSplits) {
    const float rest = (value - low_half(hi)) * kLift;
    store_shared_2(to + I::kShared.part_bytes, static_cast<unsigned short>(half_pair(rest, rest)));
  }
}

template <class I, bool Each>
__device__ __forceinline__ void store_step(const Values<I>& v, float scale, uint32 base, Seen& seen) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  const float factor = part_factor<I::kSplits, Each>(scale);
  const int lane = lane_of_warp();
#pragma unroll
  for (int j = 0; j < I::kPlaces; ++j) {
#pragma unroll
    for (int slab = 0; slab < 2; ++slab) {
      const uint32 to = base + static_cast<uint32>(slab * I::kShared.slab_bytes + (I::kHalo + 32 * j + lane) * 16);
      uint32 hi[4];
      uint32 lo[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float low = v.at[j][8 * slab + 2 * c] * factor;
        const float high = v.at[j][8 * slab + 2 * c + 1] * factor;
        hi[c] = first_parts<I::kSplits, Each>(low, high);
        seen.most = larger_halves(seen.most, hi[c]);
        seen.least = lesser_halves(seen.least, hi[c]);
        if constexpr (I::kSplits) {
          lo[c] = half_pair((low - low_half(hi[c])) * kLift, (high - high_half(hi[c])) * kLift);
        }
      }
      store_shared_16(to, hi[0], hi[1], hi[2], hi[3]);
      if constexpr (I::kSplits) store_shared_16(to + I::kShared.part_bytes, lo[0], lo[1], lo[2], lo[3]);
    }
  }
}

__device__ __forceinline__ bool unserved(float v, const Served& served) {
  return !(fabsf(v) <= served.most) || 2 * bits_of_float(v) - 1 < served.least;
}
/// The bits of the fours of a tile's outputs that position `at` of the tile has a part in.
template <class I>
__device__ __forceinline__ uint32 fours_of(const Geometry& g, int at) {
  uint32 bits = 0;
#pragma unroll
  for (int tap = 0; tap < I::kTaps; ++tap) {
    const int t = at + I::reach(g, tap);
    if (t >= 0 && t < I::kT) bits |= 1u << t / 4;
  }
  return bits;
}

/// Flags what depends on values of the tile that the scale does not serve; the largest value joins `running`.
template <class I>
__device__ __forceinline__ void test_each(const Values<I>& v, const Served& served, const Geometry& g, float& running,
                                          uint32 flags) {
  uint32 bad = 0;
#pragma unroll
  for (int j = 0; j < I::kPlaces; ++j) {
    float most = max_or_nan(fabsf(v.at[j][0]), fabsf(v.at[j][1]));
    uint32 least = min(2 * bits_of_float(v.at[j][0]) - 1, 2 * bits_of_float(v.at[j][1]) - 1);
#pragma unroll
    for (int c = 2; c < kStepChannels; ++c) {
      most = max_or_nan(most, fabsf(v.at[j][c]));
      least = min(least, 2 * bits_of_float(v.at[j][c]) - 1);
    }
    running = fmaxf(running, most);  // without NaN
    if (!(most <= served.most) || least < served.least) bad |= fours_of<I>(g, 32 * j + lane_of_warp());
  }
  if (bad != 0) or_shared_4(flags, bad);
}

/// The same, and of the first values before the tile. High parts tell most lanes that all is well; zeros, and what
/// became zero, are looked at one by one.
template <class I>
__device__ __forceinline__ void test_step(const Values<I>& v, const Seen& seen, float scale, const Geometry& g,
                                          float& running, uint32 flags) {
  const uint32 most = max(seen.most & 0xFFFFu, seen.most >> 16);
  const uint32 least = min(seen.least & 0xFFFFu, seen.least >> 16);
  const Served served = served_by(scale);
  if (most > half_pair(served.most * scale, 0.0f) || least < half_pair(kLeast, 0.0f)) {
    test_each<I>(v, served, g, running, flags);
  } else {
    running = fmaxf(running, low_half(most) * inverse_of(scale));
  }
  if constexpr (I::kHalo > 0) {
    if (unserved(v.before, served)) or_shared_4(flags, fours_of<I>(g, lane_of_warp() / kStepChannels - I::kHalo));
  }
}

/// What a long halo has beyond Values: loaded, converted and tested here, a value of each lane at a time.
template <class I>
__device__ __forceinline__ void convert_long_halo(const Source& source, float scale, const Geometry& g, int step,
                                                  uint32 base, uint32 flags) {
  const Served served = served_by(scale);
#pragma unroll 1
  for (int index = 32 + lane_of_warp(); index < I::kHalo * kStepChannels; index += 32) {
    const float v = load_before<I>(source, g, step, index);
    store_before<I>(v, scale, base, index);
    if (unserved(v, served)) or_shared_4(flags, fours_of<I>(g, index / kStepChannels - I::kHalo));
  }
}

}  // namespace ct1d::wgmma_shared
