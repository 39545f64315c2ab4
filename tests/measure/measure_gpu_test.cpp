#include <gmock/gmock.h>

#include "tests/device/gpu.h"
#include "tuner/measure/plan.h"
#include "tuner/measure/probe.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using tuner::testing::probe_program;
using tuner::testing::probe_unit;

/// Copies and what else a test wants, through the interface that every Runnable has.
class Wrapped : public Runnable {
 public:
  Wrapped(std::unique_ptr<Runnable> inner, std::function<Expected<bool>(Runnable&)> launch)
      : inner_(std::move(inner)), launch_(std::move(launch)) {}
  std::string name() const override { return "wrapped"; }
  Work work() const override { return inner_->work(); }
  Expected<bool> bind(const Tensors& tensors) override { return inner_->bind(tensors); }
  Expected<bool> launch() override { return launch_(*inner_); }

 private:
  std::unique_ptr<Runnable> inner_;
  std::function<Expected<bool>(Runnable&)> launch_;
};

class MeasureGpu : public tuner::testing::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!device_) return;
    auto probe = Probe::load(*device_, compile(measure_unit()));
    ASSERT_TRUE(probe) << probe.failure().reason;
    probe_ = std::move(*probe);
  }
  void TearDown() override {
    probe_.reset();
    x_.reset();
    y_.reset();
    GpuTest::TearDown();
  }
  Expected<Timing> timed(Runnable& runnable, const MeasureOptions& options = {}) {
    return measure(*device_, runnable, options, probe_.get());
  }

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
  std::unique_ptr<Probe> probe_;
  std::unique_ptr<Buffer> x_, y_;
};

constexpr std::int64_t kLarge = std::int64_t{1} << 28;  // 2 GiB moved

TEST_F(MeasureGpu, ACopyTakesWhatMemoryAllows) {
  const auto runnable = copy(kLarge);
  for (const Regime regime : {Regime::burst, Regime::sustained}) {
    MeasureOptions options;
    options.regime = regime;
    const auto timing = timed(*runnable, options);
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
  const auto timing = timed(*copy(kLarge, 100));
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.failure().outcome, Outcome::implausible);
  EXPECT_THAT(timing.failure().reason, HasSubstr("need at least"));
}

TEST_F(MeasureGpu, WhatIsMuchSlowerThanTheBestIsCut) {
  MeasureOptions options;
  options.best_ms = 1e-6;
  const auto timing = timed(*copy(kLarge), options);
  ASSERT_TRUE(timing);
  EXPECT_TRUE(timing->cut);
  EXPECT_LE(timing->samples.size(), 2u);
}

TEST_F(MeasureGpu, WarmShortCallsAreTimedManyAtATime) {
  MeasureOptions options;
  options.l2 = L2::warm;
  const auto timing = timed(*copy(1 << 16), options);
  ASSERT_TRUE(timing) << timing.failure().reason;
  EXPECT_GT(timing->ms.median, 0.0005);  // no launch is shorter
}

TEST_F(MeasureGpu, InterleavedRoundsGiveEachEntrantASampleARound) {
  const auto whole = copy(kLarge), half = copy(kLarge / 4);
  for (const L2 l2 : {L2::cold, L2::warm}) {
    MeasureOptions options;
    options.l2 = l2;
    Runnable* const entrants[] = {whole.get(), half.get()};
    const auto timings = measure_interleaved(*device_, entrants, options, 15, probe_.get());
    ASSERT_TRUE(timings) << timings.failure().reason;
    ASSERT_THAT(*timings, SizeIs(2));
    EXPECT_THAT((*timings)[0].samples, SizeIs(15));
    EXPECT_THAT((*timings)[1].samples, SizeIs(15));
    EXPECT_GT((*timings)[0].ms.median, (*timings)[1].ms.median);  // four times the bytes
  }
}

TEST_F(MeasureGpu, TellsTheClockThatTheSamplesRanAt) {
  const auto timing = timed(*copy(kLarge));
  ASSERT_TRUE(timing) << timing.failure().reason;
  EXPECT_GT(timing->clock_mhz.low, 0);
  EXPECT_LE(timing->clock_mhz.low, timing->clock_mhz.median);
  EXPECT_LE(timing->clock_mhz.median, timing->clock_mhz.high);
  const double highest = device_->environment().device.sm_clock_mhz;
  EXPECT_TRUE(highest == 0 || timing->clock_mhz.high < 1.1 * highest) << timing->clock_mhz.high;
  const auto unprobed = measure(*device_, *copy(kLarge), {});
  ASSERT_TRUE(unprobed);
  EXPECT_EQ(unprobed->clock_mhz, Interval{});
}

