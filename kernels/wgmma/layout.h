// wgmma: tunables, the problem as matrix products, shared memory, packed weights, order of tiles. Included by device
// code, host program and emitted headers.
//
// Rows of a product are positions of x (A, in registers), its columns are output channels and phases (B, packed weights
// in shared memory), phases fastest. Position m of column (oc, r) is y[oc][m * stride + r - padding]: the sum over
// channels and offsets j of x[ic][m - j * step] * w[ic][oc][k], tap k being the one with k * dilation = r + j * step *
// stride. Where there is none the weight is 0.
#pragma once

#include "kernels/common/offsets.h"
#include "kernels/wgmma/staging.h"

namespace ct1d::wgmma {

struct Tunables {
  int OC_TILE = 128;    // columns of a block's tile: output channels times phases
  int products = 3;     // 3: operands split into two fp16 parts each; 1: fp16 operands
  int promote = 1;      // 1: every step's sums are added up in fp32; 0: a tile's stay in the accumulators
  int taps = 3;         // offsets that are multiplied from one conversion of x into registers
  int halves = 1;       // products of OC_TILE / halves columns, that many in flight
  int stages = 2;       // of a warpgroup's ring of raw x, 16 channels each
  int turns = 0;        // 1: the warpgroups' products take turns
  int wide_stores = 1;  // rows of y that are off by 8 bytes: 1 shuffled to pieces of 16 bytes, 0 pieces of 8
  int resident = 1;     // 1: all weights of a block's columns stay in shared memory; 0: they stream through a ring
  int strip = 0;        // neighbouring tiles that a block walks; 0: all of its tiles are neighbours
  int blocks = 132;     // SMs that have persistent blocks
  int split = 1;        // blocks that share the steps of a tile; a second kernel adds their sums up
  int min_blocks = 1;   // blocks an SM that the compiler leaves registers for
  int ahead = 0;        // 1: x of the next step is converted while products run
  int streaming = 0;    // 1: stores of y are marked as read by nobody soon

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("OC_TILE", &Tunables::OC_TILE);
    v("products", &Tunables::products);
    v("promote", &Tunables::promote);
    v("taps", &Tunables::taps);
    v("halves", &Tunables::halves);
    v("stages", &Tunables::stages);
    v("turns", &Tunables::turns);
    v("wide_stores", &Tunables::wide_stores);
    v("resident", &Tunables::resident);
    v("strip", &Tunables::strip);
    v("blocks", &Tunables::blocks);
    v("split", &Tunables::split);
    v("min_blocks", &Tunables::min_blocks);
    v("ahead", &Tunables::ahead);
    v("streaming", &Tunables::streaming);
  }

  CT1D_HD constexpr int parts() const { return products == 3 ? 2 : 1; }
  CT1D_HD constexpr int grid() const { return blocks * min_blocks; }
};

inline constexpr int kConsumers = 2;  // warpgroups of a block
inline constexpr int kThreads = 128 * kConsumers;
inline constexpr int kPositions = 128;  // of a warpgroup's tile: two products of 64 rows
inline constexpr int kBlockPositions = kPositions * kConsumers;
inline constexpr int kStepChannels = 16;  // of one product
inline constexpr int kPackThreads = 128;
inline constexpr int kFlagTiles = 64;  // tiles n and n + 64 of a block share their flags
inline constexpr int kMostSlots = 8;   // of streamed weights
inline constexpr int kRefillLag = 2;   // steps after whose end a slot of streamed weights is filled again
/// Of a block: 228 KB are an SM's, of which each block takes one for itself.
CT1D_HD constexpr int shared_budget(const Tunables& t) { return 228 / t.min_blocks * 1024 - 1024; }

// ---- what an instance compiles in
// ------------------------------------------------------------------------------------

inline constexpr int64 kMostOfFact = 1024;  // more is refused or known at run time
/// The stride; 0: known at run time.
CT1D_HD constexpr int64 stride_fact(const Tunables& t, const Geometry& g) {
  const bool general = t.OC_TILE == 32 && t.taps == 1 && t.resident == 0 && t.wide_stores == 0;
  return general || g.stride > kMostOfFact ? 0 : g.stride;
}

