// wgmma: transposed convolution on Hopper's matrix units (sm_90a), operand A from registers.
//
// Persistent blocks of two warpgroups, each with 128 positions of a tile by OC_TILE columns. A warpgroup keeps a ring
// of raw x in shared memory (feed.cuh), scales a stage of 16 channels per quad of lanes by a power of two, turns it
// into fp16 in the registers of the products' A (fragments.cuh), and multiplies it by packed weights in shared memory
// (products.cuh), which stay there or stream through a ring of their own. With three products both operands are split
// into two halves of 11 bits; three of the four products are formed, and every step's sums are promoted into fp32
// registers. With one product the sums of a tile stay in the accumulators. What the scales do not serve is done again
// exactly (repair.cuh).
#pragma once

#include "kernels/wgmma/feed.cuh"
#include "kernels/wgmma/finish.cuh"
#include "kernels/wgmma/fragments.cuh"
#include "kernels/wgmma/instance.cuh"
#include "kernels/wgmma/pack.cuh"
#include "kernels/wgmma/products.cuh"
#include "kernels/wgmma/repair.cuh"
#include "kernels/wgmma/store.cuh"
#include "kernels/wgmma/weave.cuh"

namespace ct1d::wgmma {

/// Warpgroup c multiplies between wait_turn(c) and the pass_turn(c) of the other one.
template <class I>
__device__ __forceinline__ void wait_turn(int consumer) {
  if (I::kTurns) numbered_barrier<kThreads>(1 + consumer);
}
template <class I>
__device__ __forceinline__ void give_turn(int consumer) {
  if (!I::kTurns) return;
  if (consumer == 0) {
    named_barrier_arrive<1, kThreads>();
  } else {
    named_barrier_arrive<2, kThreads>();
  }
}

/// The scale of x where sums stay in accumulators: the tile's first step's as long as it serves.
__device__ __forceinline__ void keep_scale(Scale& kept, const Scale& found, uint32 most, bool first) {
  const bool over = (rounded_up(most) >> 23) + (bits_of_float(kept.scale) >> 23) > 269;
  if (first || over) kept = found;
}
/// Else the sums are scaled down with it.
template <class I>
__device__ __forceinline__ void follow_scale(const Scale& before, const Scale& now, bool first, float (&s0)[I::kSums],
                                             float (&s1)[I::kSums]) {
  if (first || !__any_sync(0xFFFFFFFFu, now.scale != before.scale)) return;
  const float factor = now.scale * before.inverse;
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) {
    s0[i] *= factor;
    s1[i] *= factor;
  }
}

/// Finished sums to y, a slice's to the workspace.
template <class I, int First, int Count>
__device__ __forceinline__ bool put_columns(float (&s0)[I::kSums], float (&s1)[I::kSums], const RunArguments& a,
                                            uint32 shared, const Tile& tile, float inverse) {
  if constexpr (I::kSplit == 1) {
    return store_columns<I, First, Count>(s0, s1, a, shared, tile, inverse);
  } else {
    leave_columns<I, First, Count>(s0, s1, a, shared, tile, inverse);
    return false;
  }
}

