// The wgmma_fused family without a GPU: layout arithmetic, shares of the work, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <tuple>

#include "kernels/wgmma_fused/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::wgmma_fused;
using T = layout::Tunables;

/// A vocoder's layer: 8 steps of channels, two taps a phase, 8 panels of rows.
constexpr Problem kVocoder{16, 128, 64, 16, 8, 4, 0, 1, 1, true, 1000};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kOddProblems{
    kVocoder,
    {0, 16, 5, 3, 1, 0, 0, 1, 1, true, 7},
    {1, 17, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {64, 1024, 512, 16, 8, 0, 0, 1, 1, true, 50},
    {64, 256, 128, 25, 4, 11, 1, 1, 1, true, 1024},
    {3, 33, 20, 10, 5, 3, 1, 1, 1, true, 301},
    {1, 80, 80, 1024, 256, 0, 0, 1, 1, false, 862},
    {2, 40, 3, 3, 2, 2, 1, 3, 1, true, 95},
    {1, 64, 9, 204, 102, 5, 0, 1, 1, true, 40},
};

const Family& fused() { return *find_family("wgmma_fused"); }
BuildContext on_h200(const Problem& problem, Accuracy accuracy = Accuracy::fp32) {
  return {problem, accuracy, read_profile("h200")};
}
std::vector<std::string> broken(const BuildContext& context, const Configuration& configuration) {
  std::vector<std::string> reasons;
  for (const Constraint& c : fused().constraints(context))
    if (!c.holds(configuration)) reasons.push_back(c.reason);
  return reasons;
}

/// How many tiles of T places and panels of rows a grid's blocks multiply, by both.
std::map<std::tuple<int, int>, int> tiles_of(const T& t, const ct1d::Geometry& g, unsigned blocks) {
  std::map<std::tuple<int, int>, int> times;
  const layout::Grid grid = layout::grid_of(t, g);
  for (unsigned block = 0; block < blocks; ++block) {
    const layout::Share share = layout::share_of(grid, block);
    for (unsigned n = 0; n < share.places * static_cast<unsigned>(t.passes); ++n) {
      const layout::Tile tile = layout::tile_of(t, share, n);
      for (int i = 0; i < t.place_tiles(); ++i)
        for (int j = 0; j < t.row_tiles(); ++j) ++times[{tile.panel + j, tile.places + i}];
    }
  }
  return times;
}

TEST(WgmmaFusedLayout, SharesCoverGroupsOfPlacesAndRowsOnce) {
  for (const Problem& problem : kOddProblems)
    for (const int places : {64, 96, 128})
      for (const int rows : {64, 128})
        for (const int passes : {1, 2, 3, 8})
          for (const int blocks : {1, 7, 132}) {
            T t;
            t.T = places;
            t.rows = rows;
            t.passes = passes;
            t.blocks = blocks;
            const ct1d::Geometry g = problem.geometry();
            const layout::Extent e = layout::extent_of(t, g);
            const ct1d::LaunchShape shape = layout::run_shape(t, g, 4);
            const layout::Grid grid = layout::grid_of(t, g);
            EXPECT_LE(shape.grid_x, std::max(static_cast<unsigned>(blocks), grid.chunks));
            const auto times = tiles_of(t, g, shape.grid_x);
            for (const auto& [tile, count] : times) EXPECT_EQ(count, 1) << summary(problem);
            const std::int64_t chunk = passes * t.row_tiles(), group = t.place_tiles();
            EXPECT_EQ(static_cast<std::int64_t>(times.size()),
                      ct1d::ceil_div(e.panels, chunk) * chunk * ct1d::ceil_div(e.place_tiles, group) * group);
            for (int panel = 0; panel < e.panels; ++panel)
              for (int place = 0; place < e.place_tiles; ++place) EXPECT_EQ(times.count({panel, place}), 1u);
          }
}

TEST(WgmmaFusedLayout, BlocksOfAChunkAreNearlyEqual) {
  for (const Problem& problem : kOddProblems) {
    const T t;
    const layout::Grid grid = layout::grid_of(t, problem.geometry());
    unsigned most = 0, least = ~0u;
    for (unsigned block = 0; block < grid.chunks * grid.workers; ++block) {
      const unsigned places = layout::share_of(grid, block).places;
      most = std::max(most, places);
      least = std::min(least, places);
    }
    EXPECT_LE(most, least + 1) << summary(problem);
  }
}

/// What is certain of other images when a warp begins one. `halves`: 2, a consumer has every other image.
class Walk {
 public:
  static constexpr int kMost = 1024;
  using Images = std::bitset<kMost>;

  Walk(int count, int stages, int converters, int halves)
      : slots_(static_cast<std::size_t>(count)), released_(slots_.size()) {
    // Multiplied, and so released, in order by each consumer: of its latest image.
    std::vector<Known> at_release(slots_.size());
    for (int i = 0; i < count; ++i) {
      Known known = i >= converters ? slots_[at(i - converters)] : Known{};
      if (i >= converters) known.converted.set(at(i - converters));
      released_[at(i)] = known.released;
      if (i >= stages) known.add(at_release[at(i - stages)]);
      slots_[at(i)] = known;
      at_release[at(i)] = known;
      at_release[at(i)].converted.set(at(i));
      at_release[at(i)].released.set(at(i));
      if (i >= halves) at_release[at(i)].add(at_release[at(i - halves)]);
    }
  }
  /// Images that are converted for certain.
  const Images& before(int image) const { return slots_[at(image)].converted; }
  /// Images whose slots are released for certain when the warp comes to wait for that of `image`.
  const Images& released_before(int image) const { return released_[at(image)]; }

 private:
  struct Known {
    Images converted, released;
    void add(const Known& other) {
      converted |= other.converted;
      released |= other.released;
    }
  };
  static std::size_t at(int image) { return static_cast<std::size_t>(image); }
  std::vector<Known> slots_;  // when the warp has the slot
  std::vector<Images> released_;
};

/// Whether all images of the group `behind` groups before that of any image are there when it begins.
bool are_there(const Walk& walk, int count, int images, int behind) {
  for (int i = behind * images; i < count; ++i) {
    const int first = (i / images - behind) * images;
    for (int j = first; j < first + images; ++j)
      if (!walk.before(i)[static_cast<std::size_t>(j)]) return false;
  }
  return true;
}

struct Ring {
  int stages, producers, rows, steps;
};
template <class Visit>
void each_ring(const Visit& visit) {
  for (const int stages : {4, 6, 8, 12, 16, 24, 32})
    for (const int producers : {4, 8})
      for (const int rows : {64, 128})
        for (const int steps : {1, 2, 3, 4, 5, 7, 8, 13, 16, 33, 64})
          if (stages >= (producers - 1) * (rows == 64 ? 2 : 1)) visit(Ring{stages, producers, rows, steps});
}

/// A wait tells a phase from the one before only by its parity: the slot's last but one use must be over for certain.
bool tells_phases_apart(int stages, int converters, int halves) {
  const int count = 6 * stages + converters;
  const Walk walk(count, stages, converters, halves);
  for (int i = 2 * stages; i < count; ++i)
    if (!walk.released_before(i)[static_cast<std::size_t>(i - 2 * stages)]) return false;
  return true;
}
TEST(WgmmaFusedLayout, WaitsForASlotCannotTakeAnOldPhaseForTheNewOne) {
  each_ring([](const Ring& r) {
    EXPECT_TRUE(tells_phases_apart(r.stages, r.producers - 1, r.rows == 64 ? 2 : 1))
        << "stages " << r.stages << ", producers " << r.producers << ", rows " << r.rows;
  });
  for (const int halves : {1, 2})
    for (const int converters : {3, 7})
      EXPECT_FALSE(tells_phases_apart(converters * halves - halves, converters, halves));
}

TEST(WgmmaFusedLayout, TheGroupLookedBackAtIsConvertedInAnyOrderThatTheRingAllows) {
  each_ring([](const Ring& r) {
    T t;
    t.stages = r.stages;
    t.producers = r.producers;
    t.rows = r.rows;
    const int images = r.steps * t.place_tiles();
    const int behind = layout::behind_of(t.stages, t.converters(), images);
    const int count = std::min(Walk::kMost, (2 * behind + 3) * images + t.stages + t.converters());
    ASSERT_GT(count, (behind + 1) * images);
    const Walk walk(count, t.stages, t.converters(), t.place_tiles());
    const auto name = [&] {
      return testing::Message() << "stages " << r.stages << ", producers " << r.producers << ", rows " << r.rows
                                << ", steps " << r.steps;
    };
    EXPECT_TRUE(are_there(walk, count, images, behind)) << name();
    // Not by chance: where each consumer has its own images, two groups fewer would not do; else as many as a ring has.
    if (r.rows == 64) {
      EXPECT_FALSE(are_there(walk, count, images, behind - 2)) << name();
    }
    if (r.rows == 128 && images > 1) {  // of one image a warp may have converted it itself
      EXPECT_FALSE(are_there(walk, count, images, 1 + (t.stages - 3) / images)) << name();
    }
  });
}

/// A group's maxima are not overwritten before the last warp has looked back at them.
TEST(WgmmaFusedLayout, MaximaStayUntilEveryWarpHasLookedBack) {
  each_ring([](const Ring& r) {
    T t;
    t.stages = r.stages;
    t.producers = r.producers;
    t.rows = r.rows;
    const int images = r.steps * t.place_tiles();
    const int behind = layout::behind_of(t.stages, t.converters(), images);
    const int rounds = layout::rounds_of(t, images);
    EXPECT_EQ(layout::maxima_of(t, r.steps), images * rounds);
    ASSERT_GT(rounds, behind);
    const int count = std::min(Walk::kMost, (rounds + 2) * images + t.stages);
    const Walk walk(count, t.stages, t.converters(), t.place_tiles());
    for (int i = rounds * images; i < count; ++i) {
      const int looking = i / images - rounds + behind;  // the group that looks back at the maxima which i overwrites
      for (int j = looking * images; j < (looking + 1) * images; ++j)
        EXPECT_TRUE(walk.before(i)[static_cast<std::size_t>(j)])
            << "stages " << r.stages << ", producers " << r.producers << ", rows " << r.rows << ", steps " << r.steps;
    }
  });
}

TEST(WgmmaFusedLayout, PartsOfSharedMemoryAreInOrderAndAligned) {
  for (const Problem& problem : kOddProblems)
    for (const int bytes : {2, 4})
      for (const int places : {64, 96, 128})
        for (const int rows : {64, 128})
          for (const int stages : {4, 6, 32})
            for (const int weights : {0, 2, 8})
              for (const int passes : {1, 3}) {
                T t;
                t.T = places;
                t.rows = rows;
                t.stages = stages;
                t.weights = weights;
                t.passes = passes;
                t.products = bytes == 4 ? 3 : 1;
                const layout::Facts f = layout::facts_of(t, problem.geometry(), 256);
                const layout::Shared s = layout::shared_of(t, f, bytes);
                const int slots = weights > 0 ? weights : passes * static_cast<int>(f.steps);
                const int halves = 128 / rows;
                const int staging = layout::staging_bytes(t, f.stride, bytes);
                EXPECT_EQ(s.weight_bytes, rows * 16 * 2 * t.parts() * f.offsets);
                EXPECT_EQ(s.image_bytes, 16 * 2 * t.parts() * (places + f.halo));
                EXPECT_EQ(s.images, slots * s.weight_bytes);
                EXPECT_EQ(s.image_barriers, s.images + stages * s.image_bytes);
                EXPECT_GE(s.weight_barriers, s.image_barriers + stages * 16);
                EXPECT_GE(s.schedule, s.weight_barriers + slots * 16);
                EXPECT_GE(s.inverses, s.schedule + 48);
                EXPECT_GE(s.maxima, s.inverses + stages * 4);
                EXPECT_GE(s.top, s.maxima + f.steps * halves * 4);
                EXPECT_GE(s.staging, s.top + 4);
                EXPECT_GE(s.quads, s.staging + 2 * staging);
                EXPECT_GE(s.flags, s.quads + 2 * (places / 4 * 16 + 64 * 8));
                EXPECT_EQ(s.bytes, s.flags + 64 * 2 * 8);
                EXPECT_EQ((s.images | s.image_bytes | s.schedule | s.staging | staging | s.quads) % 16, 0);
                EXPECT_EQ((s.image_barriers | s.weight_barriers | s.flags) % 8, 0);
                EXPECT_EQ((s.inverses | s.maxima | s.top) % 4, 0);
              }
}

/// Runs of a whole tile, a channel each: one begins up to 16 bytes after the other's place and one piece ends it.
TEST(WgmmaFusedLayout, StagingHoldsTheRunsOfATile) {
  for (const int bytes : {2, 4})
    for (const int places : {64, 96, 128})
      for (int stride = 1; stride <= 200; ++stride) {
        T t;
        t.T = places;
        const int stored = layout::stored_places(t, stride);
        EXPECT_EQ(stored, stride <= 64 ? places : 32);
        const int staging = layout::staging_bytes(t, stride, bytes);
        if (stride > 64) {
          EXPECT_GE(staging, 64 * (stored + 1) * 4);
        } else {
          EXPECT_GE(layout::run_pitch(stride, stored, bytes) * bytes, stored * stride * bytes + 16 - bytes);
          EXPECT_GE(staging, 64 / stride * (stored * stride * bytes + 16 - bytes));
        }
      }
}

TEST(WgmmaFusedLayout, StatesTheMemoryOfALayer) {
  T t;  // T=64 rows=128 products=3 stages=16 producers=4
  t.weights = 2;
  const layout::Facts f = layout::facts_of(t, kVocoder.geometry(), 256);
  EXPECT_EQ(std::tuple(f.offsets, f.step, f.stride, f.halo, f.steps, f.group), std::tuple(2, 1, 8, 1, 8, 8));
  const layout::Shared s = layout::shared_of(t, f, 4);
  EXPECT_EQ(s.weight_bytes, 2 * 2 * 2 * 2048);
  EXPECT_EQ(s.image_bytes, 2 * 2 * 65 * 16);
  EXPECT_EQ(s.image_barriers, 2 * s.weight_bytes + 16 * s.image_bytes);
  EXPECT_EQ(layout::behind_of(16, 3, 8), 4);
  EXPECT_EQ(s.top - s.maxima, 8 * 10 * 4);
  EXPECT_EQ(layout::run_shape(t, kVocoder.geometry(), 4).shared_bytes, static_cast<unsigned>(s.bytes));
  EXPECT_EQ(layout::workspace_bytes(t, kVocoder.geometry(), 4), 0);
}

TEST(WgmmaFusedLayout, RegistersOfABlockAreShared) {
  T t;
  EXPECT_EQ(std::tuple(t.threads(), t.start_registers(), t.producer_registers()), std::tuple(384, 168, 168));
  t.consumer_registers = 208;
  EXPECT_EQ(t.producer_registers(), 88);
  t.producers = 8;
  t.consumer_registers = 160;
  EXPECT_EQ(std::tuple(t.threads(), t.start_registers(), t.producer_registers()), std::tuple(512, 128, 96));
}

TEST(WgmmaFusedFamily, DefaultsSatisfyTheConstraintsOfWhatItServes) {
  for (const char* profile : {"h100", "h200"})
    for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16})
      for (const Problem& problem : kOddProblems) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        ASSERT_FALSE(fused().refuses(context)) << *fused().refuses(context) << ", " << summary(problem);
        for (const Configuration& c :
             {fused().default_configuration(context), fused().general_configuration(context)}) {
          EXPECT_THAT(broken(context, c), ElementsAre()) << profile << ' ' << summary(problem) << ' ' << to_string(c);
          expect_listed(fused(), c, problem);
        }
      }
}

