// Blocks of clusters that load their weights together, on problems drawn at random and on ones that keep both busy.
#include "tests/device/gpu.h"
#include "tests/problems/trial.h"
#include "tuner/core/config.h"
#include "tuner/device/host_device.h"

namespace tuner {
namespace {

using namespace problems_test;

constexpr int kDrawn = 40;  // of a class

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kSeveralTiles{
    {3, 70, 40, 8, 4, 2, 0, 1, 1, true, 131},  // three panels, an odd number of tiles of places
    {2, 40, 150, 3, 1, 1, 0, 2, 1, false, 300},
};

class HostClusters : public HostTrial {};

/// Blocks without a tile of their own, too: what has one tile of places has a cluster of two all the same.
TEST_P(HostClusters, AreRightOnDrawnProblems) {
  ProblemDrawer drawer(77, 3e5);
  std::vector<Task> tasks;
  while (tasks.size() < kDrawn) {
    const Problem problem = drawer.next();
    const BuildContext context{problem, accuracy, facts};
    if (family->refuses(context)) continue;
    const Configuration usual = family->general_configuration(context);
    tasks.push_back(task_of(on_host(), problem, static_cast<int>(tasks.size()),
                            {changed(usual, {{"cluster", 2}, {"band", 2}, {"blocks", 4}})}));
  }
  expect_right(on_host(), tasks);
}

TEST_P(HostClusters, AreRightOverManyTiles) {
  std::vector<Task> tasks;
  for (const Problem& problem : kSeveralTiles) {
    const Configuration usual = family->general_configuration({problem, accuracy, facts});
    const std::vector<Configuration> ways{
        changed(usual, {{"cluster", 2}, {"band", 2}, {"blocks", 2}, {"stages", 4}, {"rows", 128}, {"T", 96}}),
        changed(usual, {{"cluster", 2}, {"band", 4}, {"blocks", 4}, {"stages", 3}, {"rows", 64}})};
    for (const int turn : {0, 1, 3}) tasks.push_back(task_of(on_host(), problem, turn, ways));
  }
  expect_right(on_host(), tasks);
}

INSTANTIATE_TEST_SUITE_P(All, HostClusters,
                         ::testing::Combine(::testing::Values("wgmma_packed"), ::testing::ValuesIn(kAccuracies)),
                         name_of);

/// Whether the shared memory of a block is enough, whatever else speaks against it.
bool fits(const std::vector<Constraint>& constraints, const Configuration& configuration) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const Constraint& c) {
    return c.reason.find("shared memory") == std::string::npos || c.holds(configuration);
  });
}

/// On a GPU, with all of its SMs.
class ClustersGpu : public testing::GpuTest, public ::testing::WithParamInterface<FamilyAndClass> {};

TEST_P(ClustersGpu, AreRightOnDrawnProblemsAndRealLayers) {
  const auto [name, accuracy] = GetParam();
  const Family* family = find_family(name);
  ASSERT_NE(family, nullptr);
  const DeviceFacts facts = device_->environment().device;
  if (facts.arch != "sm_90a") GTEST_SKIP() << "the GPU is no sm_90a";
  const CompiledUnit verifier = compile(verify_unit());
  const auto compiler = gpu_compiler(facts.arch, folder_);
  const Trying trying{*family, accuracy, *device_, *compiler, &verifier, facts, 0, 0, 0};
  std::vector<Problem> problems{{64, 1024, 512, 16, 8, 0, 0, 1, 1, true, 50},
                                {72, 1536, 768, 24, 12, 6, 0, 1, 1, true, 11}};
  ProblemDrawer drawer(78, 3e7);
  while (problems.size() < 200)
    if (const Problem problem = drawer.next(); !family->refuses({problem, accuracy, facts}))
      problems.push_back(problem);
  std::vector<Task> tasks;
  for (const Problem& problem : problems) {
    const BuildContext context{problem, accuracy, facts};
    const Configuration usual = family->general_configuration(context);
    std::vector<Configuration> ways{changed(usual, {{"cluster", 2}, {"band", 2}})};
    const Configuration special =
        changed(usual, {{"cluster", 2}, {"band", 8}, {"stages", 4}, {"rows", 128}, {"T", 128}});
    if (tasks.size() % 20 < 2 && fits(family->constraints(context), special)) ways.push_back(special);
    tasks.push_back(task_of(trying, problem, static_cast<int>(tasks.size()), ways));
  }
  expect_right(trying, tasks);
}

INSTANTIATE_TEST_SUITE_P(All, ClustersGpu,
                         ::testing::Combine(::testing::Values("wgmma_packed"), ::testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
