// wgmma_packed: transposed convolution on Hopper's matrix units (sm_90a) for many channels, both operands packed.
//
// A first kernel packs x (pack_x.cuh), so that this one converts nothing: one thread of a block copies stages of packed
// weights and x into a ring, two warpgroups multiply them. With three products both operands are split into two halves
// of 11 bits, the low ones kept times 2^11: high by high is promoted into fp32 registers every 16 channels, the cross
// products, 2^-11 of the sum, stay in an accumulator of their own over a group of stages. With one product the sums of
// a group stay in one accumulator. The tile before is stored behind the products of a tile's first stages. Blocks of a
// cluster work on the same panels of weights and load them together, a share each.
#pragma once

#include "kernels/common/bulk_copy.cuh"
#include "kernels/wgmma_packed/pack.cuh"
#include "kernels/wgmma_packed/pack_x.cuh"
#include "kernels/wgmma_packed/products.cuh"
#include "kernels/wgmma_packed/repair.cuh"
#include "kernels/wgmma_packed/store.cuh"

namespace ct1d::wgmma_packed {

/// A piece of a slot's weights, which comes to all blocks of the cluster.
template <class I>
__device__ __forceinline__ void load_weights(uint32 to, const unsigned char* from, uint32 full) {
  if constexpr (I::kCluster > 1) {
    bulk_load_to_blocks(to, from, I::kPieceBytes, full, (1u << I::kCluster) - 1);
  } else {
    bulk_load(to, from, I::kPieceBytes, full);
  }
}

/// Counts as the thread that fills the ring keeps them: with clusters in few of its 24 registers.
template <unsigned Cluster>
struct CountOf {
  using Type = int;
};
template <>
struct CountOf<1> {
  using Type = int64;
};

/// Bytes from the first panel or image to that of the index; what does not exist is read from the last that does, and
/// not stored.
template <class Count>
__device__ __forceinline__ int64 start_of(int index, Count last, Count steps, int bytes) {
  const Count existing = index < last ? index : last;
  return static_cast<int64>(existing * steps) * bytes;
}

/// Fills the ring: stages of the block's tiles one after the other; by one thread.
template <class I>
__device__ __forceinline__ void fill(const RunArguments& a, uint32 shared) {
  using Count = typename CountOf<I::kCluster>::Type;
  const Extent e = extent_of(I::tunables(), a.geometry);
  const auto last_panel = static_cast<Count>(e.panels - 1);
  const auto last_places = static_cast<Count>(e.place_tiles - 1);
  const auto steps = static_cast<Count>(e.steps);
  const auto* const weights = static_cast<const unsigned char*>(a.weights);
  const auto* const x = static_cast<const unsigned char*>(a.workspace);
  const unsigned tiles = tiles_of<I>(shared);
  const int rank = static_cast<int>(blockIdx.x % I::kCluster);
  unsigned it = 0;
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const Tile tile = find_tile<I>(shared, n);
    const unsigned char* pieces[I::kPieces];
    const unsigned char* images[I::kPlaceTiles];
#pragma unroll
    for (int i = 0; i < I::kPieces; ++i) {
      const int at = (rank * I::kPieces + i) * I::kPieceBytes;  // in the slot
      pieces[i] = weights + start_of<Count>(tile.panel + at / I::kPanelBytes, last_panel, steps, I::kPanelBytes) +
                  at % I::kPanelBytes;
    }
#pragma unroll
    for (int i = 0; i < I::kPlaceTiles; ++i)
      images[i] = x + start_of<Count>(tile.places + i, last_places, steps, I::kImageBytes);
#pragma unroll 1
    for (int step = 0; step < static_cast<int>(steps); ++step, ++it) {
      const unsigned slot = it % I::kStages;
      const uint32 full = full_barrier(shared + I::kShared.barriers, static_cast<int>(slot));
      const uint32 to = shared + slot * I::kShared.slot_bytes;
      if (it >= I::kStages) {
        barrier_wait(empty_barrier(shared + I::kShared.barriers, static_cast<int>(slot)), (it / I::kStages - 1) & 1);
      }
      barrier_expect(full, I::kRowTiles * I::kPanelBytes + I::kPlaceTiles * I::kImageBytes);
#pragma unroll
      for (int i = 0; i < I::kPieces; ++i) {
        load_weights<I>(to + (rank * I::kPieces + i) * I::kPieceBytes, pieces[i], full);
        pieces[i] += I::kPanelBytes;
      }
#pragma unroll
      for (int i = 0; i < I::kPlaceTiles; ++i) {
        bulk_load(to + I::kShared.image + i * I::kImageBytes, images[i], I::kImageBytes, full);
        images[i] += I::kImageBytes;
      }
    }
  }
}