TEST(WgmmaFusedFamily, EmittedHeadersAskForTheShapesAndSizesOfTheProgram) {
  const auto fields = [](const ct1d::LaunchShape& s) {
    return std::tuple(s.grid_x, s.grid_y, s.block_x, s.shared_bytes, s.cluster_x);
  };
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16})
    for (const Problem& problem : kOddProblems) {
      const BuildContext context = on_h200(problem, accuracy);
      const Configuration configuration = fused().default_configuration(context);
      const Program program = fused().build(context, configuration);
      const T t = to_tunables<T>(configuration);
      const ct1d::Geometry g = problem.geometry();
      const int bytes = bytes_of(element_of(accuracy));
      EXPECT_EQ(static_cast<std::size_t>(layout::packed_bytes(t, g, bytes)), program.packed_bytes);
      EXPECT_EQ(static_cast<std::size_t>(layout::workspace_bytes(t, g, bytes)), program.workspace_bytes);
      EXPECT_EQ(fields(layout::run_shape(t, g, bytes)), fields(program.run.front().shape))
          << summary(problem) << ' ' << to_string(configuration);
      EXPECT_EQ(fields(layout::prepare_shape(t, g, bytes)), fields(program.prepare.front().shape));
    }
}

TEST(WgmmaFusedFamily, SaysWhatItDoesNotServe) {
  const auto refusal = [](const Problem& problem, const char* profile) {
    return fused().refuses({problem, Accuracy::fp16, read_profile(profile)}).value_or("");
  };
  EXPECT_EQ(refusal(kVocoder, "h200"), "");
  EXPECT_THAT(refusal(kVocoder, "a100"), HasSubstr("sm_90a"));
  EXPECT_THAT(refusal({1, 32, 32, 3, 1, 1, 0, 1, 2, true, 100}, "h200"), HasSubstr("one group"));
  EXPECT_THAT(refusal({1, 15, 32, 3, 1, 1, 0, 1, 1, true, 100}, "h200"), HasSubstr("16 input channels"));
  EXPECT_EQ(refusal({1, 1024, 32, 3, 1, 1, 0, 1, 1, true, 100}, "h200"), "");
  EXPECT_THAT(refusal({1, 1025, 32, 3, 1, 1, 0, 1, 1, true, 100}, "h200"), HasSubstr("1024 input channels"));
  EXPECT_THAT(refusal({1, 16, 32, 9, 1, 1, 0, 1, 1, true, 100}, "h200"), HasSubstr("at most 8"));
  EXPECT_THAT(refusal({1, 16, 32, 3, 1, 1, 0, 9, 1, true, 100}, "h200"), HasSubstr("reach back 16"));
  EXPECT_THAT(refusal({1, 16, 1, 1, 1, 0, 0, 1, 1, false, 2200000000}, "h200"), HasSubstr("32 bits"));
  EXPECT_THAT(refusal({1, 16, 1, 1, 1025, 0, 0, 1, 1, false, 9}, "h200"), HasSubstr("strides up to 1024"));
}

