// The wgmma family without a GPU: layout arithmetic, order of tiles, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <set>

#include "kernels/wgmma/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::wgmma;

constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kSeed,
    {64, 128, 128, 3, 1, 0, 0, 1, 1, true, 65535},
    {64, 127, 130, 3, 1, 0, 0, 1, 1, false, 65536},
    {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {0, 3, 5, 3, 1, 0, 0, 1, 1, true, 7},
    {2, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {1, 1090, 1090, 3, 1, 1, 0, 1, 1090, true, 400},
    {1, 2048, 2048, 7, 1, 3, 0, 3, 1, false, 3000},
    {1, 40, 24, 5, 1, 0, 0, 400, 1, false, 3000},
    {1, 2, 2, 2, 1, 0, 0, 1000000, 1, false, 3},
    {16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100},
    {1, 64, 32, 11, 5, 3, 2, 1, 1, true, 700},
    {1, 1026, 1, 1024, 256, 512, 0, 1, 1, false, 900},
    {2, 48, 60, 3, 2, 1, 1, 3, 3, true, 800},
    {1, 32, 32, 4, 4, 0, 0, 6, 2, true, 41},
};

const Family& wgmma() { return *find_family("wgmma"); }
BuildContext on_h200(const Problem& problem, Accuracy accuracy = Accuracy::fp32) {
  return {problem, accuracy, read_profile("h200")};
}

std::vector<std::string> broken(const BuildContext& context, const Configuration& configuration) {
  std::vector<std::string> reasons;
  for (const Constraint& c : wgmma().constraints(context))
    if (!c.holds(configuration)) reasons.push_back(c.reason);
  return reasons;
}

layout::Tunables with(int OC_TILE, int products, int taps, int stages, int resident) {
  layout::Tunables t;
  t.OC_TILE = OC_TILE;
  t.products = products;
  t.taps = taps;
  t.stages = stages;
  t.resident = resident;
  return t;
}

TEST(WgmmaLayout, StatesTheSeedProblemsMemory) {
  const ct1d::Geometry g = kSeed.geometry();
  const layout::Tunables t = with(128, 3, 3, 2, 1);
  EXPECT_EQ(layout::step_bytes(t), 2 * 3 * 128 * 16 * 2);
  EXPECT_EQ(layout::pitch_of(t, 1, 4), 136 * 4);
  const layout::Facts facts = layout::facts_of(t, g, 4);
  EXPECT_EQ(facts.tap_step, 1);
  EXPECT_EQ(facts.slots, 8);  // 128 channels
  const layout::Shared s = layout::shared_of(t, 1, 8, 1, 4);
  EXPECT_EQ(s.raw, 8 * 24576);
  EXPECT_EQ(s.barriers, s.raw + 2 * 2 * 16 * 136 * 4);
  EXPECT_LE(s.bytes, 227 * 1024);
  EXPECT_EQ(s.schedule % 16 + s.stream % 16 + s.feeds % 16 + s.weight_barriers % 16, 0);
  const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
  EXPECT_EQ(shape.grid_x, 132u);
  EXPECT_EQ(shape.block_x, 256u);
  EXPECT_EQ(layout::prepare_shape(t, g, 4).grid_x, 128u);
  EXPECT_EQ(layout::packed_bytes(t, g, 4), 8 * 24576 + 2 * 128 * 4 + 128 * 3 * 128 * 4);
}

TEST(WgmmaLayout, ReadsOfRawXMeetAllBanks) {
  for (const int bytes : {4, 2})  // of an element: lanes read four, 16 or 8 bytes
    for (int taps = 1; taps <= 4; ++taps)
      for (const int tap_step : {1, 2, 3, 5, 10}) {
        layout::Tunables t;
        t.taps = taps;
        const int pitch = layout::pitch_of(t, tap_step, bytes);
        const int room = bytes == 2 ? 4 : 0;  // for rows that begin one element later
        ASSERT_GE(pitch, (layout::kPositions + layout::lead_of(t, tap_step, bytes)) * bytes + room);
        ASSERT_EQ(layout::lead_of(t, tap_step, bytes) * bytes % 16 + pitch % 16, 0);
        const int lanes = 32 / bytes;  // that are served together
        for (int first = 0; first < 32; first += lanes) {
          std::set<int> banks;
          for (int lane = first; lane < first + lanes; ++lane)
            for (int word = 0; word < bytes; ++word)
              banks.insert((lane % 4 * pitch / 4 + lane / 4 * bytes + word) % 32);
          EXPECT_EQ(banks.size(), 32u) << bytes << ' ' << taps << ' ' << tap_step;
        }
      }
}

TEST(WgmmaLayout, PackedWeightsHaveAPlaceEach) {
  const layout::Tunables t = with(72, 3, 2, 2, 1);
  std::set<int> places;
  for (int part = 0; part < 2; ++part)
    for (int tap = 0; tap < 2; ++tap)
      for (int channel = 0; channel < 16; ++channel)
        for (int column = 0; column < 72; ++column) places.insert(layout::pack_place(t, part, tap, channel, column));
  EXPECT_EQ(places.size(), 2u * 2 * 16 * 72);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), layout::step_bytes(t) / 2 - 1);
  EXPECT_EQ(layout::k_of_channel(0), 0);
  EXPECT_EQ(layout::k_of_channel(4), 1);
  EXPECT_EQ(layout::k_of_channel(1), 2);
  EXPECT_EQ(layout::k_of_channel(15), 15);
}

