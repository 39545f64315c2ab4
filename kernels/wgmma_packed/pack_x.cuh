// wgmma_packed: x as the products read it, by the first kernel of every call. A block packs a tile of places and up to
// 8 steps of 16 channels, a warp each: read once, scaled by a power of two for each group of steps, as fp16 parts.
#pragma once

#include "kernels/common/served_values.cuh"
#include "kernels/wgmma_packed/instance.cuh"

namespace ct1d::wgmma_packed {

/// Where a lane's place lies in x; `exists`: that it does.
template <class Element>
struct Source {
  const Element* x;
  bool exists;
};
template <class I>
__device__ __forceinline__ Source<typename I::Element> source_of(const RunArguments& a, const Divider& period,
                                                                 int place) {
  const Geometry& g = a.geometry;
  const Position at = position_of(period, static_cast<unsigned>(place < 0 ? 0 : place));
  const bool exists = place >= 0 && at.batch < g.batch && at.m < g.length;
  const auto* const x = static_cast<const typename I::Element*>(a.x);
  return {x + (exists ? at.batch * g.x_batch_stride + at.m : 0), exists};
}

__device__ __forceinline__ bool unserved(float v, float scale) {
  const float scaled = fabsf(v) * scale;
  return v != 0.0f && !(scaled >= kLeast && scaled <= kMost && fabsf(v) <= kNoOverflow);
}

/// The bits of the fours of a tile's places whose outputs place `at` of the tile has a part in.
template <class I>
__device__ __forceinline__ unsigned long long fours_of(const Geometry& g, int at) {
  unsigned long long bits = 0;
#pragma unroll
  for (int offset = 0; offset < I::kOffsets; ++offset) {
    const int place = at + offset * I::step(g);
    if (place >= 0 && place < I::kT) bits |= 1ull << place / 4;
  }
  return bits;
}

/// Sixteen channels of one place, as the parts' words of 8 channels: [slab][word].
template <class I>
struct Words {
  uint32 part[I::kParts][2][4];
};
template <class I>
__device__ __forceinline__ void store_words(const Words<I>& words, unsigned char* image, int row) {
#pragma unroll
  for (int part = 0; part < I::kParts; ++part) {
#pragma unroll
    for (int slab = 0; slab < 2; ++slab) {
      const uint32(&w)[4] = words.part[part][slab];
      uint4* const to = reinterpret_cast<uint4*>(image + (part * 2 + slab) * I::kSlabBytes + row * 16);
      *to = uint4{w[0], w[1], w[2], w[3]};
    }
  }
}

template <class I>
__device__ __forceinline__ Words<I> words_of(const float (&v)[kStepChannels], float scale) {
  constexpr float kLift = static_cast<float>(1 << kLowBits);
  Words<I> words;
#pragma unroll
  for (int i = 0; i < kStepChannels / 2; ++i) {
    const float low = v[2 * i] * scale;
    const float high = v[2 * i + 1] * scale;
    if constexpr (I::kSplits) {
      const uint32 hi = half_pair(low, high);
      words.part[0][i / 4][i % 4] = hi;
      words.part[I::kParts - 1][i / 4][i % 4] = half_pair((low - low_half(hi)) * kLift, (high - high_half(hi)) * kLift);
    } else {
      words.part[0][i / 4][i % 4] = half_pair_away(low, high);  // a TF32 number in all but its exponent
    }
  }
  return words;
}

/// What a warp packs: 16 channels (fewer may exist) of a tile of places.
struct Job {
  int places;  // in tiles
  int first;   // the tile's first place
  int step;
  int channels;  // that exist
};

/// fp32 x: largest magnitude of the group, scale, parts; what the scale does not serve is flagged.
template <class I>
__device__ __forceinline__ void pack_scaled(const RunArguments& a, const Divider& period, const Job& job, int warp,
                                            unsigned char* image, float* inverse, unsigned long long* flags,
                                            uint32 shared) {
  const Geometry& g = a.geometry;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32 words = shared + kPackWarps * 4;  // of flags
  const int64 from = job.step * kStepChannels * g.x_row_stride;
  float v[I::kColumns][kStepChannels];
  float most = 0.0f;
  const auto see = [&most](float value) {
    const float magnitude = fabsf(value);
    most = bits_of_float(magnitude) < kInfinity ? fmaxf(most, magnitude) : most;
  };
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
    const Source<float> source = source_of<I>(a, period, job.first + 32 * j + lane);
    const float* const x = source.x + from;
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) {
      v[j][c] = source.exists && c < job.channels ? load_constant(x + c * g.x_row_stride) : 0.0f;
    }
  }
#pragma unroll
  for (int j = 0; j < I::kColumns; ++j) {
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) see(v[j][c]);
  }
  const auto before = [&](int row, int c) {  // places before the tile
    const Source<float> source = source_of<I>(a, period, job.first - I::kHalo + row);
    return source.exists && c < job.channels ? load_constant(source.x + from + c * g.x_row_stride) : 0.0f;
  };
