// Rows shorter than a tile, in several batch items: what matrix families lay behind one another must not mix.
#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kShortRows{
    {5, 16, 24, 4, 2, 1, 0, 1, 1, true, 11},    // odd rows
    {7, 20, 16, 7, 2, 5, 1, 1, 1, true, 9},     // padding of more than the stride
    {4, 16, 16, 3, 1, 2, 0, 4, 1, false, 13},   // taps apart
    {4, 16, 16, 5, 3, 4, 1, 2, 1, true, 12},    // phases without some taps
    {9, 32, 16, 16, 8, 4, 0, 1, 1, true, 5},    // several items a warp
    {6, 17, 9, 3, 1, 1, 0, 1, 1, false, 15},    // items begin in either half of a word
    {3, 17, 9, 2, 1, 0, 0, 1, 1, true, 140},    // tiles within an item
    {5, 16, 16, 3, 1, 1, 0, 1, 1, true, 16},    // rows of whole pieces
    {5, 16, 16, 8, 4, 2, 0, 1, 1, true, 16},    // the same, of 16 bits too short for them
    {40, 16, 8, 2, 2, 0, 0, 1, 1, true, 8},     // nothing between items
    {3, 16, 8, 6, 4, 2, 3, 1, 1, true, 21},     // an output more than the last position's
    {3, 32, 32, 4, 2, 1, 0, 1, 2, true, 37},    // groups
    {30, 16, 8, 8, 4, 2, 0, 1, 1, true, 35},    // items across tiles
    {300, 16, 8, 4, 2, 1, 0, 1, 1, true, 1},    // single positions
    {2, 48, 16, 11, 1, 5, 0, 1, 1, false, 250}  // windows of taps
};

class HostShortRows : public HostTrial {};

TEST_P(HostShortRows, OfManyItemsAreNotMixed) {
  const Trying trying = on_host();
  std::vector<Task> tasks;
  for (const Problem& problem : kShortRows) {
    const BuildContext context{problem, accuracy, trying.facts};
    ASSERT_FALSE(family->refuses(context)) << *family->refuses(context);
    tasks.push_back(
        task_of(trying, problem, 0, {family->general_configuration(context), family->default_configuration(context)}));
  }
  expect_right(trying, tasks, {0, 1, 2, 3});
}

INSTANTIATE_TEST_SUITE_P(All, HostShortRows,
                         testing::Combine(testing::Values("wgmma", "mma"), testing::ValuesIn(kAccuracies)), name_of);

}  // namespace
}  // namespace tuner
