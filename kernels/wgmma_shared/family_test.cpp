// The wgmma_shared family without a GPU: layout arithmetic, order of tiles, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <set>
#include <tuple>

#include "kernels/wgmma_shared/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::wgmma_shared;

constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kSeed,
    {64, 128, 128, 3, 1, 0, 0, 1, 1, true, 65535},
    {1, 127, 127, 3, 1, 1, 0, 2, 1, false, 3000},
    {0, 33, 5, 3, 1, 0, 0, 1, 1, true, 7},
    {1, 17, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {2, 9, 128, 2, 1, 1, 0, 30, 1, true, 1000},
    {3, 128, 3, 3, 1, 2, 0, 4, 1, false, 95},
    {2, 144, 128, 1, 1, 0, 0, 1, 1, true, 500},
};

const Family& shared() { return *find_family("wgmma_shared"); }
BuildContext on_h200(const Problem& problem, Accuracy accuracy = Accuracy::fp32) {
  return {problem, accuracy, read_profile("h200")};
}

std::vector<std::string> broken(const BuildContext& context, const Configuration& configuration) {
  std::vector<std::string> reasons;
  for (const Constraint& c : shared().constraints(context))
    if (!c.holds(configuration)) reasons.push_back(c.reason);
  return reasons;
}

TEST(WgmmaSharedLayout, StatesTheSeedProblemsMemory) {
  const ct1d::Geometry g = kSeed.geometry();
  const layout::Tunables t;
  const layout::Facts facts = layout::facts_of(g, 4);
  EXPECT_EQ(facts.taps, 3);
  EXPECT_EQ(facts.dilation, 1);
  EXPECT_EQ(facts.halo, 2);
  EXPECT_EQ(facts.steps, 8);
  EXPECT_EQ(facts.more, 0);
  const layout::Shared s = layout::shared_of(t, facts);
  EXPECT_EQ(s.stages, 2 * 3 * 128 * 128 * 2);
  EXPECT_EQ(s.stage_bytes, 2 * 2 * 130 * 16);
  EXPECT_EQ(s.barriers, s.stages + 4 * 8320);
  EXPECT_LE(s.bytes, 227 * 1024);
  EXPECT_EQ(s.schedule % 16 + s.walks % 16 + s.maxima % 16 + s.tiles % 16, 0);
  const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
  EXPECT_EQ(shape.grid_x, 132u);
  EXPECT_EQ(shape.block_x, 384u);
  EXPECT_EQ(layout::prepare_shape(t, g, 4).grid_x, 128u);
  EXPECT_EQ(layout::packed_bytes(t, g, 4), 2 * 98304 + 2 * 512 + 128 * 3 * 128 * 4);
}

TEST(WgmmaSharedLayout, RegistersOfConsumersAndProducersAreTheBlocks) {
  layout::Tunables t;
  EXPECT_EQ(t.start_registers(), 168);
  EXPECT_EQ(t.producer_registers(), 88);
  t.producers = 8;
  t.consumer_registers = 160;
  EXPECT_EQ(t.start_registers(), 128);
  EXPECT_EQ(t.producer_registers(), 96);
}

TEST(WgmmaSharedLayout, AStageOf32ChannelsHasTwoSteps) {
  const layout::Facts facts = layout::facts_of(kSeed.geometry(), 2);
  layout::Tunables t;
  t.products = 1;
  const layout::Shared one = layout::shared_of(t, facts);
  t.channels = 32;
  const layout::Shared two = layout::shared_of(t, facts);
  EXPECT_EQ(two.step_bytes, one.stage_bytes);
  EXPECT_EQ(two.stage_bytes, 2 * 2 * 130 * 16);
  EXPECT_EQ(two.barriers - two.stages, 2 * (one.barriers - one.stages));
  EXPECT_EQ(two.stages, one.stages);
}

TEST(WgmmaSharedLayout, WideDilationsShareInstances) {
  const auto facts = [](std::int64_t taps, std::int64_t dilation) {
    const layout::Facts f = layout::facts_of(Problem{1, 16, 1, taps, 1, 0, 0, dilation, 1, false, 5000}.geometry(), 4);
    return std::tuple(f.taps, f.dilation, f.halo);
  };
  EXPECT_EQ(facts(1, 7), std::tuple(1, 1, 0));
  EXPECT_EQ(facts(4, 1), std::tuple(4, 1, 3));
  EXPECT_EQ(facts(3, 2), std::tuple(3, 0, 8));
  EXPECT_EQ(facts(3, 4), std::tuple(3, 0, 8));
  EXPECT_EQ(facts(3, 5), std::tuple(3, 0, 16));
  EXPECT_EQ(facts(2, 1000), std::tuple(2, 0, 1024));
}