// KernelBench #82, helion #2994: events see nothing of another stream.
TEST_F(MeasureGpu, WorkOnAnotherStreamIsImplausible) {
  cudaStream_t side = nullptr;
  TUNER_CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  const auto target = device_->allocate(std::size_t{1} << 31);
  Wrapped cheat(copy(1024, 0), [&](Runnable&) -> Expected<bool> {
    TUNER_CUDA(cudaMemsetAsync(target->data(), 0, target->size(), side));
    return true;
  });
  for (const L2 l2 : {L2::cold, L2::warm}) {
    MeasureOptions options;
    options.l2 = l2;
    const auto timing = timed(cheat, options);
    ASSERT_FALSE(timing);
    EXPECT_EQ(timing.failure().outcome, Outcome::implausible);
    EXPECT_THAT(timing.failure().reason, HasSubstr("outside the timed stream"));
  }
  const auto honest = copy(kLarge);
  Runnable* const entrants[] = {&cheat, honest.get()};
  const auto timings = measure_interleaved(*device_, entrants, {}, 8, probe_.get());
  ASSERT_TRUE(timings) << timings.failure().reason;
  ASSERT_TRUE((*timings)[0].failure);
  EXPECT_EQ((*timings)[0].failure->outcome, Outcome::implausible);
  EXPECT_FALSE((*timings)[1].failure) << "one that cheats keeps no other from being timed";
  EXPECT_THAT((*timings)[1].samples, SizeIs(8));
  device_->synchronize();
  cudaStreamDestroy(side);
}

// llm.c #852: persisting lines survive a flush.
TEST_F(MeasureGpu, SettingL2AsideForPersistingLinesIsImplausible) {
  if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) != cudaSuccess) {
    cudaGetLastError();
    GTEST_SKIP() << "this GPU cannot set L2 aside";
  }
  Wrapped cheat(copy(kLarge), [](Runnable& inner) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, std::size_t{8} << 20);
    return inner.launch();
  });
  const auto timing = timed(cheat);
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.failure().outcome, Outcome::implausible);
  EXPECT_THAT(timing.failure().reason, HasSubstr("aside"));
  EXPECT_TRUE(timed(*copy(kLarge))) << "the next one finds the limit at 0 again";
}

TEST_F(MeasureGpu, ALaunchThatWaitsForTheStreamIsTimedAllTheSame) {
  Wrapped waits(copy(1 << 20), [&](Runnable& inner) {
    TUNER_CUDA(cudaStreamSynchronize(device_->stream()));  // would wait for ever behind a gate without a limit
    return inner.launch();
  });
  EXPECT_TRUE(timed(waits));
}

TEST_F(MeasureGpu, UnderLoadEachEntrantGetsASampleARoundToo) {
  const auto whole = copy(kLarge), half = copy(kLarge / 4);
  MeasureOptions options;
  options.regime = Regime::sustained;
  Runnable* const entrants[] = {whole.get(), half.get()};
  const auto timings = measure_interleaved(*device_, entrants, options, 3, probe_.get());
  ASSERT_TRUE(timings) << timings.failure().reason;
  EXPECT_THAT((*timings)[0].samples, SizeIs(3));
  EXPECT_THAT((*timings)[1].samples, SizeIs(3));
  EXPECT_GT((*timings)[0].ms.median, (*timings)[1].ms.median);
  EXPECT_GT((*timings)[0].clock_mhz.median, 0);
}

TEST_F(MeasureGpu, EnergyOfALaunchGrowsWithItsWork) {
  if (!device_->sensors().energy_mj()) GTEST_SKIP() << "NVML offers no energy counter here";
  MeasureOptions options;
  options.energy_windows = 1;
  const auto whole = timed(*copy(kLarge), options), quarter = timed(*copy(kLarge / 4), options);
  ASSERT_TRUE(whole) << whole.failure().reason;
  ASSERT_TRUE(quarter) << quarter.failure().reason;
  EXPECT_GT(quarter->energy->mj.median, 0);
  EXPECT_GT(whole->energy->mj.median, quarter->energy->mj.median);
}

TEST_F(MeasureGpu, WithoutAPrepareStepItTakesNoTime) {
  const auto ms = measure_prepare(*device_, *copy(1024));
  ASSERT_TRUE(ms);
  EXPECT_EQ(*ms, 0);
}

}  // namespace
}  // namespace tuner
