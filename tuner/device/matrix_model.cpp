#include "tuner/device/matrix_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/common/element.cuh"

namespace tuner {
namespace {

using ct1d::bits_of_float;
using ct1d::float_of_bits;

constexpr int kFraction = 25;  // bits kept below the largest exponent
constexpr int kLanes = 8;      // columns done together
// Exponents of what has none: a product with a zero stays below any other, one with an infinity or NaN above.
constexpr int kZero = -2048;
constexpr int kSpecial = 4096;
constexpr int kNothing = -1024;    // terms whose exponents are all below are zero
constexpr int kAnySpecial = 1024;  // a product with at least this exponent is not finite
constexpr std::uint64_t kFloatBits = ~((std::uint64_t{1} << 29) - 1);  // of a double, that a float has too
// Largest exponents for which the total, at least one unit of the last bit kept, is a normal number, and its scale too.
constexpr int kLowest = kFraction - 126;
constexpr int kHighest = kFraction + 127;

/// value = significand * 2^exponent, |significand| below 2.
struct Parts {
  float significand;
  std::int32_t exponent;
};

template <int FractionBits, int ExponentBits>
Parts split(std::uint32_t bits) {
  constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  const auto field = static_cast<int>(bits >> FractionBits & ((1u << ExponentBits) - 1));
  const std::uint32_t fraction = bits & ((1u << FractionBits) - 1);
  if (field == (1 << ExponentBits) - 1) return {1, kSpecial};
  if (field == 0 && fraction == 0) return {0, kZero};
  const std::uint32_t whole = fraction | (field != 0 ? 1u << FractionBits : 0u);
  const float magnitude = static_cast<float>(whole) * (1.0f / static_cast<float>(1u << FractionBits));
  return {(bits >> (FractionBits + ExponentBits) & 1) != 0 ? -magnitude : magnitude, std::max(field, 1) - kBias};
}

Parts split(MatrixElement element, std::uint16_t bits) {
  return element == MatrixElement::half ? split<10, 5>(bits) : split<7, 8>(bits);
}
double value_of(MatrixElement element, std::uint16_t bits) {
  if (element == MatrixElement::bfloat16) return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
  const Parts parts = split<10, 5>(bits);
  if (parts.exponent != kSpecial) return std::ldexp(parts.significand, std::max(parts.exponent, -126));
  if ((bits & 0x3FF) != 0) return std::numeric_limits<double>::quiet_NaN();
  return (bits & 0x8000) != 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

/// A total that comes to nothing is +0.
float toward_zero(double value) {
  if (std::fabs(value) < 0x1p-126) return static_cast<float>(std::trunc(value * 0x1p149) * 0x1p-149 + 0.0);
  if (std::fabs(value) >= 0x1p128)
    return std::copysign(std::numeric_limits<float>::infinity(), value < 0 ? -1.0f : 1.0f);
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= kFloatBits;
  std::memcpy(&value, &bits, sizeof bits);
  return static_cast<float>(value);
}

/// Operands by k, then by column, so that neighbouring columns are done together.
struct Columns {
  alignas(64) float significand[kMatrixDepth][kMatrixColumns];
  alignas(64) std::int32_t exponent[kMatrixDepth][kMatrixColumns];
};

float power_of_two(std::int32_t exponent) { return float_of_bits(static_cast<std::uint32_t>(exponent + 127) << 23); }

/// kLanes outputs of one row; false where one of them needs matrix_dot.
bool product_of_lanes(const Parts (&a)[kMatrixDepth], const Columns& b, int column, const float* sums, float* out) {
  std::int32_t largest[kLanes], low[kLanes], high[kLanes];
  float sum_significand[kLanes];
  std::int32_t sum_exponent[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t bits = bits_of_float(sums[lane]);
    const auto field = static_cast<std::int32_t>(bits >> 23 & 255);
    const std::uint32_t fraction = bits & 0x7FFFFF;
    const float magnitude =
        static_cast<float>(static_cast<std::int32_t>(fraction | (field != 0 ? 1u << 23 : 0u))) * 0x1p-23f;
    sum_significand[lane] = float_of_bits(bits_of_float(magnitude) | (bits & 0x80000000u));
    const std::int32_t finite = (bits & 0x7FFFFFFF) == 0 ? kZero : (field == 0 ? 1 : field) - 127;
    sum_exponent[lane] = field == 255 ? kSpecial : finite;
    largest[lane] = sum_exponent[lane];
  }
  for (int k = 0; k < kMatrixDepth; ++k)
    for (int lane = 0; lane < kLanes; ++lane)
      largest[lane] = std::max(largest[lane], a[k].exponent + b.exponent[k][column + lane]);

  const auto cut = [](float significand, std::int32_t exponent, std::int32_t most) {
    const std::int32_t scale = std::max(exponent - most + kFraction + 127, 0);
    return static_cast<std::int32_t>(significand * float_of_bits(static_cast<std::uint32_t>(scale) << 23));
  };
  bool ordinary = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    ordinary &= largest[lane] >= kLowest && largest[lane] <= kHighest;
    low[lane] = cut(sum_significand[lane], sum_exponent[lane], largest[lane]);
    high[lane] = 0;
  }
  if (!ordinary) {
    const bool zeros = std::all_of(largest, largest + kLanes, [](std::int32_t most) { return most < kNothing; });
    if (zeros) std::fill(out, out + kLanes, 0.0f);
    return zeros;
  }
  for (int k = 0; k < kMatrixDepth / 2; ++k)
    for (int lane = 0; lane < kLanes; ++lane)
      low[lane] += cut(a[k].significand * b.significand[k][column + lane], a[k].exponent + b.exponent[k][column + lane],
                       largest[lane]);
  for (int k = kMatrixDepth / 2; k < kMatrixDepth; ++k)
    for (int lane = 0; lane < kLanes; ++lane)
      high[lane] += cut(a[k].significand * b.significand[k][column + lane],
                        a[k].exponent + b.exponent[k][column + lane], largest[lane]);
  for (int lane = 0; lane < kLanes; ++lane) {
    double total = static_cast<double>(low[lane]) + static_cast<double>(high[lane]);
    std::uint64_t bits;
    std::memcpy(&bits, &total, sizeof bits);
    bits &= kFloatBits;
    std::memcpy(&total, &bits, sizeof bits);
    out[lane] = static_cast<float>(total) * power_of_two(largest[lane] - kFraction);
  }
  return true;
}

}  // namespace

float matrix_dot(MatrixElement element, const std::uint16_t* a, const std::uint16_t* b, float sum) {
  Parts terms[kMatrixDepth + 1];
  terms[kMatrixDepth] = split<23, 8>(bits_of_float(sum));
  std::int32_t largest = terms[kMatrixDepth].exponent;
  for (int k = 0; k < kMatrixDepth; ++k) {
    const Parts x = split(element, a[k]), y = split(element, b[k]);
    terms[k] = {x.significand * y.significand, x.exponent + y.exponent};
    largest = std::max(largest, terms[k].exponent);
  }
  if (largest >= kAnySpecial) {
    double total = sum;
    for (int k = 0; k < kMatrixDepth; ++k) total += value_of(element, a[k]) * value_of(element, b[k]);
    return std::isnan(total) ? float_of_bits(0x7FFFFFFF) : static_cast<float>(total);
  }
  double total = 0;  // exact: an integer below 2^32
  for (const Parts& term : terms)
    total += std::trunc(std::ldexp(term.significand, std::max(term.exponent - largest, -64) + kFraction));
  return toward_zero(std::ldexp(total, largest - kFraction));
}

void matrix_product(MatrixElement element, const std::uint16_t* a, const std::uint16_t* b, int columns, bool accumulate,
                    float* d, int rows) {
  static thread_local Columns split_b;
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < kMatrixDepth; ++k) {
      const Parts parts = split(element, b[n * kMatrixDepth + k]);
      split_b.significand[k][n] = parts.significand;
      split_b.exponent[k][n] = parts.exponent;
    }
  if (!accumulate) std::fill(d, d + rows * columns, 0.0f);
  for (int m = 0; m < rows; ++m) {
    Parts split_a[kMatrixDepth];
    for (int k = 0; k < kMatrixDepth; ++k) split_a[k] = split(element, a[m * kMatrixDepth + k]);
    for (int n = 0; n < columns; n += kLanes) {
      float* at = d + m * columns + n;
      float out[kLanes];
      if (!product_of_lanes(split_a, split_b, n, at, out))
        for (int lane = 0; lane < kLanes; ++lane)
          out[lane] = matrix_dot(element, a + m * kMatrixDepth, b + (n + lane) * kMatrixDepth, at[lane]);
      std::copy(out, out + kLanes, at);
    }
  }
}

}  // namespace tuner