TEST(WgmmaSharedLayout, PairsOf16BitsMayBeginAPositionBeforeTheTile) {
  const auto halo = [](std::int64_t taps, int bytes) {
    return layout::facts_of(Problem{1, 16, 1, taps, 1, 0, 0, 1, 1, false, 5000}.geometry(), bytes).halo;
  };
  EXPECT_EQ(halo(1, 4), 0);
  EXPECT_EQ(halo(1, 2), 1);
  EXPECT_EQ(halo(2, 2), 1);
  EXPECT_EQ(halo(3, 2), 2);
}

TEST(WgmmaSharedLayout, AccumulatorsSumNoMoreTermsThanTheirClassAllows) {
  EXPECT_EQ(layout::promoted_stages(3, 8, layout::kMostTerms), 4);
  EXPECT_EQ(layout::promoted_stages(3, 8, layout::kMostTermsHalf), 8);
  EXPECT_EQ(layout::promoted_stages(3, 9, layout::kMostTermsHalf), 5);
  EXPECT_EQ(layout::promoted_stages(4, 8, layout::kMostTermsHalf), 4);
  EXPECT_EQ(layout::promoted_stages(7, 8, layout::kMostTermsHalf), 3);
  EXPECT_EQ(layout::promoted_stages(8, 8, layout::kMostTermsBfloat16), 8);
  EXPECT_EQ(layout::promoted_stages(3, 4, layout::kMostTerms, 32), 2);
  EXPECT_EQ(layout::promoted_stages(3, 4, layout::kMostTermsHalf, 32), 4);
  EXPECT_EQ(layout::promoted_stages(7, 4, layout::kMostTermsHalf, 32), 1);
  EXPECT_EQ(layout::promoted_stages(8, 4, layout::kMostTerms, 32), 1);
}

TEST(WgmmaSharedLayout, EveryOutputOfATileHasAFlag) {
  for (const int tile : {64, 96, 128, 192}) EXPECT_LE(tile / layout::flagged_outputs(tile), 32);
}

TEST(WgmmaSharedLayout, PackedWeightsHaveAPlaceEach) {
  std::set<ct1d::int64> places;
  for (int part = 0; part < 2; ++part)
    for (int tap = 0; tap < 2; ++tap)
      for (int ic = 0; ic < 128; ++ic)
        for (int oc = 0; oc < 128; ++oc) places.insert(layout::pack_place(2, 8, 2, part, tap, ic, oc));
  EXPECT_EQ(places.size(), 2u * 2 * 128 * 128);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), 2 * layout::part_bytes(2, 8) / 2 - 1);
}

TEST(WgmmaSharedLayout, ChannelsBeyondTheRowsHaveTheirPlaceBehindThem) {
  std::set<ct1d::int64> places;
  for (int tap = 0; tap < 3; ++tap)
    for (int ic = 0; ic < 144; ++ic)
      for (int oc = 0; oc < 136; ++oc) places.insert(layout::pack_place(3, 9, 1, 0, tap, ic, oc));
  EXPECT_EQ(places.size(), 3u * 144 * 136);
  EXPECT_EQ(*places.rbegin(), (layout::part_bytes(3, 9) + layout::more_bytes(3, 9, 8)) / 2 - 1);
  const ct1d::Geometry g = Problem{64, 130, 130, 3, 1, 0, 0, 1, 1, false, 65536}.geometry();
  const layout::Facts facts = layout::facts_of(g, 2);
  EXPECT_EQ(facts.steps, 9);
  EXPECT_EQ(facts.more, 8);
  EXPECT_EQ(layout::prepare_shape({}, g, 2).grid_x, 136u);
}

