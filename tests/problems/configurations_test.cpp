// Configurations drawn at random from all that a family's constraints allow, on problems drawn at random and on short
// rows of any stride: defaults are few of them.
#include <algorithm>
#include <map>
#include <optional>

#include "tests/problems/trial.h"

namespace tuner {
namespace {

using namespace problems_test;

constexpr int kDrawn = 48;  // problems of a family and class
constexpr int kStrides[] = {1, 2, 3, 5, 8, 64, 65, 100};

std::int64_t one_of(Random& random, std::initializer_list<std::int64_t> values) {
  return values.begin()[random.below(values.size())];
}

/// Rows of several items in a tile, several channels in a panel or a part of one.
Problem short_rows(Random& random, std::int64_t stride) {
  Problem p;
  p.batch = 2 + static_cast<std::int64_t>(random.below(12));
  p.in_channels = one_of(random, {16, 17, 32, 40, 64, 100});
  p.out_channels = one_of(random, {1, 3, 8, 20, 40, 70, 130});
  p.stride = stride;
  p.kernel_size = p.stride * one_of(random, {1, 2, 3}) + one_of(random, {0, 0, 1, -1});
  p.kernel_size = std::max<std::int64_t>(p.kernel_size, 1);
  p.padding = one_of(random, {0, 0, p.stride / 2, p.kernel_size / 2});
  p.output_padding = p.stride > 1 ? one_of(random, {0, 0, 1}) : 0;
  p.length = one_of(random, {1, 2, 3, 5, 8, 11, 16, 30, 50, 80});
  p.bias = random.below(2) == 1;
  return p;
}

/// Every tunable at a value of its list, all constraints held; few blocks, so that each has several tiles.
std::optional<Configuration> drawn_configuration(const Family& family, const BuildContext& context, Random& random) {
  const std::vector<Tunable> tunables = family.tunables();
  const std::vector<Constraint> constraints = family.constraints(context);
  const Configuration usual = family.default_configuration(context);
  for (int i = 0; i < 20'000; ++i) {
    Configuration drawn;
    for (const Tunable& tunable : tunables)
      drawn.emplace_back(tunable.name, tunable.values[random.below(tunable.values.size())]);
    for (auto& [name, value] : drawn)
      if (name == "blocks")
        value =
            std::find_if(usual.begin(), usual.end(), [](const auto& each) { return each.first == "blocks"; })->second;
    if (!std::all_of(constraints.begin(), constraints.end(), [&](const Constraint& c) { return c.holds(drawn); }))
      continue;
    return changed(drawn, {{"blocks", one_of(random, {2, 4, 6})}});
  }
  return std::nullopt;
}

class HostConfigurations : public HostTrial {};

TEST_P(HostConfigurations, DrawnAtRandomAreRight) {
  const Trying trying = on_host();
  Random random(static_cast<std::uint64_t>(accuracy) + 44);
  ProblemDrawer drawer(static_cast<std::uint64_t>(accuracy) + 50, 3e5);
  std::vector<Task> tasks;
  std::map<std::string, int> drawn;  // how often a tunable, or the stride, had a value
  while (tasks.size() < kDrawn) {
    const Problem problem =
        tasks.size() % 3 == 0 ? drawer.next() : short_rows(random, kStrides[tasks.size() % std::size(kStrides)]);
    if (illegal(problem) || problem.flop() / 2 > 2e6) continue;
    const BuildContext context{problem, accuracy, trying.facts};
    if (family->refuses(context)) continue;
    const auto configuration = drawn_configuration(*family, context, random);
    ASSERT_TRUE(configuration) << summary(problem);
    ++drawn["stride=" + std::to_string(problem.stride)];
    for (const auto& [key, value] : *configuration) ++drawn[key + "=" + to_string(value)];
    tasks.push_back(task_of(trying, problem, static_cast<int>(tasks.size()), {*configuration}));
  }
  std::vector<std::string> wanted{"T=64", "T=96", "rows=64", "rows=128"};
  for (const int stride : kStrides) wanted.push_back("stride=" + std::to_string(stride));
  if (name == "wgmma_packed") wanted.insert(wanted.end(), {"T=128", "stages=2", "stages=3", "band=2"});
  if (name == "wgmma_fused")
    wanted.insert(wanted.end(), {"producers=4", "producers=8", "weights=0", "weights=2", "passes=2", "passes=3"});
  if (name == "wgmma_fused" && element_of(accuracy) != Element::f32) wanted.emplace_back("T=128");
  for (const std::string& value : wanted) EXPECT_GE(drawn[value], 2) << value;
  expect_right(trying, tasks);
}

INSTANTIATE_TEST_SUITE_P(All, HostConfigurations,
                         ::testing::Combine(::testing::Values("wgmma_fused", "wgmma_packed"),
                                            ::testing::ValuesIn(kAccuracies)),
                         name_of);

}  // namespace
}  // namespace tuner
