// Seeded draws that are the same with every compiler and standard library (SplitMix64).
#pragma once

#include <cstdint>

namespace tuner {

/// One round of SplitMix64's mixing: a well-spread function of `x` (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    const std::uint64_t drawn = mix64(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return drawn;
  }
  /// Uniform in [0, bound), without bias; bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t excess =
        (UINT64_MAX % bound + 1) % bound;  // draws above UINT64_MAX - excess would favour small ones
    std::uint64_t drawn = next();
    while (drawn > UINT64_MAX - excess) drawn = next();
    return drawn % bound;
  }
  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace tuner
