// mma: tunables, the problem as matrix products, shared memory, packed weights. Included by device code, host program
// and emitted headers.
//
// Rows of a product are positions of x, its columns pairs of an output channel and a phase, phases fastest: with
// t + padding = stride * m + r, output t of channel oc is row m of column oc * stride + r, the sum over channels and
// taps j of x[ic][m - j * distance] * w[ic][oc][k]. With stride 1 tap j is k = j and distance the dilation; with more
// it is k = (r + stride * j) / dilation where that is whole and exists, distance 1, and a zero weight where not.
#pragma once

#include "kernels/common/phases.h"

namespace ct1d::mma {

struct Tunables {
  int m_tiles = 2;     // of 16 positions a warp
  int n_tiles = 8;     // of 8 columns a warp
  int warps_m = 2;     // warps along positions
  int warps_n = 2;     // warps along columns
  int stages = 3;      // of the ring of raw x and weights
  int products = 3;    // 3: operands split into two fp16 parts each; 1: not
  int taps = 1;        // products of 16 terms a stage and promotion
  int fold = 1;        // 1: few channels share the 16 terms with neighbouring taps
  int min_blocks = 2;  // blocks an SM that the compiler leaves registers for

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("m_tiles", &Tunables::m_tiles);
    v("n_tiles", &Tunables::n_tiles);
    v("warps_m", &Tunables::warps_m);
    v("warps_n", &Tunables::warps_n);
    v("stages", &Tunables::stages);
    v("products", &Tunables::products);
    v("taps", &Tunables::taps);
    v("fold", &Tunables::fold);
    v("min_blocks", &Tunables::min_blocks);
  }

  CT1D_HD constexpr int parts() const { return products == 3 ? 2 : 1; }
  CT1D_HD constexpr int positions() const { return 16 * m_tiles * warps_m; }
  CT1D_HD constexpr int columns() const { return 8 * n_tiles * warps_n; }
  CT1D_HD constexpr int threads() const { return 32 * warps_m * warps_n; }
};

inline constexpr int kTerms = 16;  // of one product
inline constexpr int kPackThreads = 128;
inline constexpr int64 kMaxGrid = 2147483647;
inline constexpr int64 kMostTaps = 65536;  // of a phase, and zeros between them

/// The problem as an instance sees it.
struct Plan {
  int64 taps;      // of a phase, those of weight zero included
  int64 distance;  // of the positions that neighbouring taps meet
  int64 width;     // columns of a panel in use: whole output channels, if one fits
  int64 panels;    // of a group
  int channels;    // of a product's 16 terms; its other factor is neighbouring taps
  int folded;
  int64 chunks;   // of channels
  int64 windows;  // of taps
  int64 steps;    // chunks outside, windows inside
  int64 m_first;  // of the first output's row
  int64 m_tiles;
  int64 tiles;  // of all: panels inside, then rows, groups, batch
};

CT1D_HD constexpr int64 taps_of(const Geometry& g) {
  return g.stride == 1 ? g.kernel_size : (g.kernel_size - 1) * g.dilation / g.stride + 1;
}

CT1D_HD constexpr Plan plan_of(const Tunables& t, const Geometry& g) {
  Plan p{};
  p.taps = taps_of(g);
  p.distance = g.stride == 1 ? g.dilation : 1;
  p.width = g.stride <= t.columns() ? t.columns() / g.stride * g.stride : t.columns();
  p.panels = ceil_div(g.out_per_group() * g.stride, p.width);
  p.channels = kTerms;
  while (t.fold != 0 && p.channels / 2 >= g.in_per_group() && p.channels > 1) p.channels /= 2;
  p.folded = kTerms / p.channels;
  p.chunks = ceil_div(g.in_per_group(), p.channels);
  p.windows = ceil_div(p.taps, t.taps * p.folded);
  p.steps = p.chunks * p.windows;
  p.m_first = g.padding / g.stride;
  const int64 m_last = (g.padding + g.length_out - 1) / g.stride;
  p.m_tiles = ceil_div(m_last - p.m_first + 1, t.positions());
  p.tiles = g.batch * g.groups * p.m_tiles * p.panels;
  return p;
}

// ---- a stage in shared memory: raw x [channel][pitch], then weights as packed

