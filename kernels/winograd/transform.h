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

/// What is computed directly instead. A transform mixes neighbours and taps, so that an output's error is about
///   e u X W,  X the largest size of a position of its window, W the largest norm of a tap,
/// whatever the output's own products are, while class fp32 grants it (8 + 2 sqrt n) u S, S being the sum of their
/// magnitudes. The size of a position is the sum over channels of |x| times the channel's largest weight, a tap's norm
/// the sum over channels of |w|: where many channels take part, S is close to the sum over taps of size times norm
/// (over the number of channels, as X W). On even data S = 3 X W and the largest error of 5e8 elements is 0.22 of the
/// bound for 6 points and 3 taps (measured, 128 channels; 0.11 for 4 points); so e is 0.66 of the bound of S = X W (for
/// 2 taps about the same), and less where one tap carries W alone: 0.38, since errors of 3 taps add up as squares do.
/// - kSpread: an output's own positions have a mean size of X / kSpread or more. S >= 1.2 X W where norms are equal.
/// - kTapRatio: that mean may come from one position, which meets the smallest tap alone: S >= 1.2 X W / kTapRatio
///   (0.8 for 2 taps), which leaves 0.83. Beyond this ratio of the norms of two taps of a phase, or where one is zero,
///   taps are uneven.
/// - position_spread: where a channel of the tile has uneven taps, every position of the window has a size of
///   X / position_spread or more, in each chunk of taps by itself. So S >= X W / position_spread: 0.76 of the bound.
/// - fewest_effective: S is close to its expectation only if no few channels make up the sizes. The number of effective
///   channels, (sum of |x|)^2 / (sum of x^2), must not be below this; normal data has 0.64 an actual one. With 8.7
///   of them, channels of scales 1 to 1e-8, 6 points reached 1.26 of the bound, and one spike, 1 effective channel,
///   took 4 points to 3.8 (measured).
/// - kSmallest: the squares of that, and products next to the smallest float, must be exact enough.
/// family_test.cpp simulates all but the last.
inline constexpr float kSpread = 2.5f;
inline constexpr float kTapRatio = 1.5f;
inline constexpr float kSmallest = 8.8817841970012523e-16f;  // 2^-50
inline constexpr float kLargest = 3.4028234663852886e38f;
CT1D_HD constexpr float position_spread(int points) { return points == 4 ? 3.0f : 2.0f; }
CT1D_HD constexpr float fewest_effective(int points) { return points == 4 ? 6.0f : 14.0f; }

/// Class fp32 is served from this many input channels a group on: with fewer, some output's products are all so much
/// smaller than its neighbours', by chance alone, that the bound breaks.
CT1D_HD constexpr int fewest_channels(int points) { return points == 4 ? 16 : 32; }
/// The same where one tap's norm is kSteepTapRatio times another's, since in effect there are fewer products.
inline constexpr float kSteepTapRatio = 4.0f;
CT1D_HD constexpr int fewest_channels_of_steep_taps(int points) { return points == 4 ? 16 : 96; }
/// With fewer than fewest_channels it is class tf32, whose bound, 2^-10 S, is 2^14 u S: these leave a factor of 2^6 and
/// more for chance.
inline constexpr float kLooseTapRatio = 16.0f;
inline constexpr float kLoosePositionSpread = 64.0f;

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
