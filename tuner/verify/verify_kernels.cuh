// Kernels of the verifier on a CUDA device. Each takes one argument struct by value; blocks are one-dimensional.
#pragma once

#include "tuner/verify/generator.cuh"
#include "tuner/verify/reference.cuh"

namespace ct1d::check {

inline constexpr int kThreads = 256;
inline constexpr int kRowsPerBlock = 4;      // output channels that share a load of x
inline constexpr int kTile = kThreads * 16;  // outputs of a row that one block sums

struct GenerateArguments {
  Generator generator;
  Tensor tensor;
  void* target;
  int64 count;
};

struct ReferenceArguments {
  Geometry geometry;
  const void* x;
  const void* w;
  const void* bias;
  double* y;
  double* bound;
  RowSums* partial;  // [row][tile]
  int64 tiles;
  Class accuracy;
};

struct FinishArguments {
  const RowSums* partial;
  RowSums* rows;
  int64 tiles;
  int64 count;  // rows
};

struct CompareArguments {
  const void* y;
  const double* want;
  const double* bound;
  RowVerdict* rows;
  int64 length_out;
  Storage storage;
};

struct WantedArguments {
  Geometry geometry;
  const void* x;
  const void* w;
  const void* bias;
  const int64* outputs;  // elements of y
  int64 count;
  Wanted* wanted;  // of each
  Class accuracy;
};

struct ExchangeArguments {
  const int64* outputs;
  int64 count;
  Wanted* other;  // of each
  double* y;
  double* bound;
};

struct ChecksumArguments {
  const void* bytes;
  int64 count;       // even
  uint64* checksum;  // added to
};

/// Blocks of `reference`: a tile of kRowsPerBlock rows of one group each.
CT1D_HD constexpr int64 reference_blocks(const Geometry& g) {
  return g.batch * g.groups * ceil_div(g.out_per_group(), kRowsPerBlock) * ceil_div(g.length_out, kTile);
}

#if defined(__CUDACC__)

__global__ void generate(const CT1D_GRID_CONSTANT GenerateArguments a) {
  const int64 step = static_cast<int64>(gridDim.x) * kThreads;
  for (int64 i = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x; i < a.count; i += step)
    store(a.target, i, generated(a.generator, a.tensor, i), a.generator.storage);
}

/// Sum over the block, in a fixed order; valid in thread 0.
__device__ inline double block_sum(double value) {
  __shared__ double warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < kThreads / 32; ++i) value += warps[i];
  __syncthreads();
  return value;
}

template <class Element, bool kTf32>
__global__ void reference(const CT1D_GRID_CONSTANT ReferenceArguments a) {
  const Geometry& g = a.geometry;
  const int64 row_blocks = ceil_div(g.out_per_group(), kRowsPerBlock);
  const int64 tile = blockIdx.x % a.tiles, rest = blockIdx.x / a.tiles;
  const int64 within = rest % row_blocks * kRowsPerBlock;
  const int64 group = rest / row_blocks % g.groups, b = rest / row_blocks / g.groups;
  const int64 oc = group * g.out_per_group() + within;
  const int64 rows = min_of(kRowsPerBlock, g.out_per_group() - within);
  const int64 end = min_of(g.length_out, (tile + 1) * kTile);
  RowSums total[kRowsPerBlock];
  for (int64 t = tile * kTile + threadIdx.x; t < end; t += kThreads) {
    const Taps taps = taps_of(g, t);
    Sums sums[kRowsPerBlock];
    sum_outputs<kRowsPerBlock, kTf32>(g, static_cast<const Element*>(a.x), static_cast<const Element*>(a.w),
                                      static_cast<const Element*>(a.bias), b, oc, rows, taps, sums);
    for (int row = 0; row < kRowsPerBlock; ++row) {
      if (row >= rows) continue;
      const int64 at = (b * g.out_channels + oc + row) * g.length_out + t;
      const int64 products = taps.count * g.in_per_group();
      const double bound = element_bound(a.accuracy, products, sums[row].s);
      a.y[at] = sums[row].y;
      a.bound[at] = bound;
      count_in_row(total[row], sums[row], products, bound, a.accuracy);
    }
  }
  for (int row = 0; row < kRowsPerBlock; ++row) {
    RowSums sum;
    sum.y2 = block_sum(total[row].y2);
    sum.plain2 = block_sum(total[row].plain2);
    sum.rounded2 = block_sum(total[row].rounded2);
    sum.expected2 = block_sum(total[row].expected2);
    sum.expected4 = block_sum(total[row].expected4);
    sum.nans = block_sum(total[row].nans);
    sum.outside = block_sum(total[row].outside);
    if (threadIdx.x == 0 && row < rows) a.partial[(b * g.out_channels + oc + row) * a.tiles + tile] = sum;
  }
}

