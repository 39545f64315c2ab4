// Hopper's asynchronous vocabulary under Host execution: a right kernel gives its result with every seed, and what is
// taken out of it is caught.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/host/hopper_kernel.h"
#include "tests/host/host_fixture.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// "right", "wrong result", or the failure, of one run.
std::string ending(const std::string& body, std::uint64_t seed) {
  static const Products problem = make_products();
  LoadedKernel run(kernel_source(body, kIncludes), seed);
  const auto y = run(shape_of(2, kThreads, kSharedBytes), problem.x, kOutputs);
  if (!y) return y.failure().reason;
  return std::memcmp(y->data(), problem.y.data(), kOutputs * 4) == 0 ? "right" : "wrong result";
}

/// "unit:LINE" of the first occurrence of `what`.
std::string place_of(const std::string& body, const std::string& what) {
  const std::string source = kernel_source(body, kIncludes);
  const auto at = source.begin() + static_cast<std::ptrdiff_t>(source.find(what));
  return "unit:" + std::to_string(1 + std::count(source.begin(), at, '\n'));
}

constexpr std::uint64_t kSeeds = 8;

/// How runs end, over the seeds; each must match.
template <class Matcher>
void expect_endings(const std::string& body, const Matcher& matcher) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) EXPECT_THAT(ending(body, seed), matcher) << "seed " << seed;
}

TEST(HostHopper, ARightKernelGivesItsResultWithEverySeed) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) ASSERT_EQ(ending(kProducts, seed), "right") << "seed " << seed;
}

TEST(HostHopper, AMissingProxyFenceIsReportedWithThreadAndPlace) {
  const std::string body = replaced(kProducts, "async_proxy_fence();", "");
  expect_endings(body,
                 AllOf(HasSubstr("was stored by thread "), HasSubstr("at " + place_of(body, "store_shared_float")),
                       HasSubstr("no async_proxy_fence() of that thread covers it; the bulk store of " +
                                 place_of(body, "bulk_store(") + " reads it")));
}

TEST(HostHopper, AFenceOfSomeThreadsOnlyIsReported) {
  const std::string body = replaced(kProducts, "async_proxy_fence();", "if (t % 128 != 77) async_proxy_fence();");
  expect_endings(body, HasSubstr("was stored by thread 77 of the block"));
}

TEST(HostHopper, PlainStoresThatNoFenceCoversAreReported) {
  const std::string plain =
      replaced(kProducts, "store_shared_float(staging + (", "*reinterpret_cast<float*>(shared + 2 * kStepBytes + (");
  const std::string body = replaced(plain, "* 4, d[i]);", "* 4) = d[i];");
  expect_endings(body, "right");
  expect_endings(replaced(body, "async_proxy_fence();", ""),
                 HasSubstr("was changed by ordinary stores that no async_proxy_fence() covers; the bulk store"));
}

TEST(HostHopper, AMissingBarrierOrWaitIsCaught) {
  expect_endings(replaced(kProducts, "named_barrier<1, 128>();", ""), Not("right"));
  expect_endings(replaced(kProducts, "matrix_wait<0>();", ""),
                 AnyOf(HasSubstr("in flight"), HasSubstr("without having waited")));
  expect_endings(replaced(kProducts, "matrix_wait<0>();", "matrix_wait<1>();"), Not("right"));
  expect_endings(replaced(kProducts, "matrix_commit();", ""), Not("right"));
  expect_endings(replaced(kProducts, "barrier_wait(full + 8 * slot, s / 2 % 2);", ""), Not("right"));
  expect_endings(replaced(kProducts, "if (s >= 2) barrier_wait(empty + 8 * slot, (s / 2 - 1) % 2);", ""), Not("right"));
  expect_endings(replaced(kProducts, "bulk_wait_read<0>();", ""),
                 AnyOf("right", HasSubstr("a thread exits while its")));
  EXPECT_THAT(ending(replaced(kProducts, "bulk_wait_read<0>();", ""), 1), HasSubstr("may still read shared memory"));
}

