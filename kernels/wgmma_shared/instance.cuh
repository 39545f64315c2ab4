// wgmma_shared: the compile-time facts of an instance, barriers and tiles in shared memory.
#pragma once

#include "kernels/common/fp16_parts.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/placed.cuh"
#include "kernels/common/warpgroup.cuh"
#include "kernels/wgmma_shared/layout.h"

namespace ct1d::wgmma_shared {

/// What the products multiply.
template <class Element>
struct OperandOf {
  using Type = Element;
};
template <>
struct OperandOf<float> {
  using Type = Half;
};

template <int T_, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int SHADOW, int STRIP, int BLOCKS,
          int STREAMING, int CHANNELS, int TAPS, int DILATION, int HALO, int STEPS, int MORE, class Element_>
struct Instance {
  using Element = Element_;
  using Operand = typename OperandOf<Element>::Type;
  static constexpr bool kSmall = sizeof(Element) == 2;  // x is multiplied as it is
  static constexpr Tunables kTunables = {T_,     PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS,
                                         SHADOW, STRIP,    BLOCKS, STREAMING, CHANNELS};
  CT1D_HD static constexpr Tunables tunables() {
    return {T_, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, SHADOW, STRIP, BLOCKS, STREAMING, CHANNELS};
  }
  static constexpr Shared kShared = shared_of(kTunables, {TAPS, DILATION, HALO, STEPS, MORE});
  static constexpr int kT = T_;
  static constexpr int kSums = T_ / 2;     // of a thread
  static constexpr int kPlaces = T_ / 32;  // positions of a producer's lane
  static constexpr int kFlagged = flagged_outputs(T_);
  static constexpr bool kSplits = PRODUCTS == 3;
  static constexpr int kStages = STAGES;
  static constexpr int kProducers = PRODUCERS;
  static constexpr int kShadow = SHADOW;
  static constexpr bool kStreaming = STREAMING != 0;
  static constexpr int kTaps = TAPS;
  static constexpr int kHalo = HALO;
  static constexpr int kStageSteps = kTunables.stage_steps();
  static constexpr int kSteps = STEPS;  // of a tile
  static constexpr int kTileStages = STEPS / kStageSteps;
  static constexpr int kMore = MORE;              // output channels beyond kRows, columns of their own products
  static constexpr int kChannels = kRows + MORE;  // output channels
  static constexpr int kThreads = kTunables.threads();
  static constexpr int kConsumerRegisters = CONSUMER_REGISTERS;
  static constexpr int kProducerRegisters = kTunables.producer_registers();
  static constexpr int kStepBytes = static_cast<int>(step_bytes(TAPS));
  static constexpr int kPartBytes = static_cast<int>(part_bytes(TAPS, STEPS));
  static constexpr int kPromoted = kSplits ? 1
                                           : promoted_stages(TAPS, kTileStages,
                                                             !kSmall                ? kMostTerms
                                                             : kIsBfloat16<Element> ? kMostTermsBfloat16
                                                                                    : kMostTermsHalf,
                                                             CHANNELS);

  /// Positions from tap 0 to `tap`.
  __device__ __forceinline__ static int reach(const Geometry& g, int tap) {
    return tap * (DILATION > 0 ? DILATION : static_cast<int>(g.dilation));
  }

