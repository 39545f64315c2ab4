// A kernel that rounds values to halves with ties away from zero, what it is given and what it must compute: for Host
// execution and for a GPU.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/common/element.cuh"
#include "tests/host/host_fixture.h"

namespace tuner::host_test {

inline const char* const kRoundingIncludes = "#include \"kernels/common/placed.cuh\"\nusing namespace ct1d;\n";
/// A value a thread; y: the bits of its half, as a number.
inline const char* const kRounding =
    "  y[t] = static_cast<float>(half_pair_away(x[t], 1.0f) & 0xFFFFu) +\n"
    "         (half_pair_away(1.0f, x[t]) >> 16 == (half_pair_away(x[t], 1.0f) & 0xFFFFu) ? 0.0f : 0.5f);\n";

struct Rounded {
  float value;
  std::uint32_t half;
};
inline const std::vector<Rounded> kRounded{
    {1.0f, 0x3C00},
    {1.0f + 0x1p-11f, 0x3C01},  // a tie, away from the even one
    {1.0f + 0x3p-11f, 0x3C02},
    {1.0f + 0x3p-11f - 0x1p-23f, 0x3C01},
    {-1.0f - 0x1p-11f, 0xBC01},
    {65504.0f, 0x7BFF},
    {1e6f, 0x7BFF},  // beyond all halves: the largest, no infinity
    {-1e30f, 0xFBFF},
    {std::numeric_limits<float>::infinity(), 0x7FFF},
    {std::numeric_limits<float>::quiet_NaN(), 0x7FFF},
    {ct1d::float_of_bits(0x7FFFFFFFu), 0x8000},  // as the matrix units and CUDA's functions give
    {0.0f, 0x0000},
    {0x1p-15f, 0x0200},
    {0x1.8p-25f, 0x0000}};  // cut off, not rounded

inline std::vector<float> values_to_round() {
  std::vector<float> values;
  for (const Rounded& each : kRounded) values.push_back(each.value);
  return values;
}
inline std::vector<float> rounded_values() {
  std::vector<float> halves;
  for (const Rounded& each : kRounded) halves.push_back(static_cast<float>(each.half));
  return halves;
}

}  // namespace tuner::host_test
