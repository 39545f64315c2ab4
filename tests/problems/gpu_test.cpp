// The same on a GPU, larger: 20,000 and more in all.
#include "tests/device/gpu.h"

#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

constexpr int kProblems = 950;  // of a family and class

class ProblemsGpu : public testing::GpuTest, public ::testing::WithParamInterface<FamilyAndClass> {};

TEST_P(ProblemsGpu, DrawnAtRandomAreRight) {
  const auto [name, accuracy] = GetParam();
  const Family* family = find_family(name);
  ASSERT_NE(family, nullptr);
  const CompiledUnit kernels = compile(verify_unit());
  const DeviceFacts facts = device_->environment().device;
  const auto compiler = gpu_compiler(facts.arch, folder_);
  const int right = try_drawn_problems({*family, accuracy, *device_, *compiler, &kernels, facts, 3e7, kProblems, 40});
  if (right == 0) GTEST_SKIP() << name << " serves no problem of this class";
  EXPECT_EQ(right, kProblems);
}

INSTANTIATE_TEST_SUITE_P(All, ProblemsGpu,
                         ::testing::Combine(::testing::ValuesIn(family_names()), ::testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
