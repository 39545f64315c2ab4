#include "tuner/search/budget.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(SearchBudget, EndsAtItsLimit) {
  EXPECT_FALSE(SearchBudget::of_seconds(10).exhausted({9.99, 1'000'000}));
  EXPECT_TRUE(SearchBudget::of_seconds(10).exhausted({10, 0}));
  EXPECT_FALSE(SearchBudget::of_evaluations(3).exhausted({1e9, 2}));
  EXPECT_TRUE(SearchBudget::of_evaluations(3).exhausted({0, 3}));
  EXPECT_FALSE(SearchBudget().exhausted({1e12, 1'000'000'000}));
}

TEST(SearchBudget, ComposesToTheTighterOfEachLimit) {
  const auto both = SearchBudget::of_seconds(10) & SearchBudget::of_evaluations(5);
  EXPECT_TRUE(both.exhausted({10, 1}));
  EXPECT_TRUE(both.exhausted({1, 5}));
  EXPECT_FALSE(both.exhausted({9, 4}));
  EXPECT_EQ(both & SearchBudget::of_seconds(20) & SearchBudget::of_evaluations(50), both);
  EXPECT_EQ(SearchBudget() & both, both);
  EXPECT_TRUE((both & SearchBudget::of_evaluations(2)).exhausted({0, 2}));
}

TEST(SearchBudget, SaysWhatIsLeft) {
  EXPECT_EQ(SearchBudget::of_evaluations(5).evaluations_left({0, 2}), 3);
  EXPECT_EQ(SearchBudget::of_evaluations(5).evaluations_left({0, 9}), 0);
  EXPECT_EQ(SearchBudget::of_seconds(5).evaluations_left({0, 2}), std::nullopt);
  EXPECT_EQ(SearchBudget::of_seconds(5).evaluations_left({6, 2}), 0);
  const auto both = SearchBudget::of_seconds(10) & SearchBudget::of_evaluations(5);
  EXPECT_DOUBLE_EQ(both.fraction({5, 1}), 0.5);
  EXPECT_DOUBLE_EQ(both.fraction({1, 4}), 0.8);
  EXPECT_DOUBLE_EQ(both.fraction({99, 0}), 1);
  EXPECT_DOUBLE_EQ(SearchBudget().fraction({5, 5}), 0);
}

TEST(SearchBudget, DescribesItself) {
  EXPECT_EQ(SearchBudget().describe(), "unlimited");
  EXPECT_EQ(SearchBudget::of_seconds(300).describe(), "300 s");
  EXPECT_EQ(SearchBudget::of_evaluations(1).describe(), "1 evaluation");
  EXPECT_EQ((SearchBudget::of_evaluations(200) & SearchBudget::of_seconds(1.5)).describe(), "1.5 s or 200 evaluations");
}

}  // namespace
}  // namespace tuner