/// Positions before a tile's first that its products read; from where a stage's rows start: a multiple of 16 bytes.
CT1D_HD constexpr int halo_of(const Tunables& t, int tap_step) { return (t.taps - 1) * tap_step; }
CT1D_HD constexpr int lead_of(const Tunables& t, int tap_step, int element_bytes) {
  const int piece = 16 / element_bytes;
  return (halo_of(t, tap_step) + piece - 1) / piece * piece;
}
/// Bytes of a row of a stage. Quarter-warps read 16 bytes a lane (lane = 4 g + q: row q, piece g), half-warps of 16-bit
/// elements 8: they meet all banks when the pitch is 32 more than a multiple of 64. Rows of 16-bit elements may begin
/// one later.
CT1D_HD constexpr int pitch_of(const Tunables& t, int tap_step, int element_bytes) {
  const int row = (kPositions + lead_of(t, tap_step, element_bytes)) * element_bytes + (element_bytes == 2 ? 4 : 0);
  return (row + 31) / 64 * 64 + 32;
}
CT1D_HD constexpr int raw_bytes(const Tunables& t, int tap_step, int element_bytes) {
  return kStepChannels * pitch_of(t, tap_step, element_bytes);
}
/// Weights of 8 channels of one part and tap; of 16; of a step: 16 channels, all parts, `taps` taps.
CT1D_HD constexpr int slab_bytes(const Tunables& t) { return t.OC_TILE * 16; }
CT1D_HD constexpr int tap_bytes(const Tunables& t) { return 2 * slab_bytes(t); }
CT1D_HD constexpr int step_bytes(const Tunables& t) { return t.parts() * t.taps * tap_bytes(t); }

/// Bytes from the start of the block's shared memory. `slots` steps of weights lie at 0.
struct Shared {
  int raw;              // [warpgroup][stage][16 channels] pitch bytes
  int barriers;         // [warpgroup][stage] full, empty
  int weight_barriers;  // [slot] full, empty; resident: the first alone
  int schedule;         // what is not kept in registers
  int stream;           // which streamed weights come next
  int feeds;            // [warpgroup][warp] kFeedBytes
  int flags;            // [warpgroup][warp][kFlagTiles] bytes: bit g, positions 4 * (8 * warp + g) to + 3
  int staging;          // [warpgroup][warp] outputs on their way to y, where they go through shared memory
  int bytes;
};
inline constexpr int kScheduleBytes = 80;
inline constexpr int kFeedBytes = 32;

CT1D_HD constexpr Shared shared_of(const Tunables& t, int tap_step, int slots, int64 stride, int element_bytes) {
  Shared s{};
  s.raw = slots * step_bytes(t);
  s.barriers = s.raw + kConsumers * t.stages * raw_bytes(t, tap_step, element_bytes);
  s.weight_barriers = s.barriers + kConsumers * t.stages * 16;
  s.schedule = s.weight_barriers + (t.resident != 0 ? 1 : slots) * 16;
  s.stream = s.schedule + kScheduleBytes;
  s.feeds = s.stream + 16;
  s.flags = s.feeds + kConsumers * 4 * kFeedBytes;
  s.staging = s.flags + kConsumers * 4 * kFlagTiles;
  s.bytes = s.staging + kConsumers * 4 * staging_of(t.OC_TILE, stride, element_bytes).bytes;
  return s;
}

/// Slots of streamed weights: as many as fit beside the rest.
CT1D_HD constexpr int streamed_slots(const Tunables& t, int tap_step, int64 stride, int element_bytes) {
  int slots = kMostSlots;
  while (slots > kRefillLag + 1 && shared_of(t, tap_step, slots, stride, element_bytes).bytes > shared_budget(t))
    --slots;
  return slots;
}

// ---- the problem as products
// -----------------------------------------------------------------------------------------

