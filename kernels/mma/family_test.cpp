// The mma family without a GPU: the problem as products, packing, constraints and programs.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "kernels/mma/layout.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"

namespace tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::mma;

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};
constexpr Problem kVocoder{16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100};

const std::vector<Problem> kServed{
    kSeed,
    kVocoder,
    {1, 80, 80, 1024, 256, 0, 0, 1, 1, true, 862},
    {64, 4, 4, 4, 4, 0, 0, 1, 1, false, 4096},
    {1, 384, 384, 12, 2, 0, 0, 1, 384, false, 27562},
    {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
    {0, 3, 5, 3, 2, 0, 0, 1, 1, true, 7},
    {2, 8, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {1, 4, 4, 2, 5, 0, 3, 1, 1, true, 12},
    {16, 32, 64, 3, 2, 1, 0, 2, 1, false, 131072},
    {1, 2, 2, 2, 1, 0, 0, 1000000, 1, false, 3},
    {1, 1, 1, 2, 1, 0, 0, 1099511627776, 1, false, 100},
};

TEST(MmaLayout, StatesTheTilesOfRealLayers) {
  const layout::Tunables t{2, 8, 2, 2, 3, 3, 2, 1, 2};
  const layout::Plan p = layout::plan_of(t, kVocoder.geometry());
  EXPECT_EQ(p.taps, 2);
  EXPECT_EQ(p.width, 128);  // 16 channels of 8 phases
  EXPECT_EQ(p.panels, 16);
  EXPECT_EQ(p.channels, 16);
  EXPECT_EQ(p.steps, 32);
  EXPECT_EQ(p.m_tiles, 2);  // rows 0 to 100: padding cuts half of either end
  EXPECT_EQ(layout::pitch_of(t, p, 4), 104);
  EXPECT_EQ(layout::stage_bytes(t, p, 4), 16 * 104 * 4 + 2 * 128 * 16 * 2 * 2);
  const layout::Plan five = layout::plan_of(t, Problem{1, 4, 40, 10, 5, 0, 0, 1, 1, false, 50}.geometry());
  EXPECT_EQ(five.width, 125);  // whole channels of 5 phases
  EXPECT_EQ(five.channels, 4);
  EXPECT_EQ(five.folded, 4);
}

TEST(MmaLayout, ColumnsAndTapsMeetWhatEachOutputHas) {
  int checked = 0;
  for (const std::int64_t K : {1, 2, 3, 5, 16})
    for (const std::int64_t stride : {1, 2, 3, 4, 9})
      for (const std::int64_t dilation : {1, 2, 3, 4})
        for (const std::int64_t padding : {0, 1, 4}) {
          const ct1d::Geometry g = Problem{1, 1, 1, K, stride, padding, 0, dilation, 1, false, 11}.geometry();
          if (g.length_out < 1) continue;
          const layout::Plan p = layout::plan_of({}, g);
          for (std::int64_t t = 0; t < g.length_out; ++t) {
            const std::int64_t m = (t + padding) / stride, r = (t + padding) % stride;
            std::set<std::pair<std::int64_t, std::int64_t>> want, got;  // tap, position of x
            for (std::int64_t k = 0; k < K; ++k)
              if ((t + padding - k * dilation) % stride == 0) want.emplace(k, (t + padding - k * dilation) / stride);
            for (std::int64_t j = 0; j < p.taps; ++j)
              if (layout::tap_at(g, r, j) >= 0) got.emplace(layout::tap_at(g, r, j), m - j * p.distance);
            ASSERT_EQ(got, want) << "K " << K << " s " << stride << " d " << dilation << " p " << padding << " t " << t;
            ASSERT_LT(m - p.m_first, p.m_tiles * layout::Tunables{}.positions());
            ++checked;
          }
        }
  EXPECT_GT(checked, 1000);
}

TEST(MmaLayout, EveryTermOfEveryColumnHasAPlaceOfItsOwn) {
  for (const int products : {3, 1}) {
    layout::Tunables t;
    t.products = products;
    std::set<int> places;
    for (int part = 0; part < t.parts(); ++part)
      for (int index = 0; index < layout::kTerms; ++index)
        for (int column = 0; column < t.columns(); ++column) places.insert(layout::pack_place(t, part, index, column));
    EXPECT_EQ(places.size(), static_cast<std::size_t>(layout::product_bytes(t) / 2));
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), layout::product_bytes(t) / 2 - 1);
  }
}

