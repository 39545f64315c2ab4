// wgmma_packed: tunables, the problem as matrix products, packed x and weights, shared memory, order of tiles. Included
// by device code, host program and emitted headers.
//
// Rows of a product are output channels by phases, phases fastest (A, packed weights), its columns are places:
// positions of x of all batch items one behind the other (B, x packed by a first kernel of every call). With column
// (oc, r) of place (b, m), y[b][oc][m * stride + r - padding] is the sum over channels and offsets j of x[b][ic][m - j
// * step] * w[ic][oc][k], tap k being the one with k * dilation = r + j * step * stride; where there is none the weight
// is 0.
#pragma once

#include "kernels/common/offsets.h"

namespace ct1d::wgmma_packed {

struct Tunables {
  int T = 128;       // places of a warpgroup's tile: columns of its products
  int rows = 128;    // of a block: 128, a warpgroup has half of them; 64, each has all of them at places of its own
  int products = 3;  // 3: operands split into two fp16 parts each; 1: one part
  int stages = 6;    // of the ring of packed x and weights: 16 channels, all offsets
  int band = 8;      // tiles of places whose panels of rows are walked together
  int blocks = 132;  // persistent blocks: one an SM
  int cluster = 1;   // blocks with neighbouring tiles of places, each of which loads a share of their weights for all

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("rows", &Tunables::rows);
    v("products", &Tunables::products);
    v("stages", &Tunables::stages);
    v("band", &Tunables::band);
    v("blocks", &Tunables::blocks);
    v("cluster", &Tunables::cluster);
  }

  CT1D_HD constexpr int parts() const { return products == 3 ? 2 : 1; }
  // At least 1, also for rows out of a file that no block has: constraints divide by them before all are read.
  CT1D_HD constexpr int row_tiles() const { return rows < 64 ? 1 : rows / 64; }      // of a block, of 64 rows
  CT1D_HD constexpr int place_tiles() const { return rows > 128 ? 1 : 128 / rows; }  // of a block, of T places
};

inline constexpr int kRows = 64;          // of a panel
inline constexpr int kStepChannels = 16;  // of a stage
inline constexpr int kBlockBytes = 2048;  // weights of 64 rows and 16 channels, of one part and offset
inline constexpr int kConsumers = 2;      // warpgroups that multiply
inline constexpr int kThreads = 384;      // and one that fills the ring
inline constexpr int kPackThreads = 128;
inline constexpr int kPackWarps = 8;  // of the kernel that packs x: a step of channels each
inline constexpr int kMostOffsets = 8;
inline constexpr int kMostHalo = 16;
inline constexpr int kStored = 32;     // places of a tile that are stored at a time
inline constexpr int kFlagTiles = 64;  // tiles n and n + 64 of a block share the flags of 16-bit outputs
inline constexpr int kSharedBudget = 227 * 1024;
inline constexpr int kLowBits = 11;  // low parts are kept times 2 to this

// ---- places

/// Item b's position m is place b * period + m. Places from `length` on hold zeros, so that what the next item's first
/// outputs read before it is zeros.
CT1D_HD constexpr int64 period_of(const Geometry& g) {
  const Offsets offsets = offsets_of(g);
  const int64 last = (g.padding + g.length_out - 1) / g.stride;  // position with outputs
  return ceil_div(max_of(last + 1, g.length + (offsets.count - 1) * offsets.step), 4) * 4;
}

/// Division by a number below 2^31 of numbers below 2^31.
struct Divider {
  unsigned by;
  unsigned reciprocal;  // of `by`, times 2^(32 + shift), rounded up
  unsigned shift;
  CT1D_HD constexpr unsigned quotient(unsigned value) const {
    return by == 1 ? value : static_cast<unsigned>(static_cast<unsigned long long>(value) * reciprocal >> 32) >> shift;
  }
};
CT1D_HD constexpr Divider divider_of(int64 by) {
  unsigned bits = 1;
  while ((1ll << bits) < by) ++bits;
  const unsigned long long top = 1ull << (31 + bits);
  const unsigned long long divisor = static_cast<unsigned long long>(by);
  return {static_cast<unsigned>(by), static_cast<unsigned>((top + divisor - 1) / divisor), bits - 1};
}

