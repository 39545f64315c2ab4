// Blocks that share the channels of a tile, and the kernel that adds up what they leave; x converted ahead of its
// products.
#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kWide{
    {3, 100, 24, 5, 2, 1, 0, 1, 1, true, 21},   // channels that no split divides
    {2, 128, 33, 3, 1, 1, 0, 1, 1, false, 70},  // most of a tile
    {2, 136, 40, 6, 3, 2, 1, 1, 2, true, 100},  // groups
    {5, 64, 9, 8, 4, 2, 0, 1, 1, true, 9},      // several items a warp
    {1, 70, 40, 7, 1, 6, 0, 2, 1, true, 300},   // taps apart, several tiles
};

class HostSplit : public HostTrial {};

TEST_P(HostSplit, AddsUpWhatItsBlocksLeave) {
  const Trying trying = on_host();
  const std::int64_t promote = accuracy == Accuracy::fp32 ? 1 : 0;
  std::vector<Task> tasks;
  for (const Problem& problem : kWide) {
    const BuildContext context{problem, accuracy, trying.facts};
    const Configuration usual = family->general_configuration(context);
    std::vector<Configuration> ways{
        changed(usual, {{"split", 2}}),
        changed(
            usual,
            {{"split", 4}, {"OC_TILE", 64}, {"taps", 2}, {"resident", 1}, {"promote", promote}, {"wide_stores", 1}}),
        changed(usual, {{"split", 3}, {"OC_TILE", 48}, {"halves", 2}, {"wide_stores", 1}})};
    if (accuracy != Accuracy::fp32) {  // which converts x when it is needed
      ways.push_back(changed(usual, {{"ahead", 1}}));
      ways.push_back(changed(usual, {{"ahead", 1}, {"OC_TILE", 64}, {"taps", 2}, {"wide_stores", 1}, {"turns", 1}}));
      ways.push_back(changed(
          usual, {{"ahead", 1}, {"split", 4}, {"taps", 2}, {"resident", 1}, {"promote", 0}, {"wide_stores", 1}}));
    }
    for (const Configuration& way : ways)
      for (const Constraint& c : family->constraints(context))
        EXPECT_TRUE(c.holds(way)) << c.reason << ": " << to_string(way);
    tasks.push_back(task_of(trying, problem, 0, ways));
  }
  expect_right(trying, tasks, {0, 1, 3});
}

INSTANTIATE_TEST_SUITE_P(All, HostSplit, testing::Combine(testing::Values("wgmma"), testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
