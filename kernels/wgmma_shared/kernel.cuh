// wgmma_shared: transposed convolution on Hopper's matrix units (sm_90a), both operands from shared memory, stride 1.
//
// Persistent blocks keep all weights in shared memory. Warps of their own load, scale and convert x to fp16 parts, each
// another stage of 16 channels (produce.cuh); two warpgroups multiply, 64 output channels of the same tile each. A
// tile's scale is a power of two that comes from the data of the tiles before; each value is tested, and outputs of
// values that the scale does not serve are done again (repair.cuh). With three products both operands are split into
// two halves of 11 bits, the low ones kept times 2^11: high by high is promoted into fp32 registers every 16 channels,
// the cross products, 2^-11 of the sum, stay in an accumulator of their own over the tile.
#pragma once

#include "kernels/wgmma_shared/pack.cuh"
#include "kernels/wgmma_shared/produce.cuh"
#include "kernels/wgmma_shared/products.cuh"
#include "kernels/wgmma_shared/repair.cuh"
#include "kernels/wgmma_shared/store.cuh"

namespace ct1d::wgmma_shared {

/// What both forms of a consumer's work ask for, by stage from the block's first.
template <class I>
struct Consumer {
  const RunArguments& a;
  uint32 shared;
  int number;
  uint32 weights;  // low words of descriptors, of the first stage
  uint32 x;

  __device__ __forceinline__ Consumer(const RunArguments& arguments, uint32 shared_memory, int consumer)
      : a(arguments),
        shared(shared_memory),
        number(consumer),
        weights(matrix_low_word(shared_memory + consumer * kBlockBytes, 1024)),
        x(matrix_low_word(shared_memory + I::kShared.stages, I::kShared.slab_bytes)) {}

  __device__ __forceinline__ void wait_full(unsigned it) const {
    barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);
  }
  __device__ __forceinline__ void release(unsigned it) const {
    if (one_lane()) barrier_arrive(empty_barrier(shared + I::kShared.barriers, it % I::kStages));
  }
  /// Words are found anew each time: else the descriptors of all stages would be kept in registers.
  template <bool Cross>
  __device__ __forceinline__ void queue(float (&d)[I::kSums], unsigned it, bool fresh) const {
    multiply<I, Cross>(d, a.geometry, fresh_copy(weights) + it % kSteps * (I::kStepBytes >> 4),
                       fresh_copy(x) + it % I::kStages * (I::kShared.stage_bytes >> 4), fresh);
  }
  __device__ __forceinline__ float inverse_of(unsigned n) const {
    return load_shared_float(tile_record<I>(shared, n) + 12);
  }
  __device__ __forceinline__ void store(float (&sum)[I::kSums], float (&carry)[4], unsigned n) const {
    store_tile<I>(sum, carry, a, shared, load_tile<I>(shared, n), number);
  }
};

/// One product: a tile's sums stay in d as long as they have at most 256 terms. The tile before is stored behind the
/// products of a tile's first stage.
template <class I>
__device__ __forceinline__ void multiply_whole(const Consumer<I>& c, float (&sum)[I::kSums], float (&carry)[4],
                                               unsigned tiles) {
  float d[I::kSums];
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * kSteps;
    c.wait_full(first);
    c.template queue<false>(d, first, true);
    if (n > 0) c.store(sum, carry, n - 1);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < kSteps; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      if (stage % I::kPromoted == 0) {
        matrix_wait<0>();
        c.release(it - 1);
        promote(sum, d, inverse);
        c.template queue<false>(d, it, true);
      } else {
        c.template queue<false>(d, it, false);
        matrix_wait<1>();
        c.release(it - 1);
      }
    }
    matrix_wait<0>();
    c.release(first + kSteps - 1);
    promote(sum, d, inverse);
  }
}

/// Three products. The queue of the matrix unit: cross(s), high(s), cross(s + 1); high(s) is promoted while cross(s +
/// 1) runs, then high(s + 1) is queued. The tile before is stored behind a tile's first stage, or its cross products.
template <class I>
__device__ __forceinline__ void multiply_split(const Consumer<I>& c, float (&sum)[I::kSums], float (&carry)[4],
                                               unsigned tiles) {
  constexpr float kLowered = 1.0f / static_cast<float>(1 << kLowBits);
  float high[I::kSums];
  float cross[I::kSums];
#pragma unroll 1
  for (unsigned n = 0; n < tiles; ++n) {
    const unsigned first = n * kSteps;
    c.wait_full(first);
    c.template queue<true>(cross, first, true);
    if (I::kShadow == 2) c.template queue<false>(high, first, true);
    if (n > 0) c.store(sum, carry, n - 1);
    if (I::kShadow == 1) c.template queue<false>(high, first, true);
    const float inverse = c.inverse_of(n);
#pragma unroll
    for (unsigned stage = 1; stage < kSteps; ++stage) {
      const unsigned it = first + stage;
      c.wait_full(it);
      c.template queue<true>(cross, it, false);
      matrix_wait<1>();
      c.release(it - 1);
      promote(sum, high, inverse);
      c.template queue<false>(high, it, true);
    }
    matrix_wait<1>();
    promote(sum, cross, inverse * kLowered);
    // ptxas serialises products in flight across a loop's edge: the queue runs empty once a tile, for a moment
    matrix_wait<0>();
    c.release(first + kSteps - 1);
    promote(sum, high, inverse);
  }
}