TEST(WgmmaLayout, TilesCoverEveryPositionOfEveryPanelOnce) {
  for (const int resident : {0, 1})
    for (const int strip : {0, 1, 3})
      for (const unsigned grid : {1u, 6u, 12u}) {
        const Problem problem{3, 32, 200, 3, 1, 5, 0, 1, 2, false, 1000};  // 2 groups of 2 panels of 64
        const ct1d::Geometry g = problem.geometry();
        layout::Tunables t = with(64, 3, 3, 2, resident);
        t.strip = strip;
        const auto panels = static_cast<unsigned>(layout::extent_of(t, g).panels);
        ASSERT_EQ(panels, 4u);
        const unsigned blocks = resident != 0 ? (grid + panels - 1) / panels * panels : grid;
        const layout::Schedule s = layout::schedule_of(t, g, 4, blocks);
        std::set<std::tuple<int, int>> seen;
        std::size_t count = 0;
        for (unsigned block = 0; block < blocks; ++block) {
          std::set<int> of_block;
          const layout::Share share = layout::share_of(t, s, g, block);
          for (unsigned n = 0; n < s.worker_tiles; ++n) {
            const layout::Tile tile = layout::tile_of(t, s, share, n);
            if (!tile.exists) continue;
            ++count;
            seen.insert({tile.panel, tile.first});
            of_block.insert(tile.panel);
            EXPECT_EQ(tile.first % layout::kBlockPositions, 0);
            EXPECT_LT(tile.first, 3 * layout::period_of(g, 4).places);
          }
          EXPECT_LE(of_block.size(), resident != 0 ? 1u : 4u);
          for (unsigned n = s.worker_tiles; n < s.worker_tiles + 9; ++n)
            EXPECT_FALSE(layout::tile_of(t, s, share, n).exists) << "what is asked for past the end must be nothing";
        }
        EXPECT_EQ(count, seen.size());
        EXPECT_EQ(count, static_cast<std::size_t>(layout::tile_count(t, g, 4)));
        EXPECT_GE(layout::place_tiles(g, 4) * layout::kBlockPositions, 3 * layout::period_of(g, 4).places);
      }
}

