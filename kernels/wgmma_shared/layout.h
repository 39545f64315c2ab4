// wgmma_shared: tunables, facts of an instance, shared memory, packed weights, order of tiles. Included by device code,
// host program and emitted headers.
//
// Rows of a product are output channels (A, packed weights), its columns are positions of y (B, x as [ic / 8][position]
// [8 ic]); both lie in shared memory. y[oc][t] is the sum over channels and taps k of
// x[ic][t + padding - k * dilation] * w[ic][oc][k]: a tap starts B that many rows earlier.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d::wgmma_shared {

inline constexpr int kStepChannels = 16;  // of a product

struct Tunables {
  int T = 128;                   // outputs along t of a tile
  int products = 3;              // 3: operands split into two fp16 parts each; 1: 16-bit operands
  int stages = 4;                // of the ring of converted x
  int producers = 4;             // warps that convert x, a stage each at a time
  int consumer_registers = 208;  // of a thread that multiplies; the producers share the rest
  int shadow = 1;                // groups of products that run while a finished tile is stored; of 16 bits: stages
  int strip = 0;                 // neighbouring tiles that a block walks; 0: all of its tiles are neighbours
  int blocks = 132;              // persistent blocks: one an SM
  int streaming = 0;             // 1: stores of y are marked as read by nobody soon
  int channels = 16;             // of a stage: one step of products, or two

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T);
    v("products", &Tunables::products);
    v("stages", &Tunables::stages);
    v("producers", &Tunables::producers);
    v("consumer_registers", &Tunables::consumer_registers);
    v("shadow", &Tunables::shadow);
    v("strip", &Tunables::strip);
    v("blocks", &Tunables::blocks);
    v("streaming", &Tunables::streaming);
    v("channels", &Tunables::channels);
  }

  CT1D_HD constexpr int parts() const { return products == 3 ? 2 : 1; }
  CT1D_HD constexpr int stage_steps() const { return channels == 2 * kStepChannels ? 2 : 1; }
  CT1D_HD constexpr int threads() const { return 256 + 32 * producers; }
  /// Registers of a thread when the block starts, in eights; what consumers and producers get may not exceed them.
  CT1D_HD constexpr int start_registers() const { return 65536 / threads() / 8 * 8; }
  CT1D_HD constexpr int producer_registers() const {
    return (start_registers() * threads() - 256 * consumer_registers) / (32 * producers) / 8 * 8;
  }
};

inline constexpr int kRows = 128;        // output channels that are rows of products
inline constexpr int kMoreChannels = 8;  // output channels that are columns of products of their own, if any
inline constexpr int kMostIn = 144;
inline constexpr int kBlockBytes = 2048;  // weights of 64 oc and 16 ic, of one part and tap
inline constexpr int kPackThreads = 128;
inline constexpr int kFlagWords = 256;  // tiles n and n + 256 of a block share their flags
inline constexpr int kRing = 4;         // of records of tiles
inline constexpr int kLowBits = 11;     // low parts are kept times 2 to this
inline constexpr int kSharedBudget = 227 * 1024;

// ---- what an instance compiles in

/// Taps; positions between them (0: known at run time); positions before a tile's first that its products may read;
/// steps of kStepChannels; output channels beyond kRows, or 0.
struct Facts {
  int64 taps;
  int64 dilation;
  int64 halo;
  int64 steps;
  int64 more;
};
inline constexpr int64 kMostOfFact = 4096;  // more is refused, whatever it is
CT1D_HD constexpr Facts facts_of(const Geometry& g, int element_bytes) {
  const int64 taps = min_of(g.kernel_size, kMostOfFact);
  const int64 least = element_bytes == 2 ? 1 : 0;  // a pair of positions may begin one before the tile
  const int64 steps = max_of(8, ceil_div(g.in_channels, kStepChannels));  // each producer has a stage
  const int64 more = g.out_channels > kRows ? kMoreChannels : 0;
  if (taps == 1 || g.dilation == 1) return {taps, 1, max_of(least, taps - 1), steps, more};
  int64 halo = 8;
  while (halo < kMostOfFact && halo < (taps - 1) * min_of(g.dilation, kMostOfFact)) halo *= 2;
  return {taps, 0, halo, steps, more};
}

