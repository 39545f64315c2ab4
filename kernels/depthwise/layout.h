// depthwise: pieces of rows, shared memory and launch arithmetic. Included by device code, host program and emitted
// headers.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/phases.h"

namespace ct1d::depthwise {

struct Tunables {
  BlockShape block{128, 1};  // x: threads along a row, y: rows
  int run = 1;               // a piece is run * lcm(stride, 16 bytes) outputs of a row
  int chunks = 8;            // pieces a thread
  int unroll = 2;            // pieces a thread has in registers at once
  int OC_TILE = 1;           // output channels of the group a thread computes
  int x_vector = 2;          // elements of x a load
  int weights = 0;           // 0: in registers; 1: in shared memory; 2: read where they are used
  int exchange = 0;          // 1: pieces pass through shared memory, so that a warp stores whole sectors at once
  int streaming = 0;         // 1: stores are marked as read by nobody soon
  int specialise = 1;        // 1: stride, taps, dilation compiled in; 0: all geometry at run time
  int min_blocks = 4;        // blocks an SM that the compiler leaves registers for

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("block", &Tunables::block);
    v("run", &Tunables::run);
    v("chunks", &Tunables::chunks);
    v("unroll", &Tunables::unroll);
    v("OC_TILE", &Tunables::OC_TILE);
    v("x_vector", &Tunables::x_vector);
    v("weights", &Tunables::weights);
    v("exchange", &Tunables::exchange);
    v("streaming", &Tunables::streaming);
    v("specialise", &Tunables::specialise);
    v("min_blocks", &Tunables::min_blocks);
  }
};

inline constexpr int64 kMaxGrid = 2147483647;
/// Output channels a group that the family is for.
inline constexpr int64 kFewChannels = 8;
/// A specialised kernel has code for each phase that a piece may begin in and each place of its window in a load.
inline constexpr int64 kMaxCopies = 16;
inline constexpr int64 kMaxTaps = 64;
inline constexpr int64 kMaxDilation = 4096;
inline constexpr int64 kMaxWindow = 64;

enum Weights { in_registers = 0, in_shared = 1, where_used = 2 };

/// a / b for a >= 0 and b > 0, by 32 bits where they hold both and bit by bit where not: the compiler's own division of
/// 64 bits is a call, for which it spills.
CT1D_HD constexpr int64 quotient(int64 a, int64 b) {
  if (a <= 0xFFFFFFFF && b <= 0xFFFFFFFF) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  int64 rest = a;
  int64 result = 0;
  int bit = 0;
  while (bit < 62 && b <= rest >> (bit + 1)) ++bit;
  for (; bit >= 0; --bit) {
    if (rest >> bit < b) continue;
    rest -= b << bit;
    result |= int64{1} << bit;
  }
  return result;
}

CT1D_HD constexpr int64 lcm(int64 a, int64 b) { return a / gcd(a, b) * b; }

/// Outputs of a piece.
CT1D_HD constexpr int64 piece_length(const Tunables& t, int64 stride, int element_bytes) {
  return t.specialise != 0 ? t.run * lcm(stride, 16 / element_bytes) : 1;
}

/// Of a piece whose first output is of phase `phase`: its window of x reaches from lowest to highest, counted from the
/// position of that output's phase 0.
CT1D_HD constexpr int64 lowest(int64 phase, int64 stride, int64 taps, int64 dilation) {
  return floor_div(phase - (taps - 1) * dilation, stride);
}
CT1D_HD constexpr int64 highest(int64 phase, int64 stride, int64 length) { return (phase + length - 1) / stride; }

/// Positions of x in the longest window.
CT1D_HD constexpr int64 window_length(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 last = g.stride - 1;
  return highest(last, g.stride, piece_length(t, g.stride, element_bytes)) -
         lowest(0, g.stride, g.kernel_size, g.dilation) + 1;
}

/// Input channels a group that are compiled in; 0: counted at run time.
CT1D_HD constexpr int64 compiled_channels(const Tunables& t, const Geometry& g) {
  return t.specialise != 0 && g.in_per_group() <= kFewChannels ? g.in_per_group() : 0;
}