/// A panel is OC_TILE columns of one group, of which width_of are in use; a step is 16 channels and `taps` taps of it.
struct Extent {
  int64 group_panels;
  int64 panels;
  int64 windows;  // of offsets
  int64 steps;    // of a tile and slice: channels outside, windows inside
  int64 slice_channels;
  int64 slices;  // of all panels: `split` of each, neighbours. Kernel and packed weights know them as panels
};
CT1D_HD constexpr Extent extent_of(const Tunables& t, const Geometry& g) {
  Extent e{};
  e.group_panels = ceil_div(g.out_per_group() * g.stride, width_of(t.OC_TILE, stride_fact(t, g)));
  e.panels = e.group_panels * g.groups;
  e.windows = ceil_div(offsets_of(g).count, t.taps);
  e.slice_channels = ceil_div(ceil_div(g.in_per_group(), kStepChannels), t.split) * kStepChannels;
  e.steps = e.slice_channels / kStepChannels * e.windows;
  e.slices = e.panels * t.split;
  return e;
}

/// What the problem fixes of an instance: positions between offsets (1 where one is multiplied at a time: then it is
/// known at run time), steps of weights in shared memory, and the stride (0: known at run time).
struct Facts {
  int64 tap_step;
  int64 slots;
  int64 stride;
};
CT1D_HD constexpr Facts facts_of(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 tap_step = t.taps > 1 ? min_of(offsets_of(g).step, kMostOfFact) : 1;
  const int64 stride = stride_fact(t, g);
  if (t.resident != 0) return {tap_step, min_of(extent_of(t, g).steps, kMostOfFact), stride};
  return {tap_step, streamed_slots(t, static_cast<int>(tap_step), stride, element_bytes), stride};
}

/// Bytes from the start of what `pack` writes. Parts of weights: [panel][step][part][tap][k / 8][column][k % 8] halves;
/// per panel and column the inverse of its scale and whether that scale does not serve (floats); fp32 weights
/// [panel][channel][offset][column], kNoTap where there is no tap.
inline constexpr unsigned kNoTap = 0x7FFFDEADu;  // a NaN; those among weights are packed as another one
struct Packed {
  int64 inverse;
  int64 flag;
  int64 plain;
  int64 bytes;
};
CT1D_HD constexpr Packed packed_of(const Tunables& t, const Geometry& g) {
  const Extent e = extent_of(t, g);
  Packed p{};
  p.inverse = e.slices * e.steps * step_bytes(t);
  p.flag = p.inverse + e.panels * t.OC_TILE * 4;
  p.plain = p.flag + e.panels * t.OC_TILE * 4;
  p.bytes = p.plain + e.panels * g.in_per_group() * offsets_of(g).count * t.OC_TILE * 4;
  return p;
}

/// Where channel c of a step stands among the product's 16 k: thread q of a quad holds channels q, q + 4, q + 8, q +
/// 12, in A's registers k = 2 q, 2 q + 1, 2 q + 8, 2 q + 9.
CT1D_HD constexpr int k_of_channel(int c) { return c / 8 * 8 + c % 4 * 2 + c % 8 / 4; }
/// In halves, within a step.
CT1D_HD constexpr int pack_place(const Tunables& t, int part, int tap, int channel, int column) {
  const int k = k_of_channel(channel);
  return ((part * t.taps + tap) * tap_bytes(t) + k / 8 * slab_bytes(t) + column * 16) / 2 + k % 8;
}

/// A thread's rows of product block m are positions t0 + m (row g of its warp) and t0 + 2 + m (row g + 8), t0 a
/// multiple of 4. Fragment (m, tap) therefore holds positions f - halo and f - halo + 2 from t0.
CT1D_HD constexpr int fragment_of(const Tunables& t, int tap_step, int m, int tap) {
  return m + (t.taps - 1 - tap) * tap_step;
}
CT1D_HD constexpr int fragments(const Tunables& t, int tap_step) { return halo_of(t, tap_step) + 2; }

