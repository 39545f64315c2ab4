// Every family keeps the promise of every class that it serves, by Host execution.
#include <algorithm>

#include "tests/accuracy/promise.h"
#include "tuner/core/config.h"
#include "tuner/device/host_device.h"

namespace tuner {
namespace {

using namespace accuracy_test;

class HostAccuracy : public testing::TestWithParam<FamilyAndClass> {};

TEST_P(HostAccuracy, BoundsHoldOnAllDataThatTheyArePromisedFor) {
  const auto [name, accuracy] = GetParam();
  const Family* family = find_family(name);
  ASSERT_NE(family, nullptr);
  const auto device = make_host_device({1, 2});
  const auto compiler = host_compiler("accuracy");
  ASSERT_NE(compiler, nullptr) << "the compiler that built this test is gone";
  const auto shapes = small_shapes();
  // A long sum through a large tile of outputs that do not exist takes a CPU seconds.
  const auto drawn = [](const Problem& problem) { return problem.max_products() >= 10000 ? 0 : 1; };
  const int runs =
      hold_the_promise({*family, accuracy, *device, *compiler, nullptr, read_profile("h200"), drawn}, shapes);
  if (runs == 0) GTEST_SKIP() << *family->refuses({shapes.front().problem, accuracy, read_profile("h200")});
  std::printf("%d runs\n", runs);
}

INSTANTIATE_TEST_SUITE_P(All, HostAccuracy,
                         testing::Combine(testing::ValuesIn(family_names()), testing::ValuesIn(kAccuracies)), name_of);

// So that what families refuse cannot add up to a promise that nobody keeps.
TEST(AccuracyCoverage, SomeFamilyServesEachShapeInEachClass) {
  for (const Accuracy accuracy : kAccuracies)
    for (const auto& shapes : {small_shapes(), large_shapes()})
      for (const Shape& shape : shapes) {
        ASSERT_FALSE(illegal(shape.problem)) << shape.name << ": " << *illegal(shape.problem);
        EXPECT_TRUE(std::any_of(families().begin(), families().end(),
                                [&](const Family* family) {
                                  return !family->refuses({shape.problem, accuracy, read_profile("h200")});
                                }))
            << shape.name << " in class " << to_string(accuracy);
      }
}

}  // namespace
}  // namespace tuner
