#include "tuner/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SearchSpace space_of(std::size_t size, std::vector<std::size_t> first = {}) {
  return {size,
          [](std::size_t index) {
            return Variant{"direct", {{"T", static_cast<std::int64_t>(index)}}};
          },
          std::move(first), [](std::size_t) { return std::vector<std::size_t>(); }};
}

std::vector<std::size_t> indices(const std::vector<Proposal>& proposals) {
  std::vector<std::size_t> list;
  for (const Proposal& proposal : proposals) list.push_back(proposal.index);
  return list;
}

std::vector<std::size_t> all_of(Strategy& strategy, std::size_t step) {
  std::vector<std::size_t> list;
  while (!strategy.done()) {
    const auto asked = indices(strategy.ask(step));
    if (asked.empty()) ADD_FAILURE() << "neither a proposal nor done";
    if (asked.empty()) break;
    list.insert(list.end(), asked.begin(), asked.end());
  }
  return list;
}

std::vector<std::size_t> sorted(std::vector<std::size_t> list) {
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<std::size_t> counting(std::size_t size) {
  std::vector<std::size_t> list(size);
  std::iota(list.begin(), list.end(), std::size_t{0});
  return list;
}

class EveryStrategy : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Strategy> make(SearchSpace space, std::uint64_t seed = 7) {
    auto strategy = make_strategy(GetParam(), std::move(space), seed);
    EXPECT_NE(strategy, nullptr);
    return strategy;
  }
};

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const StrategyInfo& info : strategies()) list.emplace_back(info.name);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Search, EveryStrategy, testing::ValuesIn(names()),
                         [](const auto& name) { return name.param; });

TEST_P(EveryStrategy, ProposesEachCandidateOnceHoweverItIsAsked) {
  for (const std::size_t step : {1, 3, 1000})
    EXPECT_EQ(sorted(all_of(*make(space_of(100)), step)), counting(100)) << step;
}

TEST_P(EveryStrategy, StartsWithTheFirstOnesAndDoesNotRepeatThem) {
  const auto list = all_of(*make(space_of(20, {13, 4, 13})), 6);
  EXPECT_THAT(std::vector(list.begin(), list.begin() + 2), ElementsAre(13, 4));
  EXPECT_EQ(sorted(list), counting(20));
}

TEST_P(EveryStrategy, RepeatsItselfBySeed) {
  EXPECT_EQ(all_of(*make(space_of(500), 42), 7), all_of(*make(space_of(500), 42), 11));
}

class FixedStrategy : public EveryStrategy {};
INSTANTIATE_TEST_SUITE_P(Search, FixedStrategy, testing::Values("exhaustive", "random"),
                         [](const auto& name) { return name.param; });