  static_assert(PRODUCTS == 3 || PRODUCTS == 1, "products must be 3 or 1");
  static_assert(!kSmall || PRODUCTS == 1, "operands of 16 bits have one part");
  static_assert(T_ == 64 || T_ == 128 || (kSmall ? T_ == 192 : T_ == 96),
                "T must be 64, 96 or 128; of 16 bits 64, 128 or 192");
  static_assert(PRODUCERS == 4 || PRODUCERS == 8, "producers must be 4 or 8");
  static_assert(
      STAGES == PRODUCERS || STAGES == 2 * PRODUCERS,
      "stages must be the producers' number or twice it: a warp that waits for a slot must have filled it before");
  static_assert(SHADOW == 1 || (SHADOW == 2 && kSplits) || ((SHADOW == 2 || SHADOW == 4) && kSmall),
                "shadow must be 1, or 2 with three products, or 2 or 4 of 16 bits");
  static_assert(STREAMING == 0 || STREAMING == 1, "streaming must be 0 or 1");
  static_assert(CHANNELS == 16 || (CHANNELS == 32 && !kSplits && STEPS % 2 == 0),
                "channels must be 16, or 32 with one product, in whole stages");
  static_assert(kSmall || kTileStages >= PRODUCERS, "each producer of scaled x needs a stage of every tile");
  static_assert(STAGES <= (kSmall ? 2 : 1) * kTileStages, "a ring must not hold more of tiles than records serve");
  static_assert(STEPS >= 8 && STEPS * kStepChannels <= kMostIn, "a tile must have 8 or 9 steps");
  static_assert(MORE == 0 || (MORE == kMoreChannels && PRODUCTS == 1 && T_ == 128),
                "more than 128 output channels need one product and T of 128: 64 positions a consumer");
  static_assert(kProducerRegisters >= 24 && CONSUMER_REGISTERS % 8 == 0 &&
                    CONSUMER_REGISTERS >= kTunables.start_registers(),
                "registers of consumers and producers must be those of the block");
  static_assert(kShared.bytes <= kSharedBudget, "the weights and stages must fit the shared memory of a block");
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

/// Either of two elements.
template <class Element>
__device__ __forceinline__ bool not_finite(uint32 word) {
  constexpr uint32 kExponent = kIsBfloat16<Element> ? 0x7F80u : 0x7C00u;
  return (word & kExponent) == kExponent || (word >> 16 & kExponent) == kExponent;
}

__device__ __forceinline__ uint32 full_barrier(uint32 barriers, int slot) { return barriers + slot * 16; }
__device__ __forceinline__ uint32 empty_barrier(uint32 barriers, int slot) { return barriers + slot * 16 + 8; }
__device__ __forceinline__ int lane_of_warp() { return fresh_thread() & 31; }

/// The tile of the walk kept at `walk`; read anew each time, so that it takes no registers in between.
template <class I>
__device__ __forceinline__ Tile find_tile(uint32 shared, uint32 walk, int batches) {
  const uint4 s = load_shared_16(shared + I::kShared.schedule);
  const uint4 w = load_shared_16(walk);
  return tile_at({s.x, s.y, s.z, s.w}, I::kT, {w.x, w.y, w.z}, batches);
}
/// By the warp whose walk it is.
template <class I>
__device__ __forceinline__ void advance(uint32 shared, uint32 walk) {
  const uint4 s = load_shared_16(shared + I::kShared.schedule);
  const uint4 w = load_shared_16(walk);
  const Walk next = next_of({s.x, s.y, s.z, s.w}, {w.x, w.y, w.z});
  __syncwarp();
  if (one_lane()) store_shared_16(walk, next.batch, next.in_row, next.in_strip, 0);
  __syncwarp();
}

/// What the consumers need of tile n, as the producer of its first stage left it.
template <class I>
__device__ __forceinline__ uint32 tile_record(uint32 shared, unsigned n) {
  return shared + I::kShared.tiles + n % kRing * 16;
}
template <class I>
__device__ __forceinline__ void save_tile(uint32 shared, unsigned n, const Tile& tile, float inverse) {
  const uint32 bits = (tile.exists ? kExists : 0) | (tile.first ? kFirst : 0) | (tile.last ? kLast : 0);
  store_shared_16(tile_record<I>(shared, n), static_cast<uint32>(tile.t_first), static_cast<uint32>(tile.batch), bits,
                  bits_of_float(inverse));
}
template <class I>
__device__ __forceinline__ Tile load_tile(uint32 shared, unsigned n) {
  const uint4 words = load_shared_16(tile_record<I>(shared, n));
  return {static_cast<int>(words.y), static_cast<int>(words.x), (words.z & kExists) != 0, (words.z & kFirst) != 0,
          (words.z & kLast) != 0};
}

}  // namespace ct1d::wgmma_shared
