// wgmma_fused: transposed convolution on Hopper's matrix units (sm_90a) where x of a tile of places fits shared memory:
// up to a few hundred channels, any stride.
//
// Warps of their own load 16 channels of a tile of places each, scale them by a power of two that comes from the data
// before, and leave them in shared memory as fp16 parts (produce.cuh); each value is tested, and outputs of values that
// the scale does not serve are done again. One warp copies packed weights, which stay in shared memory where they fit.
// Two warpgroups multiply a tile with one group of rows after the other (consume.cuh): x is read once for all phases
// and output channels of the block, and the outputs of a channel leave as runs along t (store.cuh). With
// three products both operands are split into two halves of 11 bits, the low ones kept times 2^11; every step is
// promoted into fp32 registers. x of 16 bits is multiplied as it is.
#pragma once

#include "kernels/wgmma_fused/consume.cuh"
#include "kernels/wgmma_fused/produce.cuh"
#include "kernels/wgmma_fused/repair.cuh"
#include "kernels/wgmma_packed/pack.cuh"

namespace ct1d::wgmma_fused {

/// Barriers and the block's share; by one thread.
template <class I>
__device__ __forceinline__ void begin_block(const RunArguments& a, uint32 shared) {
  constexpr int kReaders = I::kPlaceTiles == 2 ? 4 : 4 * kConsumers;  // warps that read an image
  for (int slot = 0; slot < I::kStages; ++slot) {
    barrier_init(full_barrier(shared + I::kShared.image_barriers, slot), 1);
    barrier_init(empty_barrier(shared + I::kShared.image_barriers, slot), kReaders);
  }
  for (int slot = 0; slot < I::kWeightSlots; ++slot) {
    barrier_init(full_barrier(shared + I::kShared.weight_barriers, slot), 1);
    barrier_init(empty_barrier(shared + I::kShared.weight_barriers, slot), 4 * kConsumers);
  }
  store_shared_4(shared + I::kShared.top, 0);
  barrier_init_fence();
  save_share<I>(shared, a.geometry);
}

/// a.weights: what `pack` wrote. Rows of x are less than 2^32 elements apart.
template <int T, int ROWS, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int WEIGHTS, int PASSES,
          int BLOCKS, int OFFSETS, int STEP, int STRIDE, int HALO, int STEPS, int GROUP, class Element>
__global__ void __launch_bounds__(256 + 32 * PRODUCERS, 1) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<T, ROWS, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, WEIGHTS, PASSES, BLOCKS, OFFSETS, STEP,
                     STRIDE, HALO, STEPS, GROUP, Element>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = __shfl_sync(0xFFFFFFFFu, thread / 32, 0);  // known to be a warp's
  if (thread == 0) begin_block<I>(a, shared);
  for (int i = thread; i < kFlagTiles * 4; i += 256 + 32 * PRODUCERS)
    store_shared_4(shared + I::kShared.flags + i * 4, 0);
  __syncthreads();
  if (warp < PRODUCERS) {
    registers_down<I::kProducerRegisters>();
    if (warp < I::kConverters) {
      produce<I>(a, shared, warp);
    } else if (one_lane()) {
      fill<I>(a, shared);
    }
  } else {
    registers_up<I::kConsumerRegisters>();
    if (warp < PRODUCERS + 4) {  // apart, so that all addresses are known to be the same for the whole warp
      consume<I>(a, shared, 0);
      repair<I>(a, shared, 0);
    } else {
      consume<I>(a, shared, 1);
      repair<I>(a, shared, 1);
    }
  }
}

template <int T, int ROWS, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int WEIGHTS, int PASSES,
          int BLOCKS, int OFFSETS, int STEP, int STRIDE, int HALO, int STEPS, int GROUP, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  wgmma_packed::pack_row<Instance<T, ROWS, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, WEIGHTS, PASSES, BLOCKS,
                                  OFFSETS, STEP, STRIDE, HALO, STEPS, GROUP, Element>>(a);
}

}  // namespace ct1d::wgmma_fused