/// What a warpgroup does: `tiles` tiles of `steps` steps.
template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, uint32 shared, int consumer) {
  const Geometry& g = a.geometry;
  const uint32 raw = shared + I::kShared.raw + consumer * I::kStages * I::kRawBytes;
  const uint32 barriers = shared + I::kShared.barriers + consumer * I::kStages * 16;
  const uint32 weight_barriers = shared + I::kShared.weight_barriers;
  const uint32 weights = matrix_low_word(shared, I::kSlabBytes);

  {
    Feed feed{};
    aim<I>(feed, a, shared, consumer);
#pragma unroll 1
    for (int i = 0; i < I::kStages; ++i) {
      ask<I>(feed, g, shared, raw + i * I::kRawBytes, full_barrier(barriers, i));
      advance<I>(feed, a, shared, consumer);
    }
    save_feed<I>(feed, shared);
  }
  float s0[I::kSums];  // of product blocks 0 and 1
  float s1[I::kSums];
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) s0[i] = s1[i] = 0.0f;
  if (I::kResident) barrier_wait(weight_barriers, 0);
  if (consumer == 1) give_turn<I>(0);

  Slot slot{0, 0};
  Slot weight_slot{0, 0};  // of streamed weights
  Scale scale{0.0f, 1.0f};
  // Of 16-bit x: whether rows may begin within words, the tile's and window's part of where they do.
  const int shift = I::kTaps * tap_step_of<I>(shared);
  const uint32 odd_rows = static_cast<uint32>(g.x_row_stride) & 1;
  const bool odd = !items_differ(g) && ((static_cast<uint32>(reinterpret_cast<uint64>(a.x) / 2) |
                                         static_cast<uint32>(g.x_row_stride) | static_cast<uint32>(shift)) &
                                        1) != 0;
  uint32 parity = 0;
  int window = 0;
  // The stage in a slot into fragments. Returns whether its scale does not serve it.
  const auto prepare = [&](const Slot& at, unsigned n, int step, Fragments<I>& hi, Fragments<I>& lo, Scale& kept) {
    const uint32 full = full_barrier(barriers, at.number);
    const uint32 empty = empty_barrier(barriers, at.number);
    const uint32 slot_raw = raw + at.number * I::kRawBytes;
    if constexpr (I::kSmall) {
      if (odd && step == 0) parity = parity_of<I>(a, shared, consumer, n);
      Words<I> x;
      take_words<I>(x, slot_raw, full, empty, at.round & 1, odd, parity + lane_of_warp() % 4 * odd_rows);
      weave<I>(x, blockIdx.y, hi);
      const bool wraps = window + 1 == windows_of<I>(shared);
      parity += static_cast<uint32>(wraps ? window * shift : shift);
      window = wraps ? 0 : window + 1;
      return false;
    } else {
      Values<I> x;
      take<I>(x, slot_raw, full, empty, at.round & 1);
      const Range range = find_range<I>(x);
      const Scale found = scale_of_halves(range.most, I::kHeadroom);
      if constexpr (I::kPromotes) {
        kept = found;
      } else {
        keep_scale(kept, found, range.most, step == 0);
      }
      const bool bad = !serves<I>(range, kept.scale);
      convert<I>(x, kept.scale, blockIdx.y, hi, lo);
      return bad;
    }
  };
  Fragments<I> ahead;  // of the next step
  Scale ahead_scale{0.0f, 1.0f};
  bool ahead_bad = false;
  if constexpr (I::kAhead) ahead_bad = prepare(slot, 0, 0, ahead, ahead, ahead_scale);
