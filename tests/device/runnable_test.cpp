#include <gmock/gmock.h>

#include "tests/device/memory_device.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using tuner::testing::MemoryDevice;

Problem small_problem() {
  Problem problem;
  problem.in_channels = problem.out_channels = problem.kernel_size = 1;
  problem.length = 4;
  return problem;
}

Launch launch_of(std::string kernel, unsigned block = 512) { return {std::move(kernel), {1, 1, 1, block, 1, 1, 0, 1}}; }

TEST(Runnable, PacksAtBindAndGivesRunKernelsWhatWasPacked) {
  MemoryDevice device;
  const float w = 3;
  float x = 1, y = 0;
  device.packings["pack"] = [](const ct1d::PrepareArguments& a) {
    *static_cast<float*>(a.packed) = *static_cast<const float*>(a.w) * 2;
  };
  device.kernels["run"] = [](const ct1d::RunArguments& a) {
    *static_cast<float*>(a.y) = *static_cast<const float*>(a.x) * *static_cast<const float*>(a.weights);
  };
  Program program;
  program.prepare = {launch_of("pack")};
  program.run = {launch_of("run"), launch_of("run", 256)};
  program.packed_bytes = sizeof(float);
  auto runnable = make_runnable(device, small_problem(), program, {}, "v");
  ASSERT_TRUE(runnable);
  ASSERT_TRUE((*runnable)->bind({&x, const_cast<float*>(&w), nullptr, &y}));
  EXPECT_THAT(device.launched, ElementsAre("pack"));
  ASSERT_TRUE((*runnable)->launch());
  EXPECT_EQ(y, 6);
  EXPECT_THAT(device.launched, ElementsAre("pack", "run", "run"));
  EXPECT_EQ((*runnable)->occupancy(), 0.25);  // of the kernel that fills the device least
  const auto again = (*runnable)->prepare();
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again);
}

TEST(Runnable, WithoutPackingRunKernelsReadTheWeightsThemselves) {
  MemoryDevice device;
  const void* seen = nullptr;
  void* workspace = nullptr;
  device.kernels["run"] = [&](const ct1d::RunArguments& a) {
    seen = a.weights;
    workspace = a.workspace;
  };
  Program program;
  program.run = {launch_of("run")};
  float w = 1;
  auto runnable = make_runnable(device, small_problem(), program, {}, "v");
  ASSERT_TRUE((*runnable)->bind({nullptr, &w, nullptr, nullptr}));
  ASSERT_TRUE((*runnable)->launch());
  EXPECT_EQ(seen, &w);
  EXPECT_EQ(workspace, nullptr);
  EXPECT_FALSE(*(*runnable)->prepare());
}

TEST(Runnable, WorkspaceIsPoisonedAndGuarded) {
  MemoryDevice device;
  std::uint32_t first = 0;
  device.kernels["run"] = [&](const ct1d::RunArguments& a) {
    auto* const words = static_cast<std::uint32_t*>(a.workspace);
    first = words[0];
    words[2] = 0;  // one past its end
  };
  Program program;
  program.run = {launch_of("run")};
  program.workspace_bytes = 8;
  auto runnable = make_runnable(device, small_problem(), program, {}, "v");
  ASSERT_TRUE((*runnable)->bind({}));
  EXPECT_EQ((*runnable)->guard_violations(), 0u);
  ASSERT_TRUE((*runnable)->launch());
  EXPECT_EQ(first, 0xFFFFFFFFu);
  EXPECT_EQ((*runnable)->guard_violations(), 4u);
  EXPECT_EQ((*runnable)->guard_violations(), 0u);
}

TEST(Runnable, EmptyGridsAreNotLaunched) {
  MemoryDevice device;
  Program program;
  program.run = {{"run", {0, 1, 1, 32, 1, 1, 0, 1}}};
  auto runnable = make_runnable(device, small_problem(), program, {}, "v");
  ASSERT_TRUE((*runnable)->bind({}));
  EXPECT_TRUE((*runnable)->launch());
}

TEST(Runnable, TooLittleMemoryIsAFailureWithTheNumbers) {
  MemoryDevice device;
  device.capacity = 1000;
  Program program;
  program.workspace_bytes = 5000;
  const auto runnable = make_runnable(device, small_problem(), program, {}, "v");
  ASSERT_FALSE(runnable);
  EXPECT_EQ(runnable.failure().outcome, Outcome::launch_failed);
  EXPECT_THAT(runnable.failure().reason, ::testing::HasSubstr("5000 bytes of workspace"));
}

TEST(CompiledUnit, FindsSymbolsByNameExpression) {
  CompiledUnit unit;
  unit.symbols = {{"a<1>", "_Z1a"}, {"b", "_Z1b"}};
  ASSERT_NE(unit.symbol("b"), nullptr);
  EXPECT_EQ(*unit.symbol("b"), "_Z1b");
  EXPECT_EQ(unit.symbol("a"), nullptr);
}

}  // namespace
}  // namespace tuner
