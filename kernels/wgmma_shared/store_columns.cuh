// wgmma_shared: the output channels beyond kRows, columns of products whose rows are positions, one element at a time.
#pragma once

#include "kernels/wgmma_shared/instance.cuh"

namespace ct1d::wgmma_shared {

/// 64 positions of a tile; what is not finite of 16 bits is flagged. The sums start anew at 0.
template <class I>
__device__ __forceinline__ void store_columns(float (&sum)[I::kMore / 2], const RunArguments& a, uint32 shared,
                                              const Tile& tile, unsigned n, int consumer) {
  using Element = typename I::Element;
  const Geometry& g = a.geometry;
  const int thread = fresh_thread();
  const int row = 64 * consumer + thread % 128 / 32 * 16 + thread % 32 / 4;
  Element* const y = static_cast<Element*>(a.y) + tile.batch * g.y_batch_stride;
  uint32 bits = 0;
#pragma unroll
  for (int i = 0; i < I::kMore / 2; ++i) {
    const int channel = kRows + i / 4 * 8 + thread % 4 * 2 + i % 2;
    const int position = row + i / 2 % 2 * 8;
    const uint32 scales = shared + I::kShared.scales + channel * 4;
    const float scale = I::kSmall ? 1.0f : load_shared_float(scales);
    const float value = fmaf(sum[i], scale, load_shared_float(scales + I::kChannels * 4));
    const int t = tile.t_first + position;
    store_element<I::kStreaming>(y + channel * g.y_row_stride + t, value,
                                 tile.exists && channel < g.out_channels && t < g.length_out);
    if constexpr (I::kSmall) {
      if (not_finite<Element>(operand_pair<Element>(value, value))) bits |= 1u << position / I::kFlagged;
    }
    sum[i] = 0.0f;
  }
  if (bits != 0) or_shared_4(shared + I::kShared.flags + n % kFlagWords * 4, bits);
}

}  // namespace ct1d::wgmma_shared
