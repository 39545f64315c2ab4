// Small problems of every kind, their definition computed plainly, and integer data on which fp32 sums are exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/core/problem.h"

namespace tuner::testing {

inline std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

/// Whole numbers in [-8, 8].
inline std::vector<float> integers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(mixed(static_cast<std::uint64_t>(i) * 2654435761u + seed) % 17) - 8.0f);
  return values;
}

/// The definition: every (in channel, x element, tap) added where it lands.
inline std::vector<float> by_definition(const Problem& p, const std::vector<float>& x, const std::vector<float>& w,
                                        const std::vector<float>& bias) {
  const std::int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups, length_out = p.length_out();
  std::vector<float> y(static_cast<std::size_t>(p.y_count()));
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  if (p.bias)
    for (std::int64_t i = 0; i < p.y_count(); ++i) y[at(i)] = bias[at(i / length_out % p.out_channels)];
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t ic = 0; ic < p.in_channels; ++ic)
      for (std::int64_t oc = 0; oc < out; ++oc)
        for (std::int64_t l = 0; l < p.length; ++l)
          for (std::int64_t k = 0; k < p.kernel_size; ++k) {
            const std::int64_t t = l * p.stride + k * p.dilation - p.padding;
            if (t < 0 || t >= length_out) continue;
            const std::int64_t channel = ic / in * out + oc;
            y[at((b * p.out_channels + channel) * length_out + t)] +=
                x[at((b * p.in_channels + ic) * p.length + l)] * w[at((ic * out + oc) * p.kernel_size + k)];
          }
  return y;
}

/// Legal problems drawn at random; reproducible.
inline std::vector<Problem> small_problems(int count, std::uint64_t seed) {
  std::vector<Problem> problems;
  std::uint64_t state = seed;
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    state = mixed(state + 0x9e3779b97f4a7c15ULL);
    return low + static_cast<std::int64_t>(state % static_cast<std::uint64_t>(high - low + 1));
  };
  while (static_cast<int>(problems.size()) < count) {
    Problem p;
    p.groups = draw(1, 3);
    p.batch = draw(1, 4);
    p.in_channels = p.groups * draw(1, 3);
    p.out_channels = p.groups * draw(1, 4);
    p.kernel_size = draw(1, 7);
    p.stride = draw(0, 1) ? 1 : draw(1, 6);
    p.dilation = draw(1, 5);
    p.padding = draw(0, 12);
    p.output_padding = draw(0, 4);
    p.bias = draw(0, 1) == 1;
    p.length = draw(1, 20);
    if (!illegal(p)) problems.push_back(p);
  }
  return problems;
}

}  // namespace tuner::testing
