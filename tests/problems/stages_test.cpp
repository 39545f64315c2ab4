// Stages of 32 channels of `wgmma_shared`: all ways to fill and empty its ring, on problems drawn at random and others.
#include <algorithm>

#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;
using Changes = std::vector<std::pair<std::string, std::int64_t>>;

/// Those of the ways to fill the ring that the constraints allow.
std::vector<Configuration> ways_of(const Family& family, const BuildContext& context) {
  const Configuration usual = family.default_configuration(context);
  const std::vector<Constraint> constraints = family.constraints(context);
  std::vector<Configuration> ways;
  for (const auto& [producers, stages] : {std::pair{4, 4}, {4, 8}, {8, 8}})
    for (const int tile : {128, 64}) {
      for (const int registers : {144, 160, 168, 176, 200, 208}) {
        const Configuration way = changed(usual, Changes{{"channels", 32},
                                                         {"producers", producers},
                                                         {"stages", stages},
                                                         {"T", tile},
                                                         {"consumer_registers", registers},
                                                         {"strip", tile == 64 ? 1 : 0}});
        if (!std::all_of(constraints.begin(), constraints.end(), [&](const Constraint& c) { return c.holds(way); }))
          continue;
        ways.push_back(way);
        break;
      }
    }
  return ways;
}

class HostStages : public HostTrial {};

TEST_P(HostStages, Of32ChannelsAreRight) {
  const Trying trying = on_host();
  /// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
  std::vector<Problem> problems{
      {2, 128, 128, 3, 1, 0, 0, 1, 1, false, 900},  // several tiles a block
      {2, 40, 70, 3, 1, 1, 0, 1, 1, true, 1001},    // rows between words
      {3, 17, 20, 3, 1, 2, 0, 1, 1, true, 95},      // channels that fill no stage
      {1, 100, 134, 3, 1, 1, 0, 1, 1, true, 300},   // channels beyond 128
      {2, 33, 40, 2, 1, 9, 0, 30, 1, false, 500},   // a long halo
  };
  ProblemDrawer drawer(7, 3e5);
  while (problems.size() < 12) {
    const Problem problem = drawer.next();
    if (!family->refuses({problem, accuracy, trying.facts})) problems.push_back(problem);
  }
  std::vector<Task> tasks;
  for (const Problem& problem : problems) {
    std::vector<Configuration> ways = ways_of(*family, {problem, accuracy, trying.facts});
    ASSERT_FALSE(ways.empty()) << summary(problem);
    if (tasks.size() > 1)
      ways = {ways[tasks.size() % ways.size()]};  // two problems in all ways, the others each in one
    tasks.push_back(task_of(trying, problem, 0, ways));
    for (Task::Way& way : tasks.back().ways)
      way.program.run.back().shape.grid_x = std::min(way.program.run.back().shape.grid_x, 2u);
  }
  expect_right(trying, tasks, {0, 1, 2, 3});
}

INSTANTIATE_TEST_SUITE_P(All, HostStages,
                         testing::Combine(testing::Values("wgmma_shared"),
                                          testing::Values(Accuracy::tf32, Accuracy::fp16, Accuracy::bf16)),
                         name_of);

}  // namespace
}  // namespace tuner