// ---- tiles
// -----------------------------------------------------------------------------------------------------------

/// How batch items lie one behind the other in rows of x: item b's position m is place b * period + m, for every m with
/// outputs. Positions from `length` on are zeros to the products. They are what the next item's outputs read before it:
/// its first, t = 0, reaches (dilation * (kernel_size - 1) - padding) / stride positions back, and as many follow x in
/// the outputs' positions.
struct Period {
  unsigned places;
  unsigned reciprocal;  // of `places`, times 2^(32 + shift), rounded up
  unsigned shift;
};

/// Four neighbouring places lie in one item, eight of 16 bits at stride 1 (of y), and where rows of x are made of whole
/// pieces of 16 bytes, if that takes few places more.
CT1D_HD constexpr Period period_of(const Geometry& g, int element_bytes) {
  const int64 last = (g.padding + g.length_out - 1) / g.stride;
  const int64 eights = ceil_div(last + 1, 8) * 8;
  const bool whole = g.x_row_stride % 8 == 0 && eights * 16 <= ceil_div(last + 1, 4) * 4 * 17;
  const int64 unit = element_bytes == 2 && (g.stride == 1 || whole) ? 8 : 4;
  Period p{};
  p.places = static_cast<unsigned>(ceil_div(last + 1, unit) * unit);
  int bits = 2;
  while (p.places > 1ull << bits) ++bits;
  p.reciprocal = static_cast<unsigned>(((1ull << (31 + bits)) + p.places - 1) / p.places);
  p.shift = static_cast<unsigned>(bits - 1);
  return p;
}
/// The item of a place below 2^31.
CT1D_HD constexpr unsigned item_of(const Period& p, unsigned place) {
  return static_cast<unsigned>(static_cast<unsigned long long>(place) * p.reciprocal >> 32) >> p.shift;
}

/// Places of a block, of one panel or slice of its steps.
struct Tile {
  int panel;
  int first;  // a multiple of kPositions
  bool exists;
};

/// How a grid shares the tiles. A strip is `strip` neighbouring tiles that one block walks. Resident weights tie a
/// block to a panel; streamed ones do not, and panels of the same positions are neighbours.
struct Schedule {
  unsigned panels;  // that the blocks are tied to; 1: they are not
  unsigned tiles;   // of all blocks that share them
  unsigned strip;
  unsigned workers;       // blocks that share them
  unsigned worker_tiles;  // every block walks as many, some of which do not exist
};

CT1D_HD constexpr int64 place_tiles(const Geometry& g, int element_bytes) {
  return ceil_div(g.batch * period_of(g, element_bytes).places, kBlockPositions);
}
CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g, int element_bytes) {
  return place_tiles(g, element_bytes) * extent_of(t, g).slices;
}

CT1D_HD constexpr Schedule schedule_of(const Tunables& t, const Geometry& g, int element_bytes, unsigned blocks) {
  Schedule s{};
  const unsigned panels = static_cast<unsigned>(extent_of(t, g).slices);
  s.panels = t.resident != 0 ? panels : 1;
  s.tiles = static_cast<unsigned>(place_tiles(g, element_bytes)) * (t.resident != 0 ? 1 : panels);
  s.workers = blocks / s.panels;
  s.strip = t.strip > 0 ? static_cast<unsigned>(t.strip) : (s.tiles + s.workers - 1) / s.workers;
  s.strip += s.strip == 0;  // of an empty batch
  const unsigned strips = (s.tiles + s.strip - 1) / s.strip;
  s.worker_tiles = (strips + s.workers - 1) / s.workers * s.strip;
  return s;
}

/// What a block shares tiles with others by: number `worker` of those that share its tiles, tied to `panel` (0: to
/// none), `free_panels` to choose from (1: of a tied one).
struct Share {
  unsigned worker;
  unsigned panel;
  unsigned free_panels;
};
CT1D_HD constexpr Share share_of(const Tunables& t, const Schedule& s, const Geometry& g, unsigned block) {
  return {block / s.panels, block % s.panels, t.resident != 0 ? 1 : static_cast<unsigned>(extent_of(t, g).slices)};
}

