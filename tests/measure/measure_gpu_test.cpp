#include <gmock/gmock.h>

#include "tests/device/gpu.h"
#include "tuner/measure/plan.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using tuner::testing::probe_program;
using tuner::testing::probe_unit;

class MeasureGpu : public tuner::testing::GpuTest {
 protected:
  /// A copy of `floats` numbers that says it moves `claim` times as many bytes as it does.
  std::unique_ptr<Runnable> copy(std::int64_t floats, double claim = 1) {
    Problem problem;
    problem.in_channels = problem.out_channels = problem.kernel_size = 1;
    problem.length = floats;
    Program program = probe_program("copy", {2048, 1, 1, 256, 1, 1, 0, 1});
    program.work.bytes = claim * 8 * static_cast<double>(floats);
    if (!x_ || x_->size() < static_cast<std::size_t>(floats) * 4) {
      x_ = device_->allocate(static_cast<std::size_t>(floats) * 4);
      y_ = device_->allocate(static_cast<std::size_t>(floats) * 4);
    }
    auto runnable = make_runnable(*device_, problem, program, compile(probe_unit()), "copy");
    if (!runnable) throw std::runtime_error(runnable.failure().reason);
    const auto bound = (*runnable)->bind({x_->data(), nullptr, nullptr, y_->data()});
    if (!bound) throw std::runtime_error(bound.failure().reason);
    return std::move(*runnable);
  }
  std::unique_ptr<Buffer> x_, y_;
};

constexpr std::int64_t kLarge = std::int64_t{1} << 28;  // 2 GiB moved

TEST_F(MeasureGpu, ACopyTakesWhatMemoryAllows) {
  const auto runnable = copy(kLarge);
  for (const Regime regime : {Regime::burst, Regime::sustained}) {
    MeasureOptions options;
    options.regime = regime;
    const auto timing = measure(*device_, *runnable, options);
    ASSERT_TRUE(timing) << timing.failure().reason;
    const double bound = lower_bound_ms(runnable->work(), device_->environment().device, L2::cold);
    EXPECT_GT(timing->ms.median, bound);
    EXPECT_LT(timing->ms.median, 10 * bound);  // far from it only if events or units are wrong
    EXPECT_GE(timing->samples.size(), static_cast<std::size_t>(kMinSamples));
    EXPECT_LE(timing->ms.low, timing->ms.median);
    EXPECT_GE(timing->ms.high, timing->ms.median);
    EXPECT_EQ(timing->regime, regime);
  }
}

TEST_F(MeasureGpu, FasterThanMemoryAllowsIsImplausible) {
  const auto timing = measure(*device_, *copy(kLarge, 100), {});
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.failure().outcome, Outcome::implausible);
  EXPECT_THAT(timing.failure().reason, HasSubstr("need at least"));
}

TEST_F(MeasureGpu, WhatIsMuchSlowerThanTheBestIsCut) {
  MeasureOptions options;
  options.best_ms = 1e-6;
  const auto timing = measure(*device_, *copy(kLarge), options);
  ASSERT_TRUE(timing);
  EXPECT_TRUE(timing->cut);
  EXPECT_LE(timing->samples.size(), 2u);
}

TEST_F(MeasureGpu, WarmShortCallsAreTimedManyAtATime) {
  MeasureOptions options;
  options.l2 = L2::warm;
  const auto timing = measure(*device_, *copy(1 << 16), options);
  ASSERT_TRUE(timing) << timing.failure().reason;
  EXPECT_GT(timing->ms.median, 0.0005);  // no launch is shorter
}

TEST_F(MeasureGpu, InterleavedRoundsGiveEachEntrantASampleARound) {
  const auto whole = copy(kLarge), half = copy(kLarge / 4);
  for (const L2 l2 : {L2::cold, L2::warm}) {
    MeasureOptions options;
    options.l2 = l2;
    Runnable* const entrants[] = {whole.get(), half.get()};
    const auto timings = measure_interleaved(*device_, entrants, options, 15);
    ASSERT_TRUE(timings) << timings.failure().reason;
    ASSERT_THAT(*timings, SizeIs(2));
    EXPECT_THAT((*timings)[0].samples, SizeIs(15));
    EXPECT_THAT((*timings)[1].samples, SizeIs(15));
    EXPECT_GT((*timings)[0].ms.median, (*timings)[1].ms.median);  // four times the bytes
  }
}

TEST_F(MeasureGpu, WithoutAPrepareStepItTakesNoTime) {
  const auto ms = measure_prepare(*device_, *copy(1024));
  ASSERT_TRUE(ms);
  EXPECT_EQ(*ms, 0);
}

}  // namespace
}  // namespace tuner
