// The cuBLAS plans, as arithmetic and simulated on the CPU with every buffer full of NaN at the start.
#include "baselines/shift_add_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/baselines/small_problems.h"

namespace tuner {
namespace {

using testing::by_definition;
using testing::integers;
using testing::small_problems;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kGiB = std::size_t{1} << 30;

Problem problem(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t length) {
  Problem p;
  p.batch = batch;
  p.in_channels = in;
  p.out_channels = out;
  p.kernel_size = taps;
  p.length = length;
  return p;
}

const GemmStep* first_gemm(const ShiftAddPlan& plan) {
  for (const ShiftAddStep& step : plan.steps)
    if (const auto* gemm = std::get_if<GemmStep>(&step)) return gemm;
  return nullptr;
}

/// Runs a plan as the library and the helper kernels would.
class Simulation {
 public:
  Simulation(const Problem& p, const ShiftAddPlan& plan)
      : problem_(p),
        x_(integers(p.x_count(), 1)),
        w_(integers(p.w_count(), 2)),
        bias_(integers(p.out_channels, 3)),
        y_(static_cast<std::size_t>(p.y_count()), kNan),
        workspace_(plan.workspace_bytes / sizeof(float), kNan),
        weights_(plan.packed ? packed(plan.packing) : w_) {
    for (const ShiftAddStep& step : plan.steps) std::visit([&](const auto& s) { run(s); }, step);
  }

  const std::vector<float>& y() const { return y_; }
  std::vector<float> expected() const { return by_definition(problem_, x_, w_, bias_); }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::vector<float>& target(Destination t) { return t == Destination::y ? y_ : workspace_; }

  std::vector<float> packed(const ct1d::baseline::PermuteArguments& a) const {
    std::vector<float> result;
    for (std::int64_t i = 0; i < a.extents[0]; ++i)
      for (std::int64_t j = 0; j < a.extents[1]; ++j)
        for (std::int64_t k = 0; k < a.extents[2]; ++k)
          for (std::int64_t l = 0; l < a.extents[3]; ++l)
            result.push_back(
                w_.at(at(a.offset + i * a.strides[0] + j * a.strides[1] + k * a.strides[2] + l * a.strides[3])));
    return result;
  }

  void run(const FillStep& s) {
    const std::int64_t columns = problem_.length_out();
    for (std::int64_t row = 0; row < s.rows; ++row)
      for (std::int64_t t = 0; t < columns; ++t)
        if (t < s.left_end || t >= s.right_begin)
          target(s.target).at(at(s.offset + row * columns + t)) =
              s.bias ? bias_.at(at(row % problem_.out_channels)) : 0.0f;
  }

  void run(const GemmStep& s) {
    ASSERT_GE(s.lda, s.m);
    ASSERT_GE(s.ldc, s.m);
    ASSERT_GE(s.ldb, s.b_transposed ? s.n : s.k);
    ASSERT_LE(s.batch, kMaxGemmBatch);
    for (std::int64_t i = 0; i < s.batch; ++i)
      for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t m = 0; m < s.m; ++m) {
          float sum = 0;
          for (std::int64_t k = 0; k < s.k; ++k)
            sum += x_.at(at(s.a + i * s.stride_a + k * s.lda + m)) *
                   weights_.at(at(s.b + i * s.stride_b + (s.b_transposed ? k * s.ldb + n : n * s.ldb + k)));
          float& c = target(s.target).at(at(s.c + i * s.stride_c + n * s.ldc + m));
          c = s.beta == 0 ? sum : c + sum;
        }
  }