TEST(WgmmaSharedLayout, TilesCoverEveryOutputOnceAndCarryOnlyToTheNext) {
  for (const int strip : {0, 1, 3})
    for (const unsigned grid : {1u, 5u, 12u})
      for (const std::int64_t length : {1, 128, 1000, 1300}) {
        const ct1d::Geometry g = Problem{3, 32, 20, 3, 1, 1, 0, 1, 1, false, length}.geometry();
        layout::Tunables t;
        t.strip = strip;
        const layout::Schedule s = layout::schedule_of(t, g, grid);
        const layout::Steps steps = layout::steps_of(s);
        std::set<std::tuple<int, int>> seen;
        std::size_t count = 0;
        for (unsigned block = 0; block < grid; ++block) {
          layout::Walk walk = layout::walk_of(s, block);
          layout::Tile before{};
          for (unsigned n = 0; n < s.worker_tiles; ++n, walk = layout::next_of(steps, walk)) {
            const layout::Tile tile = layout::tile_at(steps, t.T, walk, 3);
            EXPECT_TRUE(n > 0 || tile.first);
            EXPECT_TRUE(n + 1 < s.worker_tiles || tile.last);
            EXPECT_TRUE(n == 0 || tile.first == before.last);
            if (!tile.first) {
              EXPECT_EQ(tile.batch, before.batch);
              EXPECT_EQ(tile.t_first, before.t_first + t.T);
            }
            before = tile;
            if (!tile.exists) continue;
            ++count;
            seen.insert({tile.batch, tile.t_first});
            EXPECT_LT(tile.t_first, g.length_out);
          }
        }
        EXPECT_EQ(count, seen.size());
        EXPECT_EQ(count, static_cast<std::size_t>(layout::tile_count(t, g)));
      }
}

TEST(WgmmaSharedFamily, DefaultsSatisfyTheConstraintsOfWhatItServes) {
  for (const char* profile : {"h100", "h200"})
    for (const Accuracy accuracy : kAccuracies)
      for (const Problem& problem : kOddProblems) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        ASSERT_FALSE(shared().refuses(context)) << *shared().refuses(context) << ", " << summary(problem);
        for (const Configuration& c :
             {shared().default_configuration(context), shared().general_configuration(context)}) {
          EXPECT_THAT(broken(context, c), ElementsAre()) << profile << ' ' << summary(problem) << ' ' << to_string(c);
          expect_listed(shared(), c, problem);
        }
      }
}

TEST(WgmmaSharedFamily, DefaultsServeAFewChannelsMoreThan128) {
  for (const Accuracy accuracy : {Accuracy::tf32, Accuracy::fp16, Accuracy::bf16})
    for (const Problem& problem :
         {Problem{64, 130, 130, 3, 1, 0, 0, 1, 1, false, 65536}, Problem{1, 20, 136, 3, 1, 1, 0, 3, 1, true, 777}}) {
      const BuildContext context = on_h200(problem, accuracy);
      ASSERT_FALSE(shared().refuses(context)) << *shared().refuses(context);
      for (const Configuration& c : {shared().default_configuration(context), shared().general_configuration(context)})
        EXPECT_THAT(broken(context, c), ElementsAre()) << summary(problem) << ' ' << to_string(c);
    }
}

