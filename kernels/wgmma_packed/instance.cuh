// wgmma_packed: the compile-time facts of an instance, its schedule in shared memory, places in y.
#pragma once

#include "kernels/common/cluster.cuh"
#include "kernels/common/fp16_parts.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/placed.cuh"
#include "kernels/common/warpgroup.cuh"
#include "kernels/wgmma_packed/layout.h"

namespace ct1d::wgmma_packed {

/// What the matrix unit multiplies.
template <class Element>
struct OperandOf {
  using Type = Element;
};
template <>
struct OperandOf<float> {
  using Type = Half;
};

template <int T_, int ROWS, int PRODUCTS, int STAGES, int BAND, int BLOCKS, int OFFSETS, int STEP, int STRIDE, int HALO,
          int GROUP, class Element_, int CLUSTER = 1>
struct Instance {
  static constexpr Tunables kTunables = {T_, ROWS, PRODUCTS, STAGES, BAND, BLOCKS, CLUSTER};
  CT1D_HD static constexpr Tunables tunables() { return {T_, ROWS, PRODUCTS, STAGES, BAND, BLOCKS, CLUSTER}; }
  CT1D_HD static constexpr Facts facts() { return {OFFSETS, STEP, STRIDE, HALO, GROUP}; }
  static constexpr Shared kShared = shared_of(kTunables, OFFSETS, HALO);
  using Element = Element_;
  using Operand = typename OperandOf<Element>::Type;
  static constexpr int kBytes = sizeof(Element);
  static constexpr bool kSmall = kBytes == 2;  // x is multiplied as it is
  static constexpr int kT = T_;
  static constexpr int kSums = T_ / 2;      // of a thread
  static constexpr int kColumns = T_ / 32;  // of 32 places
  static constexpr bool kSplits = PRODUCTS == 3;
  static constexpr int kParts = kTunables.parts();
  static constexpr int kRowTiles = kTunables.row_tiles();
  static constexpr int kPlaceTiles = kTunables.place_tiles();
  static constexpr int kStages = STAGES;
  static constexpr int kOffsets = OFFSETS;
  static constexpr int kGroup = GROUP;
  static constexpr int kHalo = HALO;
  static constexpr unsigned kCluster = CLUSTER;
  static constexpr int kSlabBytes = slab_bytes(kTunables, kHalo);
  static constexpr int kImageBytes = image_bytes(kTunables, kHalo);
  static constexpr int kPanelBytes = static_cast<int>(panel_bytes(kTunables, OFFSETS));
  /// Of a slot's weights a block loads as many pieces for all blocks of its cluster.
  static constexpr int kPieces = CLUSTER > 1 ? 1 : kRowTiles;
  static constexpr int kPieceBytes = kRowTiles * kPanelBytes / (CLUSTER * kPieces);
  static constexpr int kStored = wgmma_packed::kStored;
  static constexpr int kStagingBytes = wgmma_packed::kStagingBytes;
  static constexpr bool kByPlace = STRIDE > 0 && STRIDE % 4 == 0;  // the staging of outputs
  static constexpr int kPackSteps = pack_steps(GROUP, kBytes);
  /// Of three products those of high parts are promoted after 4 offsets of 16 channels at most.
  static constexpr int kHalves = kSplits && OFFSETS > 4 ? 2 : 1;
  static constexpr int kHalfOffsets = (OFFSETS + kHalves - 1) / kHalves;
  /// Stages that are queued before the tile before is stored behind them: the rest of the ring fills meanwhile.
  static constexpr int kAhead = GROUP < STAGES / 2 ? GROUP : STAGES > 3 ? STAGES / 2 : 1;

  __device__ __forceinline__ static int step(const Geometry& g) {
    return STEP > 0 ? STEP : static_cast<int>(offsets_of(g).step);
  }
  __device__ __forceinline__ static int stride(const Geometry& g) {
    return STRIDE > 0 ? STRIDE : static_cast<int>(g.stride);
  }
  /// Rows of a panel that are in use.
  __device__ __forceinline__ static int width(const Geometry& g) { return width_of(stride(g)); }