CT1D_HD constexpr int64 step_bytes(int64 taps) { return taps * 2 * kBlockBytes; }  // one part of 16 channels
CT1D_HD constexpr int64 part_bytes(int64 taps, int64 steps) { return steps * step_bytes(taps); }
/// Weights of the channels beyond kRows, of all steps and one part: a block of [ic / 8][oc][8 ic] a tap.
inline constexpr int kMoreBlockBytes = kStepChannels * kMoreChannels * 2;
CT1D_HD constexpr int64 more_bytes(int64 taps, int64 steps, int64 more) {
  return more > 0 ? steps * taps * kMoreBlockBytes : 0;
}

/// Stages, of `all`, whose products one accumulator sums before they are added up in fp32: at most `most_terms` terms.
CT1D_HD constexpr int promoted_stages(int64 taps, int64 all, int most_terms, int channels = kStepChannels) {
  int64 stages = all;
  for (int64 groups = 2; stages > 1 && stages * taps * channels > most_terms; ++groups) {
    stages = ceil_div(all, groups);
  }
  return static_cast<int>(stages);
}
/// What accumulators cut off, all of one sign on data of one sign, shows in a class's bound beyond so many terms
/// (docs/PERFORMANCE.md, wgmma).
inline constexpr int kMostTerms = 256;
inline constexpr int kMostTermsHalf = 384;
inline constexpr int kMostTermsBfloat16 = 1024;

/// Outputs of a tile, along t, that a bit of its flags stands for.
CT1D_HD constexpr int flagged_outputs(int t_tile) { return t_tile > 128 ? 8 : 4; }

/// Bytes from the start of the block's shared memory. Weights lie at 0: [part][ic / 16][tap][oc / 64] blocks.
struct Shared {
  int slab_bytes;  // [row][8 ic] halves
  int part_bytes;
  int step_bytes;   // [part][ic / 8]
  int stage_bytes;  // [step]
  int more;         // weights of channels beyond kRows
  int stages;       // [slot]
  int barriers;     // per slot full, empty
  int weights_barrier;
  int schedule;  // Steps
  int walks;     // a Walk of each producer warp, and the first tile's
  int maxima;    // [tile % kRing][8] largest magnitude that each producer warp met
  int top;       // the same of the first tile
  int tiles;     // [tile % kRing] t_first, batch, TileBits, 1 / scale: written before the tile's first stage is filled
  int scales;    // 1 / scale of each oc, then each oc's bias
  int flags;     // [kFlagWords]: a bit for flagged_outputs() to be done again; then one word: all of them
  int bytes;
};

CT1D_HD constexpr Shared shared_of(const Tunables& t, const Facts& f) {
  Shared s{};
  s.slab_bytes = (t.T + static_cast<int>(f.halo)) * 16;
  s.part_bytes = 2 * s.slab_bytes;
  s.step_bytes = t.parts() * s.part_bytes;
  s.stage_bytes = t.stage_steps() * s.step_bytes;
  s.more = t.parts() * static_cast<int>(part_bytes(f.taps, f.steps));
  s.stages = s.more + static_cast<int>(more_bytes(f.taps, f.steps, f.more));
  s.barriers = s.stages + t.stages * s.stage_bytes;
  s.weights_barrier = s.barriers + t.stages * 16;
  s.schedule = s.weights_barrier + 16;
  s.walks = s.schedule + 16;
  s.maxima = s.walks + 9 * 16;
  s.top = s.maxima + kRing * 32;
  s.tiles = s.top + 16;
  s.scales = s.tiles + kRing * 16;
  s.flags = s.scales + 2 * static_cast<int>(kRows + f.more) * 4;
  s.bytes = s.flags + (kFlagWords + 1) * 4;
  return s;
}

/// Bytes from the start of what `pack` writes: weights as in shared memory; per oc the inverse of its scale and whether
/// that scale does not serve (floats); fp32 weights [ic][tap][oc].
struct Packed {
  int64 inverse;
  int64 flag;
  int64 plain;
  int64 bytes;
};
CT1D_HD constexpr Packed packed_of(const Tunables& t, const Geometry& g) {
  const Facts f = facts_of(g, 2);  // the halo does not count
  const int64 channels = kRows + f.more;
  Packed p{};
  p.inverse = t.parts() * part_bytes(f.taps, f.steps) + more_bytes(f.taps, f.steps, f.more);
  p.flag = p.inverse + channels * 4;
  p.plain = p.flag + channels * 4;
  p.bytes = p.plain + g.in_channels * f.taps * channels * 4;
  return p;
}
/// In halves; channels beyond kRows have one part, the first.
CT1D_HD constexpr int64 pack_place(int64 taps, int64 steps, int parts, int part, int64 tap, int ic, int oc) {
  const int64 of_step = ic / kStepChannels * taps + tap;
  if (oc >= kRows) {
    return parts * part_bytes(taps, steps) / 2 + of_step * (kMoreBlockBytes / 2) + ic % 16 / 8 * (kMoreChannels * 8) +
           (oc - kRows) * 8 + ic % 8;
  }
  return part * part_bytes(taps, steps) / 2 + (of_step * 2 + oc / 64) * (kBlockBytes / 2) + ic % 16 / 8 * 512 +
         oc % 64 * 8 + ic % 8;
}

