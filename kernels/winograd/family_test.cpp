// The winograd family without a GPU: transforms and what they cost in accuracy, layout, constraints and programs.
#include "tuner/family/family.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <set>

#include "kernels/winograd/layout.h"
#include "kernels/winograd/transform.h"
#include "tests/families/expectations.h"
#include "tuner/core/config.h"
#include "tuner/family/checks.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace layout = ct1d::winograd;

constexpr Problem kSeed{64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kProblems{
    kSeed,
    {0, 32, 5, 3, 1, 0, 0, 1, 1, true, 7},
    {2, 64, 8, 1024, 1, 0, 0, 1, 1, false, 5000},
    {16, 512, 256, 16, 8, 4, 0, 1, 1, true, 100},
    {1, 48, 40, 4, 2, 1, 0, 1, 1, true, 300},
    {1, 16, 1, 2, 1, 0, 0, 1, 1, true, 1},
    {1, 96, 48, 3, 2, 1, 1, 3, 3, true, 1},
    {1, 40, 24, 5, 1, 0, 0, 400, 1, false, 3000},
    {1, 20, 20, 2, 1, 0, 0, 1099511627776, 1, false, 100},
};

// ---- transforms
// ------------------------------------------------------------------------------------------------------

/// `uneven`: positions of scales 1 to 1/8. `wide`: channels of scales 1 to 2^-27. `spikes`: of 1e6 among ones, in one
/// window of four. `uneven_taps`: all taps but one a quarter of it, positions of scales 1 to 1/4 and some of zeros.
/// `one_tap`: the same with 2^-27 of it.
enum class Data { normal, positive, uneven, wide, spikes, uneven_taps, one_tap };

/// Deterministic on every platform.
class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  float uniform() { return static_cast<float>(engine_() >> 8) * 0x1p-24f; }
  float normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  float of(Data data) { return data == Data::positive ? uniform() : normal(); }

 private:
  std::mt19937 engine_;
};

struct Errors {
  double worst_element = 0;  // of the bound of class fp32
  double row = 0;            // Frobenius, relative
  double plain_row = 0;      // of the plain sum
  int segments = 0;          // that were not left to the direct sum
};

