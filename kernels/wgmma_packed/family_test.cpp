// The wgmma_packed family without a GPU: layout arithmetic, order of tiles, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "kernels/wgmma_packed/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::wgmma_packed;
using T = layout::Tunables;

/// EnCodec's first layer: rows shorter than a tile, two taps a phase.
constexpr Problem kEncodec{64, 1024, 512, 16, 8, 0, 0, 1, 1, true, 50};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kEncodec,
    {0, 16, 5, 3, 1, 0, 0, 1, 1, true, 7},
    {1, 17, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {72, 1536, 768, 24, 12, 6, 0, 1, 1, true, 11},
    {64, 256, 128, 25, 4, 11, 1, 1, 1, true, 1024},
    {3, 33, 20, 10, 5, 3, 1, 1, 1, true, 301},
    {1, 80, 80, 1024, 256, 0, 0, 1, 1, false, 862},
    {2, 40, 3, 3, 2, 2, 1, 3, 1, true, 95},
    {1, 64, 9, 204, 102, 5, 0, 1, 1, true, 40},
};

const Family& packed() { return *find_family("wgmma_packed"); }
BuildContext on_h200(const Problem& problem, Accuracy accuracy = Accuracy::fp32) {
  return {problem, accuracy, read_profile("h200")};
}
std::vector<std::string> broken(const BuildContext& context, const Configuration& configuration) {
  std::vector<std::string> reasons;
  for (const Constraint& c : packed().constraints(context))
    if (!c.holds(configuration)) reasons.push_back(c.reason);
  return reasons;
}

TEST(WgmmaPackedLayout, DividesAsTheProcessorDoes) {
  for (const ct1d::int64 by : {1ll, 2ll, 3ll, 4ll, 7ll, 60ll, 65540ll, 1048576ll, 1073741823ll, 2147483647ll})
    for (const ct1d::int64 value :
         {0ll, 1ll, by - 1, by, by + 1, 2 * by - 1, 2 * by, 1000000007ll, 2147483646ll, 2147483647ll})
      if (value <= 2147483647ll) {
        EXPECT_EQ(layout::divider_of(by).quotient(static_cast<unsigned>(value)), static_cast<unsigned>(value / by))
            << value << " / " << by;
      }
}

TEST(WgmmaPackedLayout, ItemsLeaveRoomForWhatTheirTapsReach) {
  EXPECT_EQ(layout::period_of(kEncodec.geometry()), 52);  // 50 positions, and one more that a tap reaches
  EXPECT_EQ(layout::period_of(Problem{2, 16, 8, 3, 1, 2, 0, 1, 1, false, 10}.geometry()), 12);
  EXPECT_EQ(layout::period_of(Problem{2, 16, 8, 3, 1, 0, 0, 4, 1, false, 10}.geometry()), 20);
  EXPECT_EQ(layout::period_of(Problem{2, 16, 8, 2, 7, 0, 6, 1, 1, false, 8}.geometry()), 12);
}

TEST(WgmmaPackedLayout, GroupsOfStagesDivideThemAndKeepToTheTerms) {
  T one;
  one.products = 1;
  const auto group = [&](const T& t, std::int64_t channels, std::int64_t taps, std::int64_t terms) {
    return layout::facts_of(t, Problem{1, channels, 8, taps, 1, 0, 0, 1, 1, false, 99}.geometry(), terms).group;
  };
  EXPECT_EQ(group(one, 1024, 2, 256), 8);
  EXPECT_EQ(group(one, 1024, 2, 130), 4);
  EXPECT_EQ(group(one, 1024, 7, 256), 2);
  EXPECT_EQ(group(one, 1024, 8, 20), 1);
  EXPECT_EQ(group(one, 384, 1, 1024), 8);  // 24 stages
  EXPECT_EQ(group(one, 80, 1, 1024), 5);
  EXPECT_EQ(group(one, 17 * 16, 1, 1024), 1);
  EXPECT_EQ(group(T{}, 1024, 7, 1), 8) << "three products are promoted by stages whatever the group";
}