TEST(WgmmaLayout, PhasesAndOffsetsHaveEveryTapOnce) {
  for (const std::int64_t stride : {1, 2, 3, 4, 6, 8})
    for (const std::int64_t dilation : {1, 2, 3, 4, 6})
      for (const std::int64_t kernel : {1, 2, 3, 7, 16}) {
        const Problem problem{1, 16, 16, kernel, stride, 0, 0, dilation, 1, false, 40};
        const ct1d::Geometry g = problem.geometry();
        const ct1d::Offsets offsets = ct1d::offsets_of(g);
        std::multiset<std::int64_t> taps;
        for (std::int64_t phase = 0; phase < stride; ++phase)
          for (std::int64_t j = 0; j < offsets.count; ++j) {
            const std::int64_t tap = ct1d::tap_at_offset(g, phase, j);
            if (tap < 0) continue;
            taps.insert(tap);
            // position m of the phase reads x[m - j * step] by it
            EXPECT_EQ(tap * dilation, phase + j * offsets.step * stride);
          }
        EXPECT_EQ(taps.size(), static_cast<std::size_t>(kernel)) << stride << ' ' << dilation;
        EXPECT_EQ(std::set<std::int64_t>(taps.begin(), taps.end()).size(), taps.size());
      }
  const ct1d::Offsets upsampling = ct1d::offsets_of(Problem{1, 1, 1, 16, 8, 4, 0, 1, 1, true, 9}.geometry());
  EXPECT_EQ(upsampling.step, 1);
  EXPECT_EQ(upsampling.count, 2);
}

TEST(WgmmaLayout, ItemsHaveAPlaceForEveryOutputAndZerosBeforeTheNext) {
  for (const std::int64_t stride : {1, 2, 5, 8, 300})
    for (const std::int64_t padding : {0, 1, 4, 9, 35})
      for (const std::int64_t dilation : {1, 3})
        for (const std::int64_t length : {1, 7, 11, 50, 600})
          for (const int bytes : {4, 2}) {
            const Problem problem{3, 16, 16, 91, stride, padding, 0, dilation, 1, false, length};
            const ct1d::Geometry g = problem.geometry();
            if (g.length_out < 1) continue;
            const auto period = static_cast<std::int64_t>(layout::period_of(g, bytes).places);
            EXPECT_GE(period * stride, padding + g.length_out);
            EXPECT_EQ(period % (bytes == 2 && stride == 1 ? 8 : 4), 0);
            // what an item's first outputs read before it are places of the last one where x is not
            const std::int64_t before = ct1d::floor_div(dilation * 90 - padding, stride);
            EXPECT_GE(period - ct1d::max_of(0, before), before > 0 ? length : 1);
            EXPECT_LT(period - 8, (padding + g.length_out - 1) / stride + 1);
          }
}

TEST(WgmmaLayout, ItemsOfPlacesAreQuotients) {
  for (const std::int64_t length : {1, 11, 50, 61, 62, 1000, 65536, 1000000, 2000000000})
    for (const std::int64_t kernel : {1, 2, 7}) {
      const ct1d::Geometry g = Problem{1, 1, 1, kernel, 1, 0, 0, 1, 1, false, length}.geometry();
      const layout::Period period = layout::period_of(g, 4);
      for (const unsigned item : {0u, 1u, 2u, 1000u, 2147483647u / period.places})
        for (const int off : {-1, 0, 1, 3}) {
          const auto place = static_cast<std::int64_t>(item) * period.places + off;
          if (place < 0 || place > 2147483647) continue;
          EXPECT_EQ(layout::item_of(period, static_cast<unsigned>(place)), place / period.places) << place;
        }
    }
}

TEST(WgmmaLayout, StreamedWeightsTakeWhatIsLeft) {
  EXPECT_EQ(layout::streamed_slots(with(32, 3, 1, 4, 0), 1, 1, 4), 8);
  const layout::Tunables large = with(128, 3, 3, 4, 0);
  const int slots = layout::streamed_slots(large, 1, 1, 4);
  EXPECT_LE(layout::shared_of(large, 1, slots, 1, 4).bytes, layout::shared_budget(large));
  EXPECT_GT(layout::shared_of(large, 1, slots + 1, 1, 4).bytes, layout::shared_budget(large));
}

