// The tiled family without a GPU: layout arithmetic, phases, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <set>

#include "kernels/tiled/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"

namespace tuner {
namespace {

using testing::ElementsAre;
namespace layout = ct1d::tiled;

constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kSeed,
    {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {0, 3, 5, 3, 2, 0, 0, 1, 1, true, 7},
    {2, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100},
    {1, 4, 4, 2, 5, 0, 3, 1, 1, true, 12},
    {1, 3, 3, 2, 2, 1, 0, 3, 3, true, 1},
    {1, 1090, 1090, 3, 2, 1, 1, 1, 1090, true, 400},
    {1, 40, 24, 5, 1, 0, 0, 400, 1, false, 3000},
    {1, 2, 2, 2, 1, 0, 0, 1000000, 1, false, 3},
    {1, 2, 2, 2, 4000000000, 0, 0, 4000000000, 1, false, 2},
    {1, 1, 1, 2, 1, 0, 0, 1099511627776, 1, false, 100},
};

ct1d::Geometry geometry(std::int64_t K, std::int64_t stride, std::int64_t dilation, std::int64_t padding,
                        std::int64_t length) {
  Problem p{1, 1, 1, K, stride, padding, 0, dilation, 1, false, length};
  return p.geometry();
}

TEST(TiledLayout, StatesTheSeedProblemsTiles) {
  const ct1d::Geometry g = kSeed.geometry();
  const layout::Tunables t;
  EXPECT_EQ(layout::chunk_taps(t, g), 3);
  const layout::Stage s = layout::stage_of(t, 3, 1);
  EXPECT_EQ(s.width, 100);  // 96 outputs and 2 more, in pieces of 16 bytes
  EXPECT_EQ(s.pitch, 100);
  EXPECT_EQ(layout::stage_of({128, 128, 8, {16, 16}, 8}, 3, 1).pitch, 136);  // runs of 8 exchange pairs of pieces
  EXPECT_EQ(s.x_size, 16 * 100);
  EXPECT_EQ(s.size, 16 * 100 + 16 * 3 * 128);
  const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
  EXPECT_EQ(shape.grid_x, 64u * 683);  // 65538 outputs, up to 3 more for alignment
  EXPECT_EQ(shape.shared_bytes, 256u + 64 + 2 * 32 + 2 * 4 * (16 * 100 + 16 * 3 * 128));
  EXPECT_EQ(layout::packed_bytes(t, g, 4), 128 * 3 * 128 * 4);
}

TEST(TiledLayout, SplitsManyTapsIntoEvenChunks) {
  const layout::Tunables t{128, 64, 8, {16, 8}, 8, 8, 2, 4, 1, 1, 1};
  EXPECT_EQ(layout::chunk_taps(t, geometry(11, 1, 1, 0, 500)), 11);
  EXPECT_EQ(layout::chunk_taps(t, geometry(41, 1, 1, 0, 500)), 16);    // 3 chunks of 14, rounded to a multiple of 4
  EXPECT_EQ(layout::chunk_taps(t, geometry(1024, 1, 1, 0, 500)), 16);  // kMaxTaps
  EXPECT_EQ(layout::chunk_taps(t, geometry(16, 8, 1, 0, 500)), 2);     // of a phase
  EXPECT_EQ(layout::chunk_taps(t, geometry(5, 1, 400, 0, 500)), 1);    // no two taps share a window
  layout::Tunables run_time = t;
  run_time.run = 1;
  run_time.specialise = 0;
  EXPECT_EQ(layout::chunk_taps(run_time, geometry(5, 1, 400, 0, 500)), 3);  // (128 + 2 * 400) * 8 floats, twice
}

TEST(TiledLayout, StagesStayWithinTheBudgetWhateverTheTaps) {
  const layout::Tunables t{128, 16, 4, {32, 4}, 1, 16, 2, 1, 0, 0, 1};
  for (const std::int64_t K : {1, 2, 7, 64, 1024, 100000})
    for (const std::int64_t dilation : {1, 3, 1000, 1000000})
      EXPECT_LE(layout::run_shape(t, geometry(K, 1, dilation, 0, 9), 4).shared_bytes, 96u * 1024)
          << K << ' ' << dilation;
}

TEST(TiledLayout, PhasesCoverEveryOutputOnceAndNameItsTaps) {
  int checked = 0;
  for (const std::int64_t K : {1, 2, 3, 5, 16})
    for (const std::int64_t stride : {1, 2, 3, 4, 6, 9, 50})
      for (const std::int64_t dilation : {1, 2, 3, 4, 9})
        for (const std::int64_t padding : {0, 1, 4})
          for (const std::int64_t length : {1, 2, 11}) {
            const ct1d::Geometry g = geometry(K, stride, dilation, padding, length);
            if (g.length_out < 1) continue;
            ++checked;
            std::vector<int> seen(static_cast<std::size_t>(g.length_out), 0);
            for (std::int64_t index = 0; index < layout::phase_count(g); ++index) {
              const layout::PhaseOutputs p = layout::phase_outputs(g, index);
              for (std::int64_t n = 0; n < p.outputs; ++n) {
                const std::int64_t t = p.t_first + n * stride;
                ASSERT_LT(t, g.length_out);
                ++seen[static_cast<std::size_t>(t)];
                std::set<std::pair<std::int64_t, std::int64_t>> want, got;  // tap, position of x
                for (std::int64_t k = 0; k < K; ++k)
                  if ((t + padding - k * dilation) % stride == 0)
                    want.emplace(k, (t + padding - k * dilation) / stride);
                for (std::int64_t j = 0; j < p.phase.taps; ++j)
                  got.emplace(p.phase.first_tap + j * p.phase.tap_step, p.m_first + n - j * p.phase.x_step);
                ASSERT_EQ(got, want) << "K " << K << " s " << stride << " d " << dilation << " p " << padding;
              }
            }
            for (const int count : seen) ASSERT_EQ(count, 1);
          }
  EXPECT_GT(checked, 1000);
}

TEST(TiledLayout, TilesReachEveryOutputOfAPhase) {
  for (const std::int64_t length : {1, 125, 126, 128, 129, 8189, 8191, 8192, 100000}) {
    const ct1d::Geometry g = geometry(1, 1, 1, 0, length);
    const layout::Tunables t;
    const std::int64_t shift = layout::tiles_shift(t, g) ? 3 : 0;
    EXPECT_GE(layout::t_tiles(t, g) * t.T - shift, length);
    EXPECT_LT((layout::t_tiles(t, g) - 1) * t.T, length + shift);
  }
  EXPECT_EQ(layout::t_tiles({}, geometry(1, 1, 1, 0, 96)), 1);  // no tile more for alignment's sake
}

TEST(TiledLayout, MultipliesModuloWithoutOverflow) {
  EXPECT_EQ(layout::multiply_mod(6, 7, 10), 2);
  EXPECT_EQ(layout::multiply_mod(3000000000, 3000000001, 4000000000), 3000000000);  // 9000000003000000000 mod 4e9
  EXPECT_EQ(layout::multiply_mod((1ll << 61) - 2, (1ll << 61) - 2, (1ll << 61) - 1), 1);
}

TEST(TiledLayout, ManyTilesStayWithinTheGrid) {
  ct1d::Geometry g = kSeed.geometry();
  g.batch = std::int64_t{1} << 40;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 2147483647u);
  g.batch = 0;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 1u);
}

