#include "tuner/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/samples.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ClassRecord& fp32(RunResult& result) { return result.problems[0].classes[0]; }
Interval& best_time(RunResult& result) { return fp32(result).variants[1].time->ms; }

/// The message of the UsageError that comparing throws.
std::string refusal(const RunResult& base, const RunResult& now) {
  try {
    compare(base, now, {});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Judge, IntervalDecides) {
  EXPECT_EQ(judge({1.05, 1.04, 1.06}, 3), Verdict::slower);
  EXPECT_EQ(judge({1.001, 1.0005, 1.002}, 3), Verdict::slower);
  EXPECT_EQ(judge({0.95, 0.94, 0.96}, 3), Verdict::faster);
  EXPECT_EQ(judge({1.00, 0.98, 1.02}, 3), Verdict::same);
  EXPECT_EQ(judge({1.00, 0.98, 1.04}, 3), Verdict::cannot_tell);
  EXPECT_EQ(judge({1.00, 0.95, 1.02}, 3), Verdict::cannot_tell);
}

TEST(Judge, AnUnboundedIntervalTellsNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(judge({2, 1.5, infinity}, 3), Verdict::cannot_tell);
  EXPECT_EQ(judge({std::nan(""), std::nan(""), std::nan("")}, 3), Verdict::cannot_tell);
}

TEST(Compare, AResultAgainstItselfIsTheSame) {
  const Comparison comparison = compare(samples::measured(), samples::measured(), {});
  ASSERT_EQ(comparison.classes.size(), 2u);
  EXPECT_TRUE(comparison.timed);
  EXPECT_FALSE(comparison.regressed());
  EXPECT_EQ(comparison.classes[0].verdict, Verdict::same);
}

TEST(Compare, SlowerBeyondTheThresholdRegresses) {
  RunResult now = samples::measured();
  best_time(now) = fp32(now).variants[2].time->ms = {9.3, 9.29, 9.31};
  const Comparison comparison = compare(samples::measured(), now, {});
  EXPECT_TRUE(comparison.regressed());
  EXPECT_EQ(comparison.classes[0].verdict, Verdict::slower);
  EXPECT_THAT(comparison.classes[0].regressions,
              ElementsAre("slower by 5.7 % (9.300 [9.290, 9.310] ms, was 8.800 [8.790, 8.810] ms)"));
  EXPECT_THAT(comparison.classes[1].regressions, IsEmpty());
  CompareOptions generous;
  generous.fail_slower_percent = 6;
  EXPECT_FALSE(compare(samples::measured(), now, generous).regressed());
}

TEST(Compare, EachRegimeOfBothIsCompared) {
  const RunResult base = samples::in_two_regimes();
  RunResult now = base;
  fp32(now).variants[1].other_regimes[0].ms = {11, 10.9, 11.1};
  const Comparison comparison = compare(base, now, {});
  ASSERT_EQ(comparison.classes.size(), 2u);
  EXPECT_EQ(comparison.classes[0].verdict, Verdict::same);
  EXPECT_EQ(comparison.classes[1].regime, "sustained");
  EXPECT_EQ(comparison.classes[1].verdict, Verdict::slower);
  EXPECT_TRUE(comparison.regressed());
  EXPECT_THAT(to_text(comparison, false), HasSubstr("fp32, sustained"));
}

TEST(Compare, AWideIntervalIsNoRegression) {
  RunResult now = samples::measured();
  best_time(now) = {9.3, 8.0, 10.0};
  fp32(now).best = fp32(now).variants[1].id;
  const Comparison comparison = compare(samples::measured(), now, {});
  EXPECT_EQ(comparison.classes[0].verdict, Verdict::cannot_tell);
  EXPECT_FALSE(comparison.regressed());
}

TEST(Compare, AnotherWinnerAsFastIsNoRegression) {
  RunResult now = samples::measured();
  fp32(now).variants[1].outcome = Outcome::cut;
  fp32(now).best = fp32(now).variants[2].id;
  const Comparison comparison = compare(samples::measured(), now, {});
  EXPECT_EQ(comparison.classes[0].now_variant, "tiled-0000000003");
  EXPECT_FALSE(comparison.regressed());
}

TEST(Compare, AVariantThatBecameWrongRegressesThoughTheBestIsAsFast) {
  RunResult now = samples::measured();
  fp32(now).variants[0].outcome = Outcome::wrong_result;
  fp32(now).variants[0].reason = "row bound";
  const Comparison comparison = compare(samples::measured(), now, {});
  EXPECT_THAT(comparison.classes[0].regressions, ElementsAre("direct-0000000001: wrong_result, was ok: row bound"));
}

TEST(Compare, NothingValidLeftRegresses) {
  RunResult now = samples::measured();
  fp32(now).variants.clear();
  EXPECT_THAT(compare(samples::measured(), now, {}).classes[0].regressions, ElementsAre("nothing valid is left"));
}

TEST(Compare, EveryDifferenceIsNamedAndRefused) {
  RunResult now = samples::measured();
  now.environment.device.name = "NVIDIA H100";
  now.environment.driver = "570.1";
  now.environment.power_limit_w = 350;
  for (ClassRecord& record : now.problems[0].classes)
    for (VariantRecord& variant : record.variants)
      if (variant.time) variant.time->regime = "sustained";
  now.problems[0].classes.pop_back();
  EXPECT_EQ(
      refusal(samples::measured(), now),
      "the results cannot be compared: GPU NVIDIA H200 against NVIDIA H100; power limit 700 W against 350 W; driver "
      "branch 580 against 570; regime cold L2, burst against cold L2, sustained; class tf32 of problem seed is only "
      "in the first (--allow-different compares them all the same)");
  CompareOptions allow;
  allow.allow_different = true;
  const Comparison comparison = compare(samples::measured(), now, allow);
  EXPECT_EQ(comparison.classes.size(), 1u);
  EXPECT_EQ(comparison.notes.size(), 5u);
}

TEST(Compare, AnotherDriverOfTheSameBranchIsCompared) {
  RunResult now = samples::measured();
  now.environment.driver = "580.65.06";
  EXPECT_FALSE(compare(samples::measured(), now, {}).regressed());
}

TEST(Compare, AProblemOfTheSameNameButOtherNumbersIsRefused) {
  RunResult now = samples::measured();
  now.problems[0].problem.length = 4096;
  EXPECT_THAT(refusal(samples::measured(), now), HasSubstr("problem seed: B64 128->128 K3 s1 L65536 against"));
}

TEST(Compare, MeasuredAgainstOfflineIsRefused) {
  EXPECT_THAT(refusal(samples::measured(), samples::offline()), HasSubstr("the first was measured, the second not"));
}

TEST(Compare, NothingInCommonIsRefusedEvenIfDifferencesAreAllowed) {
  RunResult now = samples::measured();
  now.problems[0].name = "other";
  CompareOptions allow;
  allow.allow_different = true;
  EXPECT_THROW(compare(samples::measured(), now, allow), UsageError);
}

TEST(Compare, RefusalIsOnePrintableLine) {
  RunResult now = samples::measured();
  now.environment.device.name = samples::kHostile;
  EXPECT_THAT(refusal(samples::measured(), now), Not(::testing::AnyOf(HasSubstr("\n"), HasSubstr("\x1b"))));
}

TEST(CompareOffline, UnchangedFactsAreNoWorse) {
  const Comparison comparison = compare(samples::offline(), samples::offline(), {});
  EXPECT_FALSE(comparison.timed);
  EXPECT_FALSE(comparison.regressed());
  EXPECT_EQ(comparison.classes[0].verdict, Verdict::same);
}

TEST(CompareOffline, SpillsOccupancyAndRegistersAreGated) {
  RunResult now = samples::offline();
  VariantRecord& variant = fp32(now).variants[0];
  variant.spill_bytes = 16;
  variant.occupancy = 0.375;
  variant.registers = 120;
  EXPECT_THAT(compare(samples::offline(), now, {}).classes[0].regressions,
              ElementsAre("tiled-0000000002: spills 16 bytes, was 0", "tiled-0000000002: occupancy 37.5 %, was 50.0 %",
                          "tiled-0000000002: 120 registers, was 96"));
}

TEST(CompareOffline, AFewMoreRegistersWithinTheThresholdPass) {
  RunResult now = samples::offline();
  fp32(now).variants[0].registers = 98;  // 2 %
  EXPECT_FALSE(compare(samples::offline(), now, {}).regressed());
}

TEST(CompareOffline, AVariantThatNoLongerCompilesRegressesAndOneNoLongerProvenIsNoted) {
  RunResult now = samples::offline();
  fp32(now).variants[0].outcome = Outcome::unproven;
  fp32(now).variants[1] = samples::variant("tiled-0000000003", "tiled", Outcome::compile_failed, "syntax");
  const ClassComparison c = compare(samples::offline(), now, {}).classes[0];
  EXPECT_THAT(c.regressions, ElementsAre("tiled-0000000003: compile_failed, was unproven: syntax"));
  EXPECT_THAT(c.notes, ElementsAre("tiled-0000000002: no longer proven on the CPU"));
}

TEST(CompareOffline, NoVariantInCommonCannotTell) {
  RunResult now = samples::offline();
  for (VariantRecord& variant : fp32(now).variants) variant.id += "x";
  const ClassComparison c = compare(samples::offline(), now, {}).classes[0];
  EXPECT_EQ(c.verdict, Verdict::cannot_tell);
  EXPECT_THAT(c.notes, ElementsAre("0 variants in both, 3 only in the first, 3 only in the second"));
}

TEST(CompareText, ShowsVerdictsThenWhatRegressed) {
  RunResult now = samples::measured();
  best_time(now) = fp32(now).variants[2].time->ms = {9.3, 9.29, 9.31};
  EXPECT_EQ(to_text(compare(samples::measured(), now, {}), false),
            R"(problem  class  base ms [95 %]        new ms [95 %]         new / base             verdict
seed     fp32   8.800 [8.790, 8.810]  9.300 [9.290, 9.310]  1.057x [1.054, 1.059]  slower
seed     tf32   8.800 [8.790, 8.810]  8.800 [8.790, 8.810]  1.000x [0.998, 1.002]  same
regression: seed fp32: slower by 5.7 % (9.300 [9.290, 9.310] ms, was 8.800 [8.790, 8.810] ms)
1 of 2 comparisons regressed (threshold 3 %)
)");
}

TEST(CompareText, OfflineSaysThatNothingWasTimed) {
  RunResult now = samples::offline();
  fp32(now).variants[0].spill_bytes = 16;
  EXPECT_EQ(to_text(compare(samples::offline(), now, {}), false), R"(problem  class  compile facts and correctness
seed     fp32   worse in 1 point
Nothing was timed in either: compile facts and correctness were compared.
regression: seed fp32: tiled-0000000002: spills 16 bytes, was 0
1 of 1 comparison regressed (threshold 3 %)
)");
}

TEST(CompareText, SaysWhichOfTheTwoWasNotTimed) {
  CompareOptions options;
  options.allow_different = true;
  EXPECT_THAT(to_text(compare(samples::offline(), samples::measured(), options), false),
              HasSubstr("Nothing was timed in the base:"));
  EXPECT_THAT(to_text(compare(samples::measured(), samples::offline(), options), false),
              HasSubstr("Nothing was timed in the new one:"));
}

TEST(CompareText, HostileTextCannotDriveTheTerminal) {
  RunResult base = samples::hostile(), now = samples::hostile();
  base.problems[0].classes[0].variants[0].outcome = Outcome::ok;
  now.problems[0].classes[0].variants[0].outcome = Outcome::crashed;
  const std::string text = to_text(compare(base, now, {}), false);
  EXPECT_THAT(text, HasSubstr("regression: "));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tuner