/// Errors of one channel's outputs over many segments. `evaluate(sums, window, weights)` adds a channel's products to
/// the sums, `finish(y, sums)` makes outputs of them: in the arithmetic of the kernel.
template <int kPoints, int kTaps, class Evaluate, class Finish>
Errors errors_of(Data data, int channels, int segments, const Evaluate& evaluate, const Finish& finish) {
  constexpr int kOutputs = kPoints - kTaps + 1;
  Draw draw(static_cast<unsigned>(channels * 10 + kPoints + kTaps));
  Errors errors;
  double error = 0, plain_error = 0, square = 0;
  std::vector<std::array<float, kTaps>> weights(static_cast<std::size_t>(channels));
  std::vector<std::array<float, kPoints>> windows(weights.size());
  const float other_taps = data == Data::one_tap ? 0x1p-27f : data == Data::uneven_taps ? 0.25f : 1.0f;
  for (int segment = 0; segment < segments; ++segment) {
    if (segment % 16 == 0)
      for (auto& g : weights)
        for (std::size_t k = 0; k < kTaps; ++k)
          g[k] = draw.of(data) * (k == static_cast<std::size_t>(segment) / 16 % kTaps ? 1.0f : other_taps);
    std::array<float, kPoints> scale;
    for (float& s : scale) {
      s = data == Data::uneven ? std::exp2(-3 * draw.uniform()) : 1.0f;
      if (other_taps < 1) s = draw.uniform() < 0.1f ? 0.0f : std::exp2(-2 * draw.uniform());
    }
    const auto spike =
        static_cast<std::size_t>(data == Data::spikes ? draw.uniform() * 4 * weights.size() : weights.size());
    double squares = 0;
    std::array<double, kPoints> size{};
    std::array<float, kPoints> sums{};
    for (std::size_t ic = 0; ic < weights.size(); ++ic) {
      for (std::size_t p = 0; p < kPoints; ++p) {
        windows[ic][p] = draw.of(data) * scale[p];
        if (data == Data::wide) windows[ic][p] *= std::exp2(-27.0f * ic / (channels - 1));
        if (ic == spike && p == static_cast<std::size_t>(segment) % kPoints) windows[ic][p] = 1e6f;
        size[p] += std::abs(windows[ic][p]);
        squares += static_cast<double>(windows[ic][p]) * windows[ic][p];
      }
      evaluate(sums, windows[ic], weights[ic]);
    }
    const double largest = *std::max_element(size.begin(), size.end());
    const double smallest = *std::min_element(size.begin(), size.end());
    double squared = 0;
    for (const double s : size) squared += s * s;
    bool even = channels < layout::fewest_channels(kPoints) || layout::fewest_effective(kPoints) * squares <= squared;
    if (other_taps < 1) even = even && largest <= layout::position_spread(kPoints) * smallest;
    for (std::size_t j = 0; j < kOutputs; ++j) {
      double own = 0;
      for (std::size_t k = 0; k < kTaps; ++k) own += size[j + k];
      even = even && kTaps * largest <= layout::kSpread * own;
    }
    if (!even) continue;
    ++errors.segments;
    std::array<float, kOutputs> y{};
    finish(y, sums);
    for (std::size_t j = 0; j < kOutputs; ++j) {
      double exact = 0, absolute = 0;
      float plain = 0;
      for (std::size_t ic = 0; ic < weights.size(); ++ic)
        for (std::size_t k = 0; k < kTaps; ++k) {
          const double product = static_cast<double>(windows[ic][j + k]) * weights[ic][k];
          exact += product;
          absolute += std::abs(product);
          plain += static_cast<float>(product);
        }
      const double bound = (8 + 2 * std::sqrt(channels * kTaps)) * 0x1p-24 * absolute;
      errors.worst_element = std::max(errors.worst_element, std::abs(y[j] - exact) / bound);
      error += (y[j] - exact) * (y[j] - exact);
      plain_error += (plain - exact) * (plain - exact);
      square += exact * exact;
    }
  }
  errors.row = std::sqrt(error / square);
  errors.plain_row = std::sqrt(plain_error / square);
  return errors;
}

/// The family's own transforms.
template <int kPoints, int kTaps>
Errors errors_of_ours(Data data, int channels, int segments) {
  const auto evaluate = [](auto& sums, const std::array<float, kPoints>& window, const std::array<float, kTaps>& g) {
    float d[kPoints], v[kPoints];
    std::copy(window.begin(), window.end(), d);
    layout::transform_input<kPoints>(v, d);
    for (int c = 0; c < kPoints; ++c) {
      double w = 0;
      for (int k = 0; k < kTaps; ++k)
        w += layout::weight_factor<kPoints>(c, k, kTaps) * static_cast<double>(g[static_cast<std::size_t>(k)]);
      float& sum = sums[static_cast<std::size_t>(c)];
      sum = std::fma(v[c], static_cast<float>(w), sum);
    }
  };
  const auto finish = [](auto& y, const std::array<float, kPoints>& sums) {
    float m[kPoints], out[kPoints - kTaps + 1];
    std::copy(sums.begin(), sums.end(), m);
    layout::transform_output<kPoints>(out, m);
    std::copy(std::begin(out), std::end(out), y.begin());
  };
  return errors_of<kPoints, kTaps>(data, channels, segments, evaluate, finish);
}

