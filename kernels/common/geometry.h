// Geometry of one ConvTranspose1d call and the arguments every kernel receives.
//
// Included by device code (NVRTC, nvcc), by the host program and by emitted headers: C++17, no standard library.
#pragma once

#if defined(__CUDACC__)
#define CT1D_HD __host__ __device__
#define CT1D_GRID_CONSTANT __grid_constant__
#else
#define CT1D_HD
#define CT1D_GRID_CONSTANT
#endif

namespace ct1d {

using int64 = long long;

/// One call: x (batch, in_channels, length), w (in_channels, out_channels / groups, kernel_size),
/// y (batch, out_channels, length_out); the last axis of each is contiguous, w is contiguous throughout.
/// Counts and strides are in elements. The parameters are legal (tuner/core/problem.h says what that means) and
/// length_out = (length - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1 >= 1.
struct Geometry {
  int64 batch;
  int64 in_channels;
  int64 out_channels;
  int64 kernel_size;
  int64 stride;
  int64 padding;
  int64 dilation;
  int64 groups;
  int64 length;
  int64 length_out;
  int64 x_batch_stride;
  int64 x_row_stride;
  int64 y_batch_stride;
  int64 y_row_stride;

  CT1D_HD constexpr int64 in_per_group() const { return in_channels / groups; }
  CT1D_HD constexpr int64 out_per_group() const { return out_channels / groups; }
};

/// What every `run` kernel takes, by value. `weights` is w itself or, where the program has a prepare step, what that
/// step wrote; `bias` is null where there is none; `workspace` is null where the program asks for none.
struct RunArguments {
  Geometry geometry;
  const void* x;
  const void* weights;
  const void* bias;
  void* y;
  void* workspace;
};

/// What a prepare step (packing, once per weights) takes, by value: w as the user stores it, and where to put the rest.
struct PrepareArguments {
  Geometry geometry;
  const void* w;
  void* packed;
};

/// Grid, block and cluster extents and dynamic shared memory (bytes) of one launch.
struct LaunchShape {
  unsigned grid_x;
  unsigned grid_y;
  unsigned grid_z;
  unsigned block_x;
  unsigned block_y;
  unsigned block_z;
  unsigned shared_bytes;
  unsigned cluster_x;  // 1: no cluster
};

CT1D_HD constexpr int64 ceil_div(int64 a, int64 b) { return (a + b - 1) / b; }
CT1D_HD constexpr int64 min_of(int64 a, int64 b) { return a < b ? a : b; }
CT1D_HD constexpr int64 max_of(int64 a, int64 b) { return a > b ? a : b; }
/// Floor and non-negative remainder for any sign of `a`, b > 0.
CT1D_HD constexpr int64 floor_div(int64 a, int64 b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
CT1D_HD constexpr int64 floor_mod(int64 a, int64 b) { return a - floor_div(a, b) * b; }
CT1D_HD constexpr int64 gcd(int64 a, int64 b) {
  while (b != 0) {
    const int64 r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/// Stride by phases. Output t belongs to phase (t + padding) mod stride. Within a phase the taps that take part are
/// k = first_tap + j * tap_step, j in [0, taps), and tap j of output t reads
/// x[(t + padding - first_tap * dilation) / stride - j * x_step]: a stride-1 convolution.
/// taps is 0 where no tap reaches the phase (bias only).
struct Phase {
  int64 first_tap;
  int64 taps;
  int64 tap_step;  // stride / gcd(stride, dilation)
  int64 x_step;    // dilation / gcd(stride, dilation)
};

CT1D_HD constexpr Phase phase_of(const Geometry& g, int64 residue) {
  const int64 common = gcd(g.stride, g.dilation);
  Phase phase{0, 0, g.stride / common, g.dilation / common};
  if (residue % common != 0) return phase;
  for (int64 k = 0; k < phase.tap_step && k < g.kernel_size; ++k) {
    if ((k * g.dilation) % g.stride == residue) {
      phase.first_tap = k;
      phase.taps = ceil_div(g.kernel_size - k, phase.tap_step);
      return phase;
    }
  }
  return phase;
}

}  // namespace ct1d
