// A kernel of a cluster of two blocks, what it is given and what it must compute: for Host execution and for a GPU.
#pragma once

#include <vector>

#include "tests/host/host_fixture.h"

namespace tuner::host_test {

inline const char* const kClusterIncludes =
    "#include \"kernels/common/cluster.cuh\"\n#include \"kernels/common/warpgroup.cuh\"\nusing namespace ct1d;\n";

inline constexpr int kTiles = 10, kTileFloats = 64;

/// Tile n of x is 64 floats; each block of the cluster loads half of it into a ring of two slots of both, whose thread
/// i adds, in block 1 after turning the tile round. y is 32 sums for each block, of every second value. Thread 32
/// loads, warp 0 adds.
inline const char* const kShared = R"(
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32 ring = shared_address(shared), full = ring + 512, empty = full + 16;
  const int rank = cluster_rank();
  if (t == 0) {
    for (uint32 i = 0; i < 2; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 2);
    }
    barrier_init_fence();
  }
  cluster_arrive();
  cluster_wait();
  if (t == 32) {
    for (uint32 n = 0; n < 10; ++n) {
      const uint32 slot = n % 2;
      if (n >= 2) barrier_wait(empty + 8 * slot, (n / 2 - 1) % 2);
      barrier_expect(full + 8 * slot, 256);
      bulk_load_to_blocks(ring + slot * 256 + rank * 128, x + n * 64 + rank * 32, 128, full + 8 * slot, 3);
    }
  } else if (t < 32) {
    float sum = 0;
    for (uint32 n = 0; n < 10; ++n) {
      const uint32 slot = n % 2;
      barrier_wait(full + 8 * slot, n / 2 % 2);
      const int place = 2 * t;
      sum += load_shared_float(ring + slot * 256 + (rank == 0 ? place : 63 - place) * 4);
      __syncwarp();
      if (t < 2) barrier_arrive_of_block(empty + 8 * slot, t);
    }
    y[blockIdx.x * 32 + t] = sum;
  }
  __syncwarp();
  cluster_arrive();
  cluster_wait();
)";
inline constexpr unsigned kClusterThreads = 64;
inline constexpr unsigned kClusterSharedBytes = 512 + 32;

inline ct1d::LaunchShape cluster_shape(unsigned blocks) {
  return {blocks, 1, 1, kClusterThreads, 1, 1, kClusterSharedBytes, 2};
}

inline std::vector<float> expected_of_clusters(const std::vector<float>& x, unsigned blocks) {
  std::vector<float> y(blocks * 32, 0.0f);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t place = i % 32 * 2;
    for (std::size_t n = 0; n < kTiles; ++n)
      y[i] += x[n * kTileFloats + (i / 32 % 2 == 0 ? place : kTileFloats - 1 - place)];
  }
  return y;
}

}  // namespace tuner::host_test