TEST(TiledFamily, DefaultsSatisfyTheConstraintsOnEveryProblemAndDevice) {
  const Family& family = *find_family("tiled");
  for (const std::string& profile : profile_names())
    for (const Problem& problem : kOddProblems) {
      const BuildContext context{problem, Accuracy::fp32, read_profile(profile)};
      EXPECT_FALSE(family.refuses(context));
      EXPECT_THAT(broken(family, context, family.default_configuration(context)), ElementsAre())
          << profile << ' ' << summary(problem);
      EXPECT_THAT(broken(family, context, family.general_configuration(context)), ElementsAre())
          << profile << ' ' << summary(problem);
    }
}

TEST(TiledFamily, DefaultsAreMadeOfTheListedValues) {
  const Family& family = *find_family("tiled");
  for (const Problem& problem : kOddProblems) {
    const BuildContext context{problem, Accuracy::fp32, read_profile("h200")};
    for (const Configuration& c : {family.default_configuration(context), family.general_configuration(context)})
      expect_listed(family, c, problem);
  }
}

TEST(TiledFamily, OneInstanceServesEveryProblem) {
  const Family& family = *find_family("tiled");
  const auto kernels = general_kernels(family, kOddProblems);
  EXPECT_THAT(kernels,
              ElementsAre(ElementsAre("ct1d::tiled::kernel<128, 16, 4, 32, 4, 1, 16, 2, 1, 0, 0, 1, 0, 0, float>")));
}