TEST(WgmmaPackedLayout, PackedWeightsHaveAPlaceEach) {
  std::set<int> places;
  for (int part = 0; part < 2; ++part)
    for (int offset = 0; offset < 3; ++offset)
      for (int channel = 0; channel < 16; ++channel)
        for (int row = 0; row < 64; ++row) places.insert(layout::pack_place(3, part, offset, channel, row));
  EXPECT_EQ(places.size(), 2u * 3 * 16 * 64);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), layout::panel_bytes(T{}, 3) / 2 - 1);
}

TEST(WgmmaPackedLayout, TilesCoverPanelsAndPlacesOnce) {
  for (const Problem& problem : kOddProblems)
    for (const int rows : {64, 128})
      for (const int band : {1, 4, 32}) {
        T t;
        t.rows = rows;
        t.band = band;
        const ct1d::Geometry g = problem.geometry();
        const layout::Schedule s = layout::schedule_of(t, g);
        const layout::Extent e = layout::extent_of(t, g);
        std::set<std::tuple<int, int>> seen;
        for (unsigned n = 0; n < s.tiles; ++n) {
          const layout::Tile tile = layout::tile_of(t, s, n);
          EXPECT_LT(tile.panel, e.panels);
          EXPECT_LT(tile.places, e.place_tiles);
          seen.insert({tile.panel, tile.places});
        }
        EXPECT_EQ(seen.size(), s.tiles);
        EXPECT_GE(s.tiles * 2, e.panels * e.place_tiles);
      }
}

TEST(WgmmaPackedLayout, BlocksOfAClusterHaveTilesSideBySide) {
  for (const Problem& problem : kOddProblems)
    for (const int rows : {64, 128})
      for (const int band : {2, 4, 32}) {
        T t;
        t.rows = rows;
        t.band = band;
        t.cluster = 2;
        t.blocks = 6;
        const ct1d::Geometry g = problem.geometry();
        const layout::Schedule s = layout::schedule_of(t, g);
        const layout::Extent e = layout::extent_of(t, g);
        std::set<std::tuple<int, int>> seen;  // by blocks of 64 rows
        for (unsigned n = 0; n < s.tiles; ++n) {
          const layout::Tile tile = layout::tile_of(t, s, n);
          EXPECT_EQ(tile.places % (2 * t.place_tiles()), 0);
          for (int i = 0; i < 2 * t.place_tiles(); ++i)
            for (int j = 0; j < t.row_tiles(); ++j) seen.insert({tile.panel + j, tile.places + i});
        }
        EXPECT_EQ(seen.size(), s.tiles * 4u) << "none twice";
        for (int panel = 0; panel < e.panels; ++panel)
          for (int places = 0; places < e.place_tiles; ++places) EXPECT_EQ(seen.count({panel, places}), 1u);
        const ct1d::LaunchShape shape = layout::run_shape(t, g, layout::facts_of(t, g, 256));
        EXPECT_EQ(shape.cluster_x, 2u);
        EXPECT_EQ(shape.grid_x % 2, 0u);
        EXPECT_LE(shape.grid_x, 6u);
        EXPECT_LE(shape.grid_x, std::max(2u, 2 * s.tiles));
      }
}

TEST(WgmmaPackedLayout, StatesTheMemoryOfALayer) {
  const ct1d::Geometry g = kEncodec.geometry();
  const T t;  // T=128 rows=128 products=3
  const layout::Facts f = layout::facts_of(t, g, 256);
  EXPECT_EQ(std::tuple(f.offsets, f.step, f.stride, f.halo, f.group), std::tuple(2, 1, 8, 1, 8));
  const layout::Extent e = layout::extent_of(t, g);
  EXPECT_EQ(std::tuple(e.width, e.panels, e.steps, e.places, e.place_tiles), std::tuple(64, 64, 64, 64 * 52, 26));
  const int image = 2 * 2 * 129 * 16;
  EXPECT_EQ(layout::image_bytes(t, f.halo), image);
  const layout::Workspace w = layout::workspace_of(t, g, f, 4);
  EXPECT_EQ(w.inverse, 26 * 64 * image);
  EXPECT_EQ(w.flags, w.inverse + 26 * 8 * 4);
  EXPECT_EQ(w.bytes, w.flags + 26 * 8 * 8);
  const layout::Shared s = layout::shared_of(t, f.offsets, f.halo);
  EXPECT_EQ(s.image, 2 * 2 * 2 * 2048);
  EXPECT_EQ(s.slot_bytes % 128, 0);
  EXPECT_GE(s.slot_bytes, s.image + image);
  EXPECT_EQ((s.barriers | s.schedule | s.staging | s.quads | s.flags) % 8, 0);
  EXPECT_EQ((s.schedule | s.staging | s.quads) % 16, 0);
}

