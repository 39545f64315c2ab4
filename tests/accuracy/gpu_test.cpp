// Every family keeps the promise of every class that it serves, on a GPU.
#include "tests/device/gpu.h"

#include "tests/accuracy/promise.h"

namespace tuner {
namespace {

using namespace accuracy_test;

class AccuracyGpu : public testing::GpuTest, public ::testing::WithParamInterface<FamilyAndClass> {};

TEST_P(AccuracyGpu, BoundsHoldOnAllDataThatTheyArePromisedFor) {
  const auto [name, accuracy] = GetParam();
  const Family* family = find_family(name);
  ASSERT_NE(family, nullptr);
  const CompiledUnit kernels = compile(verify_unit());
  const DeviceFacts facts = device_->environment().device;
  const auto compiler = gpu_compiler(facts.arch, folder_);
  std::vector<Shape> shapes = large_shapes();
  for (Shape& shape : small_shapes()) shapes.push_back({"small " + shape.name, shape.problem});
  const auto drawn = [](const Problem&) { return 4; };
  const int runs = hold_the_promise({*family, accuracy, *device_, *compiler, &kernels, facts, drawn}, shapes);
  if (runs == 0) GTEST_SKIP() << *family->refuses({shapes.front().problem, accuracy, facts});
  std::printf("%d runs\n", runs);
}

INSTANTIATE_TEST_SUITE_P(All, AccuracyGpu,
                         ::testing::Combine(::testing::ValuesIn(family_names()), ::testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
