// wgmma_fused: tunables, facts of an instance, how a grid shares the work, shared memory. Included by device code, host
// program and emitted headers.
//
// The products, the order of places and the packed weights are those of wgmma_packed (rows: output channels by phases;
// columns: places, positions of x of all batch items one behind the other). x is not packed by a kernel before: warps
// of the block convert a tile of places once and keep all of its channels in shared memory while the block's groups of
// rows are multiplied with them, so that x is read once for all phases and output channels of the block.
#pragma once

#include "kernels/wgmma_packed/layout.h"

namespace ct1d::wgmma_fused {

using wgmma_packed::Divider;
using wgmma_packed::divider_of;
using wgmma_packed::Extent;
using wgmma_packed::kBlockBytes;
using wgmma_packed::kConsumers;
using wgmma_packed::kFlagTiles;
using wgmma_packed::kLowBits;
using wgmma_packed::kMostHalo;
using wgmma_packed::kMostOffsets;
using wgmma_packed::kPackThreads;
using wgmma_packed::kRows;
using wgmma_packed::kSharedBudget;
using wgmma_packed::kStepChannels;
using wgmma_packed::most_terms;
using wgmma_packed::Packed;
using wgmma_packed::period_of;
using wgmma_packed::quads_bytes;
using wgmma_packed::steps_of;
using wgmma_packed::Tile;
using wgmma_packed::width_of;

struct Tunables {
  int T = 64;                    // places of a warpgroup's tile: columns of its products
  int rows = 128;                // of a group: 128, a warpgroup has half of them; 64, each has all at places of its own
  int products = 3;              // 3: operands split into two fp16 parts each; 1: one part
  int stages = 16;               // of the ring of converted x, 16 channels of T places each
  int producers = 4;             // warps: the last copies weights, the others convert x, a stage each at a time
  int consumer_registers = 168;  // of a thread that multiplies; the producers share the rest
  int weights = 0;               // slots for the weights of 16 channels and a group of rows; 0: all stay
  int passes = 1;                // groups of rows that a block multiplies a tile of places with
  int blocks = 132;              // persistent blocks: one an SM

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("rows", &Tunables::rows);
    v("products", &Tunables::products);
    v("stages", &Tunables::stages);
    v("producers", &Tunables::producers);
    v("consumer_registers", &Tunables::consumer_registers);
    v("weights", &Tunables::weights);
    v("passes", &Tunables::passes);
    v("blocks", &Tunables::blocks);
  }

  CT1D_HD constexpr int parts() const { return products == 3 ? 2 : 1; }
  // At least 1, also for rows out of a file that no block has: constraints divide by them before all are read.
  CT1D_HD constexpr int row_tiles() const { return rows < 64 ? 1 : rows / 64; }      // of a group, of 64 rows
  CT1D_HD constexpr int place_tiles() const { return rows > 128 ? 1 : 128 / rows; }  // of a block, of T places
  CT1D_HD constexpr int converters() const { return producers - 1; }
  CT1D_HD constexpr int threads() const { return 256 + 32 * producers; }
  /// Registers of a thread when the block starts, in eights; what consumers and producers get may not exceed them.
  CT1D_HD constexpr int start_registers() const { return 65536 / threads() / 8 * 8; }
  CT1D_HD constexpr int producer_registers() const {
    return (start_registers() * threads() - 256 * consumer_registers) / (32 * producers) / 8 * 8;
  }
};

/// The tunables that wgmma_packed's arithmetic of tiles, images and packed weights asks for.
CT1D_HD constexpr wgmma_packed::Tunables packed_tunables(const Tunables& t) {
  return {t.T, t.rows, t.products, 3, 1, t.blocks, 1};
}
CT1D_HD constexpr Extent extent_of(const Tunables& t, const Geometry& g) {
  return wgmma_packed::extent_of(packed_tunables(t), g);
}
CT1D_HD constexpr Packed packed_of(const Tunables& t, const Geometry& g, int64 offsets) {
  return wgmma_packed::packed_of(packed_tunables(t), g, offsets);
}
CT1D_HD constexpr int image_bytes(const Tunables& t, int64 halo) {
  return wgmma_packed::image_bytes(packed_tunables(t), halo);
}
CT1D_HD constexpr int slab_bytes(const Tunables& t, int64 halo) {
  return wgmma_packed::slab_bytes(packed_tunables(t), halo);
}

