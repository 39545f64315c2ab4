// What is wrong in a kernel is caught: missing barriers and waits, deadlocks, accesses out of range, illegal launches.
#include "tests/host/host_fixture.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::HasSubstr;

std::string without(std::string text, const std::string& what, int occurrence = 0) {
  std::size_t at = text.find(what);
  while (occurrence-- > 0) at = text.find(what, at + 1);
  EXPECT_NE(at, std::string::npos);
  return text.erase(at, what.size());
}

/// Sums pairs of tiles through shared memory that is fetched asynchronously; right as it stands.
const char* const kTiles = R"(
  extern __shared__ float tile[];
  float sum = 0;
  for (int n = 0; n < 4; ++n) {
    ct1d::copy_async<4>(tile + t, x + n * 64 + t, true);
    ct1d::copy_commit();
    ct1d::copy_wait<0>();
    __syncthreads();
    sum += tile[63 - t];
    __syncthreads();
  }
  y[t] = sum;
)";

/// Seeds out of 1..10 for which the kernel gives the right sums.
int right_results(const std::string& body) {
  const auto x = ramp(256);
  std::vector<float> expected(64, 0.0f);
  for (std::size_t i = 0; i < 256; ++i) expected[63 - i % 64] += x[i];
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    LoadedKernel run(kernel_source(body), seed);
    const auto y = run(shape_of(1, 64, 256), x, 64);
    right += y && *y == expected ? 1 : 0;
  }
  return right;
}

TEST(HostFault, ARemovedBarrierOrWaitGivesAWrongResultForEverySeed) {
  EXPECT_EQ(right_results(kTiles), 10);
  EXPECT_EQ(right_results(without(kTiles, "__syncthreads();", 0)), 0);
  EXPECT_EQ(right_results(without(kTiles, "__syncthreads();", 1)), 0);
  EXPECT_EQ(right_results(without(kTiles, "ct1d::copy_wait<0>();")), 0);
  EXPECT_EQ(right_results(without(kTiles, "ct1d::copy_commit();")), 0);
}

TEST(HostFault, AWaitThatLeavesTooManyGroupsInFlightIsCaught) {
  std::string body = kTiles;
  body.replace(body.find("copy_wait<0>"), 12, "copy_wait<1>");
  EXPECT_EQ(right_results(body), 0);
}

std::string failure_of(const std::string& body, ct1d::LaunchShape shape) {
  LoadedKernel run(kernel_source(body));
  const auto y = run(shape, ramp(64), 64);
  if (y) return "no failure";
  EXPECT_EQ(y.failure().outcome, Outcome::crashed);
  return y.failure().reason;
}

TEST(HostFault, ADeadlockSaysWhoWaitsWhere) {
  const std::string reason = failure_of(R"(
  if (t < 40) __syncthreads(); else if (t < 60) __shfl_sync(0xffffffffu, t, 0);
)",
                                        shape_of(1, 64));
  EXPECT_THAT(reason, HasSubstr("kernel, block (0, 0, 0): deadlock"));
  EXPECT_THAT(reason, HasSubstr("thread (0, 0, 0) and 39 others wait in __syncthreads() at unit:9"));
  EXPECT_THAT(reason, HasSubstr("thread (40, 0, 0) and 19 others wait in a shuffle with mask 0xffffffff at unit:9"));
  EXPECT_THAT(reason, HasSubstr("4 threads have exited"));
}

TEST(HostFault, BarriersInDifferentBranchesAreReported) {
  const std::string reason =
      failure_of("  if (t < 32) {\n __syncthreads();\n } else {\n __syncthreads();\n }\n", shape_of(1, 64));
  EXPECT_THAT(reason, HasSubstr("wait at different barriers"));
  EXPECT_THAT(reason, HasSubstr("unit:9"));
  EXPECT_THAT(reason, HasSubstr("unit:11"));
}

TEST(HostFault, WarpOperationsWithWrongMasksAreReported) {
  EXPECT_THAT(failure_of("  __shfl_sync(1u, t, 0);\n", shape_of(1, 32)), HasSubstr("leaves the caller out"));
  EXPECT_THAT(
      failure_of("  if (t < 16) __syncwarp(); else __syncwarp(0xffff0000u);\n  __syncthreads();\n", shape_of(1, 32)),
      HasSubstr("deadlock"));
  EXPECT_THAT(failure_of("  if (t < 16) __syncwarp(); else __ballot_sync(~0u, 1);\n", shape_of(1, 32)),
              HasSubstr("deadlock"));
}

