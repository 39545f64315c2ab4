// Minimal filtering (Winograd, Toom-Cook) in one dimension: `points` products give points - taps + 1 neighbouring
// outputs of a filter of `taps` taps, by evaluation at finite points and infinity:
//   y = A M,  M_c = (G g)_c (B d)_c, summed over channels before A.
// Points come in pairs +-p, so sums and differences serve two at once. The denominators of interpolation stand in A.
//
//   points  at                      outputs at 3, 2 taps   multiplies saved   error over the direct sum's, 384 (256)
//   products 4       0, +-1, inf             2, 3                   1.5x, 1.5x         0.8, 0.9 6       0, +-3/4,
//   +-3/2, inf    4, 5                   2x, 1.67x          1.4, 1.7
//
// The usual 0, +-1, +-2, inf has 2.0 and 2.5 times the direct sum's error: more than class fp32 allows a row. Points
// whose product is near 1 balance the growth of B against that of A; 3/4 and 3/2 keep all of B exact in fp32. Eight
// points (0, +-1/2, +-1, +-2, inf; six outputs of three taps, 2.25x) have 2.8 and are left out for the same reason. The
// figures are medians of simulations on normal data (family_test.cpp repeats them); on all-positive data every row of
// the table is below the direct sum.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d::winograd {

/// A transform mixes neighbours, so it rounds relative to the largest input of a window. An output whose own inputs
/// have a mean size below 1 / kSpread of the largest of its segment's window is computed directly instead. The size of
/// a position is the sum over channels of |x| times the largest weight of the channel. What is lost up to this spread
/// stays within the bounds of class fp32 (family_test.cpp).
inline constexpr float kSpread = 2.5f;

/// The positive point of pair `pair`.
template <int kPoints>
CT1D_HD constexpr double point(int pair) {
  return kPoints == 4 ? 1.0 : pair == 0 ? 0.75 : 1.5;
}
CT1D_HD constexpr double power(double base, int exponent) {
  double value = 1.0;
  for (int i = 0; i < exponent; ++i) value *= base;
  return value;
}

/// Products are numbered: point 0, then +p and -p of each pair, then infinity.
template <int kPoints>
CT1D_HD constexpr int infinity_of() {
  return kPoints - 1;
}

/// G at product `product` and tap `tap` of `taps`.
template <int kPoints>
CT1D_HD constexpr double weight_factor(int product, int tap, int taps) {
  if (product == 0) return tap == 0 ? 1.0 : 0.0;
  if (product == infinity_of<kPoints>()) return tap == taps - 1 ? 1.0 : 0.0;
  const double p = point<kPoints>((product - 1) / 2);
  return power(product % 2 == 1 ? p : -p, tap);
}

/// 1 over the product of the distances from a finite point to all others.
template <int kPoints>
CT1D_HD constexpr double over_distances(int product) {
  static_assert(kPoints == 4 || kPoints == 6, "points: 4 or 6");
  const double a = point<kPoints>(0) * point<kPoints>(0);
  if (kPoints == 4) return product == 0 ? -1.0 / a : 1.0 / (2.0 * a);
  const double b = point<kPoints>(1) * point<kPoints>(1);
  return product == 0 ? 1.0 / (a * b) : product <= 2 ? 1.0 / (2.0 * a * (a - b)) : 1.0 / (2.0 * b * (b - a));
}

/// B: `v` of a window of kPoints inputs. 4 additions for 4 points, 12 multiply-adds for 6.
template <int kPoints>
CT1D_HD constexpr void transform_input(float (&v)[kPoints], const float (&d)[kPoints]) {
  constexpr float kA = static_cast<float>(point<kPoints>(0));
  if constexpr (kPoints == 4) {
    v[0] = d[2] - kA * kA * d[0];
    v[1] = d[2] + kA * d[1];
    v[2] = d[2] - kA * d[1];
    v[3] = d[3] - kA * kA * d[1];
  } else {
    constexpr float kB = static_cast<float>(point<kPoints>(1));
    v[0] = kA * kA * kB * kB * d[0] + (d[4] - (kA * kA + kB * kB) * d[2]);
    v[5] = kA * kA * kB * kB * d[1] + (d[5] - (kA * kA + kB * kB) * d[3]);
    const float even_a = d[4] - kB * kB * d[2];
    const float odd_a = d[3] - kB * kB * d[1];
    v[1] = even_a + kA * odd_a;
    v[2] = even_a - kA * odd_a;
    const float even_b = d[4] - kA * kA * d[2];
    const float odd_b = d[3] - kA * kA * d[1];
    v[3] = even_b + kB * odd_b;
    v[4] = even_b - kB * odd_b;
  }
}

/// What A multiplies the sum (even outputs) or difference (odd outputs) of a pair's products by.
struct PairFactors {
  float of[2][6];  // [pair][output]
};
template <int kPoints>
CT1D_HD constexpr PairFactors pair_factors() {
  PairFactors factors{};
  for (int pair = 0; pair < kPoints / 2 - 1; ++pair) {
    for (int j = 0; j < 6; ++j) {
      factors.of[pair][j] = static_cast<float>(power(point<kPoints>(pair), j) * over_distances<kPoints>(1 + 2 * pair));
    }
  }
  return factors;
}

/// A: outputs of the sums of products.
template <int kPoints, int kOutputs>
CT1D_HD constexpr void transform_output(float (&y)[kOutputs], const float (&sum)[kPoints]) {
  constexpr PairFactors kFactors = pair_factors<kPoints>();
  constexpr float kZero = static_cast<float>(over_distances<kPoints>(0));
  for (int j = 0; j < kOutputs; ++j) {
    float value = j == kOutputs - 1 ? sum[kPoints - 1] : 0.0f;
    if (j == 0) value += kZero * sum[0];
    for (int pair = 0; pair < kPoints / 2 - 1; ++pair) {
      const float plus = sum[1 + 2 * pair];
      const float minus = sum[2 + 2 * pair];
      value += kFactors.of[pair][j] * (j % 2 == 0 ? plus + minus : plus - minus);
    }
    y[j] = value;
  }
}

}  // namespace ct1d::winograd