/// One thread a row.
__global__ void finish_rows(const CT1D_GRID_CONSTANT FinishArguments a) {
  const int64 row = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= a.count) return;
  RowSums sum;
  for (int64 tile = 0; tile < a.tiles; ++tile) {
    const RowSums& part = a.partial[row * a.tiles + tile];
    sum.y2 += part.y2;
    sum.plain2 += part.plain2;
    sum.rounded2 += part.rounded2;
    sum.expected2 += part.expected2;
    sum.expected4 += part.expected4;
    sum.nans += part.nans;
    sum.outside += part.outside;
  }
  a.rows[row] = sum;
}

/// One block a row.
template <class Element>
__global__ void compare(const CT1D_GRID_CONSTANT CompareArguments a) {
  alignas(16) __shared__ unsigned char storage[kThreads * sizeof(RowVerdict)];  // without constructors
  RowVerdict* verdicts = reinterpret_cast<RowVerdict*>(storage);
  const Format format = format_of(a.storage);
  const int64 row = static_cast<int64>(blockIdx.x) * a.length_out;
  RowVerdict mine;
  for (int64 t = threadIdx.x; t < a.length_out; t += kThreads)
    judge_into(mine, t, a.want[row + t], a.bound[row + t], widen(static_cast<const Element*>(a.y)[row + t]), format);
  verdicts[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(half)) merge(verdicts[threadIdx.x], verdicts[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) a.rows[blockIdx.x] = verdicts[0];
}

/// One thread an output.
template <class Element>
__global__ void wanted(const CT1D_GRID_CONSTANT WantedArguments a) {
  const int64 i = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.count) return;
  const Geometry& g = a.geometry;
  const int64 row = a.outputs[i] / g.length_out;
  a.wanted[i] = wanted_at(g, a.accuracy, static_cast<const Element*>(a.x), static_cast<const Element*>(a.w),
                          static_cast<const Element*>(a.bias), row / g.out_channels, row % g.out_channels,
                          a.outputs[i] % g.length_out);
}

/// One thread an output; no output stands twice in the list.
__global__ void exchange(const CT1D_GRID_CONSTANT ExchangeArguments a) {
  const int64 i = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.count) return;
  const int64 at = a.outputs[i];
  const Wanted mine = a.other[i];
  a.other[i] = {a.y[at], a.bound[at]};
  a.y[at] = mine.y;
  a.bound[at] = mine.bound;
}

__global__ void checksum(const CT1D_GRID_CONSTANT ChecksumArguments a) {
  const int64 step = static_cast<int64>(gridDim.x) * kThreads;
  const int64 first = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  uint64 sum = 0;
  for (int64 i = first; i < a.count / 4; i += step)
    sum += mix(static_cast<uint64>(i) << 32 | static_cast<const unsigned*>(a.bytes)[i]);
  if (first == 0 && a.count % 4 != 0)
    sum += mix(~uint64{0} << 32 | static_cast<const unsigned short*>(a.bytes)[a.count / 2 - 1]);
  atomicAdd(a.checksum, sum);
}

#endif

}  // namespace ct1d::check
