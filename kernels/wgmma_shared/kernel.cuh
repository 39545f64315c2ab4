// wgmma_shared: transposed convolution on Hopper's matrix units (sm_90a), both operands from shared memory, stride 1.
//
// Persistent blocks keep all weights in shared memory. Warps of their own load, scale and convert x to fp16 parts, each
// another stage of 16 or 32 channels (produce.cuh); two warpgroups multiply, 64 output channels of the same tile each.
// A tile's scale is a power of two that comes from the data of the tiles before; each value is tested, and outputs of
// values that the scale does not serve are done again (repair.cuh). With three products both operands are split into
// two halves of 11 bits, the low ones kept times 2^11: high by high is promoted into fp32 registers every 16 channels,
// the cross products, 2^-11 of the sum, stay in an accumulator of their own over the tile. x of 16 bits is multiplied
// as it is; outputs that are not finite are done again over the taps that exist.
#pragma once

#include "kernels/wgmma_shared/consume.cuh"
#include "kernels/wgmma_shared/pack.cuh"
#include "kernels/wgmma_shared/produce.cuh"

namespace ct1d::wgmma_shared {

/// Barriers, the block's tiles, and weights on their way; by one thread.
template <class I>
__device__ __forceinline__ void begin_block(const RunArguments& a, uint32 shared, const Schedule& schedule) {
  for (int slot = 0; slot < I::kStages; ++slot) {
    barrier_init(full_barrier(shared + I::kShared.barriers, slot), 1);
    barrier_init(empty_barrier(shared + I::kShared.barriers, slot), 8);
  }
  barrier_init(shared + I::kShared.weights_barrier, 1);
  barrier_init_fence();
  constexpr int kPiece = 8192;
  constexpr int kResident = I::kShared.stages;
  barrier_expect(shared + I::kShared.weights_barrier, kResident);
#pragma unroll 1
  for (int i = 0; i < kResident; i += kPiece) {
    bulk_load(shared + i, static_cast<const unsigned char*>(a.weights) + i,
              kResident - i < kPiece ? kResident - i : kPiece, shared + I::kShared.weights_barrier);
  }
  const Steps steps = steps_of(schedule);
  store_shared_16(shared + I::kShared.schedule, steps.row_tiles, steps.strip, steps.jump_batch, steps.jump_row);
  const Walk walk = walk_of(schedule, blockIdx.x);
  for (int i = 0; i < 9; ++i) store_shared_16(shared + I::kShared.walks + i * 16, walk.batch, walk.in_row, 0, 0);
  store_shared_4(shared + I::kShared.top, 0);
}

/// a.weights: what `pack` wrote. Rows of x are less than 2^32 elements apart.
template <int T, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int SHADOW, int STRIP, int BLOCKS,
          int STREAMING, int CHANNELS, int TAPS, int DILATION, int HALO, int STEPS, int MORE, class Element>
__global__ void __launch_bounds__(256 + 32 * PRODUCERS, 1) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<T, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, SHADOW, STRIP, BLOCKS, STREAMING, CHANNELS,
                     TAPS, DILATION, HALO, STEPS, MORE, Element>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = __shfl_sync(0xFFFFFFFFu, thread / 32, 0);  // known to be a warp's
  const Schedule schedule = schedule_of(I::tunables(), a.geometry, gridDim.x);
  const unsigned tiles = schedule.worker_tiles;
  if (tiles == 0) return;

  if (thread == 0) begin_block<I>(a, shared, schedule);
  for (int i = thread; i < kFlagWords + 1; i += I::kThreads) store_shared_4(shared + I::kShared.flags + i * 4, 0);
  if constexpr (I::kSmall) {
    __syncthreads();
  } else {
    const uint32 most = largest_of_first<I>(a, schedule);
    __syncthreads();
    if (one_lane()) max_shared_4(shared + I::kShared.top, most);
  }
  if (thread < I::kChannels) {
    const Packed places = packed_of(I::tunables(), a.geometry);
    const unsigned char* const packed = static_cast<const unsigned char*>(a.weights);
    const bool exists = a.bias != nullptr && thread < a.geometry.out_channels;
    const uint32 scales = shared + I::kShared.scales + thread * 4;
    store_shared_float(scales, reinterpret_cast<const float*>(packed + places.inverse)[thread]);
    store_shared_float(scales + I::kChannels * 4,
                       exists ? to_float(static_cast<const Element*>(a.bias)[thread]) : 0.0f);
    const bool unserved = reinterpret_cast<const float*>(packed + places.flag)[thread] != 0.0f;
    if (unserved) or_shared_4(shared + I::kShared.flags + kFlagWords * 4, 1);
  }
  __syncthreads();
  if (warp < PRODUCERS) {
    registers_down<I::kProducerRegisters>();
    if constexpr (I::kSmall) {
      produce_halves<I>(a, static_cast<int>(tiles) * I::kTileStages, shared, warp);
    } else {
      produce<I>(a, static_cast<int>(tiles) * I::kTileStages, shared, warp);
    }
  } else {
    registers_up<I::kConsumerRegisters>();
    if (warp < PRODUCERS + 4) {  // apart, so that all addresses are known to be the same for the whole warp
      consume<I>(a, tiles, shared, 0);
    } else {
      consume<I>(a, tiles, shared, 1);
    }
  }
}

template <int T, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int SHADOW, int STRIP, int BLOCKS,
          int STREAMING, int CHANNELS, int TAPS, int DILATION, int HALO, int STEPS, int MORE, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  pack_channel<Instance<T, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, SHADOW, STRIP, BLOCKS, STREAMING, CHANNELS,
                        TAPS, DILATION, HALO, STEPS, MORE, Element>>(a);
}

}  // namespace ct1d::wgmma_shared
