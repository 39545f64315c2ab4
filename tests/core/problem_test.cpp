#include "tuner/core/problem.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>

#include "tuner/core/json.h"
#include "tuner/core/random.h"

namespace tuner {
namespace {

using testing::HasSubstr;

__extension__ using Wide = __int128;

struct Shape {
  std::int64_t length, kernel_size, stride = 1, padding = 0, output_padding = 0, dilation = 1;
};

Problem with_shape(const Shape& s, std::int64_t in_channels = 1, std::int64_t out_channels = 1,
                   std::int64_t groups = 1) {
  Problem problem;
  problem.in_channels = in_channels;
  problem.out_channels = out_channels;
  problem.groups = groups;
  problem.length = s.length;
  problem.kernel_size = s.kernel_size;
  problem.stride = s.stride;
  problem.padding = s.padding;
  problem.output_padding = s.output_padding;
  problem.dilation = s.dilation;
  return problem;
}

Problem seed() {
  Problem problem = with_shape({65536, 3}, 128, 128);
  problem.batch = 64;
  return problem;
}

/// What the closed forms must agree with: every output, every tap.
struct Counted {
  std::int64_t taps = 0;
  std::int64_t most = 0;
};
Counted count_taps(const Problem& p) {
  Counted counted;
  for (std::int64_t t = 0; t < p.length_out(); ++t) {
    std::int64_t taps = 0;
    for (std::int64_t k = 0; k < p.kernel_size; ++k) {
      const std::int64_t at = t + p.padding - k * p.dilation;
      taps += at >= 0 && at % p.stride == 0 && at / p.stride < p.length ? 1 : 0;
    }
    counted.taps += taps;
    counted.most = std::max(counted.most, taps);
  }
  return counted;
}

TEST(Problem, DecidesEveryCaseOfProblemBoundsAsPyTorchDoes) {
  const Json cases = read_json(TUNER_SOURCE_DIR "/tests/data/problem_bounds.json");
  ASSERT_EQ(cases.size(), 13u);
  for (const Json& c : cases) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const Json& given = c.at("problem");
    Problem p;
    p.batch = given.at("batch");
    p.in_channels = given.at("in_channels");
    p.out_channels = given.at("out_channels");
    p.kernel_size = given.at("kernel_size");
    p.stride = given.at("stride");
    p.padding = given.at("padding");
    p.output_padding = given.at("output_padding");
    p.dilation = given.at("dilation");
    p.groups = given.at("groups");
    p.length = given.at("length");
    const auto reason = illegal(p);
    if (c.at("torch") == "accepts") {
      EXPECT_EQ(reason, std::nullopt);
      EXPECT_EQ(p.batch, c.at("shape").at(0));
      EXPECT_EQ(p.out_channels, c.at("shape").at(1));
      EXPECT_EQ(p.length_out(), c.at("shape").at(2));
    } else {
      ASSERT_TRUE(reason.has_value());
      EXPECT_EQ(reason->find('\n'), std::string::npos);
    }
  }
}

TEST(Problem, NamesTheRuleAndTheNumbersOfARefusal) {
  EXPECT_EQ(illegal(with_shape({8, 3, 2, 0, 2, 1})),
            "output_padding must be smaller than either stride or dilation, but is 2 with stride 2 and dilation 1");
  EXPECT_EQ(illegal(with_shape({8, 3}, 4, 4, 3)), "in_channels must be divisible by groups, but 4 is not by 3");
  EXPECT_EQ(illegal(with_shape({8, 3}, 6, 4, 3)), "out_channels must be divisible by groups, but 4 is not by 3");
  EXPECT_EQ(illegal(with_shape({8, 3, 0}, 16, 64)), "stride must be at least 1, but is 0");
  EXPECT_EQ(illegal(with_shape({8, 3, -1}, 16, 64)), "stride must be at least 1, but is -1");
  EXPECT_EQ(illegal(with_shape({2, 3}, 0, 3)), "in_channels must be at least 1, but is 0");
  EXPECT_EQ(illegal(with_shape({2, -1, -1}, -10, -10)), "in_channels must be at least 1, but is -10");
  EXPECT_EQ(illegal(with_shape({10, 3, 1, 0, 1}, 128, 16)),
            "output_padding must be smaller than either stride or dilation, but is 1 with stride 1 and dilation 1");
  EXPECT_THAT(*illegal(with_shape({1, 3, 1, 2})), HasSubstr("= -1"));
}

TEST(Problem, KnowsTheOutputLengthsOfPublicFaultReports) {
  EXPECT_EQ(with_shape({8, 4, 8, 1, 7}).length_out(), 65);
  EXPECT_EQ(with_shape({8, 2, 16}).length_out(), 114);
  EXPECT_EQ(with_shape({29, 10, 5, 3, 0}).length_out(), 144);
  EXPECT_EQ(with_shape({29, 10, 5, 3, 1}).length_out(), 145);
  EXPECT_EQ(with_shape({3, 2, 1, 0, 1, 2}).length_out(), 6);
  EXPECT_EQ(illegal(with_shape({3, 2, 1, 0, 1, 2})), std::nullopt);
  EXPECT_EQ(with_shape({6, 3, 2, 1, 1, 2}).length_out(), 14);
  EXPECT_EQ(with_shape({8, 3, 1, 0, 0, 3}).length_out(), 14);
  EXPECT_EQ(with_shape({8, 3, 1, 0, 0, 2}).length_out(), 12);
  EXPECT_EQ(with_shape({7, 5, 2}).length_out(), 17);
  EXPECT_EQ(with_shape({4, 3, 1, 0, 0, 1}).length_out(), 6);
  EXPECT_EQ(with_shape({4, 3, 1, 0, 0, 2}).length_out(), 8);
  EXPECT_EQ(with_shape({321, 10, 5, 3, 1}).length_out(), 1605);
  EXPECT_EQ(with_shape({32768, 4, 2, 1}).length_out(), 65536);
  EXPECT_EQ(with_shape({9, 2, 2}, 256, 512).length_out(), 18);
  EXPECT_EQ(illegal(with_shape({9, 2, 2}, 256, 512)), std::nullopt);
}

TEST(Problem, CountsTheSeedProblem) {
  const Problem problem = seed();
  EXPECT_EQ(problem.length_out(), 65538);
  EXPECT_DOUBLE_EQ(problem.flop(), 2.0 * 64 * 128 * 128 * 3 * 65536);
  EXPECT_DOUBLE_EQ(problem.min_bytes(4), 4.0 * (64.0 * 128 * 65536 + 64.0 * 128 * 65538 + 128 * 128 * 3));
  EXPECT_EQ(problem.max_products(), 384);
  EXPECT_EQ(problem.y_count(), 536887296);
  EXPECT_EQ(summary(problem), "B64 128->128 K3 s1 L65536");
}

TEST(Problem, CountsOnlyTapsThatExist) {
  int compared = 0;
  Random random(1);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  while (compared < 20000) {
    const Problem p = with_shape({draw(1, 12), draw(1, 9), draw(1, 7), draw(0, 9), draw(0, 5), draw(1, 6)}, 2, 3);
    if (illegal(p)) continue;
    ++compared;
    const Counted counted = count_taps(p);
    ASSERT_EQ(p.flop(), static_cast<double>(counted.taps) * 12) << summary(p);
    ASSERT_EQ(p.max_products(), counted.most * 2) << summary(p);
  }
}

TEST(Problem, CountsHugeProblemsAtOnce) {
  // 2^40 taps and 2^20 positions, all of which meet: stride 1, no padding.
  const Problem wide = with_shape({1 << 20, std::int64_t{1} << 40});
  ASSERT_EQ(illegal(wide), std::nullopt);
  EXPECT_EQ(wide.flop(), 0x1p61);
  EXPECT_EQ(wide.max_products(), 1 << 20);
  const Problem strided = with_shape({std::int64_t{1} << 40, 1 << 10, 1 << 12});
  ASSERT_EQ(illegal(strided), std::nullopt);
  EXPECT_EQ(strided.flop(), 0x1p51);
  EXPECT_EQ(strided.max_products(), 1);
}

TEST(Problem, CountsNoBytesThatPaddingCutsOff) {
  const Problem p = with_shape({10, 1, 1, 4}, 3, 5);  // outputs 2, from x[4] and x[5]
  EXPECT_EQ(p.length_out(), 2);
  EXPECT_EQ(p.min_bytes(4), 4.0 * (3 * 2 + 3 * 5 + 5 * 2));
  Problem empty = p;
  empty.batch = 0;
  EXPECT_EQ(empty.min_bytes(4), 0);
  EXPECT_EQ(empty.flop(), 0);
}

/// 0, 1 and powers of two up to 2^62, a little off: where overflows live.
std::int64_t extreme(Random& random) {
  return (std::int64_t{1} << random.below(63)) + static_cast<std::int64_t>(random.below(3)) - 1;
}

TEST(Problem, AcceptsNothingWhoseIndicesLeave64Bits) {
  Random random(2);
  int accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    Problem p = with_shape(
        {extreme(random), extreme(random), extreme(random), extreme(random) >> random.below(63), 0, extreme(random)},
        1 + static_cast<std::int64_t>(random.below(5)), extreme(random) >> random.below(63));
    p.batch = extreme(random) >> random.below(63);
    if (illegal(p)) continue;
    ++accepted;
    const Wide out = static_cast<Wide>(p.length - 1) * p.stride - Wide{2} * p.padding +
                     static_cast<Wide>(p.dilation) * (p.kernel_size - 1) + p.output_padding + 1;
    ASSERT_EQ(Wide{p.length_out()}, out) << summary(p);
    const Wide most_bytes = std::max({Wide{p.batch} * p.in_channels * p.length, Wide{p.batch} * p.out_channels * out,
                                      Wide{p.in_channels} * p.out_channels * p.kernel_size}) *
                            8;
    ASSERT_TRUE(most_bytes <= Wide{INT64_MAX}) << summary(p);
    ASSERT_EQ(Wide{p.x_count()}, Wide{p.batch} * p.in_channels * p.length);
    ASSERT_EQ(Wide{p.y_count()}, Wide{p.batch} * p.out_channels * out);
    ASSERT_GE(p.flop(), 0);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Problem, PlansNoIndexOutsideItsTensors) {
  Random random(3);
  const auto draw = [&] { return static_cast<std::int64_t>(random.below(1 << 20)) >> random.below(20); };
  int accepted = 0;
  for (int i = 0; i < 100000; ++i) {
    const Problem p = with_shape({draw(), draw(), draw(), draw(), draw(), draw()}, draw(), draw());
    const auto reason = illegal(p);
    if (reason) {
      ASSERT_FALSE(reason->empty());
      continue;
    }
    ++accepted;
    const ct1d::Geometry g = p.geometry();
    const Wide last_x = Wide{g.batch - 1} * g.x_batch_stride + Wide{g.in_channels - 1} * g.x_row_stride + g.length - 1;
    const Wide last_y =
        Wide{g.batch - 1} * g.y_batch_stride + Wide{g.out_channels - 1} * g.y_row_stride + g.length_out - 1;
    ASSERT_TRUE(last_x == Wide{p.x_count()} - 1 && last_y == Wide{p.y_count()} - 1) << summary(p);
    // The last position of x reaches at most the end of the uncropped output.
    ASSERT_TRUE(Wide{p.length - 1} * p.stride + Wide{p.kernel_size - 1} * p.dilation - p.padding <=
                Wide{p.length_out()} - 1 + p.padding)
        << summary(p);
  }
  EXPECT_GT(accepted, 10000);
}

TEST(Problem, SaysWhichTensorOverflows) {
  Problem p = with_shape({std::int64_t{1} << 40, 1}, 1 << 20, 1);
  EXPECT_THAT(*illegal(p), HasSubstr("x of 1 x 1048576 x 1099511627776 elements overflows 64-bit"));
  p = with_shape({1, std::int64_t{1} << 40}, 1 << 20, 1);
  EXPECT_THAT(*illegal(p), HasSubstr("w of"));
  p = with_shape({std::int64_t{1} << 40, 1}, 1, 1 << 20);
  EXPECT_THAT(*illegal(p), HasSubstr("y of"));
  p = with_shape({INT64_MAX, 1, INT64_MAX});
  EXPECT_THAT(*illegal(p), HasSubstr("overflows"));
}

TEST(Problem, SummaryLeavesDefaultsOut) {
  Problem p = with_shape({7, 3, 2, 1, 1, 2}, 4, 6, 2);
  p.bias = true;
  EXPECT_EQ(summary(p), "B1 4->6 K3 s2 p1 op1 d2 g2 bias L7");
}

}  // namespace
}  // namespace tuner
