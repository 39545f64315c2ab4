#include "tuner/measure/plan.h"

#include <gmock/gmock.h>

#include "tests/device/memory_device.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;

DeviceFacts h200() {
  DeviceFacts device;
  device.name = "NVIDIA H200";
  device.l2_bytes = 50'000'000;
  device.memory_gbps = 4800;
  device.fp32_tflops = 66.9;
  device.tf32_tflops = 535;
  device.fp16_tflops = 1070;
  return device;
}

TEST(LowerBound, IsThatOfTheSlowestPipe) {
  Work work;
  work.bytes = 4.85e9;
  EXPECT_DOUBLE_EQ(lower_bound_ms(work, h200(), L2::cold), 1.0);  // (4.85e9 - 5e7) / 4.8e12 s
  work.fma_fp32 = 6.69e11;
  EXPECT_DOUBLE_EQ(lower_bound_ms(work, h200(), L2::cold), 10.0);
  work.tensor_tf32 = 5.35e12;  // one matrix unit for both operand types
  work.tensor_fp16 = 1.07e13;
  EXPECT_DOUBLE_EQ(lower_bound_ms(work, h200(), L2::cold), 20.0);
}

TEST(LowerBound, WarmCallsNeedNoMemory) {
  Work work;
  work.bytes = 4.85e9;
  EXPECT_EQ(lower_bound_ms(work, h200(), L2::warm), 0);
}

TEST(LowerBound, UnknownPeaksBoundNothing) {
  Work work;
  work.bytes = work.fma_fp32 = work.tensor_fp16 = 1e15;
  EXPECT_EQ(lower_bound_ms(work, DeviceFacts{}, L2::cold), 0);
}

TEST(Cut, NeedsCertainty) {
  EXPECT_FALSE(certainly_slower({}, 1, 2));
  EXPECT_FALSE(certainly_slower(std::vector{7.9}, 1, 2));  // one launch may be disturbed
  EXPECT_TRUE(certainly_slower(std::vector{8.1}, 1, 2));
  EXPECT_TRUE(certainly_slower(std::vector{2.1, 5.0}, 1, 2));
  EXPECT_FALSE(certainly_slower(std::vector{2.1, 1.9, 5.0}, 1, 2));
}

TEST(Settling, WaitsForSixLaunchesThatAgree) {
  EXPECT_FALSE(settled(std::vector{1.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_TRUE(settled(std::vector{1.0, 1.0, 1.0, 1.0, 1.0, 1.01}));
  EXPECT_FALSE(settled(std::vector{2.0, 1.5, 1.3, 1.2, 1.1, 1.05}));
  EXPECT_TRUE(settled(std::vector{9.0, 5.0, 1.00, 1.01, 1.0, 1.0, 1.0, 1.01}));
  EXPECT_TRUE(settled(std::vector<double>(20, 0)));
}

TEST(Settling, SustainedLoadIsOverWhenTheClockStops) {
  EXPECT_FALSE(clock_settled(std::vector{1.0}));
  EXPECT_FALSE(clock_settled(std::vector{1.0, 1.02}));
  EXPECT_TRUE(clock_settled(std::vector{1.0, 1.02, 1.021}));
}

TEST(Sampling, StopsWhenTheMedianIsKnown) {
  MeasureOptions options;
  options.half_width = 0.005;
  Sampling sampling(options);
  for (int i = 0; i < 7; ++i) {
    sampling.add(1.0);
    EXPECT_FALSE(sampling.done(0.1)) << i;
  }
  sampling.add(1.001);
  EXPECT_TRUE(sampling.done(0.1));
  const Timing timing = sampling.timing();
  EXPECT_EQ(timing.ms.median, 1.0);
  EXPECT_EQ(timing.samples.size(), 8u);
  EXPECT_FALSE(timing.cut);
}

TEST(Sampling, NoisyTimesGoOnUntilSamplesOrSecondsRunOut) {
  MeasureOptions options;
  options.max_samples = 40;
  options.max_seconds = 2;
  const auto noisy = [&](double seconds_a_sample) {
    Sampling sampling(options);
    int count = 0;
    do {
      sampling.add(1 + 0.1 * (count % 5));
      ++count;
    } while (!sampling.done(count * seconds_a_sample));
    return count;
  };
  EXPECT_EQ(noisy(0.001), 40);
  EXPECT_EQ(noisy(0.125), 16);
}

TEST(Sampling, CutsWhatIsSlowerThanTheBest) {
  MeasureOptions options;
  options.best_ms = 1.0;
  options.cut_factor = 2;
  Sampling sampling(options);
  sampling.add(2.2);
  EXPECT_FALSE(sampling.done(0));
  sampling.add(2.1);
  EXPECT_TRUE(sampling.done(0));
  EXPECT_TRUE(sampling.timing().cut);
  EXPECT_NEAR(sampling.timing().ms.median, 2.15, 1e-12);
}

TEST(Pace, BurstsAreShortAndPausedSustainedLoadIsNot) {
  const Pace fast = pace_of(Regime::burst, 1.0);
  EXPECT_EQ(fast.settle_seconds, 0.5);
  EXPECT_EQ(fast.block, 12);
  EXPECT_DOUBLE_EQ(fast.pause_seconds, 0.048);
  const Pace slow = pace_of(Regime::burst, 80);
  EXPECT_EQ(slow.block, 1);
  EXPECT_EQ(slow.pause_seconds, 0.1);
  EXPECT_EQ(pace_of(Regime::sustained, 1.0).pause_seconds, 0);
  EXPECT_EQ(pace_of(Regime::sustained, 1.0).settle_seconds, 0);
}

TEST(Pace, ShortWarmKernelsAreTimedManyAtATime) {
  EXPECT_EQ(launches_per_sample(L2::warm, 0.01), 20);
  EXPECT_EQ(launches_per_sample(L2::warm, 1), 1);
  EXPECT_EQ(launches_per_sample(L2::cold, 0.01), 1);  // L2 is flushed before each
}

TEST(Rounds, RotateSoThatEachEntrantStartsInTurn) {
  EXPECT_THAT(round_order(3, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(round_order(3, 1), ElementsAre(1, 2, 0));
  EXPECT_THAT(round_order(3, 5), ElementsAre(2, 0, 1));
}

TEST(Measure, WithoutAGpuNothingIsTimed) {
  class Nothing : public Runnable {
   public:
    std::string name() const override { return "nothing"; }
    Work work() const override { return {}; }
    Expected<bool> bind(const Tensors&) override { return true; }
    Expected<bool> launch() override { return true; }
  } nothing;
  testing::MemoryDevice device;
  const auto timing = measure(device, nothing, {});
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.failure().outcome, Outcome::unproven);
  EXPECT_FALSE(measure_prepare(device, nothing));
}

}  // namespace
}  // namespace tuner