TEST(HostFault, ADeviceGoesOnAfterAFailedLaunch) {
  LoadedKernel run(kernel_source("  if (x[0] > 0 && t == 1) __syncwarp();\n  __syncthreads();\n  y[t] = x[t];\n"));
  EXPECT_TRUE(run(shape_of(8, 64), std::vector<float>(64, -1.0f), 64));
  EXPECT_FALSE(run(shape_of(8, 64), std::vector<float>(64, 1.0f), 64));
  const auto y = run(shape_of(8, 64), std::vector<float>(64, -1.0f), 64);
  ASSERT_TRUE(y);
  EXPECT_EQ(*y, std::vector<float>(64, -1.0f));
}

TEST(HostFault, CopiesToWrongPlacesAreReported) {
  EXPECT_THAT(failure_of("  __shared__ float s[64];\n ct1d::copy_async<8>(s + 1, x, true);\n", shape_of(1, 1)),
              HasSubstr("copy_async to an address that is not a multiple of its size"));
  EXPECT_THAT(failure_of("  __shared__ float s[64];\n ct1d::copy_async<16>(s, x + 1, true);\n", shape_of(1, 1)),
              HasSubstr("at unit:9"));
  EXPECT_THAT(failure_of("  ct1d::copy_async<4>(y, x, true);\n", shape_of(1, 1)),
              HasSubstr("outside the block's shared memory"));
}

TEST(HostFault, WritesPastSharedMemoryAndBuffersShowWithoutTheSanitizer) {
  if (AddressSanitizer::of_process()) GTEST_SKIP() << "the sanitizer reports these itself";
  EXPECT_THAT(failure_of("  extern __shared__ float s[];\n s[32 + t] = 0;\n", shape_of(1, 1, 128)),
              HasSubstr("4 bytes were written outside the block's dynamic shared memory"));
  EXPECT_THAT(failure_of("  __shared__ float s[32];\n s[32 + t] = 0;\n", shape_of(1, 2)),
              HasSubstr("8 bytes were written outside the block's static shared memory"));
  LoadedKernel run(kernel_source("  y[a.geometry.length_out + t] = 1;\n  y[-1] = 1;\n"));
  ASSERT_TRUE(run(shape_of(1, 2), {}, 3));
  EXPECT_EQ(run.violations, 12u);
}

TEST(HostFault, LaunchesThatCudaRefusesAreRefused) {
  LoadedKernel run(kernel_source("  __shared__ float s[1024];\n  s[t] = 0;\n"));
  const auto refused = [&](ct1d::LaunchShape shape) {
    const auto y = run(shape, {}, 1);
    return !y && y.failure().outcome == Outcome::launch_failed ? y.failure().reason : "not refused";
  };
  EXPECT_THAT(refused(shape_of(1, 1025)), HasSubstr("block of 1025 x 1 x 1 threads"));
  EXPECT_THAT(refused(shape_of(0, 32)), HasSubstr("grid of 0 x 1 x 1"));
  EXPECT_THAT(refused({1, 65536, 1, 32, 1, 1, 0, 1}), HasSubstr("grid"));
  EXPECT_THAT(refused({1, 1, 65536, 32, 1, 1, 0, 1}), HasSubstr("grid"));
  EXPECT_THAT(refused({2147483648u, 1, 1, 32, 1, 1, 0, 1}), HasSubstr("grid"));
  EXPECT_THAT(refused({1, 1, 1, 1, 1, 65, 0, 1}), HasSubstr("block"));
  EXPECT_THAT(refused(shape_of(1, 32, 227 * 1024 + 1)), HasSubstr("dynamic shared memory"));
  EXPECT_THAT(refused({3, 1, 1, 32, 1, 1, 0, 2}), HasSubstr("not a multiple of the cluster's 2"));
  EXPECT_THAT(refused({34, 1, 1, 32, 1, 1, 0, 17}), HasSubstr("clusters of 17 blocks"));
  const auto both = run(shape_of(1, 32, 226 * 1024), {}, 1);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.failure().reason, HasSubstr("exceed 232448 bytes"));
}

