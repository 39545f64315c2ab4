// The depthwise family without a GPU: layout arithmetic, taps of any output, constraints and programs.
#include <gmock/gmock.h>

#include <set>

#include "kernels/depthwise/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::depthwise;

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
constexpr Problem kBigVgan{1, 384, 384, 12, 2, 0, 0, 1, 384, false, 27562};
constexpr Problem kPool{16, 1090, 1090, 3, 2, 1, 1, 1, 1090, true, 200};
constexpr Problem kBands{64, 4, 4, 4, 4, 0, 0, 1, 1, false, 4096};

const std::vector<Problem> kServed{
    kBigVgan,
    kPool,
    kBands,
    {1, 512, 512, 4, 2, 0, 0, 1, 512, false, 125},
    {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {0, 3, 5, 3, 2, 0, 0, 1, 1, true, 7},
    {2, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {1, 4, 4, 2, 5, 0, 3, 1, 1, true, 12},
    {1, 3, 3, 2, 2, 1, 0, 3, 3, true, 1},
    {64, 48, 1, 8, 4, 0, 0, 1, 1, true, 64084},
    {1, 1026, 1, 3, 1, 1, 0, 1, 1, true, 100},
    {1, 2, 2, 2, 1, 0, 0, 1000000, 1, false, 3},
    {1, 2, 2, 2, 4000000000, 0, 0, 4000000000, 1, false, 2},
    {1, 1, 1, 2, 1, 0, 0, 1099511627776, 1, false, 100},
};

ct1d::Geometry geometry(std::int64_t K, std::int64_t stride, std::int64_t dilation, std::int64_t padding,
                        std::int64_t length) {
  return Problem{1, 1, 1, K, stride, padding, 0, dilation, 1, false, length}.geometry();
}

TEST(DepthwiseLayout, StatesTheTilesOfARealLayer) {
  const ct1d::Geometry g = kBigVgan.geometry();
  const layout::Tunables t{{128, 1}, 1, 4, 2, 1, 2, 0, 0, 0, 1};
  EXPECT_EQ(layout::piece_length(t, g.stride, 4), 4);
  EXPECT_EQ(layout::piece_length(t, g.stride, 2), 8);
  EXPECT_EQ(layout::piece_length(t, 3, 4), 12);
  EXPECT_EQ(layout::window_length(t, g, 4), 9);  // 12 taps in two phases, four outputs that begin in either
  EXPECT_EQ(layout::pieces(t, g, 4), 13786);     // of 4, in 55134 outputs and up to 7 places before them
  EXPECT_EQ(layout::segments(t, g, 4), 27);
  const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
  EXPECT_EQ(shape.grid_x, 384u * 27);
  EXPECT_EQ(shape.block_x, 128u);
  EXPECT_EQ(shape.shared_bytes, 0u);
  EXPECT_EQ(layout::run_shape({{64, 2}, 2, 4, 1, 1, 4, 1, 1, 0, 1}, g, 4).shared_bytes, 2u * 12 * 4 + 128 * 8 * 4);
}

TEST(DepthwiseLayout, PiecesReachTheLastOutputWhereverTheRowBegins) {
  for (const std::int64_t length : {1, 2, 7, 8, 9, 400, 1001})
    for (const int bytes : {2, 4}) {
      const ct1d::Geometry g = geometry(1, 1, 1, 0, length);
      const layout::Tunables t{{32, 1}, 1, 1, 1, 1, 1, 0, 0, 0, 1};
      const std::int64_t reached = layout::pieces(t, g, bytes) * layout::piece_length(t, 1, bytes) - (32 / bytes - 1);
      EXPECT_GE(reached, length);
      EXPECT_LT(reached - layout::piece_length(t, 1, bytes), length);
    }
}

TEST(DepthwiseLayout, AWindowHoldsEveryPositionThatAPieceReaches) {
  for (const std::int64_t stride : {1, 2, 3, 5, 8})
    for (const std::int64_t dilation : {1, 2, 3, 7})
      for (const std::int64_t taps : {1, 2, 5})
        for (std::int64_t phase = 0; phase < stride; ++phase) {
          const std::int64_t length = 4 * stride;
          for (std::int64_t n = 0; n < length; ++n)
            for (std::int64_t k = 0; k < taps; ++k) {
              if ((n + phase - k * dilation) % stride != 0) continue;
              const std::int64_t position = (n + phase - k * dilation) / stride;
              EXPECT_GE(position, layout::lowest(phase, stride, taps, dilation));
              EXPECT_LE(position, layout::highest(phase, stride, length));
            }
        }
}

TEST(DepthwiseLayout, DividesWithoutACall) {
  for (const std::int64_t a : {0ll, 1ll, 6ll, 7ll, 4294967295ll, 4294967296ll, 4294967303ll, 9000000000000000000ll})
    for (const std::int64_t b : {1ll, 2ll, 7ll, 4294967295ll, 4294967296ll, 4294967297ll, 8999999999999999999ll})
      EXPECT_EQ(layout::quotient(a, b), a / b) << a << " / " << b;
}

TEST(DepthwiseLayout, InvertsModulo) {
  EXPECT_EQ(layout::inverse_mod(5, 1), 0);
  EXPECT_EQ(layout::inverse_mod(3, 7), 5);
  EXPECT_EQ(layout::inverse_mod(1000000007, 3999999999) * 1000000007 % 3999999999, 1);
}

TEST(DepthwiseLayout, MeetsThePositionsThatEachOutputHas) {
  int checked = 0;
  for (const std::int64_t K : {1, 2, 3, 5, 16})
    for (const std::int64_t stride : {1, 2, 3, 4, 6, 9, 50})
      for (const std::int64_t dilation : {1, 2, 3, 4, 9})
        for (const std::int64_t padding : {0, 1, 4})
          for (const std::int64_t length : {1, 2, 11}) {
            const ct1d::Geometry g = geometry(K, stride, dilation, padding, length);
            if (g.length_out < 1) continue;
            const layout::Walk walk = layout::walk_of(g);
            for (std::int64_t t = 0; t < g.length_out; ++t) {
              std::set<std::pair<std::int64_t, std::int64_t>> want, got;  // tap, position of x
              for (std::int64_t k = 0; k < K; ++k) {
                const std::int64_t at = t + padding - k * dilation;
                if (at >= 0 && at % stride == 0 && at / stride < length) want.emplace(k, at / stride);
              }
              const layout::Meeting m = layout::meeting_of(g, walk, t);
              for (std::int64_t j = m.begin; j < m.end; ++j)
                got.emplace(m.first_tap + j * walk.tap_step, m.position - j * walk.x_step);
              ASSERT_EQ(got, want) << "K " << K << " s " << stride << " d " << dilation << " p " << padding << " t "
                                   << t;
              ++checked;
            }
          }
  EXPECT_GT(checked, 10000);
}

TEST(DepthwiseLayout, ManyTilesStayWithinTheGrid) {
  ct1d::Geometry g = kBigVgan.geometry();
  g.batch = std::int64_t{1} << 40;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 2147483647u);
  g.batch = 0;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 1u);
}

