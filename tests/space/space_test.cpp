#include "tuner/space/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

Tunable range(std::string name, std::int64_t count) {
  Tunable tunable{std::move(name), {}, ""};
  for (std::int64_t value = 0; value < count; ++value) tunable.values.emplace_back(value);
  return tunable;
}

std::int64_t get(const Configuration& configuration, std::string_view name) {
  for (const auto& [key, value] : configuration)
    if (key == name) return std::get<std::int64_t>(value);
  throw std::logic_error("no such tunable");
}

Constraint rule(std::vector<std::string> reads, std::string reason, std::function<bool(const Configuration&)> holds) {
  return {std::move(reads), std::move(reason), std::move(holds)};
}

std::set<std::string> listed(const Space& space) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < space.size(); ++i) all.insert(to_string(space.at(i)));
  return all;
}

std::uint64_t total(const std::map<std::string, std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](auto sum, const auto& c) { return sum + c.second; });
}

TEST(Space, ListsEveryCombinationWithoutConstraints) {
  const Space space({range("a", 2), Tunable{"block", {Block{32, 8}, Block{16, 16}, Block{8, 8}}, ""}}, {});
  EXPECT_EQ(space.raw_count(), 6u);
  EXPECT_FALSE(space.sampled());
  EXPECT_THAT(listed(space), UnorderedElementsAre("a=0 block=32x8", "a=0 block=16x16", "a=0 block=8x8",
                                                  "a=1 block=32x8", "a=1 block=16x16", "a=1 block=8x8"));
  EXPECT_TRUE(space.rejections().empty());
}

TEST(Space, KeepsExactlyWhatAllConstraintsAllow) {
  const std::vector<Tunable> tunables{range("a", 7), range("b", 5), range("c", 6), range("d", 3)};
  const auto sum = [](const Configuration& c) { return (get(c, "d") + get(c, "a")) % 2 == 0; };
  const auto less = [](const Configuration& c) { return get(c, "b") < get(c, "c"); };
  const auto all = [](const Configuration& c) { return get(c, "a") * get(c, "b") + get(c, "c") * get(c, "d") < 12; };
  const Space space(tunables, {rule({"d", "a"}, "even", sum), rule({"b", "c"}, "less", less),
                               rule({"a", "b", "c", "d"}, "small", all)});
  std::set<std::string> expected;
  const Space raw(tunables, {});
  for (std::size_t i = 0; i < raw.size(); ++i)
    if (const Configuration c = raw.at(i); sum(c) && less(c) && all(c)) expected.insert(to_string(c));
  EXPECT_EQ(listed(space), expected);
  EXPECT_EQ(total(space.rejections()) + space.size(), space.raw_count()) << "every raw combination is accounted for";
}

TEST(Space, CountsWholeSubtreesByTheFirstReason) {
  const Space space(
      {range("a", 10), range("b", 10), range("c", 10)},
      {rule({"c"}, "c must be even", [](const Configuration& c) { return get(c, "c") % 2 == 0; }),
       rule({"a", "c"}, "a must exceed c", [](const Configuration& c) { return get(c, "a") > get(c, "c"); })});
  EXPECT_THAT(space.rejections(), UnorderedElementsAre(Pair("c must be even", 500), Pair("a must exceed c", 250)));
  EXPECT_EQ(space.size(), 250u);
}

TEST(Space, EvaluatesAConstraintOncePerCombinationOfWhatItReads) {
  int calls = 0;
  const Space space({range("a", 4), range("b", 50), range("c", 50), range("d", 3)},
                    {rule({"d", "a"}, "d < a", [&calls](const Configuration& c) {
                      ++calls;
                      return get(c, "d") < get(c, "a");
                    })});
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(space.size(), 6u * 2500u);
}

TEST(Space, HandsAConstraintItsConfigurationInTheFamilysOrder) {
  const Space space({range("a", 2), range("b", 3)}, {rule({"b"}, "never", [](const Configuration& c) {
                      EXPECT_EQ(c.size(), 2u);
                      EXPECT_EQ(c[0].first, "a");
                      EXPECT_EQ(c[1].first, "b");
                      return std::get<std::int64_t>(c[1].second) == 1;
                    })});
  EXPECT_THAT(listed(space), ElementsAre("a=0 b=1", "a=1 b=1"));
}

TEST(Space, RefusesEverythingByAConstraintThatReadsNothing) {
  const Space space({range("a", 4), range("b", 5)},
                    {rule({}, "needs sm_90", [](const Configuration&) { return false; })});
  EXPECT_EQ(space.size(), 0u);
  EXPECT_THAT(space.rejections(), ElementsAre(Pair("needs sm_90", 20)));
}

TEST(Space, HasNothingWhereAListIsEmptyAndOneConfigurationWithoutTunables) {
  EXPECT_EQ(Space({range("a", 0), range("b", 5)}, {}).size(), 0u);
  EXPECT_EQ(Space({}, {}).size(), 1u);
}

TEST(Space, FindsTheIndexOfAConfiguration) {
  const Space space({range("a", 9), range("b", 9)},
                    {rule({"a", "b"}, "sum", [](const Configuration& c) { return get(c, "a") + get(c, "b") == 7; })});
  for (std::size_t i = 0; i < space.size(); ++i) EXPECT_EQ(space.find(space.at(i)), i);
  EXPECT_EQ(space.find({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}), std::nullopt) << "not valid";
  EXPECT_EQ(space.find({{"a", std::int64_t{1}}, {"b", std::int64_t{99}}}), std::nullopt) << "no value of b";
  EXPECT_EQ(space.find({{"a", std::int64_t{1}}}), std::nullopt);
}