TEST(WgmmaPackedFamily, DefaultsSatisfyTheConstraintsOfWhatItServes) {
  for (const char* profile : {"h100", "h200"})
    for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16})
      for (const Problem& problem : kOddProblems) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        ASSERT_FALSE(packed().refuses(context)) << *packed().refuses(context) << ", " << summary(problem);
        for (const Configuration& c :
             {packed().default_configuration(context), packed().general_configuration(context)}) {
          EXPECT_THAT(broken(context, c), ElementsAre()) << profile << ' ' << summary(problem) << ' ' << to_string(c);
          expect_listed(packed(), c, problem);
        }
      }
}

TEST(WgmmaPackedFamily, StartsWithoutClusters) {
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16})
    EXPECT_EQ(to_tunables<T>(packed().default_configuration(on_h200(kEncodec, accuracy))).cluster, 1);
}

TEST(WgmmaPackedFamily, ResultsOlderThanClustersHaveNone) {
  const BuildContext context = on_h200(kEncodec, Accuracy::fp16);
  Configuration recorded = packed().default_configuration(context);
  ASSERT_EQ(recorded.back().first, "cluster");
  recorded.pop_back();
  const Configuration read = recorded_configuration(packed(), context, {"wgmma_packed", recorded});
  EXPECT_EQ(to_tunables<T>(read).cluster, 1);
  EXPECT_EQ(to_tunables<T>(read).T, to_tunables<T>(recorded).T);
}

TEST(WgmmaPackedFamily, GeneralConfigurationsShareInstances) {
  EXPECT_LE(general_kernels(packed(), kOddProblems).size(), 4u) << "1, 2, 4 and 8 offsets";
}

TEST(WgmmaPackedFamily, EmittedHeadersAskForTheShapesAndSizesOfTheProgram) {
  const auto fields = [](const ct1d::LaunchShape& s) {
    return std::tuple(s.grid_x, s.grid_y, s.block_x, s.shared_bytes, s.cluster_x);
  };
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16})
    for (const Problem& problem : kOddProblems) {
      const BuildContext context = on_h200(problem, accuracy);
      const Configuration configuration = packed().default_configuration(context);
      const Program program = packed().build(context, configuration);
      const T t = to_tunables<T>(configuration);
      const ct1d::Geometry g = problem.geometry();
      const int bytes = bytes_of(element_of(accuracy));
      EXPECT_EQ(static_cast<std::size_t>(layout::packed_bytes(t, g, bytes)), program.packed_bytes);
      EXPECT_EQ(static_cast<std::size_t>(layout::workspace_bytes(t, g, bytes)), program.workspace_bytes);
      for (int kernel = 0; kernel < 2; ++kernel)
        EXPECT_EQ(fields(layout::run_shape(t, g, bytes, kernel)),
                  fields(program.run[static_cast<std::size_t>(kernel)].shape))
            << summary(problem) << ' ' << to_string(configuration);
      EXPECT_EQ(fields(layout::prepare_shape(t, g, bytes)), fields(program.prepare.front().shape));
    }
}