// ---- the problem as products

/// What the problem fixes of an instance: offsets, positions between them, the stride, places before a tile that its
/// products may read, and how many stages share a scale of x (and an accumulator, where one product is formed): a
/// divisor of all of them. Step and stride 0: known at run time.
struct Facts {
  int64 offsets;
  int64 step;
  int64 stride;
  int64 halo;
  int64 group;
};
inline constexpr int64 kMostOfFact = 1024;  // more is refused, whatever it is
/// Two stages mark the configuration that few instances of serve all problems.
CT1D_HD constexpr bool is_general(const Tunables& t) { return t.stages == 2; }
CT1D_HD constexpr int64 steps_of(const Geometry& g) { return ceil_div(g.in_channels, kStepChannels); }

/// Terms that an accumulator sums before what it cuts off, all of one sign on data of one sign, shows in a class's
/// bound (docs/PERFORMANCE.md, wgmma). In class tf32 rows are held to 1.1 times what rounded operands leave, which
/// averages out as 1 / sqrt(products) where what is cut off does not: an H200 found 256 terms 1.05 times too wrong
/// among 3,072 products, 1.01 among 2,048. Cut off are 1.1e-8 of the sum a term, left by rounding 2.7e-4 /
/// sqrt(products).
CT1D_HD constexpr int64 most_terms(const Geometry& g, int element_bytes, bool bfloat16) {
  if (element_bytes == 2) return bfloat16 ? 1024 : 384;
  constexpr int64 kSquared = 73803719;  // of 0.35 * 2.7e-4 / 1.1e-8
  const int64 products = g.in_channels * offsets_of(g).count;
  int64 terms = 256;
  while (terms > 1 && terms * terms > kSquared / products) --terms;
  return terms;
}
/// `most_terms`: as above.
CT1D_HD constexpr Facts facts_of(const Tunables& t, const Geometry& g, int64 most_terms) {
  const Offsets offsets = offsets_of(g);
  const int64 count = min_of(offsets.count, kMostOfFact);
  if (is_general(t)) {
    int64 rounded = 1;
    while (rounded < count) rounded *= 2;
    return {rounded, 0, 0, kMostHalo, 1};
  }
  const int64 step = min_of(offsets.step, kMostOfFact);
  Facts f{count, step, min_of(g.stride, kMostOfFact), (count - 1) * step, 1};
  int64 most = kPackWarps;
  if (t.products == 1) most = min_of(most, max_of(1, most_terms / (kStepChannels * count)));
  for (int64 group = 2; group <= most; ++group)
    if (steps_of(g) % group == 0) f.group = group;
  return f;
}

CT1D_HD constexpr int width_of(int64 stride) {
  return static_cast<int>(stride <= kRows ? kRows / stride * stride : kRows);
}

/// A panel is 64 rows, of which `width` are in use: whole output channels, if one fits.
struct Extent {
  int64 width;
  int64 panels;
  int64 steps;
  int64 places;       // of all items
  int64 place_tiles;  // of T
};
CT1D_HD constexpr Extent extent_of(const Tunables& t, const Geometry& g) {
  Extent e{};
  e.width = width_of(g.stride);
  e.panels = ceil_div(g.out_channels * g.stride, e.width);
  e.steps = steps_of(g);
  e.places = g.batch * period_of(g);
  e.place_tiles = ceil_div(e.places, t.T);
  return e;
}

// ---- packed x, in the workspace

/// A stage's image: [part][k / 8][halo + T rows][8 channels] halves; images lie as [tile of places][step].
CT1D_HD constexpr int slab_bytes(const Tunables& t, int64 halo) { return (t.T + static_cast<int>(halo)) * 16; }
CT1D_HD constexpr int image_bytes(const Tunables& t, int64 halo) { return t.parts() * 2 * slab_bytes(t, halo); }
/// Channels that a block of the kernel that packs x has, in steps: whole groups of those that share a scale, which
/// 16-bit x does without.
CT1D_HD constexpr int pack_steps(int64 group, int element_bytes = 4) {
  return element_bytes == 2 ? kPackWarps : static_cast<int>(kPackWarps / group * group);
}