TEST_P(FixedStrategy, DoesNotDependOnOutcomesOrOnAbandonedOnes) {
  const auto forward = make(space_of(60));
  const auto backward = make(space_of(60));
  std::vector<std::size_t> first, second;
  while (!forward->done()) {
    const auto a = forward->ask(6);
    auto b = backward->ask(6);
    for (const Proposal& p : a) first.push_back(p.index);
    for (const Proposal& p : b) second.push_back(p.index);
    for (const Proposal& p : a) forward->tell({p, Outcome::ok, 1.0 + static_cast<double>(p.index), 0.1});
    std::reverse(b.begin(), b.end());
    backward->abandon(b.front());
    for (std::size_t i = 1; i < b.size(); ++i) backward->tell({b[i], Outcome::compile_failed, std::nullopt, 0.2});
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(sorted(second), counting(60)) << "an abandoned proposal does not come again";
}

TEST_P(EveryStrategy, HasNothingInAnEmptySpace) {
  const auto strategy = make(space_of(0));
  EXPECT_TRUE(strategy->done());
  EXPECT_THAT(strategy->ask(5), IsEmpty());
}

TEST_P(EveryStrategy, RefusesAFirstOneOutsideTheSpace) {
  EXPECT_THROW(make_strategy(GetParam(), space_of(3, {3}), 1), std::out_of_range);
}

TEST(Exhaustive, FollowsTheSpace) {
  EXPECT_THAT(indices(make_strategy("exhaustive", space_of(9, {5}), 1)->ask(4)), ElementsAre(5, 0, 1, 2));
}

TEST(RandomSearch, DrawsUniformlyAndDiffersBySeed) {
  std::vector<int> counts(10);
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    for (const Proposal& p : make_strategy("random", space_of(10), seed)->ask(3)) ++counts[p.index];
  for (const int count : counts) EXPECT_NEAR(count, 1200, 145);  // five standard deviations
}

TEST(RandomSearch, DrawsTheSameOnEveryPlatform) {
  EXPECT_THAT(indices(make_strategy("random", space_of(1'000'000), 1)->ask(3)), ElementsAre(822465, 396845, 118658));
}

TEST(RandomSearch, TakesNoMemoryForWhatItDidNotDraw) {
  const auto strategy = make_strategy("random", space_of(std::size_t{1} << 60), 3);
  const auto drawn = sorted(indices(strategy->ask(1000)));
  EXPECT_EQ(drawn.size(), 1000u);
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

/// Four tunables of eight values each, two families of which the second is ten times as slow. The objective has one
/// valley, at 5 3 6 2.
constexpr std::size_t kFamilySize = 8 * 8 * 8 * 8;
double valley(std::size_t index) {
  double value = 1;
  for (const std::size_t best : {5, 3, 6, 2}) {
    value += std::abs(static_cast<double>(index % 8) - static_cast<double>(best));
    index /= 8;
  }
  return index % 2 == 0 ? value : 10 * (value + 20);
}
std::vector<std::size_t> grid_neighbours(std::size_t index) {
  std::vector<std::size_t> list;
  for (std::size_t weight = 1; weight < kFamilySize; weight *= 8)
    for (std::size_t value = 0; value < 8; ++value)
      if (value != index / weight % 8) list.push_back(index - index / weight % 8 * weight + value * weight);
  return list;
}
SearchSpace valleys() {
  SearchSpace space = space_of(2 * kFamilySize, {0, kFamilySize});
  space.at = [](std::size_t index) {
    return Variant{index < kFamilySize ? "fast" : "slow", {{"T", static_cast<std::int64_t>(index)}}};
  };
  space.neighbours = grid_neighbours;
  return space;
}

TEST(Climb, ReachesTheValleyInATenthOfWhatRandomDrawsNeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto strategy = make_strategy("auto", valleys(), seed);
    std::size_t asked = 0;
    for (bool there = false; !there; ++asked) {
      ASSERT_LT(asked, kFamilySize / 20) << seed;
      const Proposal proposal = strategy->ask(1).front();
      strategy->tell({proposal, Outcome::ok, valley(proposal.index), 0});
      there = valley(proposal.index) == 1;
    }
  }
}

TEST(Climb, ComesToFamiliesThatCannotWinLast) {
  const auto strategy = make_strategy("auto", valleys(), 3);
  std::size_t slow = 0;
  for (std::size_t i = 0; i < kFamilySize; ++i) {
    const Proposal proposal = strategy->ask(1).front();
    strategy->tell({proposal, Outcome::ok, valley(proposal.index), 0});
    slow += proposal.index >= kFamilySize ? 1 : 0;
  }
  EXPECT_EQ(slow, 1u) << "the family's default";
  EXPECT_EQ(all_of(*strategy, 64).size(), kFamilySize);
}

TEST(Climb, TakesOutcomesInAnyOrderAndGoesOnWithoutThem) {
  const auto forward = make_strategy("auto", valleys(), 5);
  const auto backward = make_strategy("auto", valleys(), 5);
  for (int round = 0; round < 30; ++round) {
    const auto a = forward->ask(7);
    auto b = backward->ask(7);
    ASSERT_EQ(indices(a), indices(b)) << round;
    const auto tell = [](Strategy& strategy, const Proposal& p) {
      if (p.index % 5 == 0)
        strategy.abandon(p);
      else if (p.index % 3 == 0)
        strategy.tell({p, Outcome::compile_failed, std::nullopt, 0});
      else
        strategy.tell({p, Outcome::ok, valley(p.index), 0});
    };
    for (const Proposal& p : a) tell(*forward, p);
    std::reverse(b.begin(), b.end());
    for (const Proposal& p : b) tell(*backward, p);
  }
  const auto untold = make_strategy("auto", valleys(), 5);
  EXPECT_EQ(sorted(all_of(*untold, 100)), counting(2 * kFamilySize));
}

TEST(Search, KnowsNoOtherName) {
  EXPECT_EQ(make_strategy("clever", space_of(3), 1), nullptr);
  EXPECT_THAT(names(), ElementsAre("auto", "exhaustive", "random"));
}

}  // namespace
}  // namespace tuner