TEST(WgmmaPackedFamily, SaysWhatItDoesNotServe) {
  const auto refusal = [](const Problem& problem, const char* profile) {
    return packed().refuses({problem, Accuracy::fp16, read_profile(profile)}).value_or("");
  };
  EXPECT_EQ(refusal(kEncodec, "h200"), "");
  EXPECT_THAT(refusal(kEncodec, "a100"), HasSubstr("sm_90a"));
  EXPECT_THAT(refusal({1, 32, 32, 3, 1, 1, 0, 1, 2, true, 100}, "h200"), HasSubstr("one group"));
  EXPECT_THAT(refusal({1, 15, 32, 3, 1, 1, 0, 1, 1, true, 100}, "h200"), HasSubstr("16 input channels"));
  EXPECT_THAT(refusal({1, 16, 32, 9, 1, 1, 0, 1, 1, true, 100}, "h200"), HasSubstr("at most 8"));
  EXPECT_THAT(refusal({1, 16, 32, 3, 1, 1, 0, 9, 1, true, 100}, "h200"), HasSubstr("reach back 16"));
  EXPECT_THAT(refusal({1, 16, 1, 1, 1, 0, 0, 1, 1, false, 2200000000}, "h200"), HasSubstr("32 bits"));
  EXPECT_THAT(refusal({1, 16, 1, 1, 1025, 0, 0, 1, 1, false, 9}, "h200"), HasSubstr("strides up to 1024"));
}

TEST(WgmmaPackedFamily, RefusesConfigurationsWithTheirReason) {
  const auto reasons = [](Accuracy accuracy, auto change) {
    const BuildContext context = on_h200(kEncodec, accuracy);
    auto t = to_tunables<T>(packed().default_configuration(context));
    change(t);
    return broken(context, to_configuration(t));
  };
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.products = 1; }), Contains("class fp32 needs three products"));
  for (const int rows : {1, 32, 96, 192})  // as a file may have them
    EXPECT_THAT(reasons(Accuracy::fp32, [&](T& t) { t.rows = rows; }), Contains(HasSubstr("rows must be 128 or 64")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.T = 192; }), Contains(HasSubstr("leave registers")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.stages = 12; }), Contains(HasSubstr("shared memory")));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.products = 3; }), Contains(HasSubstr("one part")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.products = 3; }), Contains(HasSubstr("no more than one")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.blocks = 8; }), ElementsAre(HasSubstr("as many blocks")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.band = 64; }), ElementsAre(HasSubstr("band must not exceed")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.cluster = 4; }), Contains("cluster must be 1 or 2"));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.cluster = 2, t.blocks = 33; }),
              Contains(HasSubstr("a multiple of the cluster")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.cluster = 2, t.band = 1; }),
              ElementsAre(HasSubstr("have the same panels")));
  const BuildContext one = on_h200({1, 64, 64, 4, 2, 1, 0, 1, 1, true, 40}, Accuracy::tf32);
  auto t = to_tunables<T>(packed().default_configuration(one));
  t.cluster = 2;
  EXPECT_THAT(broken(one, to_configuration(t)), Contains(HasSubstr("as many tiles of places as it has blocks")));
}

TEST(WgmmaPackedFamily, PacksXInEveryCallAndCountsTheProductsThatItExecutes) {
  const BuildContext context = on_h200(kEncodec);
  T t;
  t.stages = 8;
  const Program program = packed().build(context, to_configuration(t));
  const std::string arguments = "<128, 128, 3, 8, 8, 132, 1, 2, 1, 8, 1, 8, float>";
  EXPECT_THAT(program.unit.kernels,
              ElementsAre("ct1d::wgmma_packed::kernel" + arguments, "ct1d::wgmma_packed::pack_x" + arguments,
                          "ct1d::wgmma_packed::pack" + arguments));
  ASSERT_EQ(program.run.size(), 2u);
  EXPECT_THAT(program.run.front().kernel, HasSubstr("pack_x"));
  EXPECT_EQ(program.run.front().shape.grid_x, 26u * 8);
  EXPECT_EQ(program.run.back().shape.grid_x, 132u);
  EXPECT_EQ(program.prepare.front().shape.grid_x, 64u * 64);
  const double outputs = 26.0 * 128 * 64 * 64;  // whole tiles
  EXPECT_EQ(program.work.tensor_fp16, 3 * outputs * 1024 * 2 * 2);
  EXPECT_EQ(program.workspace_bytes,
            static_cast<std::size_t>(
                layout::workspace_of(t, kEncodec.geometry(), layout::facts_of(t, kEncodec.geometry(), 256), 4).bytes));
}

}  // namespace
}  // namespace tuner
