#include <gmock/gmock.h>

#include "tests/verify/data.h"
#include "tuner/core/config.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using namespace tuner::testing;

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

TEST(Reference, ThreeTapsByHand) {
  // x = 1 2, w = 1 2 3, stride 1: 1, 2 + 2, 3 + 4, 6.
  EXPECT_THAT(reference_of(problem_of(1, 1, 3, 1, 0, 0, 1, 1, 2), {{1, 2}, {1, 2, 3}, {}}), ElementsAre(1, 4, 7, 6));
}

TEST(Reference, AgreesWithEveryGoldenCase) {
  const auto cases = read_cases(TUNER_SOURCE_DIR "/tests/data/conv_transpose1d_golden.json");
  ASSERT_EQ(cases.size(), 60u);
  for (const Case& each : cases) {
    const Inputs inputs{floats(each.input), floats(each.weight), floats(each.bias)};
    const Reference reference = make_reference(each.problem, Accuracy::fp32, inputs);
    ASSERT_EQ(reference.y.size(), each.output.size()) << each.name;
    for (std::size_t i = 0; i < reference.y.size(); ++i) {
      // Relative to sum |x||w|, which the bound gives up to a factor: an output may cancel.
      const double s = reference.bound[i] * 0x1p24 / 10;
      ASSERT_NEAR(reference.y[i], each.output[i], 1e-12 * std::max(std::abs(each.output[i]), s))
          << each.name << " at " << i;
    }
  }
}

TEST(Reference, AgreesWithScatteringOnDifferentParameters) {
  for (const Problem& problem :
       {problem_of(6, 4, 5, 3, 2, 1, 4, 2, 11, 3), problem_of(3, 5, 7, 2, 4, 0, 6, 1, 13, 2),
        problem_of(4, 8, 2, 7, 1, 5, 3, 4, 9, 2), problem_of(2, 3, 4, 6, 3, 2, 9, 1, 600, 1)}) {
    const Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 3);
    const auto want = scatter(problem, inputs);
    const auto got = reference_of(problem, inputs);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-12) << summary(problem) << " " << i;
  }
}

// The GPU computes one element at a time, the CPU rows in blocks: the bits must be those of the same order.
TEST(Reference, BlocksGiveTheBitsOfSingleElements) {
  namespace check = ct1d::check;
  Problem problem = problem_of(6, 4, 5, 3, 2, 1, 4, 2, 1111, 2);
  problem.bias = true;
  const Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 9);
  const ct1d::Geometry g = problem.geometry();
  const Reference reference = make_reference(problem, Accuracy::tf32, inputs);
  for (std::int64_t row = 0; row < problem.batch * problem.out_channels; ++row)
    for (std::int64_t t = 0; t < problem.length_out(); ++t) {
      check::Sums sums[1];
      const check::Taps taps = check::taps_of(g, t);
      check::sum_outputs<1, true>(g, inputs.x.data(), inputs.w.data(), inputs.bias.data(), row / 4, row % 4, 1, taps,
                                  sums);
      const auto at = static_cast<std::size_t>(row * problem.length_out() + t);
      ASSERT_EQ(reference.y[at], sums[0].y);
      ASSERT_EQ(reference.bound[at],
                check::element_bound(check::Class::tf32, taps.count * g.in_per_group(), sums[0].s));
    }
}

TEST(Reference, BoundIsTheStatedOne) {
  // n = 4, S = 1 * 2 + 1 * 2 + 0.5: two taps of two channels meet at t = 1.
  Problem problem = problem_of(2, 1, 2, 1, 0, 0, 1, 1, 2);
  problem.bias = true;
  const Inputs inputs{{1, 1, 1, 1}, {1, 1, 1, 1}, {0.5f}};
  const Reference fp32 = make_reference(problem, Accuracy::fp32, inputs);
  EXPECT_DOUBLE_EQ(fp32.bound[1], 12 * 0x1p-24 * 4.5 + 4 * 0x1p-149);
  EXPECT_DOUBLE_EQ(fp32.bound[1], fp32_element_bound(4, 4.5));
  const Reference tf32 = make_reference(problem, Accuracy::tf32, inputs);
  EXPECT_DOUBLE_EQ(tf32.bound[1], 0x1p-10 * 4.5 + fp32_element_bound(4, 4.5));
}

TEST(Reference, TapsSkipWhatDoesNotExist) {
  // K = 3, stride 2, dilation 2, padding 1, L = 3: even outputs meet no tap, t = 1 meets k = 0, 1.
  const ct1d::Geometry g = problem_of(1, 1, 3, 2, 1, 0, 2, 1, 3).geometry();
  EXPECT_EQ(ct1d::check::taps_of(g, 0).count, 0);
  EXPECT_EQ(ct1d::check::taps_of(g, 1).count, 2);
  EXPECT_EQ(ct1d::check::taps_of(g, 3).count, 3);
  EXPECT_EQ(ct1d::check::taps_of(g, 5).first, 1);  // k = 0 would read x[3]
}

TEST(Reference, OverflowOfFp32AdmitsTheInfinityAndNothingElse) {
  const Problem problem = problem_of(2, 1, 1, 1, 0, 0, 1, 1, 1);
  const Inputs inputs{{3e38f, 3e38f}, {1, 1}, {}};
  const Reference reference = make_reference(problem, Accuracy::fp32, inputs);
  EXPECT_DOUBLE_EQ(reference.y[0], 2.0 * 3e38f);
  EXPECT_TRUE(compare(problem, Accuracy::fp32, reference, std::vector<float>{kInf}));
  for (const float wrong : {-kInf, kNan, 3e38f, 0.0f})
    EXPECT_FALSE(compare(problem, Accuracy::fp32, reference, std::vector<float>{wrong})) << wrong;
}

TEST(Reference, NamesTheWorstElement) {
  Problem problem = problem_of(1, 2, 1, 1, 0, 0, 1, 1, 3, 2);
  const Inputs inputs{{1, 2, 3, 4, 5, 6}, {1, 10}, {}};
  const Reference reference = make_reference(problem, Accuracy::fp32, inputs);
  std::vector<float> y(reference.y.begin(), reference.y.end());
  y[10] += 1;  // b 1, oc 1, t 1
  const auto errors = compare(problem, Accuracy::fp32, reference, y);
  ASSERT_FALSE(errors);
  EXPECT_EQ(errors.failure().outcome, Outcome::wrong_result);
  EXPECT_THAT(errors.failure().reason, ::testing::StartsWith("y[b 1, oc 1, t 1] is 51, the reference 50: off by 1 "));
  EXPECT_THAT(errors.failure().reason, ::testing::EndsWith("; 1 of 12 elements are wrong"));
}

}  // namespace
}  // namespace tuner
