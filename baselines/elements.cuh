// What the helper kernels of the vendor baselines compute, an element at a time, and the arguments they take.
//
// Compiled by NVRTC into the kernels of kernels.cuh and by the host compiler into tests: C++17, no standard library.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {
namespace baseline {

/// target[i0][i1][i2][i3] (contiguous) = source[offset + i0 * strides[0] + ... + i3 * strides[3]].
struct PermuteArguments {
  const void* source;
  void* target;
  int64 extents[4];
  int64 strides[4];
  int64 offset;
};

/// Sets columns [0, left_end) and [right_begin, columns) of `rows` rows to bias[row mod channels], or to 0 without
/// bias.
struct FillArguments {
  void* y;
  const void* bias;
  int64 rows;
  int64 channels;
  int64 row_stride;
  int64 left_end;
  int64 right_begin;
  int64 columns;
};

/// y[row][t] += bias[row mod channels].
struct AddBiasArguments {
  void* y;
  const void* bias;
  int64 rows;
  int64 channels;
  int64 row_stride;
  int64 columns;
};

/// Columns (batches, channels, kernel_size, length), fp32, gathered into y: y[b][first_channel + c][t] is bias plus the
/// sum of columns[b][c][k][l] over the taps with l * stride + k * dilation == t + padding.
/// With kernel_size 1 and stride 1 it converts fp32 rows into y.
struct GatherArguments {
  const float* columns;
  const void* bias;  // of channel 0, or null
  void* y;           // of batch 0 and channel 0 of the batches gathered
  int64 batches;
  int64 channels;       // gathered, a batch
  int64 first_channel;  // in y
  int64 y_batch_stride;
  int64 y_row_stride;
  int64 kernel_size;
  int64 stride;
  int64 padding;
  int64 dilation;
  int64 length;
  int64 length_out;
  int64 common;    // gcd(stride, dilation)
  int64 tap_step;  // stride / common: distance between the taps that reach one output
  int64 x_step;    // dilation / common: how far apart in x these taps read
  int64 inverse;   // of x_step modulo tap_step
};

/// Inverse of `value` modulo `modulus`, which share no factor; 0 for modulus 1.
CT1D_HD constexpr int64 inverse_modulo(int64 value, int64 modulus) {
  int64 old_r = floor_mod(value, modulus), r = modulus, old_s = 1, s = 0;
  while (r != 0) {
    const int64 quotient = old_r / r;
    const int64 next_r = old_r - quotient * r;
    const int64 next_s = old_s - quotient * s;
    old_r = r;
    r = next_r;
    old_s = s;
    s = next_s;
  }
  return floor_mod(old_s, modulus);
}

/// Fills in what follows from kernel_size, stride, padding and dilation.
CT1D_HD constexpr void complete(GatherArguments& a) {
  a.common = gcd(a.stride, a.dilation);
  a.tap_step = a.stride / a.common;
  a.x_step = a.dilation / a.common;
  a.inverse = inverse_modulo(a.x_step, a.tap_step);
}

/// Whether every index within one row's columns, and every product on the way, fits 31 bits.
CT1D_HD constexpr bool fits_int(const GatherArguments& a) {
  const int64 limit = 0x7fffffff;
  return a.stride < 32768 && a.kernel_size <= limit / max_of(a.length, a.dilation) &&
         a.length_out <= limit - a.padding - 4096;
}

/// Sum over the taps that reach output t, k ascending. `columns` is one channel's (kernel_size, length).
template <class Index>
CT1D_HD inline float gather_sum(const GatherArguments& a, const float* columns, Index t) {
  const Index stride = static_cast<Index>(a.stride), common = static_cast<Index>(a.common);
  const Index length = static_cast<Index>(a.length), x_step = static_cast<Index>(a.x_step);
  const Index shifted = t + static_cast<Index>(a.padding);
  const Index residue = shifted % stride;
  if (residue % common != 0) return 0.0f;
  const Index step = static_cast<Index>(a.tap_step);
  Index k = static_cast<Index>((residue / common) * static_cast<Index>(a.inverse) % step);
  if (k >= static_cast<Index>(a.kernel_size)) return 0.0f;
  const Index remaining = shifted - k * static_cast<Index>(a.dilation);
  if (remaining < 0) return 0.0f;
  float sum = 0.0f;
  for (Index l = remaining / stride; k < static_cast<Index>(a.kernel_size) && l >= 0; k += step, l -= x_step) {
    if (l < length) sum += columns[k * length + l];
  }
  return sum;
}

}  // namespace baseline
}  // namespace ct1d