TEST(WgmmaLayout, StagedPanelsHoldWholeOutputChannels) {
  EXPECT_EQ(layout::width_of(128, 5), 125);
  EXPECT_EQ(layout::width_of(120, 5), 120);
  EXPECT_EQ(layout::width_of(56, 7), 56);
  for (const int stride : {1, 2, 4, 8, 256}) EXPECT_EQ(layout::width_of(120, stride), 120);
  EXPECT_EQ(layout::width_of(32, 0), 32) << "a stride known at run time";
  EXPECT_EQ(layout::width_of(8, 11), 8) << "a channel that does not fit";
  const Problem problem{1, 16, 50, 10, 5, 0, 0, 1, 2, false, 100};  // 25 channels a group: one in the second panel
  EXPECT_EQ(layout::extent_of(with(120, 1, 2, 4, 1), problem.geometry()).group_panels, 2);
  EXPECT_EQ(layout::extent_of(with(120, 1, 2, 4, 1), problem.geometry()).panels, 4);
}

TEST(WgmmaLayout, StagedRunsHaveRoomWhereverTheyBegin) {
  for (const int bytes : {4, 2})
    for (int stride = 3; stride <= 44; ++stride)
      for (int columns = 8; columns <= 128; columns += 8) {
        const layout::Staging s = layout::staging_of(columns, stride, bytes);
        ASSERT_EQ(s.bytes > 0, layout::is_staged(columns, stride));
        if (s.bytes == 0) continue;
        EXPECT_GE(s.channels, 1);
        EXPECT_LE(s.channels * stride, columns);
        EXPECT_LE(s.bytes, layout::kStagingBudget);
        EXPECT_EQ(s.pitch * bytes % 16, 0);
        EXPECT_GE(s.pitch, 32 * stride + 16 / bytes);  // whole pieces, one of them begun before the run
      }
}

TEST(WgmmaFamily, DefaultsSatisfyTheConstraintsOfWhatItServes) {
  for (const char* profile : {"h100", "h200"})
    for (const Accuracy accuracy : kAccuracies)
      for (const Problem& problem : kOddProblems) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        if (accuracy == Accuracy::fp32 && problem.max_products() < 16) continue;
        ASSERT_FALSE(wgmma().refuses(context)) << *wgmma().refuses(context) << ", " << summary(problem);
        for (const Configuration& c :
             {wgmma().default_configuration(context), wgmma().general_configuration(context)}) {
          EXPECT_THAT(broken(context, c), ElementsAre()) << profile << ' ' << summary(problem) << ' ' << to_string(c);
          expect_listed(wgmma(), c, problem);
        }
      }
}

TEST(WgmmaFamily, DefaultsAreWideWhereThatKeepsEverySmBusy) {
  const auto of = [](const Problem& problem) {
    return to_tunables<layout::Tunables>(wgmma().default_configuration(on_h200(problem)));
  };
  EXPECT_EQ(of({72, 768, 384, 16, 8, 4, 0, 1, 1, true, 264}).OC_TILE, 128);  // 1824 tiles
  const Problem small{4, 2048, 768, 8, 4, 2, 0, 1, 1, true, 236};            // 96 of them, more if narrower
  const layout::Tunables t = of(small);
  EXPECT_LT(t.OC_TILE, 128);
  EXPECT_GT(layout::tile_count(t, small.geometry(), 4), 96);
}