/// Interpolation at any points, by its definition: what the family does not use.
template <int kPoints, int kTaps>
Errors errors_at(const std::array<double, kPoints - 1>& points, int channels, int segments) {
  std::array<std::array<double, kPoints>, kPoints> b{};
  std::array<double, kPoints> distances{};
  for (std::size_t c = 0; c < kPoints; ++c) {
    b[c][0] = 1;
    distances[c] = 1;
    std::size_t degree = 0;
    for (std::size_t i = 0; i + 1 < kPoints; ++i) {
      if (i == c) continue;
      ++degree;
      for (std::size_t p = degree + 1; p-- > 0;) b[c][p] = (p > 0 ? b[c][p - 1] : 0) - points[i] * b[c][p];
      if (c + 1 < kPoints) distances[c] *= points[c] - points[i];
    }
  }
  const auto evaluate = [&](auto& sums, const std::array<float, kPoints>& window, const std::array<float, kTaps>& g) {
    for (std::size_t c = 0; c < kPoints; ++c) {
      float v = 0;
      double w = c + 1 < kPoints ? 0 : g[kTaps - 1];
      for (std::size_t p = kPoints; p-- > 0;)
        if (b[c][p] != 0) v = std::fma(static_cast<float>(b[c][p]), window[p], v);
      for (std::size_t k = 0; c + 1 < kPoints && k < kTaps; ++k) w += std::pow(points[c], k) * g[k];
      sums[c] = std::fma(v, static_cast<float>(w), sums[c]);
    }
  };
  const auto finish = [&](auto& y, const std::array<float, kPoints>& sums) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      y[j] = j + 1 == y.size() ? sums[kPoints - 1] : 0.0f;
      for (std::size_t c = 0; c + 1 < kPoints; ++c)
        y[j] = std::fma(static_cast<float>(std::pow(points[c], j) / distances[c]), sums[c], y[j]);
    }
  };
  return errors_of<kPoints, kTaps>(Data::normal, channels, segments, evaluate, finish);
}

template <int kPoints, int kTaps>
void expect_filter(float tolerance) {
  constexpr int kOutputs = kPoints - kTaps + 1;
  Draw draw(1);
  float d[kPoints], v[kPoints], m[kPoints], y[kOutputs], g[kTaps];
  for (float& value : d) value = std::round(draw.normal() * 100);
  for (float& value : g) value = std::round(draw.normal() * 100);
  layout::transform_input<kPoints>(v, d);
  for (int c = 0; c < kPoints; ++c) {
    double w = 0;
    for (int k = 0; k < kTaps; ++k) w += layout::weight_factor<kPoints>(c, k, kTaps) * static_cast<double>(g[k]);
    m[c] = v[c] * static_cast<float>(w);
  }
  layout::transform_output<kPoints>(y, m);
  for (int j = 0; j < kOutputs; ++j) {
    float want = 0;
    for (int k = 0; k < kTaps; ++k) want += d[j + k] * g[k];
    EXPECT_NEAR(y[j], want, tolerance) << kPoints << " points, " << kTaps << " taps, output " << j;
  }
}

TEST(WinogradTransform, FiltersAsTheDirectSumDoesAndExactlyWithFourPoints) {
  expect_filter<4, 3>(0);
  expect_filter<4, 2>(0);
  expect_filter<6, 3>(0.05f);
  expect_filter<6, 2>(0.05f);
}

TEST(WinogradTransform, RoundsWithinClassFp32OnRowsOfAnyData) {
  for (const int channels : {32, 128, 1024})
    for (const Data data : {Data::normal, Data::positive}) {
      const int segments = channels == 1024 ? 500 : 2000;
      const Errors rows[] = {
          errors_of_ours<4, 3>(data, channels, segments), errors_of_ours<4, 2>(data, channels, segments),
          errors_of_ours<6, 3>(data, channels, segments), errors_of_ours<6, 2>(data, channels, segments)};
      for (const Errors& e : rows) {
        EXPECT_LT(e.row, std::max(1.9 * e.plain_row, 4e-7)) << channels;
        EXPECT_EQ(e.segments, segments);  // such data is not left to the direct sum
      }
    }
}

TEST(WinogradTransform, IsAsExactAsItsTableSays) {
  const auto factor = [](const Errors& e) { return e.row / e.plain_row; };
  EXPECT_NEAR(factor(errors_of_ours<4, 3>(Data::normal, 128, 4000)), 0.8, 0.1);
  EXPECT_NEAR(factor(errors_of_ours<4, 2>(Data::normal, 128, 4000)), 0.95, 0.1);
  EXPECT_NEAR(factor(errors_of_ours<6, 3>(Data::normal, 128, 4000)), 1.4, 0.15);
  EXPECT_NEAR(factor(errors_of_ours<6, 2>(Data::normal, 128, 4000)), 1.7, 0.15);
  EXPECT_LT(factor(errors_of_ours<6, 3>(Data::positive, 128, 4000)), 1);
}