  static_assert(PRODUCTS == 3 || PRODUCTS == 1, "products must be 3 or 1");
  static_assert(!kSmall || !kSplits, "16-bit operands have one part");
  static_assert(T_ == 64 || T_ == 96 || T_ == 128 || T_ == 192, "T must be 64, 96, 128 or 192");
  static_assert(!kSplits || T_ <= 128, "three products leave registers for 128 places");
  static_assert(ROWS == 64 || ROWS == 128, "rows must be 64 or 128");
  static_assert(STAGES >= 2, "stages must be 2 or more");
  static_assert(CLUSTER == 1 || CLUSTER == 2, "cluster must be 1 or 2");
  static_assert(BLOCKS % CLUSTER == 0, "blocks must be a multiple of the cluster");
  static_assert(GROUP >= 1 && GROUP <= kPackWarps, "a group has 1 to 8 stages");
  static_assert(OFFSETS <= kMostOffsets && kHalo <= kMostHalo, "offsets and what they reach back are bounded");
  static_assert(kShared.bytes <= kSharedBudget, "the ring must fit the shared memory of a block");
};

/// Two operands in one word, `low` in bits 0 to 15.
template <class Operand>
__device__ __forceinline__ uint32 operand_pair(float low, float high) {
  if constexpr (kIsBfloat16<Operand>) {
    return bfloat_pair(low, high);
  } else {
    return half_pair(low, high);
  }
}

__device__ __forceinline__ uint32 full_barrier(uint32 barriers, int slot) { return barriers + slot * 16; }
__device__ __forceinline__ uint32 empty_barrier(uint32 barriers, int slot) { return barriers + slot * 16 + 8; }
__device__ __forceinline__ int lane_of_warp() { return fresh_thread() & 31; }

// The schedule and the period of places lie in shared memory: loads give them anew each time.

template <class I>
__device__ __forceinline__ void save_schedule(uint32 shared, const Geometry& g) {
  const Schedule s = schedule_of(I::tunables(), g);
  const Divider period = divider_of(period_of(g));
  const uint32 at = shared + I::kShared.schedule;
  store_shared_16(at, s.tiles, s.place_groups, s.row_groups, s.band);
  store_shared_16(at + 16, s.by_band.by, s.by_band.reciprocal, s.by_band.shift, static_cast<uint32>(steps_of(g)));
  store_shared_16(at + 32, period.by, period.reciprocal, period.shift, 0);
}
/// The block's tile n.
template <class I>
__device__ __forceinline__ Tile find_tile(uint32 shared, unsigned n) {
  const uint4 a = load_shared_16(shared + I::kShared.schedule);
  const uint4 b = load_shared_16(shared + I::kShared.schedule + 16);
  Tile tile = tile_of(I::tunables(), {a.x, a.y, a.z, a.w, {b.x, b.y, b.z}}, (n * gridDim.x + blockIdx.x) / I::kCluster);
  tile.places += static_cast<int>(blockIdx.x % I::kCluster) * I::kPlaceTiles;
  return tile;
}
/// How many tiles the block has: as many as the others of its cluster.
template <class I>
__device__ __forceinline__ unsigned tiles_of(uint32 shared) {
  const uint32 tiles = load_shared_4(shared + I::kShared.schedule);
  const unsigned first = blockIdx.x / I::kCluster;
  return tiles > first ? (tiles - first - 1) / (gridDim.x / I::kCluster) + 1 : 0;
}
template <class I>
__device__ __forceinline__ int steps_of_tile(uint32 shared) {
  return static_cast<int>(load_shared_4(shared + I::kShared.schedule + 28));
}

/// Where a place lies. `batch` is not below the geometry's where there is none.
struct Position {
  int batch;
  int m;
};
__device__ __forceinline__ Position position_of(const Divider& period, unsigned place) {
  const unsigned item = period.quotient(place);
  return {static_cast<int>(item), static_cast<int>(place - item * period.by)};
}
template <class I>
__device__ __forceinline__ Position find_position(uint32 shared, unsigned place) {
  const uint4 p = load_shared_16(shared + I::kShared.schedule + 32);
  return position_of({p.x, p.y, p.z}, place);
}

/// A consumer's own tile of places and panel.
template <class I>
__device__ __forceinline__ Tile own_tile(const Tile& tile, int consumer) {
  return {tile.panel + (I::kRowTiles == 2 ? consumer : 0), tile.places + (I::kPlaceTiles == 2 ? consumer : 0)};
}

}  // namespace ct1d::wgmma_packed
