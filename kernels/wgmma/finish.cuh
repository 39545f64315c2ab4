// wgmma: steps of a tile shared by blocks. Each leaves its sums in the workspace; a second kernel adds them up in the
// order of the channels and stores them.
#pragma once

#include "kernels/wgmma/repair.cuh"
#include "kernels/wgmma/store.cuh"

namespace ct1d::wgmma {

/// Of the warp's 32 places of a slice: its sums, eight columns a piece of s0 and one of s1, 16 bytes a lane; the word
/// with its marked quads.
struct LeftOfWarp {
  float* sums;
  uint32* marks;
};
template <class I>
__device__ __forceinline__ LeftOfWarp find_left(const RunArguments& a, uint32 shared, int first, int slice) {
  const uint32 slices = load_shared_4(shared + I::kShared.schedule + 68);
  const uint32 marks = load_shared_4(shared + I::kShared.schedule + 76);  // of 16 bytes
  const int64 place = static_cast<int64>(first / kPositions) * slices + slice;
  const int64 warp = place * 4 + warp_of_group();
  unsigned char* const base = static_cast<unsigned char*>(a.workspace);
  return {reinterpret_cast<float*>(base + kLeftSums) + warp * (I::kColumns * 32) + lane_of_warp() * 4,
          reinterpret_cast<uint32*>(base + static_cast<int64>(marks) * 16) + warp};
}

/// Whether the warp has any batch item in a tile.
template <class I>
__device__ __forceinline__ bool has_items(const RunArguments& a, uint32 shared, const Tile& tile) {
  return tile.exists && find_quad<I>(a.geometry, shared, tile, 8 * warp_of_group()).exists;
}

/// In place of store_columns. `inverse`: of x's scale, where the products' sums were not promoted.
template <class I, int First, int Count>
__device__ __forceinline__ void leave_columns(float (&s0)[I::kSums], float (&s1)[I::kSums], const RunArguments& a,
                                              uint32 shared, const Tile& tile, float inverse) {
  float* const to = find_left<I>(a, shared, tile.first, tile.panel).sums;
  const bool exists = has_items<I>(a, shared, tile);
  const auto leave = [&](float(&s)[I::kSums], int j, int piece) {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i] = I::kPromotes ? s[4 * j + i] : s[4 * j + i] * inverse;
      if constexpr (I::kPromotes) clear_here(s[4 * j + i]);
    }
    store_quad(to + piece * 128, v[0], v[1], v[2], v[3], exists);
  };
#pragma unroll
  for (int j = First; j < First + Count; ++j) {
    leave(s0, j, 2 * j);
    leave(s1, j, 2 * j + 1);
  }
}
/// What the warp marked in tile `n`.
template <class I>
__device__ __forceinline__ void leave_marks(const RunArguments& a, uint32 shared, const Tile& tile, unsigned n) {
  const uint32 marks = marks_of<I>(shared, n);
  if (tile.exists && lane_of_warp() == 0) *find_left<I>(a, shared, tile.first, tile.panel).marks = marks;
}
/// What the block knows of the problem, by one thread of the grid.
template <class I>
__device__ __forceinline__ void leave_schedule(const RunArguments& a, uint32 shared) {
  uint32* const to = static_cast<uint32*>(a.workspace);
#pragma unroll 1
  for (int i = 0; i < kScheduleBytes / 4; ++i) to[i] = load_shared_4(shared + I::kShared.schedule + 4 * i);
}
template <class I>
__device__ __forceinline__ void take_schedule(const RunArguments& a, uint32 shared) {
  const uint32* const from = static_cast<const uint32*>(a.workspace);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kScheduleBytes / 4) store_shared_4(shared + I::kShared.schedule + 4 * thread, from[thread]);
  if (thread % 32 == 0) store_shared_4(flags_place<I>(shared, 0), 0);
  __syncthreads();
}

/// Columns 8 * First on, Count eights, of the block's tile of a panel.
template <class I, int First, int Count>
__device__ __forceinline__ void finish_columns(const RunArguments& a, uint32 shared, const Tile& tile) {
  if (!has_items<I>(a, shared, tile)) return;
  float s0[I::kSums];
  float s1[I::kSums];
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) s0[i] = s1[i] = 0.0f;
  uint32 marks = weights_unserved<I>(a, tile.panel) ? 0xFFu : 0;
#pragma unroll
  for (int slice = 0; slice < I::kSplit; ++slice) {
    const LeftOfWarp left = find_left<I>(a, shared, tile.first, tile.panel * I::kSplit + slice);
    marks |= *left.marks;
    const auto add = [&](float(&s)[I::kSums], int j, int piece) {
      const uint4 v = *reinterpret_cast<const uint4*>(left.sums + piece * 128);
      s[4 * j] += float_of_bits(v.x);
      s[4 * j + 1] += float_of_bits(v.y);
      s[4 * j + 2] += float_of_bits(v.z);
      s[4 * j + 3] += float_of_bits(v.w);
    };
#pragma unroll
    for (int j = First; j < First + Count; ++j) {
      add(s0, j, 2 * j);
      add(s1, j, 2 * j + 1);
    }
  }
  const bool again = store_columns<I, First, Count>(s0, s1, a, shared, tile, 1.0f);
  if (I::kSmall && __any_sync(0xFFFFFFFFu, again)) mark<I>(again, shared, 0);
  __syncwarp();  // this warp's stores are overwritten
  repair_marked<I, First, Count>(a, shared, tile, marks | marks_of<I>(shared, 0));
}

template <class I, int Count, int Chunk>
__device__ __forceinline__ void finish_chunk(const RunArguments& a, uint32 shared, const Tile& tile, int chunk) {
  if constexpr (Chunk * Count < I::kTiles) {
    if (chunk == Chunk) {
      finish_columns<I, Chunk * Count, Count>(a, shared, tile);
    } else {
      finish_chunk<I, Count, Chunk + 1>(a, shared, tile, chunk);
    }
  }
}

/// A block has 128 places and some columns of a panel: columns inside, then panels, then places.
template <class I>
__device__ __forceinline__ void finish_tile(const RunArguments& a, uint32 shared) {
  constexpr int kCount = finish_tiles(I::kTunables, I::kStride);
  constexpr int kChunks = I::kTiles / kCount;
  const uint32 panels = load_shared_4(shared + I::kShared.schedule + 68) / I::kSplit;
  const uint32 place = blockIdx.x / kChunks;
  const int chunk = static_cast<int>(blockIdx.x % kChunks);
  const Tile tile{static_cast<int>(place % panels), static_cast<int>(place / panels) * kPositions, true};
  finish_chunk<I, kCount, 0>(a, shared, tile, chunk);
}

}  // namespace ct1d::wgmma
