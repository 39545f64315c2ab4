// The direct family without a GPU: layout arithmetic, element types, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "kernels/common/element.cuh"
#include "kernels/direct/layout.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"

namespace tuner {
namespace {

using testing::ElementsAre;
namespace layout = ct1d::direct;

constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kSeed,
    {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {0, 3, 5, 3, 2, 0, 0, 1, 1, true, 7},
    {2, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {1, 4, 4, 2, 5, 0, 3, 1, 1, true, 12},
    {1, 3, 3, 2, 2, 1, 0, 3, 3, true, 1},
    {1, 1090, 1090, 3, 2, 1, 1, 1, 1090, true, 400},
    {1, 2, 2, 2, 1, 0, 0, 1000000, 1, false, 3},
    {1, 2, 2, 2, 4000000000, 0, 0, 4000000000, 1, false, 2},
};

TEST(DirectLayout, StatesTheSeedProblemsTiles) {
  const ct1d::Geometry g = kSeed.geometry();
  const layout::Tunables t;
  EXPECT_EQ(layout::window_length(t.T, 3, g), 130);
  EXPECT_EQ(layout::taps_a_pass(t, g, 4), 3);
  const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
  EXPECT_EQ(shape.grid_x, 64u * 8 * 513);  // 65538 outputs in tiles of 128
  EXPECT_EQ(shape.shared_bytes, 32u * (130 + 3 * 16) * 4);
  EXPECT_EQ(shape.block_x * shape.block_y, 256u);
}

TEST(DirectLayout, GoesBeyond48KilobytesWhereTheTilesAskForIt) {
  const layout::Tunables t{128, 16, 128, {32, 8}, 1};
  EXPECT_EQ(layout::run_shape(t, kSeed.geometry(), 4).shared_bytes, 128u * (130 + 3 * 16) * 4);  // 89 KB
  EXPECT_EQ(layout::run_shape(t, kSeed.geometry(), 2).shared_bytes, 128u * (130 + 3 * 16) * 2);
}

TEST(DirectLayout, TakesAsManyTapsAPassAsTheBudgetHolds) {
  ct1d::Geometry g = Problem{1, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000}.geometry();
  const layout::Tunables general{128, 16, 32, {32, 8}, 0};
  EXPECT_EQ(layout::taps_a_pass(general, g, 4), 37);  // (127 + n + 16 n) * 32 * 4 <= 98304
  EXPECT_EQ(layout::taps_a_pass({}, g, 4), 16);       // kMaxTaps
  g.dilation = 1000000;                               // no two taps share a window
  EXPECT_EQ(layout::taps_a_pass({}, g, 4), 1);
  g.kernel_size = 1;
  EXPECT_EQ(layout::taps_a_pass({}, g, 4), 1);
}

TEST(DirectLayout, AWindowHoldsEveryPositionThatATileReaches) {
  for (const std::int64_t stride : {1, 2, 3, 5, 8})
    for (const std::int64_t dilation : {1, 2, 3, 7})
      for (const std::int64_t taps : {1, 2, 5}) {
        ct1d::Geometry g{};
        g.stride = stride;
        g.dilation = dilation;
        const std::int64_t window = layout::window_length(32, taps, g);
        for (std::int64_t phase = 0; phase < stride; ++phase)
          EXPECT_LT((phase + 31 + (taps - 1) * dilation) / stride, window) << stride << ' ' << dilation << ' ' << taps;
      }
}

TEST(DirectLayout, ManyTilesStayWithinTheGrid) {
  ct1d::Geometry g = kSeed.geometry();
  g.batch = std::int64_t{1} << 40;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 2147483647u);
  g.batch = 0;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 1u);
}

TEST(DirectFamily, DefaultsSatisfyTheConstraintsOnEveryProblemAndDevice) {
  const Family& family = *find_family("direct");
  for (const std::string& profile : profile_names())
    for (const Problem& problem : kOddProblems)
      for (const Accuracy accuracy : kAccuracies) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        EXPECT_FALSE(family.refuses(context));
        EXPECT_THAT(broken(family, context, family.default_configuration(context)), ElementsAre())
            << profile << ' ' << summary(problem);
        EXPECT_THAT(broken(family, context, family.general_configuration(context)), ElementsAre())
            << profile << ' ' << summary(problem);
      }
}