/// What the problem fixes of an instance: offsets, positions between them, the stride, places before a tile that its
/// products may read, steps of 16 channels, and how many of them one accumulator sums: a divisor of all.
struct Facts {
  int64 offsets;
  int64 step;
  int64 stride;
  int64 halo;
  int64 steps;
  int64 group;
};
inline constexpr int64 kMostSteps = 64;  // more is refused
/// `most_terms`: that an accumulator sums before what it cuts off counts.
CT1D_HD constexpr Facts facts_of(const Tunables& t, const Geometry& g, int64 most_terms) {
  const wgmma_packed::Facts p = wgmma_packed::facts_of(packed_tunables(t), g, most_terms);
  return {p.offsets, p.step, p.stride, p.halo, min_of(steps_of(g), kMostSteps), p.group};
}
CT1D_HD constexpr int ahead_of(int group, int images, int weights) {
  const int slots = images < weights ? images : weights;
  return group < slots ? group : slots > 1 ? slots : 1;
}
/// Groups of `images` images that a converting warp must look back from the one that it begins, so that all images
/// there are converted: the slot that it waited for was released, and the one before by the other consumer, if each has
/// its own.
CT1D_HD constexpr int behind_of(int stages, int converters, int images) {
  return 1 + (stages + converters + images - 2) / images;
}

/// Places of a tile that are stored at a time: all, where a panel has whole channels, so that their runs are long.
CT1D_HD constexpr int stored_places(const Tunables& t, int64 stride) { return stride <= kRows ? t.T : 32; }
/// Elements between the runs of outputs that lie in shared memory, one of each channel of a panel, `stored` places of
/// up to 64 phases: whole pieces of 16 bytes and one more, for a run begins where y's address does; off each other's
/// banks.
CT1D_HD constexpr int run_pitch(int stride, int stored, int bytes) {
  const int words = (stored * stride * bytes + 15) / 16 * 4 + 4;
  const int bank = stride == 1 ? 8 : stride == 2 ? 16 : 4;
  return (words + (bank - words % 32 + 32) % 32) * 4 / bytes;
}
CT1D_HD constexpr int staging_bytes(const Tunables& t, int64 stride, int bytes) {
  const int phases = static_cast<int>(stride);
  const int stored = stored_places(t, stride);
  return phases <= kRows ? kRows / phases * run_pitch(phases, stored, bytes) * bytes : wgmma_packed::kStagingBytes;
}

/// Weights of a group of rows and a step.
CT1D_HD constexpr int weight_slot_bytes(const Tunables& t, int64 offsets) {
  return t.row_tiles() * static_cast<int>(wgmma_packed::panel_bytes(packed_tunables(t), offsets));
}
CT1D_HD constexpr int weight_slots(const Tunables& t, int64 steps) {
  return t.weights > 0 ? t.weights : t.passes * static_cast<int>(steps);
}

/// Rounds of the maxima of images: warps are less than behind_of() groups of places apart, and look back as far.
CT1D_HD constexpr int rounds_of(const Tunables& t, int images) {
  return 2 * behind_of(t.stages, t.converters(), images) + 2;
}
CT1D_HD constexpr int maxima_of(const Tunables& t, int64 steps) {
  const int images = static_cast<int>(steps) * t.place_tiles();
  return images * rounds_of(t, images);
}

