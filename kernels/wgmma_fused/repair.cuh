// wgmma_fused: which outputs are done again on wgmma_packed's exact path.
#pragma once

#include "kernels/wgmma_fused/instance.cuh"
#include "kernels/wgmma_packed/repair.cuh"

namespace ct1d::wgmma_fused {

/// The fours of places of a consumer's tile that are to be done again: those of x that its scale does not serve, or of
/// 16-bit outputs that are not finite; all, where weights of the panel are not served.
template <class I>
__device__ __forceinline__ uint64 flags_of(const RunArguments& a, uint32 shared, unsigned n, const Tile& tile,
                                           int consumer) {
  const Geometry& g = a.geometry;
  const Extent e = extent_of(I::tunables(), g);
  if (tile.panel >= e.panels || tile.places >= e.place_tiles) return 0;
  if constexpr (!I::kSmall) {
    if (wgmma_packed::any_unfit<I>(a, tile.panel)) return ~0ull;
  }
  const uint2 bits = load_shared_8(flags_place<I>(shared, n / I::kPasses, I::kPlaceTiles == 2 ? consumer : 0));
  return static_cast<uint64>(bits.y) << 32 | bits.x;
}

/// By a consumer's four warps after the block's last tile.
template <class I>
__device__ __forceinline__ void repair(const RunArguments& a, uint32 shared, int consumer) {
  numbered_barrier<128 * kConsumers>(1 + kConsumers);  // what was stored is overwritten; both may have set flags
  const auto tile_at = [&](unsigned n) { return own_tile<I>(shared, n, consumer); };
  wgmma_packed::repair_tiles<I>(a, shared, load_share<I>(shared).places * I::kPasses, tile_at,
                                [&](unsigned n) { return flags_of<I>(a, shared, n, tile_at(n), consumer); });
}

}  // namespace ct1d::wgmma_fused