#pragma unroll 1
  for (unsigned n = 0; n < tiles_of<I>(shared); ++n) {
#pragma unroll 1
    for (int step = 0; step < steps_of<I>(shared); ++step) {
      const uint32 full = full_barrier(barriers, slot.number);
      const uint32 empty = empty_barrier(barriers, slot.number);
      const uint32 slot_raw = raw + slot.number * I::kRawBytes;
      Fragments<I> hi;
      Fragments<I> lo;
      bool bad = false;
      bool again = false;
      const Scale before = scale;
      if constexpr (I::kAhead) {
        copy_fragments<I>(hi, ahead, blockIdx.y);
        scale = ahead_scale;
        bad = ahead_bad;
      } else {
        bad = prepare(slot, n, step, hi, lo, scale);
      }
      if constexpr (!I::kPromotes && !I::kSmall) follow_scale<I>(before, scale, step == 0, s0, s1);
      const int weight_step = I::kResident ? step : weight_slot.number;
      const uint32 words = weights + (weight_step * I::kStepBytes >> 4);
      if (I::kSmall || !I::kResident || I::kTapStep > 1) {
        pin_fragments<I>(hi);  // converted here, not behind the products' fence
        if constexpr (I::kSplits) pin_fragments<I>(lo);
      }
      if (!I::kResident) {
        barrier_wait(full_barrier(weight_barriers, weight_slot.number), weight_slot.round & 1);
      }
      // in the shadow of the products
      const auto refill = [&] {
        barrier_wait(empty, slot.round & 1);
        Feed feed = load_feed<I>(shared);
        ask<I>(feed, g, shared, slot_raw, full);
        advance<I>(feed, a, shared, consumer);
        save_feed<I>(feed, shared);
        if (!I::kResident && fresh_thread() == 0) {
          refill_stream<I>(a, shared, n == 0 && step < kRefillLag);
        }
        if (__any_sync(0xFFFFFFFFu, bad)) mark<I>(bad, shared, n);
      };
      const auto prepare_next = [&] {
        if constexpr (I::kAhead) {
          Slot next = slot;
          next.template next<I::kStages>();
          const bool last = step + 1 == steps_of<I>(shared);
          ahead_bad = prepare(next, last ? n + 1 : n, last ? 0 : step + 1, ahead, ahead, ahead_scale);
          pin_fragments<I>(ahead);
        }
      };
      const auto pass_turn = [&](bool end) {
        if (!(consumer == 1 && end && n + 1 == tiles_of<I>(shared) && step + 1 == steps_of<I>(shared)))
          give_turn<I>(1 - consumer);
      };
      if constexpr (!I::kPromotes) {
        wait_turn<I>(consumer);
        multiply<I>(s0, hi, lo, 0, 0, words, step > 0);
        multiply<I>(s1, hi, lo, 1, 0, words, step > 0);
        pass_turn(true);
        refill();
        prepare_next();
        matrix_wait<0>();
        pin(s0);
        pin(s1);
      } else if constexpr (I::kHalves == 1) {
        float d[I::kSums];
        wait_turn<I>(consumer);
        multiply<I>(d, hi, lo, 0, 0, words, false);
        pass_turn(false);
        refill();
        matrix_wait<0>();
        promote<0>(s0, d, scale.inverse);
        wait_turn<I>(consumer);
        multiply<I>(d, hi, lo, 1, 0, words, false);
        pass_turn(true);
        prepare_next();
        matrix_wait<0>();
        promote<0>(s1, d, scale.inverse);
      } else {
        constexpr int kHalf = I::kSums / 2;
        float d0[kHalf];
        float d1[kHalf];
        wait_turn<I>(consumer);
        multiply<I>(d0, hi, lo, 0, 0, words, false);
        multiply<I>(d1, hi, lo, 0, 1, words, false);
        refill();
        matrix_wait<1>();
        promote<0>(s0, d0, scale.inverse);
        multiply<I>(d0, hi, lo, 1, 0, words, false);
        matrix_wait<1>();
        promote<kHalf>(s0, d1, scale.inverse);
        multiply<I>(d1, hi, lo, 1, 1, words, false);
        pass_turn(true);
        matrix_wait<1>();
        promote<0>(s1, d0, scale.inverse);
        if constexpr (!I::kStaged) {
          if (step + 1 == steps_of<I>(shared)) {  // while the last products run
            again = put_columns<I, 0, I::kTiles / 2>(s0, s1, a, shared, find_tile<I>(shared, consumer, n), 1.0f);
          }
        }
        matrix_wait<0>();
        promote<kHalf>(s1, d1, scale.inverse);
      }
      pin_fragments<I>(hi);
      if constexpr (I::kSplits) pin_fragments<I>(lo);
      slot.template next<I::kStages>();
      if (!I::kResident) {
        __syncwarp();
        if (lane_of_warp() == 0) barrier_arrive(empty_barrier(weight_barriers, weight_slot.number));
        weight_slot.template next<I::kSlots>();
      }
      if (step + 1 == steps_of<I>(shared)) {
        constexpr int kFirst = I::kHalves == 2 && !I::kStaged ? I::kTiles / 2 : 0;
        again |= put_columns<I, kFirst, I::kTiles - kFirst>(s0, s1, a, shared, find_tile<I>(shared, consumer, n),
                                                            scale.inverse);
        if constexpr (I::kSplit > 1) leave_marks<I>(a, shared, find_tile<I>(shared, consumer, n), n);
        if (I::kSmall && __any_sync(0xFFFFFFFFu, again)) mark<I>(again, shared, n);
      }
    }
  }
  copy_commit();
  copy_wait<0>();  // of stages past the last
  if constexpr (I::kSplit == 1) repair<I>(a, shared, consumer);
}

/// a.weights: what `pack` wrote.
template <int OC_TILE, int PRODUCTS, int PROMOTE, int TAPS, int HALVES, int STAGES, int TURNS, int WIDE_STORES,
          int RESIDENT, int STRIP, int BLOCKS, int SPLIT, int MIN_BLOCKS, int AHEAD, int STREAMING, int TAP_STEP,
          int SLOTS, int STRIDE, class Element>
