// wgmma: the compile-time facts of an instance, its schedule in shared memory, scales.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/fp16_parts.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/placed.cuh"
#include "kernels/common/warpgroup.cuh"
#include "kernels/wgmma/layout.h"

namespace ct1d::wgmma {

/// What the matrix unit multiplies.
template <class Element>
struct OperandOf {
  using Type = Element;
};
template <>
struct OperandOf<float> {
  using Type = Half;
};

template <int OC_TILE_, int PRODUCTS, int PROMOTE, int TAPS, int HALVES, int STAGES, int TURNS, int WIDE_STORES,
          int RESIDENT, int STRIP, int BLOCKS, int SPLIT, int MIN_BLOCKS, int AHEAD, int STREAMING, int TAP_STEP,
          int SLOTS, int STRIDE, class Element_>
struct Instance {
  CT1D_HD static constexpr Tunables tunables() {
    return {OC_TILE_, PRODUCTS, PROMOTE, TAPS,  HALVES,     STAGES, TURNS,    WIDE_STORES,
            RESIDENT, STRIP,    BLOCKS,  SPLIT, MIN_BLOCKS, AHEAD,  STREAMING};
  }
  static constexpr Tunables kTunables = {OC_TILE_, PRODUCTS, PROMOTE, TAPS,  HALVES,     STAGES, TURNS,    WIDE_STORES,
                                         RESIDENT, STRIP,    BLOCKS,  SPLIT, MIN_BLOCKS, AHEAD,  STREAMING};
  static constexpr Shared kShared = shared_of(kTunables, TAP_STEP, SLOTS, STRIDE, sizeof(Element_));
  using Element = Element_;
  static constexpr int kBytes = sizeof(Element);
  static constexpr bool kSmall = kBytes == 2;  // x is multiplied as it is
  using Operand = typename OperandOf<Element>::Type;
  static constexpr int kColumns = OC_TILE_;
  static constexpr int kTiles = OC_TILE_ / 8;     // columns of D come in eights
  static constexpr int kSums = OC_TILE_ / 2;      // of a thread and product block
  static constexpr int kN = OC_TILE_ / HALVES;    // columns of a product
  static constexpr bool kSplits = PRODUCTS == 3;  // operands into two parts
  static constexpr bool kPromotes = PROMOTE != 0;
  static constexpr int kTaps = TAPS;
  static constexpr int kTapStep = TAP_STEP;
  static constexpr int kHalves = HALVES;
  static constexpr int kStages = STAGES;
  static constexpr bool kTurns = TURNS != 0;
  static constexpr bool kWideStores = WIDE_STORES != 0;
  static constexpr bool kResident = RESIDENT != 0;
  static constexpr int kSlots = SLOTS;
  static constexpr int kSplit = SPLIT;
  static constexpr bool kAhead = AHEAD != 0;
  static constexpr bool kStreaming = STREAMING != 0;
  static constexpr int kStride = STRIDE;  // 0: known at run time
  static constexpr bool kStaged = is_staged(OC_TILE_, STRIDE);
  static constexpr int kWidth = width_of(OC_TILE_, STRIDE);  // columns of a panel in use
  static constexpr int kHalo = halo_of(kTunables, TAP_STEP);
  static constexpr int kLead = lead_of(kTunables, TAP_STEP, kBytes);
  static constexpr int kSpan = 4 + kHalo;  // positions that a thread reads, from t0 - halo
  static constexpr int kFragments = fragments(kTunables, TAP_STEP);
  static constexpr int kPitchBytes = pitch_of(kTunables, TAP_STEP, kBytes);
  static constexpr int kRawBytes = raw_bytes(kTunables, TAP_STEP, kBytes);
  static constexpr int kStepBytes = step_bytes(kTunables);
  static constexpr int kTapBytes = tap_bytes(kTunables);
  static constexpr int kSlabBytes = slab_bytes(kTunables);
  static constexpr int kHeadroom = kPromotes ? 0 : 4;  // bits by which later steps may exceed the first