TEST(WgmmaFusedFamily, RefusesConfigurationsWithTheirReason) {
  const auto reasons = [](Accuracy accuracy, auto change) {
    const BuildContext context = on_h200(kVocoder, accuracy);
    auto t = to_tunables<T>(fused().general_configuration(context));  // T=64 rows=64 stages=6 producers=4 weights=2
    change(t);
    return broken(context, to_configuration(t));
  };
  EXPECT_THAT(reasons(Accuracy::fp32, [](T&) {}), ElementsAre());
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.products = 1; }), Contains("class fp32 needs three products"));
  EXPECT_THAT(reasons(Accuracy::fp16, [](T& t) { t.products = 3; }), Contains(HasSubstr("one part")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.products = 3; }), ElementsAre(HasSubstr("no more than one")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.products = 2; }), Contains("products must be 3 or 1"));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.T = 80; }), Contains("T must be 64, 96 or 128"));
  for (const int rows : {1, 32, 96, 192})  // as a file may have them
    EXPECT_THAT(reasons(Accuracy::tf32, [&](T& t) { t.rows = rows; }), Contains(HasSubstr("rows must be 128 or 64")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.producers = 6; }), Contains(HasSubstr("whole warpgroups")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.stages = 4; }),
              ElementsAre(HasSubstr("an old phase for the new one")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.passes = 0; }), Contains("passes must be 1 or more"));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.passes = 2; }), ElementsAre(HasSubstr("all channels of a tile")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.blocks = 133; }), Contains(HasSubstr("the device's SMs: one")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.blocks = 8; }), ElementsAre(HasSubstr("as many blocks")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.consumer_registers = 160; }),
              Contains(HasSubstr("no less than all threads start with")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.consumer_registers = 172; }),
              Contains(HasSubstr("a multiple of 8")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.T = 128; }), Contains(HasSubstr("must fit consumer_registers")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.consumer_registers = 232; }),
              Contains(HasSubstr("registers that the consumers leave")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.consumer_registers = 184; }),
              ElementsAre(HasSubstr("must not exceed what sums need")));
  EXPECT_THAT(reasons(Accuracy::fp32, [](T& t) { t.stages = 64; }), Contains(HasSubstr("shared memory")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.stages = 34; }), ElementsAre(HasSubstr("twice the channels")));
  EXPECT_THAT(reasons(Accuracy::tf32, [](T& t) { t.weights = 8; }), ElementsAre(HasSubstr("slots for weights")));
  EXPECT_THAT(reasons(Accuracy::tf32,
                      [](T& t) {
                        t.stages = 16;
                        t.passes = 9;
                      }),
              ElementsAre(HasSubstr("the groups of rows")));
  const BuildContext one_panel = on_h200({1, 64, 16, 4, 2, 1, 0, 1, 1, true, 400}, Accuracy::tf32);
  auto t = to_tunables<T>(fused().general_configuration(one_panel));
  t.rows = 128;
  EXPECT_THAT(broken(one_panel, to_configuration(t)), Contains(HasSubstr("where there is one panel")));
}

