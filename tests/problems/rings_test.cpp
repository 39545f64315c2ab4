// Rings that go round many times: a block of a matrix family's default and general configurations walks a row of many
// tiles, while Host execution holds warps back.
#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

class HostRings : public HostTrial {};

TEST_P(HostRings, OfOneBlockGoRoundManyTimes) {
  const Trying trying = on_host();
  const Problem problem{1, 80, 8, 3, 1, 0, 0, 1, 1, true, 1500};
  const BuildContext context{problem, accuracy, trying.facts};
  ASSERT_FALSE(family->refuses(context)) << *family->refuses(context);
  const auto in_one_block = [](Configuration configuration) { return changed(configuration, {{"blocks", 1}}); };
  std::vector<Task> tasks;
  tasks.push_back(task_of(
      trying, problem, 0,
      {in_one_block(family->general_configuration(context)), in_one_block(family->default_configuration(context))}));
  expect_right(trying, tasks, {0, 1, 2});
}

INSTANTIATE_TEST_SUITE_P(All, HostRings,
                         testing::Combine(testing::Values("wgmma", "wgmma_fused", "wgmma_packed", "wgmma_shared"),
                                          testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
