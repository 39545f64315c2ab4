// A transposed convolution as one product: its columns are output channels by phases, and every phase's taps lie at the
// same offsets of x, some of which a phase has no tap for.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {

/// Offsets that the taps of all phases have between them: output m * stride + r - padding reads x at m - j * step,
/// j in [0, count).
struct Offsets {
  int64 step;
  int64 count;
};
CT1D_HD constexpr Offsets offsets_of(const Geometry& g) {
  if (g.dilation % g.stride == 0) return {g.dilation / g.stride, g.kernel_size};
  return {1, (g.kernel_size - 1) * g.dilation / g.stride + 1};
}
/// The tap of phase `phase` at offset `number`: k with k * dilation = phase + number * step * stride; -1 where there is
/// none.
CT1D_HD constexpr int64 tap_at_offset(const Geometry& g, int64 phase, int64 number) {
  const int64 reach = phase + number * offsets_of(g).step * g.stride;
  const int64 tap = g.dilation == 1 ? reach : reach / g.dilation;
  return tap * g.dilation == reach && tap < g.kernel_size ? tap : -1;
}

}  // namespace ct1d