/// Why the usual points and eight points are not offered: rows go beyond twice the plain sum's error.
TEST(WinogradTransform, OtherPointsBreakTheRowBound) {
  const Errors usual = errors_at<6, 3>({0, 1, -1, 2, -2}, 128, 4000);
  EXPECT_GT(usual.row, 1.9 * usual.plain_row);
  const Errors usual_of_two = errors_at<6, 2>({0, 1, -1, 2, -2}, 128, 4000);
  EXPECT_GT(usual_of_two.row, 2.2 * usual_of_two.plain_row);
  const Errors eight = errors_at<8, 3>({0, 1, -1, 2, -2, 0.5, -0.5}, 128, 4000);
  EXPECT_GT(eight.row, 2.4 * eight.plain_row);
}

/// Data on which an output's own products may be far smaller than its neighbours': what the kernel does not compute
/// directly is right.
TEST(WinogradTransform, KeepsTheElementBoundWhereItIsNotLeftToTheDirectSum) {
  const auto expect_within = [](const Errors& e, int segments, const char* what) {
    EXPECT_LT(e.worst_element, 0.9) << what;
    EXPECT_GT(e.segments, 100) << what;
    EXPECT_LT(e.segments, segments) << what;  // some are left to the direct sum
  };
  for (const auto& [data, what] :
       {std::pair(Data::uneven, "uneven"), {Data::spikes, "spikes"}, {Data::uneven_taps, "uneven taps"}}) {
    expect_within(errors_of_ours<4, 3>(data, 16, 20000), 20000, what);
    expect_within(errors_of_ours<4, 2>(data, 16, 20000), 20000, what);
    expect_within(errors_of_ours<6, 3>(data, 32, 20000), 20000, what);
    expect_within(errors_of_ours<6, 2>(data, 64, 10000), 10000, what);
  }
  expect_within(errors_of_ours<4, 3>(Data::one_tap, 16, 20000), 20000, "one tap");
  expect_within(errors_of_ours<4, 2>(Data::one_tap, 16, 20000), 20000, "one tap");
  expect_within(errors_of_ours<6, 3>(Data::one_tap, 96, 10000), 10000, "one tap");
  expect_within(errors_of_ours<6, 2>(Data::one_tap, 96, 10000), 10000, "one tap");
  expect_within(errors_of_ours<4, 3>(Data::wide, 128, 5000), 5000, "wide");
  EXPECT_LT((errors_of_ours<6, 3>(Data::wide, 128, 5000).segments), 50);
}

/// Why class fp32 asks for more channels than one.
TEST(WinogradTransform, BreaksTheElementBoundWithFewChannels) {
  EXPECT_GT((errors_of_ours<6, 3>(Data::normal, 2, 20000).worst_element), 1);
}

// ---- layout
// ----------------------------------------------------------------------------------------------------------

TEST(WinogradLayout, StatesTheSeedProblemsTiles) {
  const layout::Tunables t;
  EXPECT_EQ(t.outputs(), 4);
  EXPECT_EQ(t.segments(), 32);
  EXPECT_EQ(t.slices(), 6);
  EXPECT_EQ(t.slice_y(), 8);
  EXPECT_EQ(t.thread_segments(), 8);
  EXPECT_EQ(t.thread_channels(), 16);
  EXPECT_EQ(t.rows_at_once(), 6);
  const layout::Layout l = layout::layout_of(t);
  EXPECT_EQ(l.x_width, 132);  // 128 outputs and 2 more, in pieces of 16 bytes
  EXPECT_EQ(l.x_stage, 8 * 132 + 8);
  EXPECT_EQ(l.v_stage, 8 * 6 * 32);
  EXPECT_EQ(l.w_stage, 8 * 6 * 128);
  EXPECT_EQ(l.exchange_pitch, 36);
  EXPECT_EQ(l.exchange_channels, 32);
  EXPECT_EQ(l.total, 96 + 32 + 6 * 7 * 32 + 2 * 128 + 2 * (8 * 132 + 8) + 2 * 8 * 6 * 32 + 2 * 8 * 6 * 128);
  const ct1d::LaunchShape shape = layout::run_shape(t, kSeed.geometry(), 4);
  EXPECT_EQ(shape.grid_x, 64u * 513);  // 65538 outputs, up to 3 more for alignment
  EXPECT_EQ(shape.shared_bytes, 4u * static_cast<unsigned>(l.total));
  EXPECT_EQ(layout::packed_bytes(t, kSeed.geometry(), 4), 4 * (128 * 6 * 128 + 128 + 128 + 128 * 128 * 3));
}