/// Tile `n` of a block. Divisions are by what is known when compiled, but for free panels.
CT1D_HD constexpr Tile tile_of(const Tunables& t, const Schedule& s, const Share& share, unsigned n) {
  const unsigned strip = t.strip > 0 ? static_cast<unsigned>(t.strip) : s.strip;
  const unsigned round = t.strip > 0 ? n / strip : n >= strip ? 1 : 0;  // all of its own are one strip
  const unsigned flat = (round * s.workers + share.worker) * strip + (n - round * strip);
  const unsigned place = t.resident != 0 ? flat : flat / share.free_panels;
  Tile tile{};
  tile.panel = static_cast<int>(share.panel + (flat - place * share.free_panels));
  tile.first = static_cast<int>(place) * kBlockPositions;
  tile.exists = flat < s.tiles;
  return tile;
}

// ---- launches
// --------------------------------------------------------------------------------------------------------

/// Bytes from the start of the workspace of what slices leave: what a block knows of the problem (at 0), sums of [128
/// places][slice][warp][s0 and s1 of eight columns][lane] 4 floats, marked quads of [128 places][slice][warp] a word.
struct Left {
  int64 marks;
  int64 bytes;
};
inline constexpr int kLeftSums = 128;
static_assert(kScheduleBytes <= kLeftSums, "the schedule lies before the sums");
CT1D_HD constexpr Left left_of(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 tiles = kConsumers * tile_count(t, g, element_bytes);
  Left left{};
  left.marks = kLeftSums + tiles * t.OC_TILE * kPositions * 4;
  left.bytes = left.marks + tiles * 16;
  return left;
}
/// Eights of columns that a block of the second kernel stores.
CT1D_HD constexpr int finish_tiles(const Tunables& t, int64 stride) {
  return is_staged(t.OC_TILE, stride) ? t.OC_TILE / 8 : t.OC_TILE % 16 == 0 ? 2 : 1;
}
CT1D_HD constexpr LaunchShape finish_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const Facts f = facts_of(t, g, element_bytes);
  const Shared s = shared_of(t, static_cast<int>(f.tap_step), static_cast<int>(f.slots), f.stride, element_bytes);
  const int64 tiles = kConsumers * place_tiles(g, element_bytes) * extent_of(t, g).panels;
  LaunchShape shape{1, 1, 1, kPositions, 1, 1, static_cast<unsigned>(s.bytes - s.schedule), 1};
  shape.grid_x = static_cast<unsigned>(max_of(1, tiles * (t.OC_TILE / 8 / finish_tiles(t, f.stride))));
  return shape;
}

/// `kernel`: 0, or 1 for the second one of a split.
CT1D_HD constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes, int kernel = 0) {
  if (kernel == 1) return finish_shape(t, g, element_bytes);
  const Facts f = facts_of(t, g, element_bytes);
  const int64 panels = t.resident != 0 ? extent_of(t, g).slices : 1;
  const int64 of_panel = min_of(t.grid() / panels, ceil_div(tile_count(t, g, element_bytes), panels));
  LaunchShape shape{1, 1, 1, kThreads, 1, 1, 0, 1};
  shape.grid_x = static_cast<unsigned>(max_of(1, of_panel) * panels);
  shape.shared_bytes = static_cast<unsigned>(
      shared_of(t, static_cast<int>(f.tap_step), static_cast<int>(f.slots), f.stride, element_bytes).bytes);
  return shape;
}
CT1D_HD constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int) {
  return {
      static_cast<unsigned>(extent_of(t, g).panels * t.OC_TILE), 1, 1, kPackThreads, 1, 1, kPackThreads / 32 * 8, 1};
}
CT1D_HD constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int) { return packed_of(t, g).bytes; }
CT1D_HD constexpr int64 workspace_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return t.split > 1 ? left_of(t, g, element_bytes).bytes : 0;
}

}  // namespace ct1d::wgmma
