// Clusters under Host execution: right kernels give their results with every seed, and what is taken out is caught.
#include "tests/host/cluster_kernel.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kSeeds = 8;

/// "right", "wrong result", or the failure, of a run of two clusters.
std::string ending(const std::string& body, std::uint64_t seed) {
  const auto x = ramp(kTiles * kTileFloats);
  LoadedKernel run(kernel_source(body, kClusterIncludes), seed);
  const auto y = run(cluster_shape(4), x, 4 * 32);
  if (!y) return y.failure().reason;
  return *y == expected_of_clusters(x, 4) ? "right" : "wrong result";
}

template <class Matcher>
void expect_endings(const std::string& body, const Matcher& matcher) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) EXPECT_THAT(ending(body, seed), matcher) << "seed " << seed;
}

const std::string kMeet = "  cluster_arrive();\n  cluster_wait();\n";

TEST(HostCluster, ARightKernelGivesItsResultWithEverySeed) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) ASSERT_EQ(ending(kShared, seed), "right") << "seed " << seed;
}

TEST(HostCluster, AMissingBarrierWaitOrArrivalIsCaught) {
  expect_endings(replaced(kShared, kMeet, "  __syncthreads();\n"), HasSubstr("no mbarrier was initialised at"));
  expect_endings(replaced(kShared, "barrier_wait(full + 8 * slot, n / 2 % 2);", ""), Not("right"));
  expect_endings(replaced(kShared, "if (n >= 2) barrier_wait(empty + 8 * slot, (n / 2 - 1) % 2);", ""), Not("right"));
  expect_endings(replaced(kShared, "if (t < 2) barrier_arrive_of_block(", "if (t < 1) barrier_arrive_of_block("),
                 AllOf(HasSubstr("deadlock"), HasSubstr("; of the cluster's block 1"),
                       HasSubstr("1 of 1 arrivals missing, 128 bytes more than expected")));
  // Of its own block alone: the other's values are written over.
  expect_endings(replaced(replaced(kShared, "barrier_init(empty + 8 * i, 2);", "barrier_init(empty + 8 * i, 1);"),
                          "if (t < 2) barrier_arrive_of_block(empty + 8 * slot, t);",
                          "if (t == 0) barrier_arrive(empty + 8 * slot);"),
                 Not("right"));
}

TEST(HostCluster, WhatReachesABlockThatEndedIsReported) {
  const std::string body = replaced(kShared, kMeet, "", 1);
  int reported = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string end = ending(body, seed);
    EXPECT_THAT(end, AnyOf("right", HasSubstr("of the cluster, which has ended"))) << "seed " << seed;
    reported += end != "right" ? 1 : 0;
  }
  EXPECT_GT(reported, 5);
  expect_endings(
      R"(
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32 barrier = shared_address(shared);
  if (t == 0) { barrier_init(barrier, 1); barrier_init_fence(); }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) cluster_arrive();
  if (cluster_rank() == 0) cluster_wait();
  if (cluster_rank() == 0 && t == 0) bulk_load_to_blocks(barrier + 16, x, 16, barrier, 2);
)",
      HasSubstr("bulk_load_to_blocks to block 1 of the cluster, which has ended in thread (0, 0, 0) at unit:"));
}

TEST(HostCluster, ABlockThatEndsWhileAnotherLoadsIntoItIsReported) {
  int reported = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string end = ending(R"(
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32 barrier = shared_address(shared);
  if (t == 0) { barrier_init(barrier, 1); barrier_init_fence(); barrier_expect(barrier, 16); }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0 && t == 0) bulk_load_to_blocks(barrier + 16, x, 16, barrier, 3);
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) barrier_wait(barrier, 0);
)",
                                   seed);
    EXPECT_THAT(end, AnyOf("wrong result", HasSubstr("the block ends while 1 bulk loads are in flight, the first by "
                                                     "thread 0 at unit:")));
    reported += end != "wrong result" ? 1 : 0;
  }
  EXPECT_GT(reported, 0);
}

TEST(HostCluster, BlocksThatDoNotExistAreReported) {
  expect_endings(replaced(kShared, "full + 8 * slot, 3);", "full + 8 * slot, 5);"),
                 HasSubstr("bulk_load_to_blocks to block 2 of a cluster of 2 in thread (32, 0, 0) at unit:"));
  expect_endings(replaced(kShared, "full + 8 * slot, 3);", "full + 8 * slot, 0);"),
                 HasSubstr("bulk_load_to_blocks with no block"));
  expect_endings(replaced(kShared, "barrier_arrive_of_block(empty + 8 * slot, t);",
                          "barrier_arrive_of_block(empty + 8 * slot, t + 1);"),
                 HasSubstr("an arrival in block 2 of a cluster of 2"));
}

TEST(HostCluster, ArrivalsAndWaitsTakeTurns) {
  expect_endings(replaced(kShared, "  cluster_arrive();\n", "  cluster_arrive();\n  if (t == 3) cluster_arrive();\n"),
                 HasSubstr("a second cluster_arrive() before a cluster_wait() in thread (3, 0, 0)"));
  expect_endings(replaced(kShared, "  cluster_arrive();\n", ""),
                 HasSubstr("a cluster_wait() without a cluster_arrive() before it"));
  expect_endings(replaced(kShared, "  cluster_arrive();\n", "  if (t != 9 || rank == 1) cluster_arrive();\n"),
                 AnyOf(HasSubstr("a cluster_wait() without"), HasSubstr("deadlock")));
  // Who exits is not waited for.
  expect_endings(replaced(kShared, kMeet, "  if (t > 32) return;\n" + kMeet), "right");
}

TEST(HostCluster, ALaunchWithoutClustersHasClustersOfOne) {
  LoadedKernel run(kernel_source(R"(
  __shared__ float tile[64];
  tile[t] = x[t];
  cluster_arrive();
  cluster_wait();
  y[blockIdx.x * 64 + t] = tile[63 - t] + static_cast<float>(cluster_rank());
)",
                                 kClusterIncludes));
  const auto x = ramp(64);
  const auto y = run(shape_of(3, 64), x, 192);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t i = 0; i < 192; ++i) ASSERT_EQ((*y)[i], x[63 - i % 64]);
}

TEST(HostClusterUnderSanitizer, RightAndFailingKernelsRunWithoutAReport) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_THAT(end.output, HasSubstr("1 test"));
    return;
  }
  const auto x = ramp(kTiles * kTileFloats);
  LoadedKernel run({kernel_source(kShared, kClusterIncludes), {"kernel"}, {}}, {1, 2}, true);
  LoadedKernel failing(
      {kernel_source(replaced(kShared, "if (t < 2) barrier", "if (t < 1) barrier"), kClusterIncludes), {"kernel"}, {}},
      {1, 2}, true);
  for (int i = 0; i < 3; ++i) {
    const auto y = run(cluster_shape(8), x, 8 * 32);
    ASSERT_TRUE(y) << y.failure().reason;
    EXPECT_EQ(*y, expected_of_clusters(x, 8));
    EXPECT_FALSE(failing(cluster_shape(8), x, 8 * 32));
  }
}

}  // namespace
}  // namespace tuner