// ---- tiles

/// Outputs of a block, of one batch item. Of a row's outputs a tile keeps what does not fill a sector of 32 bytes for
/// the next one of its strip.
struct Tile {
  int batch;
  int t_first;
  bool exists;
  bool first;  // nothing carried from the tile before
  bool last;   // nothing carried on
};
enum TileBits { kExists = 1, kFirst = 2, kLast = 4 };

/// How a grid shares the tiles; fewer than 2^31 of them. A strip is `strip` neighbours that one block walks.
struct Schedule {
  unsigned row_tiles;  // of one row of outputs
  unsigned tiles;
  unsigned strip;
  unsigned workers;
  unsigned worker_tiles;  // every block walks as many, some of which do not exist
};

CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g) {
  return ceil_div(g.length_out, t.T) * g.batch;
}
CT1D_HD constexpr Schedule schedule_of(const Tunables& t, const Geometry& g, unsigned blocks) {
  Schedule s{};
  s.row_tiles = static_cast<unsigned>(ceil_div(g.length_out, t.T));
  s.tiles = s.row_tiles * static_cast<unsigned>(g.batch);
  s.workers = blocks;
  s.strip = t.strip > 0 ? static_cast<unsigned>(t.strip) : (s.tiles + s.workers - 1) / s.workers;
  s.strip += s.strip == 0;  // of an empty batch
  const unsigned strips = (s.tiles + s.strip - 1) / s.strip;
  s.worker_tiles = (strips + s.workers - 1) / s.workers * s.strip;
  return s;
}

/// A block's tiles one after the other, without divisions.
struct Steps {
  unsigned row_tiles;
  unsigned strip;
  unsigned jump_batch;  // from a strip's last tile to the next strip's first
  unsigned jump_row;
};
struct Walk {
  unsigned batch;
  unsigned in_row;
  unsigned in_strip;
};
CT1D_HD constexpr Steps steps_of(const Schedule& s) {
  const unsigned jump = (s.workers - 1) * s.strip + 1;
  return {s.row_tiles, s.strip, jump / s.row_tiles, jump % s.row_tiles};
}
CT1D_HD constexpr Walk walk_of(const Schedule& s, unsigned worker) {
  return {worker * s.strip / s.row_tiles, worker * s.strip % s.row_tiles, 0};
}
CT1D_HD constexpr Walk next_of(const Steps& s, Walk w) {
  const bool jump = w.in_strip + 1 == s.strip;
  w.in_strip = jump ? 0 : w.in_strip + 1;
  w.batch += jump ? s.jump_batch : 0;
  w.in_row += jump ? s.jump_row : 1;
  if (w.in_row >= s.row_tiles) {
    w.in_row -= s.row_tiles;
    ++w.batch;
  }
  return w;
}
CT1D_HD constexpr Tile tile_at(const Steps& s, int t_tile, const Walk& w, int batches) {
  const int batch = static_cast<int>(w.batch);
  return {batch, static_cast<int>(w.in_row) * t_tile, batch < batches, w.in_strip == 0 || w.in_row == 0,
          w.in_strip + 1 == s.strip || w.in_row + 1 == s.row_tiles};
}

// ---- launches

CT1D_HD constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const Facts f = facts_of(g, element_bytes);
  LaunchShape shape{1, 1, 1, static_cast<unsigned>(t.threads()), 1, 1, 0, 1};
  shape.grid_x = static_cast<unsigned>(max_of(1, min_of(t.blocks, tile_count(t, g))));
  shape.shared_bytes = static_cast<unsigned>(shared_of(t, f).bytes);
  return shape;
}
CT1D_HD constexpr LaunchShape prepare_shape(const Tunables&, const Geometry& g, int) {
  return {static_cast<unsigned>(kRows + facts_of(g, 2).more), 1, 1, kPackThreads, 1, 1, kPackThreads / 32 * 8, 1};
}
CT1D_HD constexpr int64 packed_bytes(const Tunables& t, const Geometry& g, int) { return packed_of(t, g).bytes; }
CT1D_HD constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

}  // namespace ct1d::wgmma_shared
