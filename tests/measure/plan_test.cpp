#include "tuner/measure/plan.h"

#include <gmock/gmock.h>

#include "tests/device/memory_device.h"
#include "tuner/measure/probe.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

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

TEST(Settling, SustainedLoadIsOverWhenTimesAndClockStandStill) {
  using Windows = std::vector<Sample>;
  EXPECT_FALSE(clock_settled(Windows{{1.0, 0}}));
  EXPECT_FALSE(clock_settled(Windows{{1.0, 0}, {1.02, 0}}));
  EXPECT_TRUE(clock_settled(Windows{{1.0, 0}, {1.02, 0}, {1.021, 0}}));
  EXPECT_FALSE(clock_settled(Windows{{1.0, 1980}, {1.0, 1800}}));  // bound by memory: only the clock shows it
  EXPECT_TRUE(clock_settled(Windows{{1.0, 1980}, {1.0, 1800}, {1.001, 1795}}));
}

std::vector<Sample> at_clocks(int nominal, int slow) {
  std::vector<Sample> samples(static_cast<std::size_t>(nominal), Sample{1.0, 1980});
  samples.insert(samples.end(), static_cast<std::size_t>(slow), Sample{1.4, 0.7 * 1980});
  return samples;
}

TEST(Clock, OwnIsTheHighestTenthInBurstsAndTheMedianUnderLoad) {
  EXPECT_EQ(own_clock({}, Regime::burst), 0);
  EXPECT_EQ(own_clock(std::vector<Sample>{{1, 0}, {1, 0}}, Regime::burst), 0);
  EXPECT_EQ(own_clock(at_clocks(50, 50), Regime::burst), 1980);
  EXPECT_EQ(own_clock(at_clocks(4, 6), Regime::sustained), 0.7 * 1980);
}

// nvbench #193, #206: a clock that drops during a run.
TEST(Clock, ADropHalfWayIsFlaggedAndTheMedianIsThatOfTheGoodHalf) {
  MeasureOptions options;
  options.half_width = 1e-9;
  options.max_seconds = 1e9;
  Sampling sampling(options);
  const std::vector<Sample> samples = at_clocks(50, 50);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sampling.add(samples[i]);
    EXPECT_EQ(sampling.clock_fell(), i >= 50) << i;
  }
  const Timing timing = sampling.timing();
  EXPECT_EQ(timing.ms.median, 1.0);
  EXPECT_EQ(timing.samples.size(), 50u);
  EXPECT_EQ(timing.dropped, 50);
  EXPECT_EQ(timing.clock_mhz, (Interval{1980, 1980, 1980}));
}

TEST(Clock, SamplesAtAFallenClockAreTakenAgainWithinTheLimits) {
  MeasureOptions options;
  options.half_width = 0.005;
  Sampling sampling(options);
  for (const Sample& sample : at_clocks(7, 30)) sampling.add(sample);
  EXPECT_FALSE(sampling.done(0.1)) << "too few at the regime's own clock";
  for (int i = 0; i < 9; ++i) sampling.add({1.0, 1975});
  EXPECT_TRUE(sampling.done(0.1));
  EXPECT_EQ(sampling.timing().ms.median, 1.0);
  EXPECT_EQ(sampling.timing().dropped, 30);
  options.max_samples = 10;
  Sampling limited(options);
  for (const Sample& sample : at_clocks(1, 19)) limited.add(sample);
  EXPECT_TRUE(limited.done(0.1)) << "twice max_samples were tried";
}

TEST(Clock, WhatStaysLowIsNotThrownAway) {
  MeasureOptions options;
  options.expected_mhz = 1980;  // an earlier burst's
  Sampling sampling(options);
  for (const Sample& sample : at_clocks(0, 12)) sampling.add(sample);
  EXPECT_TRUE(sampling.clock_fell());
  EXPECT_EQ(sampling.timing().samples.size(), 12u);
  EXPECT_EQ(sampling.timing().dropped, 0);
  EXPECT_EQ(sampling.timing().clock_mhz.median, 0.7 * 1980);
}

TEST(Clock, UnknownClocksCount) {
  std::vector<Sample> samples = at_clocks(3, 1);
  samples.push_back({1.0, 0});
  EXPECT_THAT(at_own_clock(samples, Regime::burst), ElementsAre(true, true, true, false, true));
}

TEST(Clock, UnderLoadItMayMoveByItself) {
  const std::vector<Sample> samples{{1, 1600}, {1, 1700}, {1, 1650}, {1, 1500}, {1, 1480}};
  EXPECT_THAT(at_own_clock(samples, Regime::sustained), ElementsAre(true, true, true, true, true));
  EXPECT_THAT(at_own_clock(samples, Regime::burst), ElementsAre(true, true, true, false, false));
}