TEST(HostHopper, RegistersOfOperandsAndSumsAreWatched) {
  expect_endings(replaced(kProducts, "matrix_commit();", "fragment[s % 4] ^= 1; pin(fragment); matrix_commit();"),
                 HasSubstr("a was overwritten in flight"));
  expect_endings(replaced(kProducts, "matrix_commit();", "d[3] += 1; matrix_commit();"),
                 HasSubstr("d was written while"));
  expect_endings(replaced(kProducts, "matrix_commit();", "y[0] = d[2]; matrix_commit();"), "right");
  expect_endings(replaced(kProducts, "matrix_fence();", ""), HasSubstr("matrix product before any matrix_fence()"));
  expect_endings(replaced(kProducts, "matrix_fence();", "if (s == 0) matrix_fence();"),
                 HasSubstr("a of a matrix product was written after the thread's last matrix_fence()"));
  expect_endings(replaced(kProducts, "const uint64 b =", "d[0] += 1; const uint64 b ="),
                 HasSubstr("d of a matrix product was written after the thread's last matrix_fence()"));
}

TEST(HostHopper, WhatIsReadBeforeTheWaitIsPoison) {
  const std::string body = replaced(kProducts, "matrix_commit();", "const float early = d[5]; matrix_commit();");
  expect_endings(replaced(body, "pin(d);", "d[5] = early;"), "wrong result");
}

TEST(HostHopper, DivergingWarpgroupsAreReported) {
  expect_endings(replaced(kProducts, "if (s % 2 == 0) {", "if ((s + (t == 5)) % 2 == 0) {"),
                 HasSubstr("threads of a warpgroup issue different matrix products"));
  expect_endings(
      replaced(kProducts, "matrix_low_word(place + 2048, 256)", "matrix_low_word(place + 2048 + t / 64 * 16, 256)"),
      HasSubstr("threads of a warpgroup issue different matrix products"));
  const std::string body = replaced(kProducts, "matrix_fence();", "if (s == 3 && t == 9) break; matrix_fence();");
  expect_endings(body, AllOf(HasSubstr("deadlock"), HasSubstr("matrix_wait<0>() at " + place_of(body, "matrix_wait")),
                             HasSubstr("127 of 128 threads have issued the product of ")));
}

TEST(HostHopper, ADeadlockOnAnMbarrierSaysWhoWaitsWhere) {
  const std::string body =
      replaced(kProducts, "barrier_init(empty + 8 * i, 128);", "barrier_init(empty + 8 * i, 129);");
  expect_endings(
      body, AllOf(HasSubstr("deadlock"),
                  HasSubstr("thread (128, 0, 0) waits in barrier_wait() at " + place_of(body, "barrier_wait(empty")),
                  HasSubstr("phase 0: 1 of 129 arrivals missing, 0 bytes missing"),
                  HasSubstr("thread (0, 0, 0) and 127 others wait in barrier_wait() at " +
                            place_of(body, "barrier_wait(full"))));
  const std::string bytes = replaced(kProducts, "barrier_expect(full + 8 * slot, kStepBytes);",
                                     "barrier_expect(full + 8 * slot, kStepBytes + 16);");
  expect_endings(bytes, HasSubstr("0 of 1 arrivals missing, 16 bytes missing"));
  const std::string spinning = replaced(kProducts, "barrier_wait(full + 8 * slot, s / 2 % 2);",
                                        "while (!barrier_try(full + 8 * slot, s / 2 % 2)) {}");
  expect_endings(spinning, "right");
  expect_endings(replaced(spinning, "barrier_init(empty + 8 * i, 128);", "barrier_init(empty + 8 * i, 129);"),
                 AllOf(HasSubstr("deadlock"), HasSubstr("barrier_try() at ")));
}

TEST(HostHopper, MisuseOfMbarriersIsReported) {
  expect_endings(replaced(kProducts, "barrier_expect(full + 8 * slot, kStepBytes);",
                          "barrier_expect(full + 8 * slot, kStepBytes); barrier_arrive(full + 8 * slot);"),
                 HasSubstr("an arrival too many on the mbarrier"));
  expect_endings(replaced(kProducts, "barrier_init_fence();", ""), HasSubstr("made no barrier_init_fence()"));
  expect_endings(replaced(kProducts, "barrier_init(full + 8 * i, 1);", ""),
                 HasSubstr("no mbarrier was initialised at"));
  expect_endings(replaced(kProducts, "registers_up<240>();",
                          "if (t == 0) *reinterpret_cast<int*>(shared + 2 * kStepBytes + 4096) = 0;"),
                 HasSubstr("was overwritten"));
  expect_endings(
      replaced(
          kProducts, "named_barrier<1, 128>();",
          "named_barrier<1, 128>(); if (t == 0) { barrier_arrive(full); barrier_arrive(full); barrier_arrive(full); }"),
      "right");  // three phases that nobody waits for
  expect_endings(
      R"(
  __shared__ uint64 barrier;
  if (t == 0) { barrier_init(shared_address(&barrier), 1); barrier_init_fence(); }
  __syncthreads();
  if (t == 1) barrier_wait(shared_address(&barrier), 0);
  if (t == 0) { named_barrier<2, 32>(); barrier_arrive(shared_address(&barrier)); barrier_arrive(shared_address(&barrier)); }
  else if (t < 32 && t != 1) named_barrier<2, 32>();
  else if (t == 32) named_barrier_arrive<2, 32>();
)",
      AnyOf(HasSubstr("completes while thread 1 of the block still waits for phase 0"), HasSubstr("deadlock")));
}