TEST(HostFault, AKernelThatTheUnitLacksIsNamed) {
  const auto unit = kernels(false).compile({kernel_source(""), {"kernel"}, {}});
  ASSERT_TRUE(unit) << unit.failure().log;
  const auto device = make_host_device({});
  auto module = device->load(*unit);
  ASSERT_TRUE(module) << module.failure().reason;
  const auto run = (*module)->launch({"other", shape_of(1, 1)}, ct1d::RunArguments{});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.failure().reason, HasSubstr("no kernel other"));
  const auto prepare = (*module)->launch({"kernel", shape_of(1, 1)}, ct1d::PrepareArguments{});
  ASSERT_FALSE(prepare);
  EXPECT_THAT(prepare.failure().reason, HasSubstr("bytes of arguments"));
}

TEST(HostFault, ASanitizedUnitIsRefusedWhereTheRuntimeIsMissing) {
  if (AddressSanitizer::of_process()) GTEST_SKIP() << "the runtime is here";
  const auto unit = kernels(true).compile({kernel_source(""), {"kernel"}, {}});
  ASSERT_TRUE(unit) << unit.failure().log;
  const auto module = make_host_device({})->load(*unit);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.failure().reason, HasSubstr("address sanitizer"));
}

/// The report of the sanitizer on a launch of one block of 32 threads with 128 bytes of dynamic shared memory over 32
/// floats each of x and y.
std::string sanitizer_report(const std::string& body) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_NE(end.status, 0);
    return end.output;
  }
  LoadedKernel run({kernel_source(body), {"kernel"}, {}}, {1, 2}, true);
  const auto y = run(shape_of(1, 32, 128), ramp(32), 32);
  ADD_FAILURE() << "no report" << (y ? "" : ": " + y.failure().reason);
  std::exit(0);
}

TEST(HostFaultUnderSanitizer, AReadPastDynamicSharedMemoryIsLocated) {
  const std::string report = sanitizer_report(
      "  extern __shared__ float tile[];\n  tile[t] = x[t];\n  __syncthreads();\n  y[t] = tile[t + 1];\n");
  EXPECT_THAT(report, HasSubstr("READ of size 4"));
  EXPECT_THAT(report, HasSubstr("unit:11"));
  EXPECT_THAT(report, HasSubstr("Host execution: kernel, block (0, 0, 0), thread (31, 0, 0)"));
  EXPECT_THAT(report, HasSubstr("0 bytes past the end of its 128 bytes of dynamic shared memory"));
}

TEST(HostFaultUnderSanitizer, AReadPastAStaticTileIsLocated) {
  const std::string report =
      sanitizer_report("  __shared__ float tile[32];\n  tile[t] = x[t];\n  __syncthreads();\n  y[t] = tile[t + 1];\n");
  EXPECT_THAT(report, HasSubstr("READ of size 4"));
  EXPECT_THAT(report, HasSubstr("unit:11"));
}

TEST(HostFaultUnderSanitizer, AReadPastXIsLocated) {
  const std::string report = sanitizer_report("  y[t] = x[t - 1];\n");
  EXPECT_THAT(report, HasSubstr("READ of size 4"));
  EXPECT_THAT(report, HasSubstr("unit:8"));
  EXPECT_THAT(report, HasSubstr("thread (0, 0, 0)"));
}

TEST(HostFaultUnderSanitizer, ACopyFromPastXIsLocated) {
  const std::string report =
      sanitizer_report("  __shared__ float tile[128];\n  ct1d::copy_async<16>(tile + 4 * t, x + 4 * t, 4 * t < 33);\n");
  EXPECT_THAT(report, HasSubstr("READ of size"));
  EXPECT_THAT(report, HasSubstr("unit:9"));
  EXPECT_THAT(report, HasSubstr("thread (8, 0, 0)"));
}

TEST(HostFaultUnderSanitizer, RightKernelsRunWithoutAReport) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_THAT(end.output, HasSubstr("1 test"));
    return;
  }
  const auto x = ramp(256);
  LoadedKernel run({kernel_source(kTiles), {"kernel"}, {}}, {1, 2}, true);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(shape_of(20, 64, 256), x, 64));
  // A failed block unwinds its fibres; the sanitizer must not mind.
  LoadedKernel stuck(
      {kernel_source(
           "  float big[100]; big[t] = x[t]; if (t == 0) __syncthreads(); else __shfl_sync(~0u, big[t], 0);\n"),
       {"kernel"},
       {}},
      {1, 2}, true);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(stuck(shape_of(3, 32), x, 64));
}

}  // namespace
}  // namespace tuner