template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, unsigned tiles, uint32 shared, int consumer) {
  const Consumer<I> c(a, shared, consumer);
  float sum[I::kSums];
  float carry[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
  barrier_wait(shared + I::kShared.weights_barrier, 0);
  if constexpr (I::kSplits) {
    multiply_split<I>(c, sum, carry, tiles);
  } else {
    multiply_whole<I>(c, sum, carry, tiles);
  }
  c.store(sum, carry, tiles - 1);
  const int warp = __shfl_sync(0xFFFFFFFFu, fresh_thread() / 32 - I::kProducers, 0);
  repair<I>(a, tiles, shared, warp);
}

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
  constexpr int kResident = I::kTunables.parts() * I::kPartBytes;
  static_assert(kResident % kPiece == 0, "weights are copied in whole pieces");
  barrier_expect(shared + I::kShared.weights_barrier, kResident);
#pragma unroll 1
  for (int i = 0; i < kResident; i += kPiece) {
    bulk_load(shared + i, static_cast<const unsigned char*>(a.weights) + i, kPiece,
              shared + I::kShared.weights_barrier);
  }
  const Steps steps = steps_of(schedule);
  store_shared_16(shared + I::kShared.schedule, steps.row_tiles, steps.strip, steps.jump_batch, steps.jump_row);
  const Walk walk = walk_of(schedule, blockIdx.x);
  for (int i = 0; i < 9; ++i) store_shared_16(shared + I::kShared.walks + i * 16, walk.batch, walk.in_row, 0, 0);
  store_shared_4(shared + I::kShared.top, 0);
}

/// a.weights: what `pack` wrote. Rows of x are less than 2^32 floats apart.
template <int T, int PRODUCTS, int STAGES, int PRODUCERS, int CONSUMER_REGISTERS, int SHADOW, int STRIP, int BLOCKS,
          int TAPS, int DILATION, int HALO, class Element>
__global__ void __launch_bounds__(256 + 32 * PRODUCERS, 1) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<T, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, SHADOW, STRIP, BLOCKS, TAPS, DILATION, HALO>;
  static_assert(sizeof(Element) == 4, "wgmma_shared computes on fp32 tensors");
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = __shfl_sync(0xFFFFFFFFu, thread / 32, 0);  // known to be a warp's
  const Schedule schedule = schedule_of(I::tunables(), a.geometry, gridDim.x);
  const unsigned tiles = schedule.worker_tiles;
  if (tiles == 0) return;

  if (thread == 0) begin_block<I>(a, shared, schedule);
  for (int i = thread; i < kFlagWords + 1; i += I::kThreads) store_shared_4(shared + I::kShared.flags + i * 4, 0);
  const uint32 most = largest_of_first<I>(a, schedule);
  __syncthreads();
  if (one_lane()) max_shared_4(shared + I::kShared.top, most);
  if (thread < kMostChannels) {
    const Packed places = packed_of(I::tunables(), a.geometry);
    const unsigned char* const packed = static_cast<const unsigned char*>(a.weights);
    const bool exists = a.bias != nullptr && thread < a.geometry.out_channels;
    const uint32 scales = shared + I::kShared.scales + thread * 4;
    store_shared_float(scales, reinterpret_cast<const float*>(packed + places.inverse)[thread]);
    store_shared_float(scales + kMostChannels * 4, exists ? static_cast<const float*>(a.bias)[thread] : 0.0f);
    const bool unserved = reinterpret_cast<const float*>(packed + places.flag)[thread] != 0.0f;
    if (unserved) or_shared_4(shared + I::kShared.flags + kFlagWords * 4, 1);
  }
  __syncthreads();
  if (warp < PRODUCERS) {
    registers_down<I::kProducerRegisters>();
    produce<I>(a, static_cast<int>(tiles) * kSteps, shared, warp);
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
          int TAPS, int DILATION, int HALO, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  pack_channel<
      Instance<T, PRODUCTS, STAGES, PRODUCERS, CONSUMER_REGISTERS, SHADOW, STRIP, BLOCKS, TAPS, DILATION, HALO>>(a);
}

}  // namespace ct1d::wgmma_shared