/// Positions before a tile's first that a stage holds.
CT1D_HD constexpr int64 halo_of(const Tunables& t, const Plan& p) { return (t.taps * p.folded - 1) * p.distance; }
/// Elements of a row of x, with room for up to 16 bytes before it; rows of four neighbouring channels meet all banks.
CT1D_HD constexpr int64 pitch_of(const Tunables& t, const Plan& p, int element_bytes) {
  const int64 row = t.positions() + halo_of(t, p) + 2 * (16 / element_bytes);
  return round_up(row, 128 / element_bytes) + 8;
}
/// Weights of 16 terms: [column / 8][lane][part][4 terms] halves.
CT1D_HD constexpr int product_bytes(const Tunables& t) { return t.columns() / 8 * 32 * 8 * t.parts(); }
CT1D_HD constexpr int step_bytes(const Tunables& t) { return t.taps * product_bytes(t); }
CT1D_HD constexpr int64 stage_bytes(const Tunables& t, const Plan& p, int element_bytes) {
  return round_up(p.channels * pitch_of(t, p, element_bytes) * element_bytes, 16) + step_bytes(t);
}
/// Outputs on their way to memory: [column][pitch] floats, in the stages' place.
CT1D_HD constexpr int out_pitch(const Tunables& t) { return t.positions() + 4; }
inline constexpr int kHeaderBytes = 256;  // what the block works on
CT1D_HD constexpr int64 shared_bytes(const Tunables& t, const Plan& p, int element_bytes) {
  return kHeaderBytes + max_of(t.stages * stage_bytes(t, p, element_bytes), int64{4} * t.columns() * out_pitch(t));
}

// ---- packed weights

/// Term `index` of a product is channel index % channels and folded tap index / channels; lane 4 g + q holds terms
/// q + 4 e, e = 0 .. 3. Halves, within a product's weights.
CT1D_HD constexpr int pack_place(const Tunables& t, int part, int index, int column) {
  const int lane = column % 8 * 4 + index % 4;
  return ((column / 8 * 32 + lane) * t.parts() + part) * 4 + index / 4;
}

/// Bytes from the start of what `pack` writes: parts of weights [panel][step][tap]; per panel and column the inverse of
/// its scale and whether that scale does not serve (floats); w as it is.
struct Packed {
  int64 inverse;
  int64 flag;
  int64 plain;
  int64 bytes;
};
CT1D_HD constexpr Packed packed_of(const Tunables& t, const Plan& p, const Geometry& g, int element_bytes) {
  const int64 panels = p.panels * g.groups;
  Packed packed{};
  packed.inverse = panels * p.steps * step_bytes(t);
  packed.flag = packed.inverse + panels * t.columns() * 4;
  packed.plain = packed.flag + panels * t.columns() * 4;
  packed.bytes = packed.plain + g.in_channels * g.out_per_group() * g.kernel_size * element_bytes;
  return packed;
}

/// The tap k that a column of phase r meets at j, or -1.
CT1D_HD constexpr int64 tap_at(const Geometry& g, int64 r, int64 j) {
  if (g.stride == 1) return j < g.kernel_size ? j : -1;
  const int64 at = r + g.stride * j;
  return at % g.dilation == 0 && at / g.dilation < g.kernel_size ? at / g.dilation : -1;
}

/// Products that two fp16 parts need in a sum: each leaves a product up to 2^-21 of itself, which fewer do not average
/// to what class fp32 allows.
inline constexpr int64 kLeastProducts = 16;
/// Whether an output of row m may have less, near an end of x where not all taps meet a position.
CT1D_HD constexpr bool few_products(const Plan& p, const Geometry& g, int64 m) {
  if (g.in_per_group() >= kLeastProducts) return false;
  const int64 begin = m >= g.length ? ceil_div(m - (g.length - 1), p.distance) : 0;
  const int64 end = m < 0 ? 0 : min_of(p.taps, m / p.distance + 1);
  if (begin == 0 && end == p.taps) return false;
  if (g.stride > 1 && g.dilation > 1) return true;
  return (end - begin - (g.stride > 1 ? 1 : 0)) * g.in_per_group() < kLeastProducts;  // a phase may lack the last tap
}
/// Products of an output with all of its taps, in the phase that has least (of those that have any).
CT1D_HD constexpr int64 least_products(const Geometry& g) {
  return g.in_per_group() * max_of(1, g.kernel_size / tap_step(g));
}

constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const Plan p = plan_of(t, g);
  const int64 blocks = max_of(1, min_of(p.tiles, kMaxGrid));
  const int64 bytes = min_of(shared_bytes(t, p, element_bytes), kMaxGrid);
  return {static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(t.threads()), 1, 1,
          static_cast<unsigned>(bytes),  1};
}
constexpr LaunchShape prepare_shape(const Tunables& t, const Geometry& g, int) {
  const int64 columns = plan_of(t, g).panels * g.groups * t.columns();
  return {static_cast<unsigned>(max_of(1, min_of(columns, kMaxGrid))), 1, 1, kPackThreads, 1, 1, kPackThreads * 8, 1};
}
constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return packed_of(t, plan_of(t, g), g, element_bytes).bytes;
}
constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

}  // namespace ct1d::mma
