// Weights of one column of a product whose columns are output channels by phases, as pack kernels read them.
#pragma once

#include "kernels/common/element.cuh"
#include "kernels/common/offsets.h"

namespace ct1d {

/// One column of w by offsets; 0 where there is no channel, column or tap.
template <class Element>
struct OffsetColumn {
  const Element* w;
  Geometry geometry;
  int64 channels;
  int64 taps;  // offsets
  int64 row;   // from one channel to the next
  int64 phase;
  bool exists;
  __device__ __forceinline__ int64 tap(int64 offset) const { return tap_at_offset(geometry, phase, offset); }
  __device__ __forceinline__ float at(int64 ic, int64 offset) const {
    if (!exists || ic >= channels) return 0.0f;
    const int64 k = tap(offset);
    return k >= 0 ? to_float(w[ic * row + k]) : 0.0f;
  }
};

}  // namespace ct1d