TEST(WgmmaFusedFamily, BuildsOneKernelAndCountsTheProductsThatItExecutes) {
  T t;
  t.weights = 4;
  t.passes = 2;
  const Program program = fused().build(on_h200(kVocoder), to_configuration(t));
  const std::string arguments = "<64, 128, 3, 16, 4, 168, 4, 2, 132, 2, 1, 8, 1, 8, 8, float>";
  EXPECT_EQ(program.unit.source, "#include \"kernels/wgmma_fused/kernel.cuh\"\n");
  EXPECT_THAT(program.unit.kernels,
              ElementsAre("ct1d::wgmma_fused::kernel" + arguments, "ct1d::wgmma_fused::pack" + arguments));
  ASSERT_EQ(program.run.size(), 1u);
  EXPECT_THAT(program.run.front().kernel, HasSubstr("kernel<"));
  EXPECT_EQ(program.run.front().shape.grid_x, 132u) << "2 chunks of 4 panels, 66 blocks each";
  EXPECT_EQ(program.run.front().shape.block_x, 384u);
  ASSERT_EQ(program.prepare.size(), 1u);
  EXPECT_EQ(program.prepare.front().shape.grid_x, 8u * 64);
  EXPECT_EQ(program.workspace_bytes, 0u);
  const double places = 251;  // tiles of 64: 16 items of 1,004
  EXPECT_EQ(program.work.tensor_fp16, 3 * 2.0 * (places * 64) * (8 * 64) * 128 * 2);
  EXPECT_EQ(program.work.bytes, kVocoder.min_bytes(4));
}

}  // namespace
}  // namespace tuner