/// A row's pieces begin up to 32 bytes before it, so that each lies on a sector.
CT1D_HD constexpr int64 pieces(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 shift = t.specialise != 0 ? 32 / element_bytes - 1 : 0;
  return ceil_div(g.length_out + shift, piece_length(t, g.stride, element_bytes));
}
CT1D_HD constexpr int64 segments(const Tunables& t, const Geometry& g, int element_bytes) {
  return ceil_div(pieces(t, g, element_bytes), int64{t.block.x} * t.chunks);
}
CT1D_HD constexpr int64 row_count(const Tunables& t, const Geometry& g) {
  return g.batch * g.groups * ceil_div(g.out_per_group(), t.OC_TILE);
}
CT1D_HD constexpr int64 tile_count(const Tunables& t, const Geometry& g, int element_bytes) {
  return ceil_div(row_count(t, g), t.block.y) * segments(t, g, element_bytes);
}

/// Floats of one row's weights.
CT1D_HD constexpr int64 row_weights(const Tunables& t, const Geometry& g) {
  return g.in_per_group() * t.OC_TILE * g.kernel_size;
}
CT1D_HD constexpr int64 weight_bytes(const Tunables& t, const Geometry& g) {
  return t.weights == in_shared ? round_up(t.block.y * row_weights(t, g) * 4, 16) : 0;
}
CT1D_HD constexpr int64 exchange_bytes(const Tunables& t, const Geometry& g, int element_bytes) {
  return t.exchange != 0 ? int64{t.block.x} * t.block.y * piece_length(t, g.stride, element_bytes) * element_bytes : 0;
}

/// Blocks take tiles in steps of the grid, so that any number of tiles fits; an empty batch is one idle block.
constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int element_bytes) {
  const int64 blocks = max_of(1, min_of(tile_count(t, g, element_bytes), kMaxGrid));
  const int64 bytes = min_of(weight_bytes(t, g) + exchange_bytes(t, g, element_bytes), kMaxGrid);
  return {static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(t.block.x), static_cast<unsigned>(t.block.y), 1,
          static_cast<unsigned>(bytes),  1};
}
constexpr LaunchShape prepare_shape(const Tunables&, const Geometry&, int) { return {1, 1, 1, 1, 1, 1, 0, 1}; }
constexpr int64 packed_bytes(const Tunables&, const Geometry&, int) { return 0; }
constexpr int64 workspace_bytes(const Tunables&, const Geometry&, int) { return 0; }

/// The inverse of a modulo m, for a and m without a common factor; 0 for m = 1.
CT1D_HD constexpr int64 inverse_mod(int64 a, int64 m) {
  int64 old_rest = a % m, rest = m;
  int64 old_factor = 1, factor = 0;
  while (rest != 0) {
    const int64 quotient = old_rest / rest;
    const int64 next_rest = old_rest - quotient * rest;
    old_rest = rest;
    rest = next_rest;
    const int64 next_factor = old_factor - quotient * factor;
    old_factor = factor;
    factor = next_factor;
  }
  return m == 1 ? 0 : floor_mod(old_factor, m);
}

/// How to find the taps of any output.
struct Walk {
  int64 common;    // of stride and dilation
  int64 tap_step;  // between taps of a phase
  int64 x_step;    // between the positions that they meet
  int64 inverse;   // of x_step modulo tap_step
};
CT1D_HD constexpr Walk walk_of(const Geometry& g) {
  const int64 common = gcd(g.stride, g.dilation);
  return {common, g.stride / common, g.dilation / common, inverse_mod(g.dilation / common, g.stride / common)};
}

/// The taps of output t that meet a position of x: first_tap + j * tap_step meets position - j * x_step, for j in
/// [begin, end).
struct Meeting {
  int64 first_tap;
  int64 position;
  int64 begin;
  int64 end;
};
CT1D_HD constexpr Meeting meeting_of(const Geometry& g, const Walk& walk, int64 t) {
  const int64 u = t + g.padding;
  const int64 residue = u % g.stride;
  if (residue % walk.common != 0) return {0, 0, 0, 0};
  const int64 first = multiply_mod(residue / walk.common, walk.inverse, walk.tap_step);
  if (first >= g.kernel_size) return {0, 0, 0, 0};
  const int64 position = floor_div(u - first * g.dilation, g.stride);  // exactly
  if (position < 0) return {0, 0, 0, 0};
  const int64 taps = ceil_div(g.kernel_size - first, walk.tap_step);
  const int64 begin = position >= g.length ? ceil_div(position - (g.length - 1), walk.x_step) : 0;
  return {first, position, begin, min_of(taps, position / walk.x_step + 1)};
}

}  // namespace ct1d::depthwise
