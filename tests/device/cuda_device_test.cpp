#include <gmock/gmock.h>

#include <vector>

#include "tests/device/gpu.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tuner::testing::probe_program;
using tuner::testing::probe_unit;

class CudaDeviceGpu : public tuner::testing::GpuTest {
 protected:
  /// Launches a probe once over one channel of `length` floats and waits.
  Expected<bool> run(const std::string& kernel, ct1d::LaunchShape shape, std::int64_t length = 1024) {
    Problem problem;
    problem.in_channels = problem.out_channels = problem.kernel_size = 1;
    problem.length = length;
    x_ = device_->allocate(static_cast<std::size_t>(length) * 4);
    y_ = device_->allocate(static_cast<std::size_t>(length) * 4);
    x_->fill(0x3f800000);
    y_->fill(0);
    auto runnable = make_runnable(*device_, problem, probe_program(kernel, shape), compile(probe_unit()), kernel);
    if (!runnable) return runnable.failure();
    if (auto bound = (*runnable)->bind({x_->data(), nullptr, nullptr, y_->data()}); !bound) return bound;
    if (auto launched = (*runnable)->launch(); !launched) return launched;
    occupancy_ = (*runnable)->occupancy();
    return device_->synchronize();
  }
  float first_of_y() {
    float value = 0;
    y_->download(&value, 4);
    return value;
  }
  std::unique_ptr<Buffer> x_, y_;
  double occupancy_ = 0;
};

TEST_F(CudaDeviceGpu, FactsAreFilledIn) {
  const Environment& environment = device_->environment();
  const DeviceFacts& facts = environment.device;
  EXPECT_FALSE(facts.name.empty());
  EXPECT_THAT(facts.arch, StartsWith("sm_"));
  EXPECT_GT(facts.sm_count, 0);
  EXPECT_GE(facts.shared_per_block_optin, 48 << 10);
  EXPECT_GT(facts.shared_per_sm, facts.shared_per_block_optin);
  EXPECT_GT(facts.l2_bytes, 1 << 20);
  EXPECT_GT(facts.memory_gbps, 50);
  EXPECT_GT(facts.sm_clock_mhz, 500);
  EXPECT_GT(facts.fp32_tflops, 1);
  EXPECT_TRUE(facts.measured);
  EXPECT_THAT(environment.uuid, StartsWith("GPU-"));
  EXPECT_EQ(environment.uuid.size(), 40u);
  EXPECT_FALSE(environment.driver.empty());
}

TEST_F(CudaDeviceGpu, BuffersKeepWhatIsWrittenAndNoticeWhatIsBeside) {
  const auto buffer = device_->allocate(10);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 256, 0u);
  buffer->fill(0x04030201);
  std::vector<unsigned char> content(10);
  buffer->download(content.data(), content.size());
  EXPECT_THAT(content, ::testing::ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 1, 2));
  EXPECT_EQ(buffer->guard_violations(), 0u);
  TUNER_CUDA(cudaMemset(static_cast<char*>(buffer->data()) + 10, 0, 3));
  TUNER_CUDA(cudaMemset(static_cast<char*>(buffer->data()) - 1, 0, 1));
  TUNER_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(buffer->guard_violations(), 4u);
  EXPECT_EQ(buffer->guard_violations(), 0u);
}

TEST_F(CudaDeviceGpu, TooMuchMemoryIsBadAllocAndLeavesTheDeviceUsable) {
  EXPECT_THROW(device_->allocate(std::size_t{1} << 50), std::bad_alloc);
  EXPECT_TRUE(device_->synchronize());
  EXPECT_NO_THROW(device_->allocate(1 << 20));
}

TEST_F(CudaDeviceGpu, LaunchesAndReportsOccupancy) {
  const auto done = run("copy", {4, 1, 1, 256, 1, 1, 0, 1});
  ASSERT_TRUE(done) << done.failure().reason;
  EXPECT_EQ(first_of_y(), 1.0f);
  EXPECT_GT(occupancy_, 0);
  EXPECT_LE(occupancy_, 1);
}

// H14: the attribute is raised whatever the size; static and dynamic memory together may pass 48 KiB first.
TEST_F(CudaDeviceGpu, SharedMemoryAroundAndBeyond48KiB) {
  const auto most = static_cast<unsigned>(device_->environment().device.shared_per_block_optin);
  for (const unsigned bytes : {16u, 49136u, 49152u, 49156u, most - 16}) {
    const auto done = run("shared", {1, 1, 1, 32, 1, 1, bytes, 1});
    ASSERT_TRUE(done) << bytes << ": " << done.failure().reason;
    EXPECT_EQ(first_of_y(), 7.0f) << bytes;
  }
  const auto refused = run("shared", {1, 1, 1, 32, 1, 1, most, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().outcome, Outcome::launch_failed);
  EXPECT_THAT(refused.failure().reason, StartsWith("16 static + " + std::to_string(most) + " dynamic bytes"));
}

TEST_F(CudaDeviceGpu, LaunchesTheDriverRefusesAreLaunchFailures) {
  const auto block = run("copy", {1, 1, 1, 2048, 1, 1, 0, 1});
  ASSERT_FALSE(block);
  EXPECT_EQ(block.failure().outcome, Outcome::launch_failed);
  EXPECT_THAT(block.failure().reason, HasSubstr("block 2048x1x1"));
  const auto grid = run("copy", {1, 70000, 1, 32, 1, 1, 0, 1});
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.failure().outcome, Outcome::launch_failed);
  EXPECT_TRUE(run("copy", {1, 1, 1, 32, 1, 1, 0, 1}));  // the context is as good as before
  Program unknown = probe_program("copy", {1, 1, 1, 32, 1, 1, 0, 1});
  unknown.run[0].kernel = "probe::nothing";
  auto runnable = make_runnable(*device_, {}, unknown, compile(probe_unit()), "nothing");
  ASSERT_TRUE(runnable);
  ASSERT_TRUE((*runnable)->bind({}));
  EXPECT_EQ((*runnable)->launch().failure().outcome, Outcome::launch_failed);
}

TEST_F(CudaDeviceGpu, WhatIsNoCubinIsALaunchFailure) {
  CompiledUnit unit;
  unit.file = "/dev/null";
  EXPECT_EQ(device_->load(unit).failure().outcome, Outcome::launch_failed);
  unit.file = TUNER_SOURCE_DIR "/CMakeLists.txt";
  EXPECT_EQ(device_->load(unit).failure().outcome, Outcome::launch_failed);
}

// In a process of its own: the error stays with the context.
TEST_F(CudaDeviceGpu, IllegalAddressIsACrash) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto done = run("illegal_address", {1, 1, 1, 32, 1, 1, 0, 1});
        const bool crash = !done && done.failure().outcome == Outcome::crashed;
        std::fprintf(stderr, "%s\n", done ? "no failure" : done.failure().reason.c_str());
        std::filesystem::remove_all(folder_);
        _exit(crash ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "cudaErrorIllegalAddress");
}

}  // namespace
}  // namespace tuner
