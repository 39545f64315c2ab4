// tiled: tile, shared memory, packing and launch arithmetic. Included by device code, host program and emitted headers.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/phases.h"

namespace ct1d::tiled {

using ct1d::most_taps;
using ct1d::multiply_mod;
using ct1d::phase_count;
using ct1d::phase_outputs;
using ct1d::PhaseOutputs;
using ct1d::round_up;
using ct1d::tap_step;
using ct1d::x_step;

struct Tunables {
  int T = 96;         // outputs of one phase that a block computes
  int OC_TILE = 128;  // output channels of a block
  int IC_TILE = 16;   // input channels of a pipeline stage
  BlockShape block{8, 16};
  int run = 4;         // neighbouring outputs of a thread that share one x window in registers
  int warp_t = 8;      // lanes of a warp along t; the others lie along output channels
  int stages = 2;      // buffers of the asynchronous pipeline
  int unroll = 2;      // channels a loop iteration
  int specialise = 1;  // 1: taps a chunk and x step are compile-time, the window lives in registers; 0: run-time
  int packed = 1;      // 1: weights packed once in the order a block reads them; 0: read as the user stores them
  int min_blocks = 3;  // blocks an SM that the compiler leaves registers for

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("OC_TILE", &Tunables::OC_TILE);
    v("IC_TILE", &Tunables::IC_TILE);
    v("block", &Tunables::block);
    v("run", &Tunables::run);
    v("warp_t", &Tunables::warp_t);
    v("stages", &Tunables::stages);
    v("unroll", &Tunables::unroll);
    v("specialise", &Tunables::specialise);
    v("packed", &Tunables::packed);
    v("min_blocks", &Tunables::min_blocks);
  }
};

/// Shared memory that the choice of taps a chunk aims at: every GPU from sm_80 on grants it to a block (sm_86: 99 KB).
inline constexpr int64 kSharedBudget = 96 * 1024;
/// A specialised kernel keeps run + kMaxHalo positions of x in registers and unrolls at most kMaxTaps taps.
inline constexpr int64 kMaxHalo = 16;
inline constexpr int64 kMaxTaps = 16;
inline constexpr int64 kMaxGrid = 2147483647;

/// Shared memory before the stages: what the block works on, a stage's layout, then a note on each stage.
inline constexpr int kTileBytes = 256;
inline constexpr int kStageBytes = 64;
inline constexpr int kNoteBytes = 32;
CT1D_HD constexpr int64 header_bytes(const Tunables& t) { return kTileBytes + kStageBytes + t.stages * kNoteBytes; }

/// One stage in shared memory, in floats: x as [IC_TILE][pitch], then w as [IC_TILE][taps][OC_TILE].
struct Stage {
  int64 taps;    // of a chunk
  int64 x_step;  // between taps, in positions of x
  int64 width;   // positions of x that a row holds, a multiple of 4
  int64 pitch;
  int64 x_size;
  int64 size;
};

CT1D_HD constexpr Stage stage_of(const Tunables& t, int64 taps, int64 x_step) {
  const int64 width = round_up(t.T + (taps - 1) * x_step, 4);
  // The swizzle permutes 16-byte pieces within groups of run / 4.
  const int64 pitch = round_up(width, max_of(4, t.run));
  const int64 x_size = t.IC_TILE * pitch;
  return {taps, x_step, width, pitch, x_size, round_up(x_size + t.IC_TILE * taps * t.OC_TILE, 4)};
}

CT1D_HD constexpr int64 shared_bytes(const Tunables& t, int64 taps, int64 x_step) {
  return header_bytes(t) + stage_of(t, taps, x_step).size * t.stages * 4;
}

/// Whether a stage of that many taps stays within registers and the shared-memory budget.
CT1D_HD constexpr bool chunk_fits(const Tunables& t, int64 taps, int64 x_step) {
  const int64 halo_limit = t.specialise != 0 ? kMaxHalo : kSharedBudget;
  if (taps > 1 && x_step > halo_limit / (taps - 1)) return false;
  if (t.specialise != 0 && taps > kMaxTaps) return false;
  return shared_bytes(t, taps, x_step) <= kSharedBudget;
}

/// Taps of a phase that one pass over the channels takes: in as few and as even passes as fit, at least 1. Of a
/// specialised kernel this is the template argument TAPS, so it is right for every geometry of the same x step.
CT1D_HD constexpr int64 chunk_taps(const Tunables& t, const Geometry& g) {
  const int64 most = most_taps(g);
  const int64 step = x_step(g);
  int64 low = 1;
  int64 high = most;
  while (low < high) {
    const int64 middle = (low + high + 1) / 2;
    if (chunk_fits(t, middle, step)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const int64 even = ceil_div(most, ceil_div(most, low));
  // Chunks of a multiple of 4 taps keep every window's start aligned to 16 bytes where the first is.
  const int64 aligned = round_up(even, 4);
  return even < most && chunk_fits(t, aligned, step) ? aligned : even;
}

/// Tiles may start up to 3 outputs early, so that their windows start on 16 bytes, where that costs few more tiles.
CT1D_HD constexpr bool tiles_shift(const Tunables& t, const Geometry& g) {
  const int64 most = ceil_div(g.length_out, g.stride);
  return t.specialise != 0 && (ceil_div(most + 3, t.T) == ceil_div(most, t.T) || most >= 64 * int64{t.T});
}
CT1D_HD constexpr int64 t_tiles(const Tunables& t, const Geometry& g) {
  return ceil_div(ceil_div(g.length_out, g.stride) + (tiles_shift(t, g) ? 3 : 0), t.T);
}
CT1D_HD constexpr int64 oc_tiles(const Tunables& t, const Geometry& g) {
  return ceil_div(g.out_per_group(), t.OC_TILE);
}
CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g) {
  return g.batch * g.groups * oc_tiles(t, g) * phase_count(g) * t_tiles(t, g);
}

/// Packed weights: [group][oc tile][phase by first tap][chunk][channel][tap of the chunk][OC_TILE], zeros where nothing
/// is; channels up to a multiple of `unroll`.
struct Packing {
  int64 phases;
  int64 chunks;
  int64 channels;
  int64 taps;
  int64 chunk_size;  // floats
};
CT1D_HD constexpr Packing packing_of(const Tunables& t, const Geometry& g, int64 taps) {
  const int64 channels = round_up(g.in_per_group(), t.unroll);
  return {min_of(tap_step(g), g.kernel_size), ceil_div(most_taps(g), taps), channels, taps,
          channels * taps * t.OC_TILE};
}

constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  if (t.packed == 0) return 0;
  const Packing p = packing_of(t, g, chunk_taps(t, g));
  return g.groups * oc_tiles(t, g) * p.phases * p.chunks * p.chunk_size * element_bytes;
}
constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

/// Blocks take tiles in steps of the grid, so that any number of tiles fits; an empty batch is one idle block.
constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int) {
  const int64 blocks = max_of(1, min_of(tile_count(t, g), kMaxGrid));
  const int64 bytes = shared_bytes(t, chunk_taps(t, g), x_step(g));
  return {static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(t.block.x), static_cast<unsigned>(t.block.y), 1,
          static_cast<unsigned>(bytes),  1};
}

inline constexpr int kPackThreads = 256;
constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 blocks = ceil_div(packed_bytes(t, g, element_bytes) / element_bytes, kPackThreads);
  return {static_cast<unsigned>(max_of(1, min_of(blocks, 65536))), 1, 1, kPackThreads, 1, 1, 0, 1};
}

}  // namespace ct1d::tiled