TEST(WgmmaFamily, SaysWhatItDoesNotServe) {
  const auto refusal = [](const Problem& problem, Accuracy accuracy, const char* profile) {
    return wgmma().refuses({problem, accuracy, read_profile(profile)}).value_or("");
  };
  EXPECT_EQ(refusal(kSeed, Accuracy::fp32, "h200"), "");
  EXPECT_EQ(refusal(kSeed, Accuracy::fp16, "h200"), "");
  EXPECT_THAT(refusal(kSeed, Accuracy::fp32, "a100"), HasSubstr("sm_90a"));
  EXPECT_THAT(refusal(kSeed, Accuracy::fp32, "b200"), HasSubstr("sm_90a"));
  EXPECT_EQ(refusal({16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), "");
  EXPECT_THAT(refusal({16, 8, 4, 8, 8, 0, 0, 1, 1, true, 100}, Accuracy::fp32, "h200"), HasSubstr("16 products"));
  EXPECT_THAT(refusal({1, 130, 130, 5, 1, 2, 0, 1, 130, true, 1500}, Accuracy::fp32, "h200"), HasSubstr("16 products"));
  EXPECT_EQ(refusal({1, 130, 130, 5, 1, 2, 0, 1, 130, true, 1500}, Accuracy::tf32, "h200"), "");
  EXPECT_THAT(refusal({1, 16, 1, 1, 1, 0, 0, 1, 1, false, 2200000000}, Accuracy::fp32, "h200"), HasSubstr("32 bits"));
  EXPECT_THAT(refusal({1, 16, 1, 2, 1, 0, 0, 1099511627776, 1, false, 100}, Accuracy::fp32, "h200"),
              HasSubstr("32 bits"));
}

TEST(WgmmaFamily, RefusesConfigurationsWithTheirReason) {
  const auto reasons = [](const Problem& problem, Accuracy accuracy, auto change) {
    const BuildContext context = on_h200(problem, accuracy);
    auto t = to_tunables<layout::Tunables>(wgmma().default_configuration(context));
    change(t);
    return broken(context, to_configuration(t));
  };
  using T = layout::Tunables;
  EXPECT_THAT(reasons(kSeed, Accuracy::fp32, [](T& t) { t.products = 1; }),
              ElementsAre("class fp32 needs three products"));
  EXPECT_THAT(reasons(kSeed, Accuracy::fp32, [](T& t) { t.stages = 3; }), Contains(HasSubstr("shared memory")));
  Problem narrow = kSeed;
  narrow.in_channels = 64;
  EXPECT_THAT(reasons(narrow, Accuracy::tf32, [](T& t) { t.halves = 2, t.promote = 0; }),
              Contains(HasSubstr("halves")));
  EXPECT_THAT(reasons(narrow, Accuracy::tf32, [](T& t) { t.promote = 0; }), ElementsAre());
  EXPECT_THAT(reasons(narrow, Accuracy::fp32, [](T& t) { t.promote = 0; }), Contains(HasSubstr("promote")));
  EXPECT_THAT(reasons(kSeed, Accuracy::tf32, [](T& t) { t.promote = 0; }), Contains(HasSubstr("at most 256")));
  EXPECT_THAT(reasons(kSeed, Accuracy::tf32, [](T& t) { t.products = 3; }), Contains(HasSubstr("only class fp32")));
  EXPECT_THAT(reasons(kSeed, Accuracy::fp16, [](T& t) { t.promote = 0; }), ElementsAre());  // 384 terms
  EXPECT_THAT(reasons(kSeed, Accuracy::bf16, [](T& t) { t.products = 3; }), Contains(HasSubstr("one part")));
  EXPECT_THAT(reasons(kSeed, Accuracy::tf32, [](T& t) { t.streaming = 1; }), ElementsAre());
  EXPECT_THAT(reasons(kSeed, Accuracy::tf32, [](T& t) { t.streaming = 2; }), ElementsAre("streaming must be 0 or 1"));
  Problem longer = kSeed;
  longer.kernel_size = 4;
  EXPECT_THAT(reasons(longer, Accuracy::fp16, [](T& t) { t.promote = 0; }), Contains(HasSubstr("at most 384")));
  EXPECT_THAT(reasons(longer, Accuracy::bf16, [](T& t) { t.promote = 0; }), ElementsAre());
  Problem dilated = kSeed;
  dilated.dilation = 4;
  EXPECT_THAT(reasons(dilated, Accuracy::fp32, [](T& t) { t.taps = 3, t.OC_TILE = 128; }),
              Contains(HasSubstr("registers")));
  Problem grouped = kSeed;
  grouped.groups = 2;
  grouped.out_channels = grouped.in_channels = 2 * 32 * 132;
  EXPECT_THAT(reasons(grouped, Accuracy::fp32, [](T& t) { t.resident = 1, t.OC_TILE = 32; }),
              Contains(HasSubstr("a block for every")));
}

TEST(WgmmaFamily, OneInstanceServesEveryProblem) {
  std::set<std::vector<std::string>> kernels;
  for (const Problem& problem : kOddProblems) {
    const BuildContext context = on_h200(problem);
    kernels.insert(wgmma().build(context, wgmma().general_configuration(context)).unit.kernels);
  }
  EXPECT_THAT(kernels, ElementsAre(ElementsAre(
                           "ct1d::wgmma::kernel<32, 3, 1, 1, 1, 4, 0, 0, 0, 0, 132, 1, 1, 0, 0, 1, 8, 0, float>",
                           "ct1d::wgmma::pack<32, 3, 1, 1, 1, 4, 0, 0, 0, 0, 132, 1, 1, 0, 0, 1, 8, 0, float>")));
}

TEST(WgmmaFamily, NarrowTilesShareAnSm) {
  const Problem one_channel{64, 48, 1, 8, 4, 0, 0, 1, 1, true, 64084};
  const BuildContext context = on_h200(one_channel);
  const Configuration configuration = wgmma().default_configuration(context);
  const auto t = to_tunables<layout::Tunables>(configuration);
  EXPECT_EQ(t.OC_TILE, 8);
  EXPECT_EQ(t.min_blocks, 3);
  const auto shape = wgmma().build(context, configuration).run.front().shape;
  EXPECT_EQ(shape.grid_x, 396u);
  EXPECT_LE(shape.shared_bytes, 75u * 1024);
  EXPECT_EQ(layout::shared_budget(with(8, 3, 2, 4, 1)), 227 * 1024);
  auto wide = to_tunables<layout::Tunables>(wgmma().default_configuration(on_h200(kSeed)));
  EXPECT_EQ(wide.min_blocks, 1);
  wide.min_blocks = 2;
  EXPECT_THAT(broken(on_h200(kSeed), to_configuration(wide)),
              testing::UnorderedElementsAre(HasSubstr("registers"), HasSubstr("shared memory")));
}

TEST(WgmmaFamily, CountsTheProductsThatItExecutes) {
  const BuildContext context = on_h200(kSeed);
  const Program program = wgmma().build(context, wgmma().default_configuration(context));
  const double outputs = 16385.0 * 256 * 128;  // whole tiles of 64 items of 65540
  EXPECT_EQ(program.work.tensor_fp16, 3 * outputs * 128 * 3 * 2);
  EXPECT_GE(program.work.tensor_fp16, 3 * kSeed.flop());
  EXPECT_EQ(program.work.fma_fp32, outputs * 8 * 2);
  const BuildContext tf32 = on_h200(kSeed, Accuracy::tf32);
  EXPECT_EQ(wgmma().build(tf32, wgmma().default_configuration(tf32)).work.tensor_fp16, outputs * 128 * 3 * 2);
  const BuildContext half = on_h200(kSeed, Accuracy::fp16);
  const Program of_half = wgmma().build(half, wgmma().default_configuration(half));
  EXPECT_EQ(of_half.work.tensor_fp16, 16386.0 * 256 * 128 * 128 * 3 * 2);  // items of 65544
  EXPECT_EQ(of_half.work.fma_fp32, 0);
  EXPECT_EQ(of_half.work.bytes, kSeed.min_bytes(2));
  EXPECT_THAT(of_half.unit.kernels[0], HasSubstr("ct1d::Half>"));
}

}  // namespace
}  // namespace tuner
