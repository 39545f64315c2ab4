// wgmma_fused: the compile-time facts of an instance, its share of the work in shared memory.
#pragma once

#include "kernels/wgmma_fused/layout.h"
#include "kernels/wgmma_packed/instance.cuh"

namespace ct1d::wgmma_fused {

using wgmma_packed::OperandOf;

template <int T_, int ROWS, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int WEIGHTS, int PASSES,
          int BLOCKS, int OFFSETS, int STEP, int STRIDE, int HALO, int STEPS, int GROUP, class Element_>
struct Instance {
  static constexpr Tunables kTunables = {T_,      ROWS,   PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS,
                                         WEIGHTS, PASSES, BLOCKS};
  CT1D_HD static constexpr Tunables tunables() {
    return {T_, ROWS, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, WEIGHTS, PASSES, BLOCKS};
  }
  static constexpr Facts kFacts = {OFFSETS, STEP, STRIDE, HALO, STEPS, GROUP};
  static constexpr Shared kShared = shared_of(kTunables, kFacts, sizeof(Element_));
  using Element = Element_;
  using Operand = typename OperandOf<Element>::Type;
  static constexpr bool kSmall = sizeof(Element) == 2;  // x is multiplied as it is
  static constexpr int kT = T_;
  static constexpr int kSums = T_ / 2;      // of a thread
  static constexpr int kColumns = T_ / 32;  // of 32 places
  static constexpr bool kSplits = PRODUCTS == 3;
  static constexpr int kParts = kTunables.parts();
  static constexpr int kRowTiles = kTunables.row_tiles();
  static constexpr int kPlaceTiles = kTunables.place_tiles();
  static constexpr int kStages = STAGES;
  static constexpr int kConverters = kTunables.converters();
  static constexpr int kPasses = PASSES;
  static constexpr bool kResident = WEIGHTS == 0;
  static constexpr int kWeightSlots = weight_slots(kTunables, STEPS);
  static constexpr int kOffsets = OFFSETS;
  static constexpr int kSteps = STEPS;
  static constexpr int kGroup = GROUP;
  static constexpr int kHalo = HALO;
  static constexpr int kSlabBytes = slab_bytes(kTunables, kHalo);
  static constexpr int kPanelBytes = static_cast<int>(wgmma_packed::panel_bytes(packed_tunables(kTunables), OFFSETS));
  static constexpr int kStored = stored_places(kTunables, STRIDE);
  static constexpr int kStagingBytes = staging_bytes(kTunables, STRIDE, sizeof(Element_));
  static constexpr bool kByPlace = STRIDE % 4 == 0;  // the staging of outputs
  /// Of three products those of high parts are promoted after 4 offsets of 16 channels at most.
  static constexpr int kHalves = kSplits && OFFSETS > 4 ? 2 : 1;
  static constexpr int kHalfOffsets = (OFFSETS + kHalves - 1) / kHalves;
  /// Steps that are queued before the tile before is stored behind them: their slots fill meanwhile.
  static constexpr int kAhead = ahead_of(GROUP, STAGES / (2 * kPlaceTiles), kResident ? GROUP : WEIGHTS / 2);
  static constexpr int kImages = STEPS * kPlaceTiles;  // of a group of places
  static constexpr int kBehind = behind_of(STAGES, kConverters, kImages);
  static constexpr int kRounds = rounds_of(kTunables, kImages);
  static constexpr int kConsumerRegisters = CONSUMER_REGISTERS;
  static constexpr int kProducerRegisters = kTunables.producer_registers();

  __device__ __forceinline__ static int step(const Geometry&) { return STEP; }
  __device__ __forceinline__ static int stride(const Geometry&) { return STRIDE; }
  /// Rows of a panel that are in use.
  __device__ __forceinline__ static int width(const Geometry&) { return width_of(STRIDE); }
  __device__ __forceinline__ static int pitch(const Geometry&) { return run_pitch(STRIDE, kStored, sizeof(Element_)); }

  static_assert(PRODUCTS == 3 || PRODUCTS == 1, "products must be 3 or 1");
  static_assert(!kSmall || !kSplits, "16-bit operands have one part");
  static_assert(T_ == 64 || T_ == 96 || T_ == 128, "T must be 64, 96 or 128");
  static_assert(ROWS == 64 || ROWS == 128, "rows must be 64 or 128");
  static_assert(PRODUCERS == 4 || PRODUCERS == 8, "producers must be 4 or 8: whole warpgroups");
  static_assert(STAGES >= kConverters * kPlaceTiles,
                "a warp that waits for a slot must not take an old phase for the new one");
  static_assert(PASSES == 1 || STAGES >= STEPS * kPlaceTiles, "images of a tile stay until its last group of rows");
  static_assert(STEPS % GROUP == 0, "groups are whole");
  static_assert(STEP > 0 && STRIDE > 0, "the geometry is compiled in");
  static_assert(OFFSETS <= kMostOffsets && HALO <= kMostHalo, "offsets and what they reach back are bounded");
  static_assert(kProducerRegisters >= 24 && CONSUMER_REGISTERS % 8 == 0 &&
                    CONSUMER_REGISTERS >= kTunables.start_registers(),
                "registers of consumers and producers must be those of the block");
  static_assert(kShared.bytes <= kSharedBudget, "weights and images must fit the shared memory of a block");
};

using wgmma_packed::empty_barrier;
using wgmma_packed::full_barrier;
using wgmma_packed::lane_of_warp;

template <class I>
__device__ __forceinline__ void save_share(uint32 shared, const Geometry& g) {
  Grid grid = grid_of(I::tunables(), g);
  grid.workers = gridDim.x > grid.chunks ? gridDim.x / grid.chunks : 1;
  const Share s = share_of(grid, blockIdx.x);
  const Divider period = divider_of(period_of(g));
  const uint32 at = shared + I::kShared.schedule;
  store_shared_16(at, s.chunk, s.first, s.step, s.places);
  store_shared_16(at + 32, period.by, period.reciprocal, period.shift, 0);
}
template <class I>
__device__ __forceinline__ Share load_share(uint32 shared) {
  const uint4 s = load_shared_16(shared + I::kShared.schedule);
  return {s.x, s.y, s.z, s.w};
}
/// A consumer's own tile of the block's tile n.
template <class I>
__device__ __forceinline__ Tile own_tile(uint32 shared, unsigned n, int consumer) {
  const Tile tile = tile_of(I::tunables(), load_share<I>(shared), n);
  return {tile.panel + (I::kRowTiles == 2 ? consumer : 0), tile.places + (I::kPlaceTiles == 2 ? consumer : 0)};
}
/// The flags of a tile of places of the block's tile n.
template <class I>
__device__ __forceinline__ uint32 flags_place(uint32 shared, unsigned place, int half) {
  return shared + I::kShared.flags + (place % kFlagTiles * 2 + static_cast<uint32>(half)) * 8;
}

}  // namespace ct1d::wgmma_fused
