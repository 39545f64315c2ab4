#include "tuner/verify/inputs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/verify/data.h"

namespace tuner {
namespace {

using namespace tuner::testing;

constexpr Values kAll[] = {Values::normal,        Values::positive, Values::large_mean,  Values::spike,
                           Values::wide_channels, Values::integers, Values::index_coded, Values::patches};

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double mean_square(const std::vector<float>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / static_cast<double>(values.size());
}

TEST(Inputs, NamesGoBothWays) {
  for (const Values values : kAll) EXPECT_EQ(parse_values(to_string(values)), values);
  EXPECT_FALSE(parse_values("zeros"));
}

TEST(Inputs, SameSeedSameBitsOtherSeedOthers) {
  const Problem problem = problem_of(3, 4, 5, 2, 0, 0, 1, 1, 101, 2);
  for (const Values values : kAll) {
    EXPECT_EQ(make_inputs(problem, Element::f32, values, 7).x, make_inputs(problem, Element::f32, values, 7).x);
    EXPECT_NE(make_inputs(problem, Element::f32, values, 7).x, make_inputs(problem, Element::f32, values, 8).x);
  }
}

// Literal values: a change here makes recorded results mean something else.
TEST(Inputs, AreTheRecordedOnes) {
  const Problem problem = problem_of(2, 2, 3, 1, 0, 0, 1, 1, 4);
  EXPECT_EQ(make_inputs(problem, Element::f32, Values::integers, 1).x,
            (std::vector<float>{-8, -5, -4, -1, -2, 1, 6, 4}));
  EXPECT_EQ(make_inputs(problem, Element::f32, Values::normal, 1).w[0], -1.73018384f);
}

TEST(Inputs, NormalHasMeanZeroAndVarianceOne) {
  const Problem problem = problem_of(10, 1, 1, 1, 0, 0, 1, 1, 20000);
  const auto x = make_inputs(problem, Element::f32, Values::normal, 1).x;
  EXPECT_NEAR(mean(x), 0, 0.01);
  EXPECT_NEAR(mean_square(x), 1, 0.01);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 4.9);
}

TEST(Inputs, KindsAreWhatTheySay) {
  const Problem problem = problem_of(9, 9, 3, 1, 0, 0, 1, 1, 1000);
  const auto positive = make_inputs(problem, Element::f32, Values::positive, 1);
  EXPECT_GT(*std::min_element(positive.x.begin(), positive.x.end()), 0);
  EXPECT_GT(*std::min_element(positive.w.begin(), positive.w.end()), 0);
  EXPECT_NEAR(mean(make_inputs(problem, Element::f32, Values::large_mean, 1).x), 64, 0.1);
  const auto spike = make_inputs(problem, Element::f32, Values::spike, 1).x;
  EXPECT_EQ(std::count(spike.begin(), spike.end(), 1e6f), 1);
  const auto wide = make_inputs(problem, Element::f32, Values::wide_channels, 1);
  const std::vector<float> last(wide.x.end() - 1000, wide.x.end());
  EXPECT_NEAR(std::sqrt(mean_square(last)), 0x1p-27, 0.1 * 0x1p-27);
  const auto integers = make_inputs(problem, Element::f32, Values::integers, 1).x;
  EXPECT_EQ(*std::min_element(integers.begin(), integers.end()), -8);
  EXPECT_EQ(*std::max_element(integers.begin(), integers.end()), 8);
}

TEST(Inputs, PatchesTakeTurns) {
  const Problem problem = problem_of(2, 1, 1, 1, 0, 0, 1, 1, 288, 2);
  const auto plain = make_inputs(problem, Element::f32, Values::normal, 1),
             in = make_inputs(problem, Element::f32, Values::patches, 1);
  EXPECT_EQ(in.w, plain.w);
  const auto factor = [&](std::size_t b, std::size_t ic, std::size_t t) {
    const std::size_t i = (b * 2 + ic) * 288 + t;
    return in.x[i] / plain.x[i];
  };
  EXPECT_EQ(factor(0, 0, 47), 1);
  EXPECT_EQ(factor(0, 1, 48), 0x1p60f);
  EXPECT_EQ(factor(0, 0, 96), 0);
  EXPECT_EQ(factor(0, 1, 191), 0x1p-60f);
  EXPECT_EQ(factor(0, 0, 192), 1);
  EXPECT_EQ(factor(0, 0, 193), 0x1p-30f);
  EXPECT_EQ(factor(0, 0, 241), 1);
  EXPECT_EQ(factor(0, 1, 241), 0x1p-30f);
  EXPECT_EQ(factor(1, 0, 0), 0x1p60f);
  EXPECT_EQ(factor(1, 0, 287), 1);
}

TEST(Inputs, CodesChangeWithEveryIndex) {
  const Problem problem = problem_of(5, 7, 3, 1, 0, 0, 1, 1, 11, 2);
  const auto in = make_inputs(problem, Element::f32, Values::index_coded, 1);
  EXPECT_EQ(in.x[0] * 64, std::round(in.x[0] * 64));
  for (const std::size_t step : {1u, 11u, 55u}) EXPECT_NE(in.x[0], in.x[step]);
  for (const std::size_t step : {1u, 3u, 21u}) EXPECT_NE(in.w[0], in.w[step]);
  EXPECT_NE(in.x[1 * 11 + 2], in.x[2 * 11 + 1]);
}

TEST(Inputs, AreRepresentableInTheirElement) {
  const Problem problem = problem_of(5, 7, 3, 1, 0, 0, 1, 1, 500);
  for (const Element element : {Element::f16, Element::bf16})
    for (const Values values : kAll) {
      const auto x = make_inputs(problem, element, values, 3).x;
      EXPECT_EQ(widened(stored(x, element), element), x) << to_string(values);
      EXPECT_TRUE(std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); }));
    }
}

}  // namespace
}  // namespace tuner
