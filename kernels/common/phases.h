// Outputs of a transposed convolution by phases: each is a stride-1 convolution of its own.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d {

CT1D_HD constexpr int64 round_up(int64 a, int64 b) { return ceil_div(a, b) * b; }

CT1D_HD constexpr int64 tap_step(const Geometry& g) { return g.stride / gcd(g.stride, g.dilation); }
CT1D_HD constexpr int64 x_step(const Geometry& g) { return g.dilation / gcd(g.stride, g.dilation); }
/// Taps of the phase that has most.
CT1D_HD constexpr int64 most_taps(const Geometry& g) { return ceil_div(g.kernel_size, tap_step(g)); }

/// Outputs of phase `index` in [0, phase_count): t = t_first + n * stride for n in [0, outputs). Its tap j reads
/// x[m_first + n - j * x_step].
struct PhaseOutputs {
  Phase phase;
  int64 t_first;
  int64 outputs;
  int64 m_first;
};

CT1D_HD constexpr int64 phase_count(const Geometry& g) { return min_of(g.stride, g.length_out); }

/// a * b mod m, for 0 <= a, b < m.
CT1D_HD constexpr int64 multiply_mod(int64 a, int64 b, int64 m) {
  if (m <= (int64{1} << 31)) return a * b % m;
  int64 sum = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) sum = sum >= m - a ? sum - (m - a) : sum + a;
    a = a >= m - a ? a - (m - a) : a + a;
  }
  return sum;
}

/// Where every phase has outputs they are numbered by their first tap, so that none has to be searched for.
CT1D_HD constexpr PhaseOutputs phase_outputs(const Geometry& g, int64 index) {
  PhaseOutputs p{};
  int64 residue = 0;
  if (g.stride == 1) {
    p.phase = {0, g.kernel_size, 1, g.dilation};
  } else if (g.stride <= g.length_out) {
    const int64 common = gcd(g.stride, g.dilation);
    p.phase.tap_step = g.stride / common;
    p.phase.x_step = g.dilation / common;
    const int64 k = index % p.phase.tap_step;
    const int64 beside = index / p.phase.tap_step;  // no tap reaches the residues between multiples of `common`
    residue = multiply_mod(k, g.dilation % g.stride, g.stride) + beside;
    if (beside == 0 && k < g.kernel_size) {
      p.phase.first_tap = k;
      p.phase.taps = ceil_div(g.kernel_size - k, p.phase.tap_step);
    }
  } else {
    residue = floor_mod(index + g.padding, g.stride);
    p.phase = phase_of(g, residue);
  }
  p.t_first = floor_mod(residue - g.padding, g.stride);
  p.outputs = p.t_first < g.length_out ? ceil_div(g.length_out - p.t_first, g.stride) : 0;
  p.m_first = floor_div(p.t_first + g.padding - p.phase.first_tap * g.dilation, g.stride);
  return p;
}

}  // namespace ct1d