/// Bytes from the start of the workspace: images; then, for fp32 x, for each tile of places and group the inverse of
/// its scale, and for each tile and block of the packing kernel 64 bits: fours of places that its scales do not serve.
struct Workspace {
  int64 inverse;
  int64 flags;
  int64 flag_blocks;  // of a tile
  int64 bytes;
};
CT1D_HD constexpr Workspace workspace_of(const Tunables& t, const Geometry& g, const Facts& f, int element_bytes) {
  const Extent e = extent_of(t, g);
  Workspace w{};
  w.inverse = e.place_tiles * e.steps * image_bytes(t, f.halo);
  w.flags = w.inverse + ceil_div(e.place_tiles * (e.steps / f.group) * 4, 16) * 16;
  w.flag_blocks = ceil_div(e.steps, pack_steps(f.group, element_bytes));
  w.bytes = element_bytes == 4 ? w.flags + e.place_tiles * w.flag_blocks * 8 : w.inverse;
  return w;
}

// ---- packed weights

/// Weights of a panel and step: [part][offset] blocks.
CT1D_HD constexpr int64 panel_bytes(const Tunables& t, int64 offsets) { return t.parts() * offsets * kBlockBytes; }
/// Bytes from the start of what `pack` writes: parts of weights [panel][step]; per row the inverse of its scale and
/// whether that scale does not serve (floats); fp32 weights [panel][channel][offset][row], kNoTap where there is no
/// tap.
inline constexpr unsigned kNoTap = 0x7FFFDEADu;  // a NaN; those among weights are packed as another one
struct Packed {
  int64 inverse;
  int64 flag;
  int64 plain;
  int64 bytes;
};
CT1D_HD constexpr Packed packed_of(const Tunables& t, const Geometry& g, int64 offsets) {
  const Extent e = extent_of(t, g);
  Packed p{};
  p.inverse = e.panels * e.steps * panel_bytes(t, offsets);
  p.flag = p.inverse + e.panels * kRows * 4;
  p.plain = p.flag + e.panels * kRows * 4;
  p.bytes = p.plain + e.panels * g.in_channels * offsets * kRows * 4;
  return p;
}
/// In halves, within a panel and step.
CT1D_HD constexpr int pack_place(int64 offsets, int part, int64 offset, int channel, int row) {
  return static_cast<int>((part * offsets + offset) * (kBlockBytes / 2)) + channel / 8 * 512 + row * 8 + channel % 8;
}

// ---- shared memory of a block

/// Bytes from its start. A slot holds weights [panel][part][offset] and images of x [tile of places].
struct Shared {
  int slot_bytes;
  int image;     // from a slot's start to its first image
  int barriers;  // per slot full, empty
  int schedule;  // Schedule
  int staging;   // [consumer] kStagingBytes
  int quads;     // [consumer] quads_bytes()
  int flags;     // [tile % kFlagTiles][consumer] 64 bits
  int bytes;
};
/// Of a chunk on its way to y: floats, [place] rows or [row] places.
inline constexpr int kPlacePitch = kRows + 4;
inline constexpr int kStagingBytes = kStored * kPlacePitch * 4;
/// Of a tile: where in y its fours of places lie, 16 bytes each; what its rows are multiplied with and what is added.
CT1D_HD constexpr int quads_bytes(int places) { return places / 4 * 16 + kRows * 8; }
CT1D_HD constexpr Shared shared_of(const Tunables& t, int64 offsets, int64 halo) {
  Shared s{};
  s.image = static_cast<int>(t.row_tiles() * panel_bytes(t, offsets));
  s.slot_bytes = s.image + t.place_tiles() * image_bytes(t, halo);
  s.slot_bytes = (s.slot_bytes + 127) / 128 * 128;
  s.barriers = t.stages * s.slot_bytes;
  s.schedule = s.barriers + t.stages * 16;
  s.staging = s.schedule + 48;
  s.quads = s.staging + kConsumers * kStagingBytes;
  s.flags = s.quads + kConsumers * quads_bytes(t.T);
  s.bytes = s.flags + kFlagTiles * kConsumers * 8;
  return s;
}