__global__ void __launch_bounds__(kThreads, MIN_BLOCKS) kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<OC_TILE, PRODUCTS, PROMOTE, TAPS, HALVES, STAGES, TURNS, WIDE_STORES, RESIDENT, STRIP, BLOCKS,
                     SPLIT, MIN_BLOCKS, AHEAD, STREAMING, TAP_STEP, SLOTS, STRIDE, Element>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int consumer = __shfl_sync(0xFFFFFFFFu, thread / 128, 0);  // known to be a warp's
  const Schedule schedule = schedule_of(I::tunables(), a.geometry, I::kBytes, gridDim.x);
  const int steps = static_cast<int>(extent_of(I::tunables(), a.geometry).steps);

  if (thread == 0) {
    for (int slot = 0; slot < kConsumers * STAGES; ++slot) {
      barrier_init(full_barrier(shared + I::kShared.barriers, slot), 128);
      barrier_init(empty_barrier(shared + I::kShared.barriers, slot), 4);
    }
    for (int slot = 0; slot < (RESIDENT != 0 ? 1 : SLOTS); ++slot) {
      barrier_init(full_barrier(shared + I::kShared.weight_barriers, slot), 1);
      barrier_init(empty_barrier(shared + I::kShared.weight_barriers, slot), kConsumers * 4);
    }
    barrier_init_fence();
    save_schedule<I>(shared, schedule, a.geometry);
    if (SPLIT > 1 && blockIdx.x == 0) leave_schedule<I>(a, shared);
  }
  for (int i = thread; i < kConsumers * kFlagTiles; i += kThreads) store_shared_4(shared + I::kShared.flags + i * 4, 0);
  __syncthreads();
  if (thread == 0) {
    if constexpr (I::kResident) {
      const int64 at = static_cast<int64>(blockIdx.x % schedule.panels) * steps * I::kStepBytes;
      ask_weights(shared, static_cast<const unsigned char*>(a.weights) + at, steps * I::kStepBytes,
                  shared + I::kShared.weight_barriers);
    } else {
      begin_stream<I>(a, shared);
    }
  }
  __syncwarp();
  consume<I>(a, shared, consumer);
}

/// Of a split: what the other kernel's blocks left, added up.
template <int OC_TILE, int PRODUCTS, int PROMOTE, int TAPS, int HALVES, int STAGES, int TURNS, int WIDE_STORES,
          int RESIDENT, int STRIP, int BLOCKS, int SPLIT, int MIN_BLOCKS, int AHEAD, int STREAMING, int TAP_STEP,
          int SLOTS, int STRIDE, class Element>
__global__ void __launch_bounds__(kPositions) finish(const CT1D_GRID_CONSTANT RunArguments a) {
  using I = Instance<OC_TILE, PRODUCTS, PROMOTE, TAPS, HALVES, STAGES, TURNS, WIDE_STORES, RESIDENT, STRIP, BLOCKS,
                     SPLIT, MIN_BLOCKS, AHEAD, STREAMING, TAP_STEP, SLOTS, STRIDE, Element>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const uint32 shared = shared_address(shared_memory) - I::kShared.schedule;  // what lies before is not there
  take_schedule<I>(a, shared);
  finish_tile<I>(a, shared);
}

template <int OC_TILE, int PRODUCTS, int PROMOTE, int TAPS, int HALVES, int STAGES, int TURNS, int WIDE_STORES,
          int RESIDENT, int STRIP, int BLOCKS, int SPLIT, int MIN_BLOCKS, int AHEAD, int STREAMING, int TAP_STEP,
          int SLOTS, int STRIDE, class Element>
__global__ void __launch_bounds__(kPackThreads) pack(const CT1D_GRID_CONSTANT PrepareArguments a) {
  pack_column<Instance<OC_TILE, PRODUCTS, PROMOTE, TAPS, HALVES, STAGES, TURNS, WIDE_STORES, RESIDENT, STRIP, BLOCKS,
                       SPLIT, MIN_BLOCKS, AHEAD, STREAMING, TAP_STEP, SLOTS, STRIDE, Element>>(a);
}

}  // namespace ct1d::wgmma