TEST(WinogradLayout, PacksChunksOfTapsForEveryPhaseAndGroup) {
  const Problem problem{1, 96, 60, 16, 3, 0, 0, 1, 2, false, 10};
  const layout::Tunables t{64, 16, 8, {8, 16}, 4, 3, 1, 8, 2, 2, 1};
  const layout::Packing p = layout::packing_of(t, problem.geometry());
  EXPECT_EQ(p.phases, 3);
  EXPECT_EQ(p.chunks, 2);  // of 6 taps
  EXPECT_EQ(p.channels, 48);
  EXPECT_EQ(p.importance, 2 * 2 * 3 * 2 * 48 * 4 * 16);  // 30 output channels a group: two tiles
  EXPECT_EQ(p.unscale, p.importance + 2 * 48);
  EXPECT_EQ(p.original, p.unscale + 2 * 2 * 16);
  EXPECT_EQ(p.total, p.original + 96 * 30 * 16);
}

TEST(WinogradLayout, TilesReachEveryOutputOfEveryClass) {
  int checked = 0;
  for (const std::int64_t length : {1, 2, 63, 64, 65, 5000})
    for (const std::int64_t stride : {1, 2, 3, 50})
      for (const std::int64_t dilation : {1, 2, 3, 40}) {
        const Problem problem{1, 32, 8, 5, stride, 0, 0, dilation, 1, false, length};
        const ct1d::Geometry g = problem.geometry();
        const layout::Tunables t;
        const std::int64_t shift = layout::tiles_shift(t, g) ? 3 : 0;
        std::int64_t seen = 0;
        for (std::int64_t index = 0; index < ct1d::phase_count(g); ++index) {
          const ct1d::PhaseOutputs p = ct1d::phase_outputs(g, index);
          for (std::int64_t c = 0; c < layout::class_count(g) && c < p.outputs; ++c) {
            const std::int64_t numbers = ct1d::ceil_div(p.outputs - c, ct1d::x_step(g));
            EXPECT_GE(layout::t_tiles(t, g) * t.T - shift, numbers);
            seen += numbers;
          }
        }
        EXPECT_EQ(seen, g.length_out) << length << ' ' << stride << ' ' << dilation;
        ++checked;
      }
  EXPECT_EQ(checked, 96);
}

TEST(WinogradLayout, ManyTilesStayWithinTheGrid) {
  ct1d::Geometry g = kSeed.geometry();
  g.batch = std::int64_t{1} << 40;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 2147483647u);
  g.batch = 0;
  EXPECT_EQ(layout::run_shape({}, g, 4).grid_x, 1u);
}

// ---- family
// ----------------------------------------------------------------------------------------------------------

TEST(WinogradFamily, DefaultsSatisfyTheConstraintsOnEveryProblemAndDevice) {
  const Family& family = *find_family("winograd");
  for (const std::string& profile : profile_names())
    for (const Problem& problem : kProblems)
      for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32}) {
        const BuildContext context{problem, accuracy, read_profile(profile)};
        EXPECT_FALSE(family.refuses(context)) << summary(problem);
        EXPECT_THAT(broken(family, context, family.default_configuration(context)), ElementsAre())
            << profile << ' ' << summary(problem);
        EXPECT_THAT(broken(family, context, family.general_configuration(context)), ElementsAre())
            << profile << ' ' << summary(problem);
      }
}