#pragma unroll 1
  for (int i = lane; i < I::kHalo * kStepChannels; i += 32) see(before(i / kStepChannels, i % kStepChannels));
  const uint32 own = __reduce_max_sync(0xFFFFFFFFu, bits_of_float(most));
  if (lane == 0) store_shared_4(shared + warp * 4, own);
  if (threadIdx.x < 2) store_shared_4(words + threadIdx.x * 4, 0);
  __syncthreads();
  const int group = warp / I::kGroup * I::kGroup;
  uint32 top = 0;
#pragma unroll
  for (int i = 0; i < I::kGroup; ++i) {
    const uint32 other = group + i < kPackWarps ? load_shared_4(shared + (group + i) * 4) : 0;
    top = other > top ? other : top;
  }
  const Scale scale = scale_of(top == 0 ? 127u << 23 : top, 0);
  unsigned long long bad = 0;
  if (job.channels > 0) {
    if (lane == 0 && warp == group) inverse[job.step / I::kGroup] = scale.inverse;
#pragma unroll
    for (int j = 0; j < I::kColumns; ++j) {
      bool any = false;
#pragma unroll
      for (int c = 0; c < kStepChannels; ++c) any = any || unserved(v[j][c], scale.scale);
      if (any) bad |= fours_of<I>(g, 32 * j + lane);
      store_words<I>(words_of<I>(v[j], scale.scale), image, I::kHalo + 32 * j + lane);
    }
#pragma unroll 1
    for (int row = lane; row < I::kHalo; row += 32) {
      float w[kStepChannels];
      bool any = false;
#pragma unroll
      for (int c = 0; c < kStepChannels; ++c) {
        w[c] = before(row, c);
        any = any || unserved(w[c], scale.scale);
      }
      if (any) bad |= fours_of<I>(g, row - I::kHalo);
      store_words<I>(words_of<I>(w, scale.scale), image, row);
    }
  }
  if (bad != 0) {
    or_shared_4(words, static_cast<uint32>(bad));
    or_shared_4(words + 4, static_cast<uint32>(bad >> 32));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    *flags = load_shared_4(words) | static_cast<unsigned long long>(load_shared_4(words + 4)) << 32;
  }
}

/// 16-bit x, as it is: 32 places of the tile, and with the first those before it.
template <class I>
__device__ __forceinline__ void pack_plain(const RunArguments& a, const Divider& period, const Job& job, int column,
                                           unsigned char* image) {
  const Geometry& g = a.geometry;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64 from = job.step * kStepChannels * g.x_row_stride;
  const auto pack = [&](int row) {
    const auto source = source_of<I>(a, period, job.first - I::kHalo + row);
    const auto* const x = source.x + from;
    uint32 v[kStepChannels];
#pragma unroll
    for (int c = 0; c < kStepChannels; ++c) v[c] = source.exists && c < job.channels ? x[c * g.x_row_stride].bits : 0;
    Words<I> words;
#pragma unroll
    for (int i = 0; i < kStepChannels / 2; ++i) words.part[0][i / 4][i % 4] = v[2 * i] | v[2 * i + 1] << 16;
    store_words<I>(words, image, row);
  };
  if (job.channels <= 0) return;
  pack(I::kHalo + 32 * column + lane);
  if (column == 0 && lane < I::kHalo) pack(lane);
}

template <class I>
__device__ __forceinline__ void pack_places(const RunArguments& a) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const Geometry& g = a.geometry;
  const int blocks = static_cast<int>(ceil_div(steps_of(g), I::kPackSteps));  // of a tile of places
  const int warp = static_cast<int>(threadIdx.x) / 32;
  constexpr int kColumns = I::kSmall ? I::kColumns : 1;
  const int column = static_cast<int>(blockIdx.x) % kColumns;
  const int number = static_cast<int>(blockIdx.x) / kColumns;
  const int block = number % blocks;
  Job job{};
  job.places = number / blocks;
  job.first = job.places * I::kT;
  job.step = block * I::kPackSteps + warp;
  const int64 channels = min_of(kStepChannels, g.in_channels - job.step * kStepChannels);
  job.channels = warp < I::kPackSteps ? static_cast<int>(max_of(0, channels)) : 0;
  const Divider period = divider_of(period_of(g));
  unsigned char* const workspace = static_cast<unsigned char*>(a.workspace);
  unsigned char* const image = workspace + (job.places * steps_of(g) + job.step) * I::kImageBytes;
  if constexpr (I::kSmall) {
    pack_plain<I>(a, period, job, column, image);
  } else {
    const Workspace w = workspace_of(I::tunables(), g, I::facts(), 4);
    float* const inverse = reinterpret_cast<float*>(workspace + w.inverse) + job.places * (steps_of(g) / I::kGroup);
    auto* const flags = reinterpret_cast<unsigned long long*>(workspace + w.flags) + job.places * w.flag_blocks + block;
    pack_scaled<I>(a, period, job, warp, image, inverse, flags, shared_address(shared_memory));
  }
}

}  // namespace ct1d::wgmma_packed