TEST(TiledFamily, SpecialisesToThePhasesTapsAndPacksTheirWeights) {
  const Family& family = *find_family("tiled");
  const BuildContext context{{16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100}, Accuracy::fp32, read_profile("h200")};
  const Program program = family.build(context, family.default_configuration(context));
  ASSERT_EQ(program.unit.kernels.size(), 2u);
  EXPECT_THAT(program.unit.kernels[0], testing::EndsWith(", 2, 1, float>"));  // 16 taps in 8 phases
  ASSERT_EQ(program.prepare.size(), 1u);
  EXPECT_EQ(program.prepare[0].kernel, program.unit.kernels[1]);
  EXPECT_EQ(program.packed_bytes, std::size_t{512} * 256 * 16 * 4);
  EXPECT_EQ(program.work.fma_fp32, context.problem.flop());
}

TEST(TiledFamily, CompilesInTheTapsThatItsSharedMemoryIsLaidOutFor) {
  const Family& family = *find_family("tiled");
  const BuildContext context{kSeed, Accuracy::fp32, read_profile("h200")};
  Configuration c = family.default_configuration(context);
  for (auto& [name, value] : c)
    if (name == "stages") value = std::int64_t{4};  // of three taps they would be 121 KB
  const Program program = family.build(context, c);
  EXPECT_THAT(program.unit.kernels[0], testing::EndsWith(", 2, 1, float>"));
  EXPECT_EQ(program.run[0].shape.shared_bytes, 256u + 64 + 4 * 32 + 4 * 4 * (16 * 100 + 16 * 2 * 128));
}

TEST(TiledFamily, DoesNotCompileInAStepThatNoIntHolds) {
  const Family& family = *find_family("tiled");
  const Configuration specialised = family.default_configuration({kSeed, Accuracy::fp32, read_profile("h200")});
  const auto faults = [&](std::int64_t dilation) {
    const Problem problem{1, 128, 128, 2, 1, 0, 0, dilation, 1, false, 65536};
    return broken(family, {problem, Accuracy::fp32, read_profile("h200")}, specialised);
  };
  const auto says_so = testing::Contains(testing::HasSubstr("must fit an int"));
  EXPECT_THAT(faults(2147483647), testing::Not(says_so));
  EXPECT_THAT(faults(2147483648), says_so);
}

TEST(TiledFamily, RefusesSixteenBitTensors) {
  const Family& family = *find_family("tiled");
  EXPECT_TRUE(family.refuses({kSeed, Accuracy::fp16, read_profile("h200")}));
  EXPECT_FALSE(family.refuses({kSeed, Accuracy::tf32, read_profile("h200")}));
}

}  // namespace
}  // namespace tuner