TEST(WinogradFamily, DefaultsAreMadeOfTheListedValues) {
  const Family& family = *find_family("winograd");
  for (const Problem& problem : kProblems) {
    const BuildContext context{problem, Accuracy::fp32, read_profile("h200")};
    for (const Configuration& c : {family.default_configuration(context), family.general_configuration(context)})
      expect_listed(family, c, problem);
  }
}

TEST(WinogradFamily, OneInstanceServesEveryProblem) {
  const Family& family = *find_family("winograd");
  const auto kernels = general_kernels(family, kProblems);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels.begin()->front(), "ct1d::winograd::kernel<48, 16, 8, 4, 32, 4, 2, 1, 4, 2, 2, 2, float>");
}

TEST(WinogradFamily, CountsTheMultipliesThatItExecutes) {
  const Family& family = *find_family("winograd");
  const BuildContext context{kSeed, Accuracy::fp32, read_profile("h200")};
  const Program program = family.build(context, family.default_configuration(context));
  EXPECT_DOUBLE_EQ(program.work.fma_fp32, context.problem.flop() / 2);
  EXPECT_EQ(program.prepare.size(), 3u);
  EXPECT_EQ(program.unit.kernels.size(), 4u);
}

TEST(WinogradFamily, ChoosesTheTransformThatSavesMost) {
  const Family& family = *find_family("winograd");
  const auto chosen = [&](const Problem& problem) {
    const Configuration c = family.default_configuration({problem, Accuracy::fp32, read_profile("h200")});
    return std::pair(std::get<std::int64_t>(c[4].second), std::get<std::int64_t>(c[5].second));
  };
  EXPECT_EQ(chosen(kSeed), std::pair(std::int64_t{6}, std::int64_t{3}));
  EXPECT_EQ(chosen({1, 64, 64, 4, 2, 0, 0, 1, 1, false, 4000}), std::pair(std::int64_t{6}, std::int64_t{2}));
  EXPECT_EQ(chosen({1, 24, 64, 3, 1, 0, 0, 1, 1, false, 4000}), std::pair(std::int64_t{4}, std::int64_t{3}));
}

TEST(WinogradFamily, AdmitsTransformsOnlyWhereTheirAccuracyHolds) {
  const Family& family = *find_family("winograd");
  const auto faults = [&](std::int64_t channels, Accuracy accuracy) {
    const Problem problem{1, channels, 128, 3, 1, 0, 0, 1, 1, false, 65536};
    const Configuration six = family.default_configuration({kSeed, accuracy, read_profile("h200")});
    return broken(family, {problem, accuracy, read_profile("h200")}, six);
  };
  const auto says_so = testing::Contains(HasSubstr("6 points need 32 input channels"));
  EXPECT_THAT(faults(31, Accuracy::fp32), says_so);
  EXPECT_THAT(faults(32, Accuracy::fp32), testing::Not(says_so));
  EXPECT_THAT(faults(31, Accuracy::tf32), testing::Not(says_so));
}

TEST(WinogradFamily, RefusesWhatItCannotServe) {
  const Family& family = *find_family("winograd");
  const auto reason = [&](const Problem& problem, Accuracy accuracy) {
    return family.refuses({problem, accuracy, read_profile("h200")}).value_or("");
  };
  EXPECT_THAT(reason(kSeed, Accuracy::fp16), HasSubstr("fp32 tensors"));
  EXPECT_THAT(reason({1, 32, 32, 2, 2, 0, 0, 1, 1, false, 9}, Accuracy::fp32), HasSubstr("two taps"));
  EXPECT_THAT(reason({1, 15, 32, 3, 1, 0, 0, 1, 1, false, 9}, Accuracy::fp32), HasSubstr("16 input channels"));
  EXPECT_EQ(reason({1, 15, 32, 3, 1, 0, 0, 1, 1, false, 9}, Accuracy::tf32), "");
}

}  // namespace
}  // namespace tuner
