// Helper kernels of the vendor baselines: weight packing, initial values, gathering of columns, bias.
// None of them multiplies: the arithmetic is the vendor library's.
#pragma once

#include "baselines/elements.cuh"
#include "baselines/transpose.cuh"

namespace ct1d {
namespace baseline {

/// 16-bit elements, converted by the hardware, round to nearest even.
struct Half {
  unsigned short bits;
};
struct Bfloat16 {
  unsigned short bits;
};

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Half value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ inline float to_float(Bfloat16 value) { return __int_as_float(static_cast<int>(value.bits) << 16); }

__device__ inline void store(float* target, float value) { *target = value; }
__device__ inline void store(Half* target, float value) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(target->bits) : "f"(value));
}
__device__ inline void store(Bfloat16* target, float value) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(target->bits) : "f"(value));
}

template <class Element>
__device__ inline float bias_of(const void* bias, int64 channel) {
  return bias == nullptr ? 0.0f : to_float(static_cast<const Element*>(bias)[channel]);
}

template <class Element>
__global__ void permute(const CT1D_GRID_CONSTANT PermuteArguments a) {
  const int64 total = a.extents[0] * a.extents[1] * a.extents[2] * a.extents[3];
  const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
  for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    int64 rest = i, at = a.offset;
    for (int axis = 3; axis >= 0; --axis) {
      at += rest % a.extents[axis] * a.strides[axis];
      rest /= a.extents[axis];
    }
    static_cast<Element*>(a.target)[i] = static_cast<const Element*>(a.source)[at];
  }
}

/// Grid: x over columns (blockDim.x * kColumnsPerThread a block), y over rows in strides.
constexpr int kColumnsPerThread = 4;

template <class Element>
__global__ void fill(const CT1D_GRID_CONSTANT FillArguments a) {
  const int64 count = a.left_end + a.columns - a.right_begin;
  const int64 first = static_cast<int64>(blockIdx.x) * blockDim.x * kColumnsPerThread + threadIdx.x;
  for (int64 row = blockIdx.y; row < a.rows; row += gridDim.y) {
    Element* y = static_cast<Element*>(a.y) + row * a.row_stride;
    const float value = bias_of<Element>(a.bias, row % a.channels);
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const int64 i = first + static_cast<int64>(j) * blockDim.x;
      if (i < count) store(y + (i < a.left_end ? i : i - a.left_end + a.right_begin), value);
    }
  }
}

/// The same bias for every channel of a channels-last y, contiguous: y[i] = bias[i mod channels]. Uses y, bias,
/// channels and rows (the number of elements) alone.
template <class Element>
__global__ void fill_last(const CT1D_GRID_CONSTANT FillArguments a) {
  const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
  for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.rows; i += step)
    static_cast<Element*>(a.y)[i] = static_cast<const Element*>(a.bias)[i % a.channels];
}

template <class Element>
__global__ void add_bias(const CT1D_GRID_CONSTANT AddBiasArguments a) {
  const int64 first = static_cast<int64>(blockIdx.x) * blockDim.x * kColumnsPerThread + threadIdx.x;
  for (int64 row = blockIdx.y; row < a.rows; row += gridDim.y) {
    Element* y = static_cast<Element*>(a.y) + row * a.row_stride;
    const float bias = bias_of<Element>(a.bias, row % a.channels);
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const int64 t = first + static_cast<int64>(j) * blockDim.x;
      if (t < a.columns) store(y + t, to_float(y[t]) + bias);
    }
  }
}

template <class Element, class Index>
__global__ void gather(const CT1D_GRID_CONSTANT GatherArguments a) {
  const Index first = static_cast<Index>(blockIdx.x) * (blockDim.x * kColumnsPerThread) + threadIdx.x;
  const int64 rows = a.batches * a.channels;
  for (int64 row = blockIdx.y; row < rows; row += gridDim.y) {
    const int64 batch = row / a.channels, channel = a.first_channel + row % a.channels;
    const float* columns = a.columns + row * a.kernel_size * a.length;
    Element* y = static_cast<Element*>(a.y) + batch * a.y_batch_stride + channel * a.y_row_stride;
    const float bias = bias_of<Element>(a.bias, channel);
    for (int j = 0; j < kColumnsPerThread; ++j) {
      const Index t = first + static_cast<Index>(j * blockDim.x);
      if (t < a.length_out) store(y + t, gather_sum<Index>(a, columns, t) + bias);
    }
  }
}

/// Grid: x over tiles of channels, y over tiles of positions, z over batches; each in strides.
template <class Tile, class Element, bool columns_along_x>
__device__ inline void transpose_tiles(const TransposeArguments& a) {
  __shared__ Element tile[Tile::kRows * Tile::kPitch];
  const int64 row_tiles = Tile::blocks_of(a.rows, Tile::kRows);
  const int64 column_tiles = Tile::blocks_of(a.columns, Tile::kColumns);
  const int64 along_x = columns_along_x ? column_tiles : row_tiles,
              along_y = columns_along_x ? row_tiles : column_tiles;
  for (int64 batch = blockIdx.z; batch < a.batches; batch += gridDim.z) {
    for (int64 y = blockIdx.y; y < along_y; y += gridDim.y) {
      for (int64 x = blockIdx.x; x < along_x; x += gridDim.x) {
        const int64 row = (columns_along_x ? y : x) * Tile::kRows, column = (columns_along_x ? x : y) * Tile::kColumns;
        Tile::load(a, batch, row, column, static_cast<int>(threadIdx.x), tile);
        __syncthreads();
        Tile::store(a, batch, row, column, static_cast<int>(threadIdx.x), tile);
        __syncthreads();  // before the next tile overwrites this one
      }
    }
  }
}

template <class Element>
__global__ void __launch_bounds__(kTransposeThreads, 6)
    to_channels_last(const CT1D_GRID_CONSTANT TransposeArguments a) {
  transpose_tiles<ToChannelsLast<Element>, Element, false>(a);
}

template <class Element>
__global__ void __launch_bounds__(kTransposeThreads, 6)
    to_channels_first(const CT1D_GRID_CONSTANT TransposeArguments a) {
  transpose_tiles<ToChannelsFirst<Element>, Element, true>(a);
}

}  // namespace baseline
}  // namespace ct1d
