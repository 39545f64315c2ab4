// winograd: tile, shared memory, packing and launch arithmetic. Included by device code, host program and emitted
// headers.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/phases.h"

namespace ct1d::winograd {

struct Tunables {
  int T = 128;        // outputs of one phase that a block computes
  int OC_TILE = 128;  // output channels of a block
  int IC_TILE = 8;    // input channels of a pipeline stage
  BlockShape block{4, 48};
  int points = 6;      // products of a transform: 4 or 6
  int taps = 3;        // taps of a transform: 2 or 3; it gives points - taps + 1 outputs
  int held = 1;        // products whose sums a thread keeps; the others are other warps'
  int warp_t = 4;      // lanes of a warp along t; the others lie along output channels
  int stages = 2;      // buffers of the asynchronous pipeline
  int unroll = 2;      // channels a loop iteration
  int min_blocks = 2;  // blocks an SM that the compiler leaves registers for

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("OC_TILE", &Tunables::OC_TILE);
    v("IC_TILE", &Tunables::IC_TILE);
    v("block", &Tunables::block);
    v("points", &Tunables::points);
    v("taps", &Tunables::taps);
    v("held", &Tunables::held);
    v("warp_t", &Tunables::warp_t);
    v("stages", &Tunables::stages);
    v("unroll", &Tunables::unroll);
    v("min_blocks", &Tunables::min_blocks);
  }

  /// Outputs of a transform; transforms of a tile; groups of threads that keep different products.
  CT1D_HD constexpr int outputs() const { return points - taps + 1; }
  CT1D_HD constexpr int segments() const { return T / outputs(); }
  CT1D_HD constexpr int slices() const { return points / held; }
  /// Threads of a slice along output channels, and what a thread keeps of each of its products.
  CT1D_HD constexpr int slice_y() const { return block.y / slices(); }
  CT1D_HD constexpr int thread_segments() const { return segments() / block.x; }
  CT1D_HD constexpr int thread_channels() const { return OC_TILE / slice_y(); }
  /// Rows of x that the block transforms at once.
  CT1D_HD constexpr int rows_at_once() const { return block.x * block.y / segments(); }
};

inline constexpr int64 kMaxGrid = 2147483647;

/// The largest power of two of which `n` is a multiple, up to 4.
CT1D_HD constexpr int vector_of(int n) { return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1; }

/// Shared memory in floats: descriptions of the tile and of what is copied next, flags of segments, sizes of positions
/// and sums of squares [row][position of window, then squares][segment], factors and biases, then the pipeline's
/// buffers, in whose place the sums are exchanged afterwards.
struct Layout {
  int flags;
  int sizes;
  int factors;   // what undoes the scaling of each output channel's weights, then the biases
  int x;         // `stages` of x_stage
  int x_stage;   // [IC_TILE][x_pitch], then the importance of each channel
  int x_width;   // positions of a row, a multiple of 4
  int products;  // two of v_stage: transformed x, [IC_TILE][points][segments]
  int v_stage;
  int weights;  // `stages` of w_stage: [IC_TILE][points][OC_TILE]
  int w_stage;
  int exchange;        // [points][exchange_channels][exchange_pitch]
  int exchange_pitch;  // rows of four channels fall on different banks
  int exchange_channels;
  int total;
};
inline constexpr int kTileFloats = 64;
inline constexpr int kSourceFloats = 32;

CT1D_HD constexpr Layout layout_of(const Tunables& t) {
  Layout l{};
  l.flags = kTileFloats + kSourceFloats;
  l.sizes = l.flags + static_cast<int>(round_up(t.segments(), 4));
  l.factors = l.sizes + static_cast<int>(round_up(t.rows_at_once() * (t.points + 1) * t.segments(), 4));
  l.x = l.factors + 2 * t.OC_TILE;
  l.x_width = static_cast<int>(round_up(t.T + t.taps - 1, 4));
  l.x_stage = t.IC_TILE * l.x_width + static_cast<int>(round_up(t.IC_TILE, 4));
  l.products = l.x + t.stages * l.x_stage;
  l.v_stage = t.IC_TILE * t.points * t.segments();
  l.weights = static_cast<int>(round_up(l.products + 2 * l.v_stage, 4));
  l.w_stage = t.IC_TILE * t.points * t.OC_TILE;
  l.exchange = l.x;
  l.exchange_pitch = static_cast<int>(round_up(t.segments(), 8)) + 4;
  l.exchange_channels = t.slice_y() * vector_of(t.thread_channels());
  const int pipeline = l.weights + t.stages * l.w_stage;
  const int exchange = l.exchange + t.points * l.exchange_channels * l.exchange_pitch;
  l.total = pipeline > exchange ? pipeline : exchange;
  return l;
}