std::size_t differing(const Configuration& a, const Configuration& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
  return count;
}

TEST(Space, KnowsTheNeighboursOfAConfiguration) {
  const std::vector<Tunable> tunables{range("a", 4), Tunable{"block", {Block{32, 8}, Block{16, 16}}, ""},
                                      range("c", 5)};
  const auto less = [](const Configuration& c) { return get(c, "a") < get(c, "c"); };
  SpaceOptions sampling;
  sampling.max_enumerated = 5;
  sampling.sample = 12;
  for (const SpaceOptions& options : {SpaceOptions{}, sampling}) {
    const Space space(tunables, {rule({"a", "c"}, "less", less)}, options);
    for (std::size_t i = 0; i < space.size(); ++i) {
      std::set<std::size_t> expected;
      for (std::size_t j = 0; j < space.size(); ++j)
        if (differing(space.at(i), space.at(j)) == 1) expected.insert(j);
      const auto found = space.neighbours(i);
      EXPECT_EQ(std::set<std::size_t>(found.begin(), found.end()), expected) << to_string(space.at(i));
      EXPECT_EQ(found.size(), expected.size());
    }
  }
}

TEST(Space, NamesAConstraintThatReadsAnUnknownTunable) {
  try {
    Space({range("a", 2)}, {rule({"z"}, "z > 1", [](const Configuration&) { return true; })});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("\"z > 1\" reads z"));
  }
}

TEST(Space, RefusesMoreCombinationsThanCodesCanHold) {
  std::vector<Tunable> tunables;
  for (int i = 0; i < 10; ++i) tunables.push_back(range("t" + std::to_string(i), 100));
  EXPECT_THROW(Space(tunables, {}), UsageError);
}

std::vector<Tunable> eight_axes() {
  std::vector<Tunable> tunables;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) tunables.push_back(range(name, 16));
  return tunables;  // 2^32 raw combinations
}

TEST(Space, SamplesALargeSpaceUniformlyOverItsValidConfigurations) {
  SpaceOptions options;
  options.sample = 20'000;
  const Space space(
      eight_axes(),
      {rule({"a", "h"}, "h <= a", [](const Configuration& c) { return get(c, "h") <= get(c, "a"); }),
       rule({"f", "g"}, "f + g odd", [](const Configuration& c) { return (get(c, "f") + get(c, "g")) % 2; })},
      options);
  ASSERT_TRUE(space.sampled());
  ASSERT_EQ(space.size(), 20'000u);
  EXPECT_EQ(listed(space).size(), 20'000u) << "without replacement";
  std::vector<int> by_a(16);
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Configuration c = space.at(i);
    ASSERT_LE(get(c, "h"), get(c, "a"));
    ASSERT_EQ((get(c, "f") + get(c, "g")) % 2, 1);
    ++by_a[static_cast<std::size_t>(get(c, "a"))];
  }
  for (int a = 0; a < 16; ++a) {  // of 136 valid (a, h) pairs a + 1 have this a; five standard deviations
    const double p = (a + 1) / 136.0;
    EXPECT_NEAR(by_a[static_cast<std::size_t>(a)], 20'000 * p, 5 * std::sqrt(20'000 * p * (1 - p))) << "a = " << a;
  }
  const double refused = 120.0 / 256 + 136.0 / 256 / 2;
  EXPECT_NEAR(static_cast<double>(total(space.rejections())), refused * 4294967296.0, 0.02 * 4294967296.0);
}

TEST(Space, RepeatsASampleBySeedAndChangesItWithTheSeed) {
  SpaceOptions options;
  options.sample = 100;
  const Space first(eight_axes(), {}, options);
  const Space again(eight_axes(), {}, options);
  options.seed = 2;
  const Space other(eight_axes(), {}, options);
  EXPECT_EQ(listed(first), listed(again));
  EXPECT_EQ(to_string(first.at(17)), to_string(again.at(17)));
  EXPECT_NE(listed(first), listed(other));
}

TEST(Space, FindsTheFewValidOnesOfALargeSpace) {
  std::vector<Constraint> equal;
  for (const char* name : {"b", "c", "d", "e", "f", "g"})
    equal.push_back(
        rule({"a", name}, "all alike", [name](const Configuration& c) { return get(c, name) == get(c, "a"); }));
  const Space space(eight_axes(), equal);
  EXPECT_FALSE(space.sampled()) << "pruning leaves few enough to list";
  EXPECT_EQ(space.size(), 16u * 16u);
  EXPECT_EQ(total(space.rejections()) + space.size(), space.raw_count());
}

TEST(Space, EndsWhereALargeSpaceHasNoValidConfiguration) {
  const Space space(eight_axes(), {rule({"a", "b", "c", "d", "e", "f", "g", "h"}, "never",
                                        [](const Configuration&) { return false; })});
  EXPECT_EQ(space.size(), 0u);
  EXPECT_THAT(space.rejections(), ElementsAre(Pair("never", testing::Gt(4'200'000'000u))));
}

}  // namespace
}  // namespace tuner