// ---- tiles

/// A tile of a cluster's blocks, or a block's own: its first panel and its first tile of places, of which some may not
/// exist.
struct Tile {
  int panel;
  int places;  // in tiles of T
};

/// Tiles are counted through bands of `band` tiles of places, in a band through the panels, in a panel through the
/// band's tiles of places: blocks that work at the same time share weights and x. They are a cluster's: the tiles of
/// its blocks have the same panels and lie side by side.
struct Schedule {
  unsigned tiles;
  unsigned place_groups;  // in units of a cluster's tile of places
  unsigned row_groups;    // the same of panels
  unsigned band;
  Divider by_band;  // tiles of a whole band
};
CT1D_HD constexpr Schedule schedule_of(const Tunables& t, const Geometry& g) {
  const Extent e = extent_of(t, g);
  Schedule s{};
  s.place_groups = static_cast<unsigned>(ceil_div(e.place_tiles, t.place_tiles() * t.cluster));
  s.row_groups = static_cast<unsigned>(ceil_div(e.panels, t.row_tiles()));
  s.tiles = s.place_groups * s.row_groups;
  s.band = static_cast<unsigned>(max_of(1, min_of(t.band / t.cluster, s.place_groups)));
  s.by_band = divider_of(static_cast<int64>(s.band) * s.row_groups);
  return s;
}
CT1D_HD constexpr Tile tile_of(const Tunables& t, const Schedule& s, unsigned number) {
  const unsigned band = s.by_band.quotient(number);
  const unsigned within = number - band * s.by_band.by;
  const unsigned first = band * s.band;
  const unsigned left = s.place_groups - first;
  const unsigned height = left < s.band ? left : s.band;
  const unsigned panel = within / height;
  return {static_cast<int>(panel) * t.row_tiles(),
          static_cast<int>(first + (within - panel * height)) * t.place_tiles() * t.cluster};
}

// ---- launches

CT1D_HD constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, const Facts& f) {
  LaunchShape shape{1, 1, 1, kThreads, 1, 1, 0, static_cast<unsigned>(t.cluster)};
  shape.grid_x = static_cast<unsigned>(max_of(1, min_of(t.blocks / t.cluster, schedule_of(t, g).tiles)) * t.cluster);
  shape.shared_bytes = static_cast<unsigned>(shared_of(t, f.offsets, f.halo).bytes);
  return shape;
}
/// 16-bit x needs no common scale: a block has a tile's 32 places.
CT1D_HD constexpr LaunchShape pack_x_shape(const Tunables& t, const Geometry& g, const Facts& f, int element_bytes) {
  const Extent e = extent_of(t, g);
  const int64 columns = element_bytes == 2 ? t.T / 32 : 1;
  LaunchShape shape{1, 1, 1, 32 * kPackWarps, 1, 1, 64, 1};
  shape.grid_x =
      static_cast<unsigned>(max_of(1, e.place_tiles * ceil_div(e.steps, pack_steps(f.group, element_bytes)) * columns));
  return shape;
}
CT1D_HD constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g) {
  return {static_cast<unsigned>(extent_of(t, g).panels * kRows), 1, 1, kPackThreads, 1, 1, kPackThreads / 32 * 8, 1};
}

// ---- the same as emitted headers ask for them

/// How fp16 and bf16 differ makes no difference to sizes and shapes.
CT1D_HD constexpr Facts facts_by_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return facts_of(t, g, most_terms(g, element_bytes, false));
}
CT1D_HD constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return packed_of(t, g, facts_by_bytes(t, g, element_bytes).offsets).bytes;
}
CT1D_HD constexpr int64 workspace_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return workspace_of(t, g, facts_by_bytes(t, g, element_bytes), element_bytes).bytes;
}
CT1D_HD constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes, int kernel) {
  const Facts f = facts_by_bytes(t, g, element_bytes);
  return kernel == 0 ? pack_x_shape(t, g, f, element_bytes) : run_shape(t, g, f);
}
CT1D_HD constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int) { return prepare_shape(t, g); }

}  // namespace ct1d::wgmma_packed