TEST(HostHopper, CopiesOutOfBoundsOrAlignmentAreReported) {
  expect_endings(replaced(kProducts, "bulk_load(ring + slot * kStepBytes, source, 2048,",
                          "bulk_load(ring + slot * kStepBytes + 8, source, 2048,"),
                 HasSubstr("not all multiples of 16"));
  expect_endings(replaced(kProducts, "bulk_load(ring + slot * kStepBytes, source, 2048,",
                          "bulk_load(ring + slot * kStepBytes, source + 4, 2048,"),
                 HasSubstr("not all multiples of 16"));
  expect_endings(
      replaced(kProducts, "bulk_load(ring + slot * kStepBytes, source, 2048,", "bulk_load(ring + 9216, source, 2048,"),
      HasSubstr("outside the block's shared memory"));
  expect_endings(replaced(kProducts, "bulk_store(y, staging, 4096);", "bulk_store(y, staging, 4100);"),
                 HasSubstr("not all multiples of 16"));
  expect_endings(replaced(kProducts, "matrix_low_word(place, 1024)", "matrix_low_word(place, 16384)"),
                 HasSubstr("outside the block's shared memory"));
  expect_endings(replaced(kProducts, "matrix_low_word(place + 2048, 256), 128)",
                          "matrix_low_word(place + 2048, 256), 128) | 1ull << 62"),
                 HasSubstr("with swizzle 1"));
  expect_endings(replaced(kProducts, "matrix_low_word(place + 2048, 256), 128)",
                          "matrix_low_word(place + 2048, 256), 128) | 1ull << 49"),
                 HasSubstr("sets bits that mean nothing"));
}

TEST(HostHopper, ABlockThatEndsWithLoadsInFlightIsReported) {
  int reported = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string end = ending(R"(
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32 barrier = shared_address(shared);
  if (t != 0) return;
  barrier_init(barrier, 1);
  barrier_init_fence();
  barrier_expect(barrier, 32);
  bulk_load(barrier + 16, x, 32, barrier);
)",
                                   seed);
    EXPECT_THAT(end, AnyOf("wrong result",
                           HasSubstr("the block ends while 1 bulk loads are in flight, the first by thread 0")));
    reported += end != "wrong result" ? 1 : 0;
  }
  EXPECT_GT(reported, 0);
}

/// Doubles 8 tiles of 64 values; warps 0 and 1 copy them, 2 and 3 multiply.
const char* const kCopies = R"(
  extern __shared__ __align__(1024) float tiles[];
  const uint32 full = shared_address(tiles + 128), empty = full + 16;
  if (t < 2) {
    barrier_init(full + 8 * t, 64);
    barrier_init(empty + 8 * t, 64);
  }
  __syncthreads();
  for (int n = 0; n < 8; ++n) {
    const uint32 slot = n % 2;
    if (t < 64) {
      if (n >= 2) barrier_wait(empty + 8 * slot, (n / 2 - 1) % 2);
      copy_async<4>(tiles + slot * 64 + t, x + n * 64 + t, true);
      barrier_arrive_after_copies(full + 8 * slot);
    } else {
      barrier_wait(full + 8 * slot, n / 2 % 2);
      y[n * 64 + t - 64] = 2 * tiles[slot * 64 + 127 - t];
      barrier_arrive(empty + 8 * slot);
    }
  }
)";

/// Seeds out of 1..10 with the right result.
int right_copies(const std::string& body) {
  const auto x = ramp(512);
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    LoadedKernel run(kernel_source(body, kIncludes), seed);
    const auto y = run(shape_of(1, 128, 1024), x, 512);
    bool same = static_cast<bool>(y);
    for (std::size_t i = 0; same && i < 512; ++i) same = (*y)[i] == 2 * x[i / 64 * 64 + 63 - i % 64];
    right += same ? 1 : 0;
  }
  return right;
}

