// direct: tile, shared memory and launch arithmetic. Included by device code, host program and emitted headers.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/geometry.h"

namespace ct1d::direct {

struct Tunables {
  int T = 128;       // outputs along t of a block
  int OC_TILE = 16;  // output channels of a block
  int IC_TILE = 32;  // input channels in shared memory at a time
  BlockShape block{32, 8};
  int specialise = 1;  // 1: taps of a pass are compile-time (stride 1, away from edges); 0: all geometry at run time

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("OC_TILE", &Tunables::OC_TILE);
    v("IC_TILE", &Tunables::IC_TILE);
    v("block", &Tunables::block);
    v("specialise", &Tunables::specialise);
  }
};

/// Shared memory that the choice of taps a pass aims at: every GPU from sm_80 on grants it to a block (sm_86: 99 KB).
inline constexpr int64 kSharedBudget = 96 * 1024;
/// A specialised kernel unrolls at most this many taps.
inline constexpr int64 kMaxTaps = 16;
inline constexpr int64 kMaxGrid = 2147483647;

/// Positions of x that T outputs and `taps` neighbouring taps can reach.
CT1D_HD constexpr int64 window_length(int64 T, int64 taps, const Geometry& g) {
  return (T - 1 + (taps - 1) * g.dilation + g.stride - 1) / g.stride + 1;
}

/// Right up to 2^30 positions of x, and more than any device has beyond.
CT1D_HD constexpr int64 shared_bytes(const Tunables& t, int64 taps, const Geometry& g, int element_bytes) {
  const int64 window = min_of(window_length(t.T, taps, g), int64{1} << 30);
  return (window + taps * t.OC_TILE) * t.IC_TILE * element_bytes;
}

/// Taps that one pass over the channels takes: as many as the budget holds, at least 1. Of a specialised kernel this is
/// the template argument TAPS.
CT1D_HD constexpr int64 taps_a_pass(const Tunables& t, const Geometry& g, int element_bytes) {
  if (shared_bytes(t, 1, g, element_bytes) >= kSharedBudget) return 1;
  int64 low = 1;
  int64 high = t.specialise != 0 ? min_of(g.kernel_size, kMaxTaps) : g.kernel_size;
  while (low < high) {
    const int64 middle = (low + high + 1) / 2;
    if (shared_bytes(t, middle, g, element_bytes) <= kSharedBudget) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g) {
  return g.batch * g.groups * ceil_div(g.out_per_group(), t.OC_TILE) * ceil_div(g.length_out, t.T);
}

/// Blocks take tiles in steps of the grid, so that any number of tiles fits; an empty batch is one idle block.
constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 blocks = max_of(1, min_of(tile_count(t, g), kMaxGrid));
  const int64 bytes = shared_bytes(t, taps_a_pass(t, g, element_bytes), g, element_bytes);
  return {static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(t.block.x), static_cast<unsigned>(t.block.y), 1,
          static_cast<unsigned>(bytes),  1};
}
constexpr LaunchShape prepare_shape(const Tunables&, const Geometry&, int) { return {1, 1, 1, 1, 1, 1, 0, 1}; }
constexpr int64 packed_bytes(const Tunables&, const Geometry&, int) { return 0; }
constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

}  // namespace ct1d::direct
