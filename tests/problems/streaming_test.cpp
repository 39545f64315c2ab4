// Stores that are marked as read by nobody soon: every way to y that families with `streaming` have.
#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kStrideOne{
    {2, 128, 128, 3, 1, 0, 0, 1, 1, false, 398},  // rows of whole sectors
    {2, 40, 70, 3, 1, 1, 0, 1, 1, true, 1001},    // rows between words
    {3, 17, 20, 3, 1, 2, 0, 1, 1, true, 95},      // shorter than a tile
    {1, 130, 133, 3, 1, 1, 0, 1, 1, true, 300},   // channels beyond 128
};
const std::vector<Problem> kStrides{
    {2, 34, 20, 4, 2, 1, 0, 1, 1, true, 101},  // lanes exchange what lies side by side
    {2, 34, 9, 16, 8, 3, 1, 1, 1, true, 70},     {1, 34, 5, 32, 16, 8, 0, 1, 1, false, 67},
    {2, 34, 9, 10, 5, 2, 1, 1, 1, true, 67},      // by way of shared memory
    {1, 34, 3, 100, 50, 25, 0, 1, 1, false, 20},  // one by one
};

class HostStreaming : public HostTrial {};

TEST_P(HostStreaming, StoresEveryOutput) {
  const Trying trying = on_host();
  std::vector<Problem> problems = kStrideOne;
  if (name == "wgmma") problems.insert(problems.end(), kStrides.begin(), kStrides.end());
  std::vector<Task> tasks;
  for (const Problem& problem : problems) {
    const BuildContext context{problem, accuracy, trying.facts};
    if (family->refuses(context)) continue;
    const Configuration way = changed(family->default_configuration(context), {{"streaming", 1}});
    for (const Constraint& c : family->constraints(context)) EXPECT_TRUE(c.holds(way)) << c.reason;
    EXPECT_THAT(to_string(way), testing::HasSubstr("streaming=1"));
    tasks.push_back(task_of(trying, problem, 0, {way}));
  }
  ASSERT_GE(tasks.size(), 3u);
  expect_right(trying, tasks, {0, 1, 3});
}

INSTANTIATE_TEST_SUITE_P(All, HostStreaming,
                         testing::Combine(testing::Values("wgmma", "wgmma_shared"), testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