TEST(DirectFamily, OneInstanceServesEveryProblem) {
  const Family& family = *find_family("direct");
  std::set<std::vector<std::string>> kernels;
  for (const Problem& problem : kOddProblems) {
    const BuildContext context{problem, Accuracy::fp32, read_profile("h200")};
    kernels.insert(family.build(context, family.general_configuration(context)).unit.kernels);
  }
  EXPECT_THAT(kernels, ElementsAre(ElementsAre("ct1d::direct::kernel<128, 16, 32, 32, 8, 0, 0, float>")));
}

TEST(DirectFamily, CompilesForTheElementOfTheClass) {
  const Family& family = *find_family("direct");
  const BuildContext context{kSeed, Accuracy::bf16, read_profile("h200")};
  const Program program = family.build(context, family.default_configuration(context));
  EXPECT_THAT(program.unit.kernels, ElementsAre("ct1d::direct::kernel<128, 16, 32, 32, 8, 1, 3, ct1d::Bfloat16>"));
  ASSERT_EQ(program.run.size(), 1u);
  EXPECT_EQ(program.run[0].kernel, program.unit.kernels[0]);
  EXPECT_EQ(program.run[0].shape.shared_bytes, 32u * (130 + 3 * 16) * 2);
  EXPECT_TRUE(program.prepare.empty());
  EXPECT_EQ(program.work.fma_fp32, kSeed.flop());
  EXPECT_EQ(program.work.bytes, kSeed.min_bytes(2));
}

TEST(Element, EveryHalfReturnsFromFloatUnchanged) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = ct1d::to_float(ct1d::Half{static_cast<unsigned short>(bits)});
    const unsigned back = ct1d::from_float<ct1d::Half>(value).bits;
    if (std::isnan(value)) {
      EXPECT_GT(back & 0x7fffu, 0x7c00u) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

TEST(Element, HalfRoundsToNearestTiesToEven) {
  const auto half = [](float value) { return ct1d::from_float<ct1d::Half>(value).bits; };
  EXPECT_EQ(half(1.0f), 0x3c00);
  EXPECT_EQ(half(1.0f + 0x1p-11f), 0x3c00);             // a tie, to even
  EXPECT_EQ(half(1.0f + 0x3p-11f), 0x3c02);             // a tie, to even
  EXPECT_EQ(half(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // above the tie
  EXPECT_EQ(half(65519.0f), 0x7bff);                    // the largest that stays finite
  EXPECT_EQ(half(-65520.0f), 0xfc00);                   // infinity
  EXPECT_EQ(half(0x1p-24f), 0x0001);                    // smallest subnormal
  EXPECT_EQ(half(0x1p-25f), 0x0000);                    // a tie, to even
  EXPECT_EQ(half(-0x1.8p-25f), 0x8001);
  EXPECT_EQ(half(0x1.ff8p-15f), 0x03ff);  // largest subnormal
  EXPECT_EQ(ct1d::to_float(ct1d::Half{0x3555}), 0.333251953125f);
  EXPECT_EQ(ct1d::to_float(ct1d::Half{0x7c00}), std::numeric_limits<float>::infinity());
}

TEST(Element, Bfloat16RoundsToNearestTiesToEven) {
  const auto bf16 = [](float value) { return ct1d::from_float<ct1d::Bfloat16>(value).bits; };
  EXPECT_EQ(bf16(1.0f), 0x3f80);
  EXPECT_EQ(bf16(1.0f + 0x1p-8f), 0x3f80);  // a tie, to even
  EXPECT_EQ(bf16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_GT(bf16(std::numeric_limits<float>::quiet_NaN()) & 0x7fff, 0x7f80);
  EXPECT_EQ(ct1d::to_float(ct1d::Bfloat16{0xc040}), -3.0f);
}

}  // namespace
}  // namespace tuner