TEST(HostHopper, CopiesThatEndInAnArrivalAreWaitedFor) {
  EXPECT_EQ(right_copies(kCopies), 10);
  EXPECT_EQ(right_copies(replaced(kCopies, "barrier_wait(full + 8 * slot, n / 2 % 2);", "")), 0);
  EXPECT_EQ(right_copies(replaced(kCopies, "if (n >= 2) barrier_wait(empty + 8 * slot, (n / 2 - 1) % 2);", "")), 0);
  EXPECT_EQ(right_copies(replaced(kCopies, "barrier_arrive_after_copies(full", "barrier_arrive(full")), 0);
}

TEST(HostHopper, RegistersBeyondTheBlocksAreReported) {
  LoadedKernel run(kernel_source("  if (t < 256) registers_up<240>(); else registers_down<40>();\n", kIncludes));
  const auto y = run(shape_of(1, 384), {}, 1);
  ASSERT_FALSE(y);
  EXPECT_THAT(y.failure().reason, HasSubstr("ask for 66560 registers in all and start with at most 64512"));
  LoadedKernel fitting(kernel_source("  if (t < 256) registers_up<240>(); else registers_down<24>();\n", kIncludes));
  EXPECT_TRUE(fitting(shape_of(1, 384), {}, 1));
}

TEST(HostHopper, ArrivalsAtNamedBarriersLetOthersGoOn) {
  LoadedKernel run(kernel_source(R"(
  __shared__ float value;
  for (int i = 0; i < 3; ++i) {
    if (t < 32) {
      if (t == 7) value = x[i];
      named_barrier_arrive<3, 64>();
      named_barrier<4, 64>();
    } else {
      named_barrier<3, 64>();
      y[i * 32 + t - 32] = value;
      named_barrier_arrive<4, 64>();
    }
  }
)",
                                 kIncludes));
  const auto y = run(shape_of(1, 64), {3, 5, 8}, 96);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ((*y)[i], i < 32 ? 3 : i < 64 ? 5 : 8);
}

TEST(HostHopperUnderSanitizer, RightAndFailingKernelsRunWithoutAReport) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_THAT(end.output, HasSubstr("1 test"));
    return;
  }
  const Products problem = make_products();
  LoadedKernel run({kernel_source(kProducts, kIncludes), {"kernel"}, {}}, {1, 2}, true);
  for (int i = 0; i < 3; ++i) {
    const auto y = run(shape_of(3, kThreads, kSharedBytes), problem.x, kOutputs);
    ASSERT_TRUE(y) << y.failure().reason;
    EXPECT_EQ(std::memcmp(y->data(), problem.y.data(), kOutputs * 4), 0);
  }
  const std::string failing = replaced(kProducts, "matrix_commit();", "fragment[0] ^= 1; matrix_commit();");
  LoadedKernel failed({kernel_source(failing, kIncludes), {"kernel"}, {}}, {1, 2}, true);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(failed(shape_of(3, kThreads, kSharedBytes), problem.x, kOutputs));
}

/// The sanitizer's report on kProducts with `what` replaced.
std::string sanitizer_report(const std::string& what, const std::string& by) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_NE(end.status, 0);
    return end.output;
  }
  LoadedKernel run({kernel_source(replaced(kProducts, what, by), kIncludes), {"kernel"}, {}}, {1, 2}, true);
  const auto y = run(shape_of(1, kThreads, kSharedBytes), make_products().x, kOutputs);
  ADD_FAILURE() << "no report" << (y ? "" : ": " + y.failure().reason);
  std::exit(0);
}

TEST(HostHopperUnderSanitizer, ABulkLoadFromPastXIsLocated) {
  const std::string report = sanitizer_report("source + 2048, 512", "source + 2048 + (s == 5) * 16, 512");
  EXPECT_THAT(report, AllOf(HasSubstr("READ of size"), HasSubstr(place_of(kProducts, "kStepBytes + 2048, source")),
                            HasSubstr("thread (128, 0, 0)")));
}

TEST(HostHopperUnderSanitizer, ABulkStorePastYIsLocated) {
  const std::string report = sanitizer_report("bulk_store(y, staging", "bulk_store(y + 4, staging");
  EXPECT_THAT(report, AllOf(HasSubstr("READ of size"), HasSubstr("bulk_store"), HasSubstr("thread (0, 0, 0)")));
}

}  // namespace
}  // namespace tuner
