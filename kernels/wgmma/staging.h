// wgmma: strides whose outputs go to y by way of shared memory. Included by layout.h.
//
// A warp has 32 positions of its columns, phases fastest: of an output channel 32 * stride neighbouring outputs. Where
// no exchange between lanes brings them side by side, the warp lays whole output channels down in their order.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d::wgmma {

inline constexpr int kStagingBudget = 6 * 1024;  // bytes of a warp
inline constexpr int64 kMostStagedStride = 44;   // of which one channel of floats fits

/// Whether a panel's columns are stored so (stride 0: known at run time). 1, 2, 4 and multiples of 8 have other ways.
CT1D_HD constexpr bool is_staged(int columns, int64 stride) {
  return stride > 2 && stride != 4 && stride % 8 != 0 && stride <= columns && stride <= kMostStagedStride;
}

/// Columns of a panel in use: whole output channels where those are stored.
CT1D_HD constexpr int width_of(int columns, int64 stride) {
  return is_staged(columns, stride) ? columns / static_cast<int>(stride) * static_cast<int>(stride) : columns;
}

/// What a warp lays down at a time: `channels` runs of 32 * stride outputs. Each may begin up to a piece of 16 bytes
/// later, as its row of y lies, so that pieces of 16 bytes are the same in both.
struct Staging {
  int channels;
  int pitch;  // elements from one to the next
  int bytes;
};
CT1D_HD constexpr Staging staging_of(int columns, int64 stride, int element_bytes) {
  if (!is_staged(columns, stride)) return {0, 0, 0};
  const int s = static_cast<int>(stride);
  const int piece = 16 / element_bytes;
  const int pitch = 32 * s + piece;
  const int most = static_cast<int>(min_of(kStagingBudget / (pitch * element_bytes), columns / s));
  const int even = 8 / static_cast<int>(gcd(8, s));  // columns come in eights
  const int channels = most >= even ? most / even * even : most;
  return {channels, pitch, channels * pitch * element_bytes};
}

}  // namespace ct1d::wgmma
