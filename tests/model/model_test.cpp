#include "tuner/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#if __has_include(<cuda_occupancy.h>) && __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
// NVIDIA's own calculator, as the reference.
#include <cuda_occupancy.h>
#define HAS_REFERENCE 1
#endif

namespace tuner {
namespace {

DeviceFacts a100() {
  DeviceFacts facts;
  facts.arch = "sm_80";
  facts.compute_major = 8;
  facts.sm_count = 108;
  facts.shared_per_sm = 164 * 1024;
  facts.shared_per_block_optin = 163 * 1024;
  return facts;
}

DeviceFacts h200() {
  DeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.arch = "sm_90a";
  facts.compute_major = 9;
  facts.sm_count = 132;
  facts.shared_per_sm = 228 * 1024;
  facts.shared_per_block_optin = 227 * 1024;
  facts.sm_clock_mhz = 1980;
  facts.l2_bytes = 50'000'000;
  facts.memory_gbps = 4800;
  facts.fp32_tflops = 66.9;
  facts.tf32_tflops = 494.7;
  facts.fp16_tflops = 989.4;
  return facts;
}

DeviceFacts ada() {
  DeviceFacts facts;
  facts.arch = "sm_89";
  facts.compute_major = 8;
  facts.compute_minor = 9;
  facts.max_threads_per_sm = 1536;
  facts.max_blocks_per_sm = 24;
  facts.shared_per_sm = 100 * 1024;
  facts.shared_per_block_optin = 99 * 1024;
  return facts;
}

ct1d::LaunchShape block_of(unsigned threads, unsigned shared_bytes = 0) {
  return {1, 1, 1, threads, 1, 1, shared_bytes, 1};
}

struct Known {
  DeviceFacts device;
  int registers;
  int static_bytes;
  unsigned threads;
  unsigned dynamic_bytes;
  int blocks;
  double fraction;
  const char* limit;
};

TEST(Occupancy, FollowsNvidiasRules) {
  const Known known[] = {
      {h200(), 32, 0, 256, 0, 8, 1.0, "threads"},
      {h200(), 33, 0, 256, 0, 6, 0.75, "registers"},  // 40 registers after rounding: 12 warps a part, 48 an SM
      {h200(), 128, 0, 256, 0, 2, 0.25, "registers"},
      {h200(), 129, 0, 256, 0, 1, 0.125, "registers"},
      {h200(), 168, 0, 384, 0, 1, 0.1875, "registers"},
      {h200(), 255, 0, 256, 0, 1, 0.125, "registers"},
      {h200(), 32, 0, 32, 0, 32, 0.5, "blocks"},
      {h200(), 128, 0, 256, 37 * 1024, 2, 0.25, "registers"},
      {h200(), 64, 0, 128, 112 * 1024, 2, 0.125, "shared memory"},  // 113 KB each with the reserved 1 KB
      {h200(), 64, 0, 128, 114 * 1024, 1, 0.0625, "shared memory"},
      {h200(), 64, 1024, 128, 112 * 1024, 2, 0.125, "shared memory"},
      {h200(), 64, 0, 128, 227 * 1024, 1, 0.0625, "shared memory"},
      {h200(), 64, 0, 128, 227 * 1024 + 4, 0, 0, "shared memory"},
      {h200(), 65, 0, 1024, 0, 0, 0, "registers"},
      {a100(), 96, 0, 192, 0, 3, 18.0 / 64, "registers"},  // 5 warps a part, 20 an SM
      {a100(), 40, 0, 256, 20 * 1024, 6, 0.75, "registers"},
      {a100(), 32, 0, 256, 53 * 1024, 3, 0.375, "shared memory"},
      {a100(), 32, 0, 1024, 0, 2, 1.0, "threads"},
      {ada(), 40, 0, 256, 0, 6, 1.0, "threads"},
      {ada(), 32, 0, 512, 0, 3, 1.0, "threads"},
      {ada(), 32, 0, 32, 0, 24, 0.5, "blocks"},
  };
  for (const Known& k : known) {
    const Occupancy occupancy =
        occupancy_of(k.device, k.registers, k.static_bytes, block_of(k.threads, k.dynamic_bytes));
    const auto what = testing::Message() << k.device.arch << " " << k.registers << " registers, " << k.threads
                                         << " threads, " << k.static_bytes << " + " << k.dynamic_bytes << " bytes";
    EXPECT_EQ(occupancy.blocks_per_sm, k.blocks) << what;
    EXPECT_DOUBLE_EQ(occupancy.fraction, k.fraction) << what;
    EXPECT_EQ(occupancy.limited_by, k.limit) << what;
  }
}

TEST(Occupancy, RefusesABlockOfTooManyThreadsOrRegisters) {
  EXPECT_EQ(occupancy_of(h200(), 32, 0, block_of(1056)).limited_by, "threads");
  EXPECT_EQ(occupancy_of(h200(), 32, 0, block_of(1056)).blocks_per_sm, 0);
  EXPECT_EQ(occupancy_of(h200(), 256, 0, block_of(32)).blocks_per_sm, 0);
}

#ifdef HAS_REFERENCE
int reference_blocks(const DeviceFacts& device, int registers, int threads, int shared_bytes) {
  cudaOccDeviceProp properties{};
  properties.computeMajor = device.compute_major;
  properties.computeMinor = device.compute_minor;
  properties.maxThreadsPerBlock = device.max_threads_per_block;
  properties.maxThreadsPerMultiprocessor = device.max_threads_per_sm;
  properties.regsPerBlock = properties.regsPerMultiprocessor = device.registers_per_sm;
  properties.warpSize = 32;
  properties.sharedMemPerBlock = 48 * 1024;
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(device.shared_per_sm);
  properties.numSms = 1;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(device.shared_per_block_optin);
  properties.reservedSharedMemPerBlock = static_cast<std::size_t>(device.shared_reserved_per_block);
  cudaOccFuncAttributes attributes{};
  attributes.maxThreadsPerBlock = 1024;
  attributes.numRegs = registers;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared_bytes);
  cudaOccDeviceState state{};
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result{};
  const auto status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, threads,
                                                              static_cast<std::size_t>(shared_bytes));
  return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

TEST(Occupancy, AgreesWithNvidiasCalculatorEverywhere) {
  for (const DeviceFacts& device : {a100(), h200(), ada()})
    for (int registers = 16; registers <= 255; registers += 7)
      for (int threads = 32; threads <= 1024; threads += 32)
        for (int shared = 0; shared <= device.shared_per_block_optin; shared += 9'876)
          ASSERT_EQ(occupancy_of(device, registers, 0,
                                 block_of(static_cast<unsigned>(threads), static_cast<unsigned>(shared)))
                        .blocks_per_sm,
                    reference_blocks(device, registers, threads, shared))
              << device.arch << " " << registers << " registers " << threads << " threads " << shared << " bytes";
}
#endif

TEST(LowerBound, IsTheBusiestOfPipesAndMemory) {
  const DeviceFacts device = h200();
  const Work ffma{412.3e9, 0, 0, 4.295e9};
  EXPECT_NEAR(lower_bound_ms(ffma, device, true), 6.163, 0.001);
  EXPECT_NEAR(lower_bound_ms({0, 412.3e9, 0, 4.295e9}, device, true), 0.8844, 0.0001) << "memory bound, less L2";
  EXPECT_NEAR(lower_bound_ms({0, 412.3e9, 0, 4.295e9}, device, false), 0.8334, 0.0001);
  EXPECT_NEAR(lower_bound_ms({0, 0, 3 * 412.3e9, 4.295e9}, device, true), 1.2502, 0.0001);
  EXPECT_NEAR(lower_bound_ms({0, 412.3e9, 412.3e9, 0}, device, true), 1.2502, 0.0001) << "one matrix unit serves both";
  EXPECT_EQ(lower_bound_ms({0, 0, 0, 4.8e6}, device, true), 0) << "may all stay in L2";
  EXPECT_NEAR(lower_bound_ms({412.3e9, 0, 0, 4.295e9, 412.3e9 / 32}, device, true), 49.3, 0.1)
      << "two reads a multiply";
}

TEST(LowerBound, LeavesOutWhatIsUnknown) {
  DeviceFacts device = h200();
  device.fp32_tflops = 0;
  device.memory_gbps = 0;
  EXPECT_EQ(lower_bound_ms({1e12, 0, 0, 1e9}, device, true), 0);
}

struct Candidate {
  VariantRecord record;
  Program program;
};

BuildContext seed_problem() {
  BuildContext context;
  context.problem = {64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};
  context.device = h200();
  return context;
}

/// A kernel whose threads keep `per_thread` outputs each.
Candidate candidate(int registers, unsigned threads, unsigned shared, double per_thread, int spill = 0) {
  Candidate c;
  c.record.registers = registers;
  c.record.spill_bytes = spill;
  c.record.shared_bytes = static_cast<int>(shared);
  const double blocks = static_cast<double>(seed_problem().problem.y_count()) / per_thread / threads;
  c.program.run = {{"k", {static_cast<unsigned>(std::ceil(blocks)), 1, 1, threads, 1, 1, shared, 1}}};
  c.program.work.fma_fp32 = seed_problem().problem.flop();
  c.program.work.bytes = seed_problem().problem.min_bytes(4);
  return c;
}

double key(const Candidate& c) { return shortlist_key(c.record, c.program, seed_problem()); }

TEST(Shortlist, PutsRegisterTilesBeforeTheSeedsKernel) {
  const Candidate tiled = candidate(128, 256, 37 * 1024, 64);
  const Candidate seeds = candidate(40, 256, 36 * 1024, 8);
  EXPECT_LT(key(tiled), key(seeds)) << "measured: 8.8 against 80 ms";
  EXPECT_GE(key(tiled), lower_bound_ms(tiled.program.work, h200(), true));
}

TEST(Shortlist, PutsSpillsIdleMachinesAndSmallOccupancyBehind) {
  const double good = key(candidate(128, 256, 37 * 1024, 64));
  EXPECT_GT(key(candidate(128, 256, 37 * 1024, 64, 128)), good);
  EXPECT_GT(key(candidate(128, 32, 220 * 1024, 64)), good) << "one warp an SM";
  EXPECT_GT(key(candidate(128, 256, 37 * 1024, 64 * 500.0)), good) << "too few blocks to fill the machine";
}

TEST(Shortlist, PutsWhatDoesNotFitLast) {
  EXPECT_TRUE(std::isinf(key(candidate(128, 256, 300 * 1024, 64))));
  EXPECT_TRUE(std::isinf(key(candidate(255, 512, 0, 64))));
}

TEST(Shortlist, HandlesAnEmptyBatch) { EXPECT_EQ(shortlist_key({}, {}, seed_problem()), 0); }

}  // namespace
}  // namespace tuner
