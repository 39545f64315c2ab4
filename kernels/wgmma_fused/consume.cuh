// wgmma_fused: what a warpgroup does that multiplies: the products of a step after the other, their promotion, stores.
#pragma once

#include "kernels/wgmma_fused/store.cuh"
#include "kernels/wgmma_packed/products.cuh"

namespace ct1d::wgmma_fused {

/// A slot of a ring of `Slots` and the parity of its phase: counted through two rounds of the ring.
template <unsigned Slots>
struct Place {
  unsigned at = 0;
  __device__ __forceinline__ unsigned slot() const { return at < Slots ? at : at - Slots; }
  __device__ __forceinline__ unsigned parity() const { return at < Slots ? 0 : 1; }
  /// `more` slots further, a constant.
  __device__ __forceinline__ Place after(unsigned more) const {
    const unsigned next = at + more % (2 * Slots);
    return {next < 2 * Slots ? next : next - 2 * Slots};
  }
  __device__ __forceinline__ Place before(unsigned fewer) const { return after(2 * Slots - fewer % (2 * Slots)); }
};

/// What a consumer's loops ask for, by the steps from the group's first.
template <class I>
struct Consumer {
  const RunArguments& a;
  uint32 shared;
  int number;
  using Images = Place<I::kStages>;
  using Weights = Place<I::kWeightSlots>;
  Images image;       // of the step
  Weights weight;     // the same
  bool first = true;  // of the groups of places: resident weights are on their way
  bool last = false;  // of the groups of rows: images are not needed any more

  __device__ __forceinline__ Consumer(const RunArguments& arguments, uint32 shared_memory, int consumer)
      : a(arguments), shared(shared_memory), number(consumer) {
    if constexpr (I::kPlaceTiles == 2) image.at = static_cast<unsigned>(consumer);
  }

  /// Of the step `more` from here.
  __device__ __forceinline__ Images image_at(unsigned more) const { return image.after(more * I::kPlaceTiles); }
  __device__ __forceinline__ Weights weight_at(unsigned more) const { return weight.after(more); }
  __device__ __forceinline__ void advance(unsigned steps) {
    image = image_at(steps);
    weight = weight_at(steps);
  }
  /// To the images of the tile of places once more.
  __device__ __forceinline__ void back() { image = image.before(I::kSteps * I::kPlaceTiles); }
  __device__ __forceinline__ void wait_full(unsigned more) const {
    const Weights w = weight_at(more);
    if (!I::kResident || first) {
      barrier_wait(full_barrier(shared + I::kShared.weight_barriers, static_cast<int>(w.slot())),
                   I::kResident ? 0 : w.parity());
    }
    const Images i = image_at(more);
    barrier_wait(full_barrier(shared + I::kShared.image_barriers, static_cast<int>(i.slot())), i.parity());
  }
  __device__ __forceinline__ void release(unsigned more) const {
    if (I::kResident && !last) return;
    if (!one_lane()) return;
    if constexpr (!I::kResident) {
      barrier_arrive(empty_barrier(shared + I::kShared.weight_barriers, static_cast<int>(weight_at(more).slot())));
    }
    if (last) {
      barrier_arrive(empty_barrier(shared + I::kShared.image_barriers, static_cast<int>(image_at(more).slot())));
    }
  }
  /// Words are found anew each time: else the descriptors of all stages would be kept in registers.
  template <bool Cross, int Half_ = 0>
  __device__ __forceinline__ void queue(float (&d)[I::kSums], unsigned more, bool fresh) const {
    const uint32 own = fresh_copy(shared);
    const uint32 weights = matrix_low_word(own + (I::kRowTiles == 2 ? number * I::kPanelBytes : 0), 1024);
    const uint32 x = matrix_low_word(own + I::kShared.images, I::kSlabBytes);
    wgmma_packed::multiply<I, Cross, Half_>(d, weights + weight_at(more).slot() * (I::kShared.weight_bytes >> 4),
                                            x + image_at(more).slot() * (I::kShared.image_bytes >> 4),
                                            I::step(a.geometry), fresh);
  }
  /// 1 / scale of the tile's x; before an image is released.
  __device__ __forceinline__ float inverse() const {
    if constexpr (I::kSmall) return 1.0f;
    return load_shared_float(shared + I::kShared.inverses + image.slot() * 4);
  }
};

template <class I>
__device__ __forceinline__ void consume(const RunArguments& a, uint32 shared, int consumer) {
  Consumer<I> c(a, shared, consumer);
  const auto tiles = [&] { return load_share<I>(shared).places * I::kPasses; };
  float sum[I::kSums];
  float d[I::kSums];
  float cross[I::kSplits ? I::kSums : 1];
#pragma unroll
  for (int i = 0; i < I::kSums; ++i) sum[i] = 0.0f;
  const auto store = [&](unsigned n) {
    store_sums<I>(sum, a, shared, own_tile<I>(shared, n, consumer), consumer,
                  flags_place<I>(shared, n / I::kPasses, I::kPlaceTiles == 2 ? consumer : 0));
  };
#pragma unroll 1
  for (unsigned n = 0; n < tiles(); ++n) {
    const unsigned pass = n % I::kPasses;
    c.first = n < I::kPasses;
    c.last = pass + 1 == I::kPasses;
    if (pass > 0) c.back();
    const auto multiply = [&](const auto& behind) {
      const auto inverse = [&] { return c.inverse(); };
      if constexpr (I::kSplits) {
        wgmma_packed::multiply_group_split<I>(c, sum, d, cross, 0, inverse, behind);
      } else {
        wgmma_packed::multiply_group<I>(c, sum, d, 0, inverse, behind);
      }
      c.advance(I::kGroup);
    };
    multiply([&] {
      if (n > 0) store(n - 1);
    });
#pragma unroll 1
    for (int step = I::kGroup; step < I::kSteps; step += I::kGroup) multiply([] {});
  }
  if (tiles() > 0) store(tiles() - 1);
  bulk_wait<0>();  // before what was stored is overwritten, or the block ends
}

}  // namespace ct1d::wgmma_fused