TEST(MmaFamily, DefaultsAreListedAndSatisfyTheConstraintsOnEveryProblemClassAndDevice) {
  const Family& family = *find_family("mma");
  for (const std::string& profile : profile_names())
    for (const Problem& problem : kServed)
      for (const Accuracy accuracy : kAccuracies) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        if (accuracy == Accuracy::fp32 && layout::least_products(problem.geometry()) < 16) continue;
        EXPECT_FALSE(family.refuses(context)) << summary(problem);
        for (const Configuration& c : {family.default_configuration(context), family.general_configuration(context)}) {
          EXPECT_THAT(broken(family, context, c), ElementsAre()) << profile << ' ' << summary(problem);
          expect_listed(family, c, problem);
        }
      }
}

TEST(MmaFamily, OneInstanceServesEveryProblem) {
  const Family& family = *find_family("mma");
  const auto kernels = general_kernels(family, kServed);
  EXPECT_THAT(kernels, ElementsAre(ElementsAre("ct1d::mma::kernel<2, 4, 4, 1, 2, 3, 1, 0, 2, float>",
                                               "ct1d::mma::pack<2, 4, 4, 1, 2, 3, 1, 0, 2, float>")));
}

TEST(MmaFamily, RefusesShortSumsInClassFp32) {
  const Family& family = *find_family("mma");
  const Problem depthwise{1, 130, 130, 5, 1, 2, 0, 1, 130, true, 1500};
  EXPECT_THAT(family.refuses({depthwise, Accuracy::fp32, read_profile("h200")}).value_or(""), HasSubstr("16 products"));
  EXPECT_FALSE(family.refuses({depthwise, Accuracy::tf32, read_profile("h200")}));
}

TEST(MmaLayout, KnowsTheRowsWhoseSumsAreShort) {
  const ct1d::Geometry g = Problem{1, 4, 8, 16, 2, 0, 0, 1, 1, false, 100}.geometry();  // 8 taps a phase
  const layout::Plan p = layout::plan_of({}, g);
  for (std::int64_t m = 0; m < p.m_first + 107; ++m) {
    std::int64_t least = 1000;
    for (std::int64_t r = 0; r < 2; ++r) {
      std::int64_t products = 0;
      for (std::int64_t j = 0; j < p.taps; ++j)
        if (m - j >= 0 && m - j < 100 && layout::tap_at(g, r, j) >= 0) products += 4;
      least = std::min(least, products);
    }
    if (least < 16) {
      EXPECT_TRUE(layout::few_products(p, g, m)) << m;
    }
    if (m >= 7 && m < 100) {
      EXPECT_FALSE(layout::few_products(p, g, m)) << m;
    }
  }
}

TEST(MmaFamily, RefusesWhatItWouldPackInTerabytes) {
  const Family& family = *find_family("mma");
  const Problem wide{1, 20, 2, 2, 2, 0, 0, 1000001, 1, false, 5};
  EXPECT_THAT(family.refuses({wide, Accuracy::fp32, read_profile("h200")}).value_or(""), HasSubstr("at most 65536"));
  const Problem stride{1, 20, 2, 2, 4000000000, 0, 0, 4000000000, 1, false, 2};
  EXPECT_THAT(family.refuses({stride, Accuracy::fp32, read_profile("h200")}).value_or(""), HasSubstr("64 GB"));
}

}  // namespace
}  // namespace tuner
