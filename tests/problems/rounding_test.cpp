// Values beside the middle of two TF32 numbers, in rows of few outputs: each is rounded to its nearest there.
#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

class HostRounding : public HostTrial {};

TEST_P(HostRounding, TakesValuesBesideTheMiddleToTheirNearest) {
  const Trying trying = on_host();
  const Problem problem{2, 32, 8, 2, 1, 1, 0, 1, 1, false, 70};
  const BuildContext context{problem, accuracy, facts};
  ASSERT_FALSE(family->refuses(context)) << *family->refuses(context);
  Task task = task_of(trying, problem, 0, {family->general_configuration(context)});
  // Right roundings cancel, so that next to nothing is allowed; with the lower value rounded up all errors add up.
  Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 1);
  std::fill(inputs.w.begin(), inputs.w.end(), 1.0f);
  const float middle = 1.0f + 0x3p-11f;  // whose even neighbour is the upper one
  for (std::size_t i = 0; i < inputs.x.size(); ++i)
    inputs.x[i] = i / static_cast<std::size_t>(problem.length) % 2 == 0 ? middle - 0x1p-23f : middle;
  EXPECT_EQ(fault_of(trying, problem, task.ways.front(), inputs), "");
}

INSTANTIATE_TEST_SUITE_P(All, HostRounding,
                         testing::Combine(testing::Values("wgmma", "wgmma_fused", "wgmma_packed", "wgmma_shared"),
                                          testing::Values(Accuracy::tf32)),
                         name_of);

}  // namespace
}  // namespace tuner