/// Positions of x that are dilation / gcd(stride, dilation) apart belong together: an output n of a phase is number
/// n / x_step of class n % x_step.
CT1D_HD constexpr int64 class_count(const Geometry& g) {
  return min_of(x_step(g), ceil_div(g.length_out, min_of(g.stride, g.length_out)));
}
/// Tiles may start up to 3 outputs early, so that their windows start on 16 bytes, where that costs few more tiles.
CT1D_HD constexpr bool tiles_shift(const Tunables& t, const Geometry& g) {
  const int64 most = ceil_div(g.length_out, g.stride);
  return x_step(g) == 1 && (ceil_div(most + 3, t.T) == ceil_div(most, t.T) || most >= 64 * int64{t.T});
}
CT1D_HD constexpr int64 t_tiles(const Tunables& t, const Geometry& g) {
  const int64 most = ceil_div(ceil_div(g.length_out, g.stride), class_count(g));
  return ceil_div(most + (tiles_shift(t, g) ? 3 : 0), t.T);
}
CT1D_HD constexpr int64 oc_tiles(const Tunables& t, const Geometry& g) {
  return ceil_div(g.out_per_group(), t.OC_TILE);
}
CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g) {
  return g.batch * g.groups * oc_tiles(t, g) * phase_count(g) * class_count(g) * t_tiles(t, g);
}

/// Packed weights, in floats:
/// transformed [group][oc tile][phase by first tap][chunk of `taps` taps][stage of IC_TILE channels] w_stage, each
/// output
///   channel multiplied by a power of two that brings its largest weight to [1, 2); zeros where nothing is;
/// importance [group][channel]: the largest of its weights so multiplied;
/// unscale [group][oc tile][OC_TILE]: what undoes the power of two, negative where the channel's taps are uneven
///   (transform.h), NaN for channels that must be computed directly;
/// w as the user stores it.
struct Packing {
  int64 phases;
  int64 chunks;
  int64 channels;  // up to a multiple of IC_TILE
  int64 importance;
  int64 unscale;
  int64 original;
  int64 total;
};
CT1D_HD constexpr Packing packing_of(const Tunables& t, const Geometry& g) {
  Packing p{};
  p.phases = min_of(tap_step(g), g.kernel_size);
  p.chunks = ceil_div(most_taps(g), t.taps);
  p.channels = round_up(g.in_per_group(), t.IC_TILE);
  p.importance = g.groups * oc_tiles(t, g) * p.phases * p.chunks * p.channels * t.points * t.OC_TILE;
  p.unscale = p.importance + g.groups * p.channels;
  p.original = p.unscale + g.groups * oc_tiles(t, g) * t.OC_TILE;
  p.total = p.original + g.in_channels * g.out_per_group() * g.kernel_size;
  return p;
}

constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return packing_of(t, g).total * element_bytes;
}
constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

/// Blocks take tiles in steps of the grid, so that any number of tiles fits; an empty batch is one idle block.
constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int) {
  const int64 blocks = max_of(1, min_of(tile_count(t, g), kMaxGrid));
  return {static_cast<unsigned>(blocks),
          1,
          1,
          static_cast<unsigned>(t.block.x),
          static_cast<unsigned>(t.block.y),
          1,
          static_cast<unsigned>(layout_of(t).total) * 4,
          1};
}

/// Prepare steps: `scale` a warp an output channel, `weigh` a warp an input channel, `pack` a thread an element.
inline constexpr int kPackThreads = 256;
inline constexpr int kWarpThreads = 32;
constexpr LaunchShape scale_shape(const Geometry& g) {
  return {static_cast<unsigned>(max_of(1, min_of(g.out_channels, 65536))), 1, 1, kWarpThreads, 1, 1, 0, 1};
}
constexpr LaunchShape weigh_shape(const Geometry& g) {
  return {static_cast<unsigned>(max_of(1, min_of(g.in_channels, 65536))), 1, 1, kWarpThreads, 1, 1, 0, 1};
}
constexpr LaunchShape pack_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 blocks = ceil_div(packed_bytes(t, g, element_bytes) / element_bytes, kPackThreads);
  return {static_cast<unsigned>(max_of(1, min_of(blocks, 65536))), 1, 1, kPackThreads, 1, 1, 0, 1};
}
/// In the order in which they are launched.
constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int element_bytes, int step) {
  return step == 0 ? scale_shape(g) : step == 1 ? weigh_shape(g) : pack_shape(t, g, element_bytes);
}

}  // namespace ct1d::winograd
