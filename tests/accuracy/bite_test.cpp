// The trials let right sums through and catch each way of breaking the promise.
#include <set>

#include "tests/accuracy/emulations.h"
#include "tests/accuracy/promise.h"
#include "tests/device/memory_device.h"

namespace tuner {
namespace {

using namespace accuracy_test;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

Problem shape_named(const std::string& name) {
  for (const Shape& shape : small_shapes())
    if (shape.name == name) return shape.problem;
  throw std::invalid_argument(name);
}

/// Names of the trials that `arithmetic` fails.
std::set<std::string> failed(const Problem& problem, Accuracy accuracy, const Arithmetic& arithmetic,
                             std::string* reasons = nullptr) {
  testing::MemoryDevice device;
  std::vector<Subject> subjects;
  subjects.push_back({"emulated", std::make_unique<Emulated>(problem, accuracy, arithmetic)});
  std::set<std::string> names;
  for (const Verdict& verdict : judge(device, nullptr, problem, accuracy, trials_of(problem, accuracy), subjects)) {
    if (verdict.right()) continue;
    names.insert(verdict.trial);
    if (reasons) *reasons += verdict.trial + ": " + verdict.reason() + "\n";
  }
  return names;
}
std::set<std::string> failed(const std::string& shape, const Arithmetic& arithmetic) {
  return failed(shape_named(shape), Accuracy::fp32, arithmetic);
}

Arithmetic plain() {
  return [](const Problem& p, const Inputs& in) { return testing::plain_sum(p, in); };
}

TEST(AccuracyTrials, LetThePlainSumThroughInEveryClass) {
  for (const Accuracy accuracy : kAccuracies)
    for (const Shape& shape : small_shapes()) {
      std::string reasons;
      EXPECT_THAT(failed(shape.problem, accuracy, plain(), &reasons), IsEmpty())
          << shape.name << " " << to_string(accuracy) << "\n"
          << reasons;
    }
}

TEST(AccuracyTrials, LetTf32ThroughInItsOwnClass) {
  for (const Shape& shape : small_shapes()) {
    std::string reasons;
    EXPECT_THAT(failed(shape.problem, Accuracy::tf32, tf32_products, &reasons), IsEmpty()) << shape.name << "\n"
                                                                                           << reasons;
  }
}

TEST(AccuracyTrials, CatchTf32PassedOffAsFp32FromOneProductToTenThousand) {
  for (const char* shape : {"one_product", "seed_like", "upsample", "grouped_and_dilated", "ten_thousand_products"})
    EXPECT_THAT(failed(shape, tf32_products),
                IsSupersetOf({"normal", "positive", "large_mean", "spike", "wide_channels"}))
        << shape;
  EXPECT_THAT(failed("seed_like", tf32_products), IsSupersetOf({"x_1e-30", "x_1e30", "w_1e-30", "w_1e30"}));
}

TEST(AccuracyTrials, CatchASplitOfFixedScale) {
  const auto caught = failed("seed_like", fixed_scale_split);
  EXPECT_THAT(caught, Not(Contains("normal")));  // which is all that a proof on normal data sees
  EXPECT_THAT(caught, IsSupersetOf({"x_1e30", "x_1e-30", "w_1e30", "w_1e-30", "both_1e3", "both_1e-9", "spike",
                                    "integers", "wide_channels", "denormal_x", "denormal_w", "1_and_1e-9_by_forties"}));
}

TEST(AccuracyTrials, CatchOneScaleForATensor) {
  const auto caught = failed("seed_like", one_scale_split);
  EXPECT_THAT(caught, Not(Contains("normal")));
  EXPECT_THAT(caught, Not(Contains("x_1e30")));
  EXPECT_THAT(caught, Not(Contains("x_1e-30")));
  EXPECT_THAT(caught, IsSupersetOf({"spike", "1_and_1e-9_by_forties", "small_x_by_large_w", "inf_in_x"}));
  EXPECT_THAT(failed("one_product", one_scale_split), Contains("1_and_1e-9_by_turns"));
  EXPECT_THAT(failed("stride_wider_than_kernel", one_scale_split), Contains("taps_of_scales_1_to_1e-8"));
}

TEST(AccuracyTrials, CatchAZeroThatMeetsAnInfinity) {
  const auto at_edges = failed("seed_like", zeros_inserted);
  EXPECT_THAT(at_edges, IsSupersetOf({"inf_in_the_first_tap", "inf_in_the_last_tap"}));
  for (const char* shape : {"upsample", "stride_wider_than_kernel", "grouped_and_dilated"}) {
    const auto caught = failed(shape, zeros_inserted);
    EXPECT_THAT(caught, IsSupersetOf({"inf_in_the_first_tap", "inf_in_the_last_tap", "nan_in_w"})) << shape;
    EXPECT_THAT(caught, Not(Contains("normal"))) << shape;
    EXPECT_THAT(caught, Not(Contains("inf_in_x"))) << shape;
  }
}

TEST(AccuracyTrials, CatchATransformThatSpreadsAnInfinity) {
  const auto caught = failed("seed_like", winograd);
  EXPECT_THAT(caught, IsSupersetOf({"inf_in_x", "inf_at_the_end_of_a_row", "inf_in_x_and_w", "nan_in_w"}));
  EXPECT_THAT(caught, Contains("taps_of_scales_1_to_1e-8"));  // at the ends, where one tap alone meets x
  for (const char* finite : {"normal", "positive", "wide_channels", "integers"})
    EXPECT_THAT(caught, Not(Contains(finite)));
}

TEST(AccuracyTrials, CatchFlushedDenormals) {
  EXPECT_THAT(failed("seed_like", denormals_flushed),
              ::testing::UnorderedElementsAre("denormal_x", "denormal_w", "denormal_x_and_results", "x_of_few_bits"));
}

TEST(AccuracyTrials, CatchOneAccumulatorRoundedTowardZeroOnAllPositiveData) {
  EXPECT_THAT(failed("seed_like", rounded_toward_zero), Contains("positive"));
  EXPECT_THAT(failed("ten_thousand_products", rounded_toward_zero), Contains("positive"));
}

TEST(AccuracyTrials, CatchASmallRowThatIsSlightlyOff) {
  const Problem problem = shape_named("seed_like");
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16})
    EXPECT_THAT(failed(problem, accuracy, last_channel_off(1e-3f)), Contains("wide_channels")) << to_string(accuracy);
  EXPECT_THAT(failed(problem, Accuracy::bf16, last_channel_off(1e-2f)), Contains("wide_channels"));
  EXPECT_THAT(failed(problem, Accuracy::fp32, last_channel_off(1e-5f)), Contains("wide_channels"));
}

}  // namespace
}  // namespace tuner