  void run(const GatherStep& s) {
    const auto a = gather_arguments(problem_, s);
    for (std::int64_t row = 0; row < s.batches * s.channels; ++row) {
      const float* columns = workspace_.data() + row * s.kernel_size * s.length;
      const std::int64_t batch = s.first_batch + row / s.channels, channel = s.first_channel + row % s.channels;
      for (std::int64_t t = 0; t < problem_.length_out(); ++t) {
        const float wide = ct1d::baseline::gather_sum<long long>(a, columns, t);
        EXPECT_TRUE(ct1d::baseline::fits_int(a));
        EXPECT_EQ(wide, ct1d::baseline::gather_sum<int>(a, columns, static_cast<int>(t)));
        y_.at(at(batch * a.y_batch_stride + channel * a.y_row_stride + t)) =
            wide + (problem_.bias ? bias_.at(at(channel)) : 0.0f);
      }
    }
  }

  Problem problem_;
  std::vector<float> x_, w_, bias_, y_, workspace_, weights_;
};

TEST(TapRange, CropsWhatPaddingCutsOffAndShiftsByDilation) {
  Problem p = problem(1, 1, 1, 4, 5);
  p.padding = 2;
  p.dilation = 3;
  ASSERT_EQ(p.length_out(), 10);
  EXPECT_EQ(tap_range(p, 0), (TapRange{0, 3, 2}));
  EXPECT_EQ(tap_range(p, 1), (TapRange{1, 6, 0}));
  EXPECT_EQ(tap_range(p, 2), (TapRange{4, 9, 0}));
  EXPECT_EQ(tap_range(p, 3), (TapRange{7, 10, 0}));
}

TEST(GemmPerTap, StartsWithTheWidestTapSoThatBetaZeroCoversMost) {
  Problem p = problem(2, 3, 4, 3, 100);
  p.padding = 1;  // taps cover [0, 99), [0, 100), [1, 100)
  const auto plan = plan_gemm_per_tap(p, Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps.size(), 3u);  // the middle tap covers all: nothing to fill
  std::vector<int> betas;
  for (const ShiftAddStep& step : plan->steps) betas.push_back(std::get<GemmStep>(step).beta);
  EXPECT_EQ(betas, (std::vector{0, 1, 1}));
  const auto& middle = std::get<GemmStep>(plan->steps[0]);
  EXPECT_EQ(middle.m, 100);
  EXPECT_EQ(middle.b, 1 * 3 * 4);
  EXPECT_EQ(middle.batch, 2);
  EXPECT_EQ(plan->workspace_bytes, 0u);
}

TEST(GemmPerTap, FillsTheColumnsThatTheFirstTapLeaves) {
  const auto plan = plan_gemm_per_tap(problem(2, 3, 4, 3, 10), Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(plan);
  const auto& fill = std::get<FillStep>(plan->steps.front());
  EXPECT_EQ(fill.rows, 8);
  EXPECT_EQ(fill.left_end, 0);
  EXPECT_EQ(fill.right_begin, 10);  // of 12
  EXPECT_FALSE(fill.bias);
}

TEST(GemmPerTap, StartsFromTheBiasWhereThereIsOne) {
  Problem p = problem(2, 3, 4, 3, 10);
  p.bias = true;
  const auto plan = plan_gemm_per_tap(p, Accuracy::tf32, PackedOrder::out_in, kGiB);
  ASSERT_TRUE(plan);
  const auto& fill = std::get<FillStep>(plan->steps.front());
  EXPECT_TRUE(fill.bias);
  EXPECT_EQ(fill.left_end, 12);
  EXPECT_EQ(first_gemm(*plan)->beta, 1);
}

TEST(GemmPerTap, SplitsBatchesBeyondTheGridLimitAndLoopsOverTheShorterAxis) {
  const auto plan = plan_gemm_per_tap(problem(65537, 1, 1, 1, 4), Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(std::get<GemmStep>(plan->steps[0]).batch, 65535);
  EXPECT_EQ(std::get<GemmStep>(plan->steps[1]).batch, 2);
  EXPECT_EQ(std::get<GemmStep>(plan->steps[1]).a, 65535 * 4);

  Problem depthwise = problem(2, 50, 50, 1, 4);
  depthwise.groups = 50;
  const auto grouped = plan_gemm_per_tap(depthwise, Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(grouped);
  ASSERT_EQ(grouped->steps.size(), 2u);  // one a batch, 50 groups each
  EXPECT_EQ(std::get<GemmStep>(grouped->steps[1]).batch, 50);
  EXPECT_EQ(std::get<GemmStep>(grouped->steps[1]).stride_a, 4);
}

TEST(GemmPerTap, SixteenBitClassesAddInFp32WithinTheWorkspaceLimit) {
  const Problem p = problem(5, 2, 3, 2, 9);  // one batch of sums: 3 * 10 * 4 bytes
  const auto plan = plan_gemm_per_tap(p, Accuracy::fp16, PackedOrder::in_out, 250);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->workspace_bytes, 240u);  // two batches
  EXPECT_EQ(first_gemm(*plan)->target, Destination::workspace);
  int conversions = 0;
  for (const ShiftAddStep& step : plan->steps) conversions += std::holds_alternative<GatherStep>(step);
  EXPECT_EQ(conversions, 3);
  const auto refused = plan_gemm_per_tap(p, Accuracy::bf16, PackedOrder::in_out, 100);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().reason, "one batch of fp32 sums takes 120 bytes, more than the workspace limit of 100");
}

TEST(GemmPerTap, RefusesStridesAndAbsurdlyManyCalls) {
  Problem p = problem(1, 2, 3, 2, 9);
  p.stride = 2;
  EXPECT_EQ(plan_gemm_per_tap(p, Accuracy::fp32, PackedOrder::in_out, kGiB).failure().reason,
            "one product a tap needs stride 1, not 2");
  EXPECT_FALSE(plan_gemm_per_tap(problem(1, 1, 1, 30000, 9), Accuracy::fp32, PackedOrder::in_out, kGiB));
}

TEST(Columns, TilesChannelsWhereOneBatchPassesTheLimit) {
  const Problem c28 = problem(1, 8, 1024, 1024, 4096);  // 16 GiB of columns
  const auto plan = plan_columns(c28, 4 * kGiB);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->workspace_bytes, 4 * kGiB);
  ASSERT_EQ(plan->steps.size(), 8u);
  const auto& last = std::get<GemmStep>(plan->steps[6]);
  EXPECT_EQ(last.n, 256 * 1024);
  EXPECT_EQ(last.b, 768 * 1024);
  EXPECT_EQ(last.ldb, 1024 * 1024);
  const auto& gather = std::get<GatherStep>(plan->steps[7]);
  EXPECT_EQ(gather.first_channel, 768);
  EXPECT_EQ(gather.channels, 256);
}

TEST(Columns, TilesBatchesWhereSeveralFit) {
  const Problem p = problem(7, 2, 4, 3, 10);  // one batch: 480 bytes
  const auto plan = plan_columns(p, 1000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->workspace_bytes, 960u);
  EXPECT_EQ(plan->steps.size(), 8u);
  EXPECT_EQ(first_gemm(*plan)->batch, 2);
}

TEST(Columns, RefusesWhatOneChannelAlreadyExceeds) {
  const auto plan = plan_columns(problem(1, 2, 4, 3, 10), 100);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.failure().reason, "one channel's columns take 120 bytes, more than the limit of 100");
}

