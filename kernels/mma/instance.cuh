// mma: the compile-time facts of an instance, scales.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/fp16_parts.cuh"
#include "kernels/common/placed.cuh"
#include "kernels/common/warp_matrix.cuh"
#include "kernels/mma/layout.h"

namespace ct1d::mma {

template <class Element>
struct OperandOf {
  using Type = Element;
};
template <>
struct OperandOf<float> {
  using Type = Half;
};

template <int M_TILES, int N_TILES, int WARPS_M, int WARPS_N, int STAGES, int PRODUCTS, int TAPS, int FOLD,
          int MIN_BLOCKS, class Item>
struct Instance {
  using Element = Item;
  using Operand = typename OperandOf<Item>::Type;
  CT1D_HD static constexpr Tunables tunables() {
    return {M_TILES, N_TILES, WARPS_M, WARPS_N, STAGES, PRODUCTS, TAPS, FOLD, MIN_BLOCKS};
  }
  static constexpr int kBytes = static_cast<int>(sizeof(Element));
  static constexpr int kMs = M_TILES;
  static constexpr int kNs = N_TILES;
  static constexpr int kWarpsM = WARPS_M;
  static constexpr int kStages = STAGES;
  static constexpr int kTaps = TAPS;
  static constexpr bool kSplits = PRODUCTS == 3;
  static constexpr bool kScales = sizeof(Element) == 4;
  static constexpr int kParts = kSplits ? 2 : 1;
  static constexpr int kPositions = 16 * M_TILES * WARPS_M;
  static constexpr int kColumns = 8 * N_TILES * WARPS_N;
  static constexpr int kThreads = 32 * WARPS_M * WARPS_N;
  static constexpr int kVector = 16 / kBytes;

  static_assert(PRODUCTS == 3 || PRODUCTS == 1, "products must be 3 or 1");
  static_assert(kScales || !kSplits, "only fp32 operands are split");
  static_assert(STAGES >= 2, "stages must be 2 or more");
};

/// Whether fp16 parts at this scale serve values whose largest magnitude has bits `most` and whose least, zeros aside,
/// has `least_less_one` + 1: no infinity or NaN, no sum that could overflow on the way, nothing too far below the
/// largest (above 2^-3 when scaled two parts leave a value 22 bits, above 2^-13 one part is normal) or, where the scale
/// is the largest there is, below 2^-129: the matrix unit cuts sums off relative to 2^-14 where a part is a denormal
/// below it.
template <class I>
__device__ __forceinline__ bool serves(uint32 most, uint32 least_less_one, float scale) {
  const int field = (I::kSplits ? 124 : 114) + 127 - static_cast<int>(bits_of_float(scale) >> 23);
  const uint32 floor = field > 0 ? static_cast<uint32>(field) << 23 : 1u << (22 + field);
  return most < (127u + 103u) << 23 && (least_less_one == 0xFFFFFFFFu || least_less_one + 1 >= floor);
}

}  // namespace ct1d::mma