TEST(DepthwiseFamily, DefaultsAreListedAndSatisfyTheConstraintsOnEveryProblemClassAndDevice) {
  const Family& family = *find_family("depthwise");
  for (const std::string& profile : profile_names())
    for (const Problem& problem : kServed)
      for (const Accuracy accuracy : kAccuracies) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        EXPECT_FALSE(family.refuses(context));
        for (const Configuration& c : {family.default_configuration(context), family.general_configuration(context)}) {
          EXPECT_THAT(broken(family, context, c), ElementsAre()) << profile << ' ' << summary(problem);
          expect_listed(family, c, problem);
        }
      }
}

TEST(DepthwiseFamily, OneInstanceServesEveryProblem) {
  const Family& family = *find_family("depthwise");
  const auto kernels = general_kernels(family, kServed);
  EXPECT_THAT(
      kernels,
      ElementsAre(ElementsAre("ct1d::depthwise::kernel<128, 1, 1, 4, 1, 1, 1, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, float>")));
}

TEST(DepthwiseFamily, CompilesTheGeometryIn) {
  const Family& family = *find_family("depthwise");
  for (const Problem& problem : {kBigVgan, kPool, kBands}) {
    const BuildContext context{problem, Accuracy::bf16, read_profile("h200")};
    const Program program = family.build(context, family.default_configuration(context));
    ASSERT_EQ(program.run.size(), 1u);
    EXPECT_EQ(program.run[0].kernel, program.unit.kernels[0]);
    const std::string facts = std::to_string(problem.stride) + ", " + std::to_string(problem.kernel_size) + ", 1, " +
                              std::to_string(problem.in_channels / problem.groups) + ", " +
                              std::to_string(problem.out_channels / problem.groups) + ", ct1d::Bfloat16>";
    EXPECT_THAT(program.unit.kernels[0], testing::EndsWith("1, 4, " + facts));
    EXPECT_EQ(program.work.bytes, problem.min_bytes(2));
  }
}

TEST(DepthwiseFamily, RefusesManyOutputChannelsAGroup) {
  const Family& family = *find_family("depthwise");
  const Problem many{1, 16, 9, 3, 1, 0, 0, 1, 1, false, 100};
  EXPECT_THAT(family.refuses({many, Accuracy::fp32, read_profile("h200")}).value_or(""), HasSubstr("at most 8"));
}

TEST(DepthwiseFamily, HoldsBackWhatTheKernelAsserts) {
  const Family& family = *find_family("depthwise");
  const BuildContext context{kBigVgan, Accuracy::fp32, read_profile("h200")};
  const auto faults = [&](const layout::Tunables& t) { return broken(family, context, to_configuration(t)); };
  EXPECT_THAT(faults({{128, 1}, 1, 4, 2, 1, 4, 0, 0, 0, 1}), Contains(HasSubstr("x_vector must divide")));
  EXPECT_THAT(faults({{128, 1}, 1, 2, 4, 1, 2, 0, 0, 0, 1}), Contains(HasSubstr("multiple of unroll")));
  EXPECT_THAT(faults({{128, 1}, 1, 4, 2, 1, 2, 0, 1, 0, 1}), Contains(HasSubstr("need no exchange")));
  EXPECT_THAT(faults({{128, 1}, 1, 4, 2, 1, 2, 0, 0, 0, 0}), Contains(HasSubstr("one output at a time")));
  EXPECT_THAT(faults({{24, 4}, 1, 4, 2, 1, 2, 0, 0, 0, 1}), Contains(HasSubstr("block.x must be 16")));
}

}  // namespace
}  // namespace tuner