/// Bytes from the start of the block's shared memory; slots of weights lie at 0.
struct Shared {
  int weight_bytes;  // of a slot
  int images;        // [slot]
  int image_bytes;
  int image_barriers;   // per slot full, empty
  int weight_barriers;  // the same
  int schedule;         // Share, then the period of places
  int inverses;         // [slot] 1 / scale of the image
  int maxima;           // [group of places % rounds][image] largest magnitude, bits
  int top;              // the same of the images that the warps convert first
  int staging;          // [consumer] staging_bytes()
  int quads;            // [consumer] quads_bytes()
  int flags;            // [tile of places % kFlagTiles][half] 64 bits: fours of places to be done again
  int bytes;
};
CT1D_HD constexpr Shared shared_of(const Tunables& t, const Facts& f, int element_bytes) {
  Shared s{};
  const int slots = weight_slots(t, f.steps);
  s.weight_bytes = weight_slot_bytes(t, f.offsets);
  s.images = slots * s.weight_bytes;
  s.image_bytes = image_bytes(t, f.halo);
  s.image_barriers = s.images + t.stages * s.image_bytes;
  s.weight_barriers = s.image_barriers + t.stages * 16;
  s.schedule = s.weight_barriers + slots * 16;
  s.inverses = s.schedule + 48;
  s.maxima = s.inverses + (t.stages + 3) / 4 * 16;
  s.top = s.maxima + maxima_of(t, f.steps) * 4;
  s.staging = (s.top + 4 + 15) / 16 * 16;
  s.quads = s.staging + kConsumers * staging_bytes(t, f.stride, element_bytes);
  s.flags = s.quads + kConsumers * quads_bytes(t.T);
  s.bytes = s.flags + kFlagTiles * 2 * 8;
  return s;
}

// ---- work

/// A chunk is `passes` groups of rows. A block has one of them, and every `step`-th group of places from `first` on.
struct Share {
  unsigned chunk;
  unsigned first;
  unsigned step;
  unsigned places;  // groups of places of the block
};
struct Grid {
  unsigned chunks;
  unsigned workers;       // of a chunk
  unsigned place_groups;  // in units of a block's tile of places
};
CT1D_HD constexpr Grid grid_of(const Tunables& t, const Geometry& g) {
  const Extent e = extent_of(t, g);
  Grid grid{};
  const int64 groups = ceil_div(e.panels, t.row_tiles());
  const int64 chunks = ceil_div(groups, t.passes);
  const int64 place_groups = ceil_div(e.place_tiles, t.place_tiles());
  grid.chunks = static_cast<unsigned>(chunks);
  grid.place_groups = static_cast<unsigned>(place_groups);
  grid.workers = static_cast<unsigned>(max_of(1, min_of(t.blocks / chunks, place_groups)));
  return grid;
}
CT1D_HD constexpr Share share_of(const Grid& grid, unsigned block) {
  const unsigned first = block / grid.chunks;
  const unsigned left = grid.place_groups > first ? grid.place_groups - first : 0;
  return {block % grid.chunks, first, grid.workers, (left + grid.workers - 1) / grid.workers};
}
/// The block's tile n: the groups of rows of a group of places one after the other.
CT1D_HD constexpr Tile tile_of(const Tunables& t, const Share& s, unsigned n) {
  const unsigned passes = static_cast<unsigned>(t.passes);
  const unsigned place = n / passes;
  return {static_cast<int>((s.chunk * passes + (n - place * passes)) * static_cast<unsigned>(t.row_tiles())),
          static_cast<int>((s.first + place * s.step) * static_cast<unsigned>(t.place_tiles()))};
}

// ---- launches

/// How many steps an accumulator sums makes no difference to sizes and shapes.
CT1D_HD constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const Facts f = facts_of(t, g, 1);
  LaunchShape shape{1, 1, 1, static_cast<unsigned>(t.threads()), 1, 1, 0, 1};
  const Grid grid = grid_of(t, g);
  shape.grid_x = grid.chunks * grid.workers;
  shape.shared_bytes = static_cast<unsigned>(shared_of(t, f, element_bytes).bytes);
  return shape;
}
CT1D_HD constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int) {
  return wgmma_packed::prepare_shape(packed_tunables(t), g);
}
CT1D_HD constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int) {
  return packed_of(t, g, facts_of(t, g, 1).offsets).bytes;
}
CT1D_HD constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

}  // namespace ct1d::wgmma_fused
