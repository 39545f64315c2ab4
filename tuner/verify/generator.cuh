// Input data as a function of (kind, seed, tensor, element index): any part can be made anywhere, with the same bits
// on host and device.
#pragma once

#include "tuner/verify/numbers.cuh"

namespace ct1d::check {

/// The order is tuner::Values's. What each draws for x, w and bias (before rounding to the storage):
enum class Kind : int {
  normal,         // mean 0, variance 1: eight 16-bit uniforms added (magnitude at most 4.9)
  positive,       // uniform in (0, 1], multiples of 2^-24
  large_mean,     // x: 64 + normal; w, bias: normal
  spike,          // normal, with one x of 1e6 (fp16: 1000)
  wide_channels,  // normal * 2^-e, e from 0 for the first channel to 27 (fp16: 10) for the last; x by ic, w by oc
                  // within its group, bias by oc
  integers,       // whole numbers -8 to 8
  index_coded,  // x: ((31 b + 37 ic + 41 i + seed) mod 127 - 63) / 64, w: ((43 ic + 47 oc + 53 k + seed) mod 113 - 56)
                // / 64, bias: ((59 oc + seed) mod 61 - 30) / 16: another value when any two indices are swapped
  patches,  // normal, the bias times 2^-60 (fp16: 2^-9); x in patches of 48 positions along t that take turns: as it
            // is, times 2^60 (fp16: 2^5), zeros, times 2^-60 (2^-9), every second position times 2^-30 (2^-10), every
            // second channel times 2^-30 (2^-10)
};

enum class Tensor : int { x, w, bias };

struct Generator {
  Kind kind;
  Storage storage;
  uint64 seed;
  Geometry geometry;
};

/// Finaliser of SplitMix64 (Steele, Lea, Flood 2014).
CT1D_HD inline uint64 mix(uint64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

CT1D_HD inline uint64 random_bits(const Generator& g, Tensor tensor, int64 index) {
  const uint64 stream = mix(g.seed * 4 + static_cast<uint64>(tensor) + 1);
  return mix(stream + static_cast<uint64>(index) * 0x9e3779b97f4a7c15ull);
}

CT1D_HD inline double normal(uint64 bits) {
  const uint64 more = mix(bits + 0x632be59bd9b4e019ull);
  long long sum = -8 * 32767 - 4;  // eight times the mean, 32767.5
  for (int i = 0; i < 4; ++i) sum += static_cast<long long>((bits >> 16 * i & 0xffff) + (more >> 16 * i & 0xffff));
  return multiply(static_cast<double>(sum), 1.8688123650118534e-05);  // sqrt(12 / (8 (2^32 - 1)))
}

/// 2^-e, e growing evenly from 0 for the first channel to `last` for the last.
CT1D_HD inline double channel_scale(int64 channel, int64 channels, int last) {
  return channels > 1 ? power_of_two(-static_cast<int>(channel * last / (channels - 1))) : 1.0;
}

CT1D_HD inline int64 channel_of(const Geometry& g, Tensor tensor, int64 index) {
  if (tensor == Tensor::x) return index / g.length % g.in_channels;
  if (tensor == Tensor::w) return index / g.kernel_size % g.out_per_group();
  return index;
}

CT1D_HD inline int64 channels_of(const Geometry& g, Tensor tensor) {
  if (tensor == Tensor::x) return g.in_channels;
  return tensor == Tensor::w ? g.out_per_group() : g.out_channels;
}

CT1D_HD inline double index_code(const Generator& g, Tensor tensor, int64 index) {
  const Geometry& p = g.geometry;
  const int64 seed = static_cast<int64>(g.seed % 1000003);
  if (tensor == Tensor::bias) return static_cast<double>((59 * index + seed) % 61 - 30) / 16;
  if (tensor == Tensor::x) {
    const int64 row = index / p.length;
    const int64 code = 31 * (row / p.in_channels) + 37 * (row % p.in_channels) + 41 * (index % p.length) + seed;
    return static_cast<double>(code % 127 - 63) / 64;
  }
  const int64 pair = index / p.kernel_size;
  const int64 code =
      43 * (pair / p.out_per_group()) + 47 * (pair % p.out_per_group()) + 53 * (index % p.kernel_size) + seed;
  return static_cast<double>(code % 113 - 56) / 64;
}

inline constexpr int64 kPatch = 48;  // positions

/// What stands in place of `value` at this index.
CT1D_HD inline double patched(const Generator& g, Tensor tensor, int64 index, double value) {
  const int64 t = index % g.geometry.length, row = index / g.geometry.length;
  const bool fp16 = g.storage == Storage::f16;
  const double beside = power_of_two(fp16 ? -10 : -30), far_below = power_of_two(fp16 ? -9 : -60);
  if (tensor == Tensor::w) return value;
  if (tensor == Tensor::bias) return multiply(value, far_below);  // a larger one would hide small sums
  switch ((t / kPatch + row / g.geometry.in_channels) % 6) {      // the next batch starts with the next kind
    case 1:
      return multiply(value, power_of_two(fp16 ? 5 : 60));
    case 2:
      return 0;
    case 3:
      return multiply(value, far_below);
    case 4:
      return t % 2 != 0 ? multiply(value, beside) : value;
    case 5:
      return row % g.geometry.in_channels % 2 != 0 ? multiply(value, beside) : value;
    default:
      return value;
  }
}

CT1D_HD inline double draw(const Generator& g, Tensor tensor, int64 index) {
  const uint64 bits = random_bits(g, tensor, index);
  const bool fp16 = g.storage == Storage::f16;
  switch (g.kind) {
    case Kind::positive:
      return static_cast<double>((bits >> 40) + 1) / 16777216;
    case Kind::large_mean:
      return tensor == Tensor::x ? add(64.0, normal(bits)) : normal(bits);
    case Kind::spike: {
      const uint64 count = static_cast<uint64>(g.geometry.batch * g.geometry.in_channels * g.geometry.length);
      if (tensor == Tensor::x && static_cast<uint64>(index) == mix(g.seed + 77) % count) return fp16 ? 1e3 : 1e6;
      return normal(bits);
    }
    case Kind::wide_channels:
      return normal(bits) *
             channel_scale(channel_of(g.geometry, tensor, index), channels_of(g.geometry, tensor), fp16 ? 10 : 27);
    case Kind::integers:
      return static_cast<double>(static_cast<long long>((bits >> 32) % 17) - 8);
    case Kind::index_coded:
      return index_code(g, tensor, index);
    case Kind::patches:
      return patched(g, tensor, index, normal(bits));
    case Kind::normal:
      break;
  }
  return normal(bits);
}

/// The element as stored: exactly representable in the generator's storage.
CT1D_HD inline float generated(const Generator& g, Tensor tensor, int64 index) {
  return static_cast<float>(round_to(draw(g, tensor, index), format_of(g.storage)));
}

}  // namespace ct1d::check