TEST(GemmShape, TellsProductsApartByAlignmentNotByPlace) {
  const auto plan = plan_gemm_per_tap(problem(2, 3, 4, 3, 100), Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(plan);
  // All taps have 100 columns of 102; y + 0, y + 4 and y + 8 bytes; weights of 48 bytes a tap.
  const auto shapes = gemm_shapes(*plan, Accuracy::fp32);
  ASSERT_EQ(shapes.size(), 3u);
  std::set<std::uint32_t> alignments;
  for (const GemmShape& shape : shapes) {
    EXPECT_EQ(shape.m, 100);
    EXPECT_EQ(shape.ldc, 102);
    EXPECT_EQ(shape.align_a, 256u);
    alignments.insert(shape.align_c);
  }
  EXPECT_EQ(alignments, (std::set<std::uint32_t>{4, 8, 256}));
  GemmStep step;
  step.a = step.c = 1;
  EXPECT_EQ(gemm_shape(step, Accuracy::fp16).align_a, 2u);
  EXPECT_EQ(gemm_shape(step, Accuracy::fp16).align_c, 2u);
  step.target = Destination::workspace;
  EXPECT_EQ(gemm_shape(step, Accuracy::fp16).align_c, 4u);
  GemmStep elsewhere = step;
  elsewhere.b = 1024;
  elsewhere.beta = 1;
  EXPECT_EQ(gemm_shape(elsewhere, Accuracy::fp16), gemm_shape(step, Accuracy::fp16));
}

TEST(Traffic, CountsEachStepsOperandsOnce) {
  // Taps of 10, 10 and 10 columns: x (2 x 3 x 10) and weights (3 x 4) for each, y (2 x 4 x 10) written, then read and
  // written twice; two columns of 8 rows filled.
  const Problem p = problem(2, 3, 4, 3, 10);
  const auto per_tap = plan_gemm_per_tap(p, Accuracy::fp32, PackedOrder::in_out, kGiB);
  ASSERT_TRUE(per_tap);
  EXPECT_EQ(traffic_bytes(*per_tap, p, Accuracy::fp32), 4.0 * (3 * (60 + 12) + 80 * 5 + 16));
  // x and w once, columns (2 x 4 x 3 x 10) written and read in fp32, y (2 x 4 x 12) written.
  const auto columns = plan_columns(p, kGiB);
  ASSERT_TRUE(columns);
  EXPECT_EQ(traffic_bytes(*columns, p, Accuracy::fp16), 2.0 * (60 + 36 + 96) + 4.0 * 2 * 240);
}

TEST(InverseModulo, UndoesMultiplication) {
  EXPECT_EQ(ct1d::baseline::inverse_modulo(1, 1), 0);
  EXPECT_EQ(ct1d::baseline::inverse_modulo(3, 8), 3);
  EXPECT_EQ(ct1d::baseline::inverse_modulo(10, 7), 5);
  for (std::int64_t modulus : {2, 5, 9, 16, 441})
    for (std::int64_t value = 1; value < 30; ++value)
      if (ct1d::gcd(value, modulus) == 1) {
        EXPECT_EQ(ct1d::baseline::inverse_modulo(value, modulus) * value % modulus, 1 % modulus);
      }
}

TEST(GatherArguments, NarrowIndicesOnlyWhereEverythingFits) {
  Problem p = problem(1, 1, 1, 1024, 1 << 20);
  GatherStep step{0, 1, 0, 1, 1024, 1, 0, 1, 1 << 20};
  EXPECT_TRUE(ct1d::baseline::fits_int(gather_arguments(p, step)));
  step.kernel_size = p.kernel_size = 2048;
  EXPECT_FALSE(ct1d::baseline::fits_int(gather_arguments(p, step)));
}

TEST(ShiftAddSimulation, GivesTheDefinitionForEveryPlanOfManyProblems) {
  int per_tap = 0, tiled = 0;
  for (const Problem& p : small_problems(400, 7)) {
    const auto check = [&](const Expected<ShiftAddPlan>& plan) {
      if (!plan) return false;
      SCOPED_TRACE(summary(p) + ", " + plan->route);
      const Simulation simulation(p, *plan);
      EXPECT_EQ(simulation.y(), simulation.expected());
      return true;
    };
    for (const PackedOrder order : {PackedOrder::in_out, PackedOrder::out_in})
      for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16})
        for (const std::size_t limit : {std::size_t{1000}, kGiB})
          per_tap += check(plan_gemm_per_tap(p, accuracy, order, limit));
    for (const std::size_t limit : {std::size_t{200}, std::size_t{700}, kGiB}) tiled += check(plan_columns(p, limit));
    if (HasFailure()) return;
  }
  EXPECT_GT(per_tap, 800);
  EXPECT_GT(tiled, 800);
}

}  // namespace
}  // namespace tuner