TEST(WgmmaSharedFamily, SaysWhatItDoesNotServe) {
  const auto refusal = [](const Problem& problem, Accuracy accuracy, const char* profile) {
    return shared().refuses({problem, accuracy, read_profile(profile)}).value_or("");
  };
  EXPECT_EQ(refusal(kSeed, Accuracy::fp32, "h200"), "");
  EXPECT_EQ(refusal(kSeed, Accuracy::fp16, "h200"), "");
  EXPECT_EQ(refusal({1, 5, 32, 1, 1, 0, 0, 1, 1, true, 100}, Accuracy::bf16, "h200"), "");
  EXPECT_THAT(refusal(kSeed, Accuracy::fp32, "a100"), HasSubstr("sm_90a"));
  EXPECT_THAT(refusal({16, 64, 64, 16, 8, 4, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("stride 1"));
  EXPECT_THAT(refusal({1, 32, 32, 3, 1, 1, 0, 1, 2, true, 100}, Accuracy::fp32, "h200"), HasSubstr("one group"));
  EXPECT_THAT(refusal({1, 145, 32, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("144 channels"));
  EXPECT_THAT(refusal({1, 32, 137, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::fp16, "h200"), HasSubstr("136 out"));
  EXPECT_THAT(refusal({1, 32, 129, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("128 channels"));
  EXPECT_EQ(refusal({1, 130, 130, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::tf32, "h200"), "");
  EXPECT_THAT(refusal({1, 5, 32, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("16 products"));
  EXPECT_EQ(refusal({1, 5, 32, 3, 1, 1, 0, 1, 1, true, 100}, Accuracy::tf32, "h200"), "");
  EXPECT_THAT(refusal({1, 32, 32, 4, 1, 1, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("so many taps"));
  EXPECT_EQ(refusal({1, 32, 32, 4, 1, 1, 0, 1, 1, true, 100}, Accuracy::tf32, "h200"), "");
  EXPECT_THAT(refusal({1, 32, 32, 2, 1, 0, 0, 3000, 1, true, 100}, Accuracy::fp32, "h200"),
              HasSubstr("so wide a dilation"));
  EXPECT_THAT(refusal({1, 16, 1, 1, 1, 0, 0, 1, 1, false, 2200000000}, Accuracy::fp32, "h200"), HasSubstr("32 bits"));
}

TEST(WgmmaSharedFamily, RefusesConfigurationsWithTheirReason) {
  const auto reasons = [](Accuracy accuracy, auto change) {
    const BuildContext context = on_h200(kSeed, accuracy);
    auto t = to_tunables<layout::Tunables>(shared().default_configuration(context));
    change(t);
    return broken(context, to_configuration(t));
  };
  using T = layout::Tunables;
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.products = 1; }), Contains("class fp32 needs three products"));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.stages = 8; }), ElementsAre(HasSubstr("shared memory")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.producers = 8; }), Contains(HasSubstr("a stage of x")));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.products = 3; }), Contains(HasSubstr("have one part")));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.T = 96; }), Contains(HasSubstr("of 16 bits 64, 128 or 192")));
  EXPECT_THAT(reasons(Accuracy::bf16, [](T& t) { t.shadow = 4; }), ElementsAre());
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.shadow = 4; }), Contains(HasSubstr("a single group a stage")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.stages = 4; }), ElementsAre(HasSubstr("an old phase")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.consumer_registers = 200; }),
              ElementsAre(HasSubstr("sums and products in flight")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.consumer_registers = 144; }), Contains(HasSubstr("start with")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.shadow = 2; }), Contains(HasSubstr("shadow")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.products = 3; }), Contains(HasSubstr("no more than one")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.blocks = 8; }), ElementsAre(HasSubstr("as many blocks")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.stages = 16; }), ElementsAre(HasSubstr("than a tile has")));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.channels = 16, t.stages = 16; }), ElementsAre());
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.channels = 16; }), ElementsAre());
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.stages = 16; }), Contains(HasSubstr("of 16 bits two tiles")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.channels = 32; }), Contains(HasSubstr("a stage of every tile")));
  EXPECT_THAT(
      reasons(Accuracy::tf32, [](T& t) { t.channels = 32, t.producers = 4, t.stages = 4, t.consumer_registers = 168; }),
      ElementsAre());
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.channels = 32; }), Contains(HasSubstr("needs one product")));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.channels = 24; }), ElementsAre("channels must be 16 or 32"));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.streaming = 1; }), ElementsAre());
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.streaming = 2; }), ElementsAre("streaming must be 0 or 1"));
}

TEST(WgmmaSharedFamily, NineSixteensOfChannelsAreNotWholeStagesOf32) {
  const BuildContext context = on_h200({2, 130, 64, 3, 1, 0, 0, 1, 1, false, 1000}, Accuracy::fp16);
  auto t = to_tunables<layout::Tunables>(shared().default_configuration(context));
  EXPECT_THAT(broken(context, to_configuration(t)), ElementsAre());
  t.channels = 32;
  EXPECT_THAT(broken(context, to_configuration(t)), Contains(HasSubstr("whole stages")));
}

TEST(WgmmaSharedFamily, CountsTheProductsThatItExecutes) {
  const BuildContext context = on_h200(kSeed);
  const Program program = shared().build(context, shared().default_configuration(context));
  EXPECT_THAT(program.unit.kernels,
              ElementsAre("ct1d::wgmma_shared::kernel<128, 3, 4, 4, 208, 1, 0, 132, 0, 16, 3, 1, 2, 8, 0, float>",
                          "ct1d::wgmma_shared::pack<128, 3, 4, 4, 208, 1, 0, 132, 0, 16, 3, 1, 2, 8, 0, float>"));
  const double outputs = 64.0 * 513 * 128 * 128;  // whole tiles
  EXPECT_EQ(program.work.tensor_fp16, 3 * outputs * 128 * 3 * 2);
  EXPECT_EQ(program.work.fma_fp32, outputs * 8 * 2);
  const BuildContext bf16 = on_h200(kSeed, Accuracy::bf16);
  const Program halves = shared().build(bf16, shared().default_configuration(bf16));
  EXPECT_THAT(halves.unit.kernels.front(), HasSubstr("3, 1, 2, 8, 0, ct1d::Bfloat16>"));
  EXPECT_EQ(halves.work.bytes, program.work.bytes / 2);
  const BuildContext tf32 = on_h200(kSeed, Accuracy::tf32);
  EXPECT_EQ(shared().build(tf32, shared().default_configuration(tf32)).work.tensor_fp16, outputs * 128 * 3 * 2);
}

}  // namespace
}  // namespace tuner
