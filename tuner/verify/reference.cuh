// Reference arithmetic of one output element, its bounds, and the judgement of a result. Read alike by the host
// compiler and by NVRTC (docs/MEASURING.md states the bounds).
//
// Products of two fp32 numbers are exact in float64, so sums come out the same with and without fused multiply-add.
#pragma once

#include "tuner/verify/numbers.cuh"

namespace ct1d::check {

/// The order is tuner::Accuracy's.
enum class Class : int { fp32, tf32, fp16, bf16 };

CT1D_HD inline Storage storage_of(Class accuracy) {
  if (accuracy == Class::fp16) return Storage::f16;
  return accuracy == Class::bf16 ? Storage::bf16 : Storage::f32;
}

/// The taps that meet x at output t: k = first + j * step for j in [0, count), reading x[x - j * x_step].
struct Taps {
  int64 first;
  int64 step;
  int64 count;
  int64 x;
  int64 x_step;
};

CT1D_HD inline Taps taps_of(const Geometry& g, int64 t) {
  const Phase phase = phase_of(g, (t + g.padding) % g.stride);
  Taps taps{phase.first_tap, phase.tap_step, 0, 0, phase.x_step};
  if (phase.taps == 0) return taps;
  const int64 x = (t + g.padding - phase.first_tap * g.dilation) / g.stride;  // exact
  const int64 begin = x < g.length ? 0 : ceil_div(x - g.length + 1, phase.x_step);
  const int64 end = x < 0 ? 0 : min_of(phase.taps, x / phase.x_step + 1);
  taps.first += begin * phase.tap_step;
  taps.x = x - begin * phase.x_step;
  taps.count = max_of(0, end - begin);
  return taps;
}

/// Sums of one output element over ic, then k, both ascending; the bias comes last.
struct Sums {
  double y = 0;        // in float64
  double s = 0;        // of |x| |w|, and |bias|
  double squares = 0;  // of (x w)^2, and bias^2
  double rounded = 0;  // in float64 with x and w rounded to TF32; used by class tf32
  float plain = 0;     // in fp32: each product rounded, then added and rounded: the ordinary sequential sum
};

template <bool kTf32>
CT1D_HD inline void accumulate(Sums& sums, float x, float w) {
  const double product = static_cast<double>(x) * static_cast<double>(w);
  sums.y += product;
  sums.s += magnitude(product);
  sums.squares += product * product;
  sums.plain = add(sums.plain, multiply(x, w));
  if (kTf32) sums.rounded += static_cast<double>(round_to_tf32(x)) * static_cast<double>(round_to_tf32(w));
}

CT1D_HD inline void add_bias(Sums& sums, float bias) {
  const double wide = bias;
  sums.y = add(sums.y, wide);
  sums.s = add(sums.s, magnitude(wide));
  sums.squares = add(sums.squares, multiply(wide, wide));
  sums.plain = add(sums.plain, bias);
  sums.rounded = add(sums.rounded, wide);
}

/// Sums of outputs (b, oc .. oc + kRows - 1, t); the first `rows` of these channels exist and share a group.
template <int kRows, bool kTf32, class Element>
CT1D_HD inline void sum_outputs(const Geometry& g, const Element* x, const Element* w, const Element* bias, int64 b,
                                int64 oc, int64 rows, const Taps& taps, Sums (&sums)[kRows]) {
  const int64 in_per_group = g.in_per_group(), out_per_group = g.out_per_group();
  const int64 first_in = oc / out_per_group * in_per_group;
  const Element* x_row = x + (b * g.in_channels + first_in) * g.length + taps.x;
  const Element* w_row = w + (first_in * out_per_group + oc % out_per_group) * g.kernel_size + taps.first;
  for (int64 ic = 0; ic < in_per_group; ++ic) {
    for (int64 j = 0; j < taps.count; ++j) {
      const float value = widen(x_row[-j * taps.x_step]);
      for (int row = 0; row < kRows; ++row)
        if (row < rows) accumulate<kTf32>(sums[row], value, widen(w_row[row * g.kernel_size + j * taps.step]));
    }
    x_row += g.length;
    w_row += out_per_group * g.kernel_size;
  }
  if (bias)
    for (int row = 0; row < kRows; ++row)
      if (row < rows) add_bias(sums[row], widen(bias[oc + row]));
}

/// Bound on |y - reference| without the half ulp that storing y in 16 bits costs: (8 + 2 sqrt(n)) u s + n 2^-149, and
/// 2^-10 s more in class tf32.
CT1D_HD inline double element_bound(Class accuracy, int64 products, double s) {
  const double n = static_cast<double>(products);
  const double factor = multiply(add(8.0, multiply(2.0, sqrt(n))), power_of_two(-24));
  const double fp32 = add(multiply(factor, s), multiply(n, power_of_two(-149)));
  return accuracy == Class::tf32 ? add(multiply(s, power_of_two(-10)), fp32) : fp32;
}

/// One output, and what its class allows.
struct Wanted {
  double y;
  double bound;  // element_bound
};

template <class Element>
CT1D_HD inline Wanted wanted_at(const Geometry& g, Class accuracy, const Element* x, const Element* w,
                                const Element* bias, int64 b, int64 oc, int64 t) {
  Sums sums[1];
  const Taps taps = taps_of(g, t);
  sum_outputs<1, false>(g, x, w, bias, b, oc, 1, taps, sums);
  return {sums[0].y, element_bound(accuracy, taps.count * g.in_per_group(), sums[0].s)};
}

/// Error to expect of an fp32 sum of these products in any order: 0.5 u sqrt((n + 1) max(sum of squares, y^2)), and
/// sqrt(n) 2^-149. Random signs make partial sums grow as the root of the squares, equal signs up to y; whichever comes
/// first meets all later roundings. On random data this is about twice what the ordinary order shows.
CT1D_HD inline double expected_error(int64 products, double squares, double y) {
  const double n = static_cast<double>(products), y2 = y * y;
  return 0.5 * power_of_two(-24) * sqrt((n + 1) * (squares > y2 ? squares : y2)) + sqrt(n) * power_of_two(-149);
}

/// Whether an element takes part in its row's Frobenius norms: its reference is finite and cannot overflow the storage.
CT1D_HD inline bool counts_in_row(double want, double bound, const Format& format) {
  return is_finite(want) && magnitude(want) + bound < overflow_threshold(format);
}

/// Error over what is allowed: right at or below 1; infinite where NaN or infinity stand in the wrong place. `bound` is
/// element_bound's; the half ulp of 16-bit formats is taken at the largest result that the bound admits.
CT1D_HD inline double judge(double want, double bound, float got, const Format& format) {
  if (is_nan(want)) return is_nan(got) ? 0 : infinity();
  if (!is_finite(want)) return static_cast<double>(got) == want ? 0 : infinity();
  const double reach = magnitude(want) + bound;
  if (is_nan(got)) return infinity();
  if (!is_finite(got)) return reach >= overflow_threshold(format) && (got > 0) == (want > 0) ? 0 : infinity();
  const double error = magnitude(got - want);
  if (error == 0) return 0;
  return error / (format.digits < 24 ? bound + ulp(reach, format) / 2 : bound);
}

/// Sums over the elements of one (b, oc) row that count in it.
struct RowSums {
  double y2 = 0;         // of reference squared
  double plain2 = 0;     // of (plain - reference) squared, where plain is finite
  double rounded2 = 0;   // of the class's rounded product - reference, squared; 0 in class fp32
  double expected2 = 0;  // of expected_error squared
  double expected4 = 0;  // and to the fourth: expected2^2 / expected4 elements carry the row's error
  double nans = 0;       // reference elements that are NaN, over the whole row
  double outside = 0;    // those that take no part above: not finite, or beyond the storage
};

CT1D_HD inline void count_in_row(RowSums& row, const Sums& sums, int64 products, double bound, Class accuracy) {
  const Format format = format_of(storage_of(accuracy));
  if (is_nan(sums.y)) row.nans += 1;
  if (!counts_in_row(sums.y, bound, format)) {
    row.outside += 1;
    return;
  }
  row.y2 += sums.y * sums.y;
  const double plain = sums.plain - sums.y;
  if (is_finite(plain)) row.plain2 += plain * plain;
  const double product = accuracy == Class::tf32 ? sums.rounded : round_to(sums.y, format);
  if (accuracy != Class::fp32 && is_finite(product)) row.rounded2 += (product - sums.y) * (product - sums.y);
  const double expected = expected_error(products, sums.squares, sums.y), expected2 = expected * expected;
  row.expected2 += expected2;
  row.expected4 += expected2 * expected2;
}

/// What comparing one row found.
struct RowVerdict {
  double worst = 0;  // largest error over bound of an element
  int64 t = -1;      // of that element, the first one; -1 where every element is exact
  double want = 0;
  double bound = 0;
  float got = 0;
  double error2 = 0;  // sum of squared errors of the elements that count
  int64 wrong = 0;    // elements beyond their bound
  int64 nans = 0;     // in the reference
};

CT1D_HD inline void judge_into(RowVerdict& row, int64 t, double want, double bound, float got, const Format& format) {
  const double ratio = judge(want, bound, got, format);
  if (is_nan(want)) row.nans += 1;
  if (ratio > 1) row.wrong += 1;
  if (ratio > row.worst) {
    row.worst = ratio;
    row.t = t;
    row.want = want;
    row.bound = bound;
    row.got = got;
  }
  if (counts_in_row(want, bound, format) && is_finite(got)) row.error2 += (got - want) * (got - want);
}

/// Adds what another part of the same row found.
CT1D_HD inline void merge(RowVerdict& row, const RowVerdict& part) {
  if (part.worst > row.worst || (part.worst == row.worst && part.worst > 0 && part.t < row.t)) {
    row.worst = part.worst;
    row.t = part.t;
    row.want = part.want;
    row.bound = part.bound;
    row.got = part.got;
  }
  row.error2 += part.error2;
  row.wrong += part.wrong;
  row.nans += part.nans;
}

}  // namespace ct1d::check