template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, uint32 shared, int consumer) {
  const Stages<I> stages(a.geometry, shared, consumer);
  const unsigned tiles = tiles_of<I>(shared);
  const int groups = steps_of_tile<I>(shared) / I::kGroup;
  float sum[I::kSums];
  float d[I::kSums];
  float cross[I::kSplits ? I::kSums : 1];
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
  unsigned it = 0;
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
#pragma unroll 1
    for (int group = 0; group < groups; ++group, it += I::kGroup) {
      const auto behind = [&] {
        if (group == 0 && n > 0) store_tile<I>(sum, a, shared, consumer, n - 1);
      };
      const auto inverse = [&] {
        if constexpr (I::kSmall) return 1.0f;
        const Tile tile = own_tile<I>(find_tile<I>(shared, n), consumer);
        const Extent e = extent_of(I::tunables(), a.geometry);
        const Workspace w = workspace_of(I::tunables(), a.geometry, I::facts(), 4);
        return load_constant(
            reinterpret_cast<const float*>(static_cast<const unsigned char*>(a.workspace) + w.inverse) +
            min_of(tile.places, e.place_tiles - 1) * groups + group);
      };
      if constexpr (I::kSplits) {
        multiply_group_split<I>(stages, sum, d, cross, it, inverse, behind);
      } else {
        multiply_group<I>(stages, sum, d, it, inverse, behind);
      }
    }
  }
  if (tiles > 0) store_tile<I>(sum, a, shared, consumer, tiles - 1);
  repair<I>(a, shared, consumer);
}

/// a.weights: what `pack` wrote; a.workspace: what `pack_x` wrote in the same call.
template <int T, int ROWS, int PRODUCTS, int STAGES, int BAND, int BLOCKS, int CLUSTER, int OFFSETS, int STEP,
          int STRIDE, int HALO, int GROUP, class Element>
__global__ void __launch_bounds__(kThreads, 1) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<T, ROWS, PRODUCTS, STAGES, BAND, BLOCKS, OFFSETS, STEP, STRIDE, HALO, GROUP, Element, CLUSTER>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int group = __shfl_sync(0xFFFFFFFFu, thread / 128, 0);  // known to be a warp's
  if (thread == 0) {
    for (int slot = 0; slot < STAGES; ++slot) {
      barrier_init(full_barrier(shared + I::kShared.barriers, slot), 1);
      barrier_init(empty_barrier(shared + I::kShared.barriers, slot), CLUSTER * kConsumers * 4);
    }
    barrier_init_fence();
    save_schedule<I>(shared, a.geometry);
  }
  for (int i = thread; i < kFlagTiles * kConsumers * 2; i += kThreads)
    store_shared_4(shared + I::kShared.flags + i * 4, 0);
  if constexpr (CLUSTER > 1) {
    __syncwarp();
    cluster_arrive();  // none reaches another block's barriers before they are there
    cluster_wait();
  } else {
    __syncthreads();
  }
  if (group == kConsumers) {
    registers_down<24>();
    if (thread == kConsumers * 128) fill<I>(a, shared);
  } else {
    registers_up<240>();
    if (group == 0) {  // apart, so that all addresses are known to be the same for the whole warp
      consume<I>(a, shared, 0);
    } else {
      consume<I>(a, shared, 1);
    }
  }
  if constexpr (CLUSTER > 1) {
    __syncwarp();
    cluster_arrive();  // none ends while another may still write to it or arrive there
    cluster_wait();
  }
}

template <int T, int ROWS, int PRODUCTS, int STAGES, int BAND, int BLOCKS, int CLUSTER, int OFFSETS, int STEP,
          int STRIDE, int HALO, int GROUP, class Element>
__global__ void __launch_bounds__(32 * kPackWarps) pack_x(const CT1D_GRID_CONSTANT RunArguments a) {
  pack_places<Instance<T, ROWS, PRODUCTS, STAGES, BAND, BLOCKS, OFFSETS, STEP, STRIDE, HALO, GROUP, Element, CLUSTER>>(
      a);
}

template <int T, int ROWS, int PRODUCTS, int STAGES, int BAND, int BLOCKS, int CLUSTER, int OFFSETS, int STEP,
          int STRIDE, int HALO, int GROUP, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  pack_row<Instance<T, ROWS, PRODUCTS, STAGES, BAND, BLOCKS, OFFSETS, STEP, STRIDE, HALO, GROUP, Element, CLUSTER>>(a);
}

}  // namespace ct1d::wgmma_packed
