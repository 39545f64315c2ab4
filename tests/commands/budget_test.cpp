// How a run's seconds are shared.
#include "tuner/commands/budget.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(RunBudget, WithoutSecondsThereIsNoLimit) {
  RunBudget budget(std::nullopt, 4, 1);
  budget.measured_baselines(1e6);
  EXPECT_TRUE(budget.has_room_for_a_pair());
  EXPECT_EQ(budget.search_seconds(3, 1), std::nullopt);
}

TEST(RunBudget, BaselinesAndRunOffsOfAllPairsLeftAreSetAside) {
  RunBudget budget(100, 4, 1);
  budget.measured_baselines(6);
  EXPECT_EQ(budget.search_seconds(1, 1), 90);  // 100 - 6 - 4
  RunBudget two(100, 4, 1);
  two.measured_baselines(6);
  EXPECT_EQ(two.search_seconds(2, 1), 40);  // (100 - 6 - 4 - 10) / 2
  two.searched(40);
  two.ran_off(2);  // from now on expected of the next
  two.measured_baselines(6);
  EXPECT_EQ(two.search_seconds(1, 1), 44);  // 100 - 6 - 40 - 2 - 6 - 2
}

TEST(RunBudget, BaselinesMayTakeAThirdOfAPairsEvenShare) {
  RunBudget budget(120, 4, 1);
  EXPECT_EQ(budget.baseline_seconds(2, 2), 10);  // 120 / 2 / 3 / 2
  budget.searched(108);
  EXPECT_EQ(budget.baseline_seconds(2, 2), 2) << "at least";
  EXPECT_EQ(RunBudget(std::nullopt, 4, 1).baseline_seconds(2, 2), std::nullopt);
}

TEST(RunBudget, MoreGoesWhereMoreIsToGain) {
  RunBudget budget(100, 0, 1);
  EXPECT_EQ(budget.search_seconds(2, 3), 50);  // as far as is known the other one has as much room
  budget.searched(50);
  EXPECT_EQ(budget.search_seconds(2, 1), 50.0 * 1 / (1 + 2));  // the mean of 3 and 1 is expected of the other
}

TEST(RunBudget, APairIsBegunOnlyWhereItsMeasurementsFit) {
  RunBudget budget(20, 4, 1);
  EXPECT_TRUE(budget.has_room_for_a_pair()) << "the first always is";
  budget.measured_baselines(8);
  budget.searched(1);
  budget.ran_off(2);
  EXPECT_FALSE(budget.has_room_for_a_pair()) << "9 s are left, 8 + 2 are wanted";
  EXPECT_EQ(budget.search_seconds(1, 1), 7);
  budget.searched(7);
  EXPECT_EQ(budget.search_seconds(1, 1), 1) << "a second at least, once it is begun";
}

TEST(RoomToGain, IsTheLogarithmOfTheBestRouteOverTheFloor) {
  DeviceFacts device;
  device.fp16_tflops = 1e-6;  // 1e6 products a second
  device.memory_gbps = 1e6;
  Problem problem;
  problem.in_channels = problem.out_channels = 10;
  problem.length = 10;
  problem.kernel_size = 1;
  ClassRecord record;
  EXPECT_EQ(room_to_gain(record, problem, Accuracy::tf32, device), 1);
  const double floor = problem.flop() / 1e6 * 1e3;
  EXPECT_EQ(floor, 2);  // ms
  BaselineRecord route;
  route.best_of_its_name = true;
  route.time.emplace();
  route.time->ms = {16, 16, 16};
  record.baselines = {route, route};
  record.baselines[1].time->ms = {8, 8, 8};
  EXPECT_EQ(room_to_gain(record, problem, Accuracy::tf32, device), 2);
  EXPECT_NEAR(room_to_gain(record, problem, Accuracy::fp32, device), 0.415, 0.001) << "three products: 8 / 6";
  record.baselines[1].time->ms = {2, 2, 2};
  EXPECT_EQ(room_to_gain(record, problem, Accuracy::tf32, device), 0.25) << "never nothing";
  record.baselines[0].best_of_its_name = record.baselines[1].best_of_its_name = false;
  EXPECT_EQ(room_to_gain(record, problem, Accuracy::tf32, device), 1);
}

}  // namespace
}  // namespace tuner