  static_assert(PRODUCTS == 3 || PRODUCTS == 1, "products must be 3 or 1");
  static_assert(OC_TILE_ >= 8 && OC_TILE_ <= 128 && OC_TILE_ % (8 * HALVES) == 0, "OC_TILE / halves must be in eights");
  static_assert(!kSmall || !kSplits, "16-bit operands have one part");
  static_assert(kPromotes || !kSplits, "three products are promoted");
  static_assert(HALVES == 1 || (HALVES == 2 && kPromotes), "halves must be 1, or 2 where sums are promoted");
  static_assert(!kAhead || (!kSplits && HALVES == 1), "one product of all columns can have its x converted ahead");
  static_assert(HALVES == 1 || kTiles % 2 == 0, "two halves must be alike");
  static_assert(STAGES >= 2, "stages must be 2 or more");
  static_assert(STREAMING == 0 || STREAMING == 1, "streaming must be 0 or 1");
  static_assert(kResident || SLOTS > kRefillLag, "streamed weights need more slots than the lag of their refill");
  static_assert(kShared.bytes <= shared_budget(kTunables),
                "the weights and stages must fit the shared memory of a block");
};

__device__ __forceinline__ uint32 full_barrier(uint32 barriers, int slot) { return barriers + slot * 16; }
__device__ __forceinline__ uint32 empty_barrier(uint32 barriers, int slot) { return barriers + slot * 16 + 8; }

/// The warpgroup's warp.
__device__ __forceinline__ int warp_of_group() { return fresh_thread() / 32 % 4; }
__device__ __forceinline__ int lane_of_warp() { return fresh_thread() % 32; }

/// Place in a ring and how often it went round.
struct Slot {
  int number;
  uint32 round;
  template <int Count>
  __device__ __forceinline__ void next() {
    if (++number == Count) {
      number = 0;
      ++round;
    }
  }
};

// What the whole block needs to know and no thread keeps in registers: loads from shared memory give it anew each time.

template <class I>
__device__ __forceinline__ void save_schedule(uint32 shared, const Schedule& s, const Geometry& g) {
  const Extent e = extent_of(I::tunables(), g);
  const Share share = share_of(I::tunables(), s, g, blockIdx.x);
  const uint64 inverse = static_cast<uint64>(packed_of(I::tunables(), g).inverse);
  const Period period = period_of(g, I::kBytes);
  const uint32 at = shared + I::kShared.schedule;
  store_shared_16(at, share.worker, I::kResident ? share.panel : share.free_panels, s.tiles, s.strip);
  store_shared_16(at + 16, s.workers, period.places, period.reciprocal, period.shift);
  store_shared_16(at + 32, static_cast<uint32>(e.group_panels), static_cast<uint32>(g.in_per_group()),
                  static_cast<uint32>(g.out_per_group()), static_cast<uint32>(e.windows));
  store_shared_16(at + 48, static_cast<uint32>(inverse), static_cast<uint32>(inverse >> 32),
                  static_cast<uint32>(e.steps), s.worker_tiles);
  store_shared_16(at + 64, static_cast<uint32>(offsets_of(g).step), static_cast<uint32>(e.slices),
                  static_cast<uint32>(e.slice_channels),
                  static_cast<uint32>(left_of(I::tunables(), g, I::kBytes).marks / 16));
}
/// The warpgroup's tile.
template <class I>
__device__ __forceinline__ Tile find_tile(uint32 shared, int consumer, unsigned n) {
  const uint4 a = load_shared_16(shared + I::kShared.schedule);
  const uint32 workers = load_shared_4(shared + I::kShared.schedule + 16);
  const Share share{a.x, I::kResident ? a.y : 0, I::kResident ? 1 : a.y};
  Tile tile = tile_of(I::tunables(), {0, a.z, a.w, workers, 0}, share, n);
  tile.first += consumer * kPositions;
  return tile;
}
template <class I>
__device__ __forceinline__ Period find_period(uint32 shared) {
  const uint4 b = load_shared_16(shared + I::kShared.schedule + 16);
  return {b.y, b.z, b.w};
}
/// Four neighbouring positions of one batch item. Where there is no such item `position` is below -7.
struct Quad {
  int batch;
  int position;
  bool exists;
};
/// Quad `number` of a warpgroup's tile, from 0 to 31.
template <class I>
__device__ __forceinline__ Quad find_quad(const Geometry& g, uint32 shared, const Tile& tile, int number) {
  const Period period = find_period<I>(shared);
  const uint32 place = static_cast<uint32>(tile.first + 4 * number);
  const uint32 item = item_of(period, place);
  if (static_cast<int64>(item) >= g.batch) return {0, -8, false};
  return {static_cast<int>(item), static_cast<int>(place - item * period.places), true};
}
/// The calling lane's. Where the warp's 32 positions lie in one item they begin at first_of_warp for all lanes; else it
/// is below 0 for some, or its 32 positions end beyond the item's last with outputs.
template <class I>
__device__ __forceinline__ Quad find_own_quad(const Geometry& g, uint32 shared, const Tile& tile) {
  return find_quad<I>(g, shared, tile, 8 * warp_of_group() + lane_of_warp() / 4);
}
__device__ __forceinline__ int first_of_warp(const Quad& quad) { return quad.position - lane_of_warp() / 4 * 4; }
/// Positions between offsets.
template <class I>
__device__ __forceinline__ int tap_step_of(uint32 shared) {
  return I::kTaps > 1 ? I::kTapStep : static_cast<int>(load_shared_4(shared + I::kShared.schedule + 64));
}
template <class I>
__device__ __forceinline__ int windows_of(uint32 shared) {
  return static_cast<int>(load_shared_4(shared + I::kShared.schedule + 44));
}
template <class I>
__device__ __forceinline__ int steps_of(uint32 shared) {
  return static_cast<int>(load_shared_4(shared + I::kShared.schedule + 56));
}
template <class I>
__device__ __forceinline__ unsigned tiles_of(uint32 shared) {
  return load_shared_4(shared + I::kShared.schedule + 60);
}
/// Of the columns' inverse scales in packed weights.
template <class I>
__device__ __forceinline__ int64 inverses_at(uint32 shared) {
  const uint32 low = load_shared_4(shared + I::kShared.schedule + 48);
  return static_cast<int64>(static_cast<uint64>(load_shared_4(shared + I::kShared.schedule + 52)) << 32 | low);
}

/// A panel's group, the channels of x that it reads, its columns among the group's.
struct Panel {
  int group;
  int in_channels;
  int first_in;
  int first_out;     // the group's first output channel
  int first_column;  // the panel's
  int columns;       // that exist
};
CT1D_HD constexpr Panel panel_of(int panel, int width, int group_panels, int in_per_group, int out_per_group,
                                 int stride) {
  Panel p{};
  p.group = panel / group_panels;
  p.first_column = (panel - p.group * group_panels) * width;
  p.in_channels = in_per_group;
  p.first_in = p.group * in_per_group;
  p.first_out = p.group * out_per_group;
  const int left = out_per_group * stride - p.first_column;
  p.columns = left < width ? left : width;
  return p;
}
template <class I>
__device__ __forceinline__ int stride_of(const Geometry& g) {
  return I::kStride > 0 ? I::kStride : static_cast<int>(g.stride);
}
template <class I>
__device__ __forceinline__ Panel find_panel(const Geometry& g, uint32 shared, int panel) {
  const uint4 a = load_shared_16(shared + I::kShared.schedule + 32);
  return panel_of(panel, I::kWidth, static_cast<int>(a.x), static_cast<int>(a.y), static_cast<int>(a.z),
                  stride_of<I>(g));
}

/// Of slice `number` of all panels': its channels of x alone.
template <class I>
__device__ __forceinline__ Panel find_slice(const Geometry& g, uint32 shared, int number) {
  Panel panel = find_panel<I>(g, shared, number / I::kSplit);
  if constexpr (I::kSplit > 1) {
    const int first = number % I::kSplit * static_cast<int>(load_shared_4(shared + I::kShared.schedule + 72));
    panel.first_in += first;
    panel.in_channels -= first;
  }
  return panel;
}

/// Two operands in one word, `low` in bits 0 to 15.
template <class Operand>
__device__ __forceinline__ uint32 operand_pair(float low, float high) {
  if constexpr (kIsBfloat16<Operand>) {
    return bfloat_pair(low, high);
  } else {
    return half_pair(low, high);
  }
}

/// Bits of magnitudes with 2^-11 added, so that an exponent counts for the half that the largest is rounded to.
__device__ __forceinline__ uint32 rounded_up(uint32 bits) { return bits + 0x1000u; }

/// The scale that takes magnitudes of at most `max_bits`, as halves, below 2^(16 - headroom).
__device__ __forceinline__ Scale scale_of_halves(uint32 max_bits, int headroom) {
  return scale_of(rounded_up(max_bits), headroom - 1);
}

}  // namespace ct1d::wgmma
