// cuDNN's choice of engines for an H200 that is not there. Skipped, with the reason, where cuDNN is missing or too old.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "baselines/cudnn_engines.h"

#ifdef TUNER_CUDNN_HEADERS
namespace tuner {
namespace {

constexpr const char* kH200 =
    R"({"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "multiProcessorCount": 132,
"driverVer": 13000, "maxSharedMemoryPerBlockOptin": 232448, "totalGlobalMem": 150000000000,
"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
"smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "warpSize": 32,
"maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0,
"maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1})";

class Engines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cudnn()) GTEST_SKIP() << cudnn().failure().reason;
    try {
      target_ = std::make_shared<CudnnTarget>(*cudnn(), kH200);
    } catch (const CudnnError& error) {
      GTEST_SKIP() << "this cuDNN plans for no device but those present: " << error.what();
    }
  }

  std::vector<EngineChoice> engines(const ConvolutionPlan& plan, Element element = Element::f32,
                                    BiasWay bias = BiasWay::none, bool sweep = false) const {
    return ConvolutionGraph(target_, plan, element, bias).engines(sweep);
  }

  std::shared_ptr<CudnnTarget> target_;
};

Problem seed() {
  Problem p;
  p.batch = 64;
  p.in_channels = p.out_channels = 128;
  p.kernel_size = 3;
  p.length = 65536;
  return p;
}

int allowed(const std::vector<EngineChoice>& choices, Accuracy accuracy, bool deterministic = false) {
  BaselineOptions options;
  options.deterministic = deterministic;
  return static_cast<int>(std::count_if(choices.begin(), choices.end(), [&](const EngineChoice& choice) {
    return refusal(choice, accuracy, options).empty();
  }));
}

TEST_F(Engines, BothDirectionsHaveEnginesForTheSeedProblemAndNoneTwice) {
  for (const ConvolutionPlan& plan :
       {plan_backward_data(seed(), Axis::width), *plan_flipped_forward(seed(), Axis::width)}) {
    const auto choices = engines(plan);
    EXPECT_GT(allowed(choices, Accuracy::tf32), 10) << plan.route;
    std::set<std::string> names;
    for (const EngineChoice& choice : choices)
      EXPECT_TRUE(names.insert(choice.engine + choice.knobs.substr(0, choice.knobs.find('('))).second)
          << choice.engine << choice.knobs;
  }
}

TEST_F(Engines, EveryEngineIsThereWithItsDefaultKnobs) {
  const auto choices = engines(plan_backward_data(seed(), Axis::width));
  std::set<std::int64_t> all, defaults;
  for (const EngineChoice& choice : choices) {
    all.insert(choice.index);
    // A heuristic's choice that names no knob is the default too.
    if (choice.knobs.front() == '(') defaults.insert(choice.index);
  }
  EXPECT_EQ(defaults, all);
}

TEST_F(Engines, ChannelsLastHasEnginesInEveryClassAndDirection) {
  for (const Element element : {Element::f32, Element::f16, Element::bf16})
    for (const ConvolutionPlan& plan : {plan_backward_data(seed(), Axis::width, Memory::channels_last),
                                        *plan_flipped_forward(seed(), Axis::width, Memory::channels_last)}) {
      const auto choices = engines(plan, element);
      EXPECT_GT(allowed(choices, element == Element::f32 ? Accuracy::tf32 : Accuracy::fp16), 10) << plan.route;
      if (element == Element::f32) {
        EXPECT_GT(allowed(choices, Accuracy::fp32), 0) << plan.route;
      }
    }
}

TEST_F(Engines, ClassFp32AllowsNoTensorCores) {
  const auto choices = engines(plan_backward_data(seed(), Axis::width));
  const int fp32 = allowed(choices, Accuracy::fp32);
  EXPECT_GT(fp32, 2);
  EXPECT_LT(fp32, allowed(choices, Accuracy::tf32));
  for (const EngineChoice& choice : choices)
    EXPECT_EQ(refusal(choice, Accuracy::fp32, {}).empty(), !choice.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
        << choice.engine;
}

TEST_F(Engines, DeterminismLeavesOutThoseThatAreNot) {
  const auto choices = engines(plan_backward_data(seed(), Axis::width));
  EXPECT_LT(allowed(choices, Accuracy::fp32, true), allowed(choices, Accuracy::fp32, false));
}

TEST_F(Engines, TheWorkspaceLimitLeavesOutWhatNeedsMore) {
  const auto choices = engines(plan_backward_data(seed(), Axis::width));
  BaselineOptions options;
  options.workspace_bytes = 1 << 20;
  int refused = 0;
  for (const EngineChoice& choice : choices) {
    ASSERT_TRUE(choice.workspace_bytes);
    if (refusal(choice, Accuracy::tf32, options) != "needs more workspace than cudnn.workspace_mib allows (1 MiB)")
      continue;
    EXPECT_GT(*choice.workspace_bytes, 1 << 20);
    ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(Engines, TheSweepAddsSettingsThatBuild) {
  const ConvolutionPlan plan = plan_backward_data(seed(), Axis::width);
  const ConvolutionGraph graph(target_, plan, Element::f32, BiasWay::none);
  const auto choices = graph.engines(true);
  EXPECT_GT(allowed(choices, Accuracy::fp32), allowed(graph.engines(false), Accuracy::fp32));
  for (const EngineChoice& choice : choices) {
    if (choice.knobs.find("sweep") == std::string::npos) continue;
    EXPECT_NO_THROW(graph.build(choice)) << choice.engine << choice.knobs;
  }
}

TEST_F(Engines, TakeOutputPaddingDilationGroupsCropsAndBeta) {
  Problem opad = seed();  // C40
  opad.stride = 2;
  opad.padding = opad.output_padding = 1;
  Problem beyond = seed();
  beyond.dilation = 3;
  beyond.output_padding = 2;
  beyond.padding = 2;
  Problem grouped = seed();
  grouped.groups = 4;
  grouped.stride = 3;
  grouped.dilation = 2;
  for (const Problem& p : {opad, beyond, grouped})
    for (const BiasWay bias : {BiasWay::none, BiasWay::initial})
      for (const Element element : {Element::f32, Element::f16, Element::bf16})
        EXPECT_FALSE(engines(plan_backward_data(p, Axis::width), element, bias).empty()) << summary(p);
  Problem cropped = seed();
  cropped.padding = 5;
  const auto forward = plan_flipped_forward(cropped, Axis::width);
  ASSERT_TRUE(forward);
  EXPECT_FALSE(engines(*forward).empty());
  EXPECT_FALSE(engines(*plan_flipped_forward(seed(), Axis::width), Element::f32, BiasWay::fused).empty());
}

}  // namespace
}  // namespace tuner
#endif