TEST(Clock, IsCyclesOverNanoseconds) {
  using ct1d::probe::Reading;
  EXPECT_DOUBLE_EQ(mean_mhz({1000, 5000}, {1000 + 396'000, 5000 + 200'000}), 1980);
  EXPECT_EQ(mean_mhz({0, 0}, {396'000, 200'000}), 0) << "no block of the first reading ran there";
  EXPECT_EQ(mean_mhz({1000, 5000}, {2000, 5000}), 0);
}

TEST(Side, WorkThatOutlivesTheStreamIsNoticed) {
  EXPECT_FALSE(works_elsewhere(0.004, 0.004, 1));
  EXPECT_FALSE(works_elsewhere(0.03, 0.004, 1));
  EXPECT_TRUE(works_elsewhere(0.25, 0.004, 1));
  EXPECT_FALSE(works_elsewhere(0.25, 0.06, 1)) << "a machine where every wait is slow";
  EXPECT_FALSE(works_elsewhere(0.062, 0.004, 624)) << "nothing beside such a launch";
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
  EXPECT_EQ(launches_per_sample(L2::warm, 0.001), 64);  // all must fit the stream's queue
  EXPECT_EQ(samples_per_block(pace_of(Regime::burst, 0.001), 64), 1);
  EXPECT_EQ(samples_per_block(pace_of(Regime::burst, 1), 1), 12);
  EXPECT_EQ(launches_per_sample(L2::cold, 0.01), 1);  // L2 is flushed before each
}

TEST(Rounds, HoldEveryEntrantOnceAndAreFollowedByTheirReverse) {
  for (int round = 0; round < 40; round += 2) {
    auto order = round_order(5, round);
    EXPECT_THAT(order, UnorderedElementsAre(0, 1, 2, 3, 4));
    EXPECT_EQ(order, round_order(5, round));
    std::reverse(order.begin(), order.end());
    EXPECT_EQ(round_order(5, round + 1), order);
  }
}

TEST(Rounds, GiveNoEntrantAPlaceOrANeighbourOfItsOwn) {
  constexpr int kRounds = 400;
  int first_of_a_block[2] = {}, after[3][3] = {};
  for (int round = 0; round < kRounds; ++round) {
    if (round % 2 == 0) ++first_of_a_block[round_order(2, round)[0]];
    const auto order = round_order(3, round);
    for (std::size_t at = 1; at < 3; ++at) ++after[order[at - 1]][order[at]];
  }
  EXPECT_NEAR(first_of_a_block[0], kRounds / 4, 30);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      if (i == j) continue;
      EXPECT_NEAR(after[i][j], kRounds / 3, 40) << i << j;
    }
}

using Entrants = std::vector<std::vector<Sample>>;

TEST(Rounds, OneSlowEntrantTakesTheRoundFromAll) {
  Entrants entrants(2, std::vector<Sample>(20, Sample{1.0, 1980}));
  entrants[1][4] = {1.4, 1400};
  const auto counts = rounds_that_count(entrants, Regime::burst);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), true), 19);
  EXPECT_FALSE(counts[4]);
}

TEST(Rounds, SufficeWhenMediansAndRatiosAreKnown) {
  Entrants entrants(2);
  for (int r = 0; r < 20; ++r) {
    const double drift = 1 + 0.02 * (r % 5);  // both alike: their ratio is steady, their medians are not
    entrants[0].push_back({drift, 0});
    entrants[1].push_back({2 * drift, 0});
  }
  EXPECT_FALSE(rounds_suffice(entrants, Regime::burst, 0.005));
  EXPECT_TRUE(rounds_suffice(entrants, Regime::burst, 0.05));
  for (auto& entrant : entrants)
    for (Sample& sample : entrant) sample.ms = &entrant == &entrants[0] ? 1.0 : 2.0;
  EXPECT_TRUE(rounds_suffice(entrants, Regime::burst, 0.005));
  EXPECT_TRUE(rounds_suffice(Entrants{}, Regime::burst, 0.005));
}

TEST(Rounds, GiveABlockUnderLoadTimeToSettle) {
  EXPECT_EQ(block_of(10).lead_in, 10);
  EXPECT_EQ(block_of(10).timed, 5);
  EXPECT_EQ(block_of(500).lead_in, 1);
  EXPECT_EQ(block_of(500).timed, 3);
  EXPECT_LE(block_of(0.001).lead_in, 1000);
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
