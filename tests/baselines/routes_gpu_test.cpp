// Every route of both baselines on a GPU, verified like a variant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "baselines/baseline.h"
#include "tuner/core/config.h"
#include "tuner/device/cuda_device.h"
#include "tuner/jit/jit.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BaselineRoutesGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device is visible";
    auto opened = open_cuda_device(0);
    ASSERT_TRUE(opened) << opened.failure().reason;
    device_ = std::move(*opened);
    CompilerOptions options;
    options.arch = device_->environment().device.arch;
    options.cache = std::filesystem::temp_directory_path() / "tuner-baselines-test";
    options.program = TUNER_PROGRAM;
    const auto compiler = make_nvrtc_compiler(options);
    for (const auto& [source, compiled] : {std::pair{baseline_unit(), &unit_}, std::pair{verify_unit(), &verify_}}) {
      auto unit = compiler->compile(source).get();
      ASSERT_TRUE(unit) << unit.failure().reason << unit.failure().log;
      *compiled = *unit;
    }
  }

  /// Over normal data or over the inputs given.
  std::unique_ptr<Verifier> verifier_of(const Problem& problem, Accuracy accuracy,
                                        const std::optional<Inputs>& inputs = std::nullopt) {
    auto made = inputs ? make_verifier(*device_, problem, accuracy, *inputs, &verify_)
                       : make_verifier(*device_, problem, accuracy, Values::normal, 1, &verify_);
    if (!made) throw std::runtime_error(made.failure().reason);
    return std::move(*made);
  }

  /// Verifies each route that binds; `name` needs at least one that is right, and none that is silently wrong.
  void check(std::string_view name, const Problem& problem, Accuracy accuracy, Verifier& verifier) {
    SCOPED_TRACE(std::string(name) + " " + summary(problem) + " " + std::string(to_string(accuracy)));
    BaselineOptions options;
    options.workspace_bytes = std::size_t{1} << 30;
    auto routes = find_baseline(name)->routes(*device_, problem, accuracy, options, unit_);
    ASSERT_TRUE(routes) << routes.failure().reason;
    int right = 0;
    for (BaselineRoute& route : *routes) {
      const auto errors = verifier.verify(*route.runnable);
      if (errors) {
        ++right;
        EXPECT_LE(errors->element, 1.0);
        EXPECT_EQ(route.runnable->guard_violations(), 0u);
      } else {
        EXPECT_NE(errors.failure().outcome, Outcome::crashed) << route.runnable->name() << errors.failure().reason;
        // cuBLAS refuses nothing that is planned; cublasLt may name no algorithm.
        if (name == "cublas_shift_add" && errors.failure().outcome != Outcome::rejected)
          ADD_FAILURE() << route.runnable->name() << ": " << errors.failure().reason;
      }
    }
    EXPECT_GT(right, 0);
  }

  void check_all(const Problem& problem, Accuracy accuracy) {
    const auto verifier = verifier_of(problem, accuracy);
    for (const std::string_view name : baseline_names()) check(name, problem, accuracy, *verifier);
  }

  std::unique_ptr<CudaDevice> device_;
  CompiledUnit unit_, verify_;
};

Problem problem(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t stride,
                std::int64_t length) {
  Problem p;
  p.batch = batch;
  p.in_channels = in;
  p.out_channels = out;
  p.kernel_size = taps;
  p.stride = stride;
  p.length = length;
  return p;
}

TEST_F(BaselineRoutesGpu, MeetTheirClassOnGoldenCases) {
  for (const Case& golden : read_cases(std::string(TUNER_SOURCE_DIR) + "/tests/data/conv_transpose1d_golden.json")) {
    if (golden.problem.batch == 0) continue;
    const auto narrow = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
    const auto verifier = verifier_of(golden.problem, Accuracy::fp32,
                                      Inputs{narrow(golden.input), narrow(golden.weight), narrow(golden.bias)});
    for (const std::string_view name : baseline_names()) check(name, golden.problem, Accuracy::fp32, *verifier);
    if (HasFatalFailure()) return;
  }
}

TEST_F(BaselineRoutesGpu, MeetEveryClassOnStridedDilatedAndGroupedProblems) {
  Problem strided = problem(3, 32, 24, 16, 8, 200);
  strided.padding = 4;
  strided.bias = true;
  Problem dilated = problem(2, 16, 20, 5, 2, 333);
  dilated.dilation = 3;
  dilated.output_padding = 2;
  dilated.padding = 3;
  Problem grouped = problem(4, 32, 64, 7, 1, 500);
  grouped.groups = 4;
  grouped.bias = true;
  grouped.padding = 3;
  Problem depthwise = problem(2, 70, 70, 12, 2, 300);
  depthwise.groups = 70;
  Problem cropped = problem(2, 8, 12, 3, 1, 60);
  cropped.padding = 5;
  for (const Problem& p : {strided, dilated, grouped, depthwise, cropped})
    for (const Accuracy accuracy : kAccuracies) check_all(p, accuracy);
}

TEST_F(BaselineRoutesGpu, C40OutputPaddingIsRight) {
  Problem p = problem(2, 8, 6, 3, 2, 50);
  p.padding = p.output_padding = 1;
  check_all(p, Accuracy::fp32);
}

TEST_F(BaselineRoutesGpu, C28ColumnsBeyondTwoToTheThirtyOneAreTiled) {
  const Problem p = problem(1, 8, 1024, 1024, 1, 4096);
  const auto verifier = verifier_of(p, Accuracy::fp32);
  check("cublas_shift_add", p, Accuracy::fp32, *verifier);
}

TEST_F(BaselineRoutesGpu, C32LargeBatchesAreRightOrSaidToBeWrong) {
  const Problem p = problem(65537, 4, 2, 16, 3, 1024);
  check_all(p, Accuracy::fp32);
}

/// C44, C45: every product is 1 + 2^-12, which TF32 rounds to 1; the sum 1024.25 is exact in fp32 in any order.
TEST_F(BaselineRoutesGpu, C45Fp32KeepsWhatTf32Loses) {
  const Problem p = problem(1, 1024, 1, 1, 1, 1);
  const Inputs inputs{std::vector<float>(1024, 1.0f + 1.0f / 4096), std::vector<float>(1024, 1.0f), {}};
  const auto verifier = verifier_of(p, Accuracy::fp32, inputs);
  for (const std::string_view name : baseline_names()) {
    auto routes = find_baseline(name)->routes(*device_, p, Accuracy::fp32, {}, unit_);
    ASSERT_TRUE(routes);
    int right = 0;
    for (BaselineRoute& route : *routes) {
      if (name == "cublas_shift_add") {
        EXPECT_THAT(route.engine, AnyOf("CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH",
                                        StartsWith("cublasLt CUBLAS_COMPUTE_32F, algorithm")));
      }
      if (!verifier->verify(*route.runnable)) continue;
      float y = 0;
      TUNER_CUDA(cudaMemcpy(&y, verifier->tensors().y, sizeof y, cudaMemcpyDeviceToHost));
      EXPECT_EQ(y, 1024.25f) << route.runnable->name();
      ++right;
    }
    EXPECT_GT(right, 0) << name;
  }
}

/// C72: scalars are floats also where the tensors are fp16.
TEST_F(BaselineRoutesGpu, C72Fp16ConstantsAreExact) {
  const Problem p = problem(1, 8, 8, 2, 1, 40);
  Inputs inputs{std::vector<float>(8 * 40, 1.0f), std::vector<float>(8 * 8 * 2, 0.5f), {}};
  const auto verifier = verifier_of(p, Accuracy::fp16, inputs);
  for (const std::string_view name : baseline_names()) check(name, p, Accuracy::fp16, *verifier);
}

/// C47: 20 calls, bit by bit. A route that says it is deterministic must be; some of cuDNN's say that they are not.
TEST_F(BaselineRoutesGpu, C47RoutesDeclaredDeterministicGiveTheSameBitsEveryTime) {
  const Problem p = problem(1, 128, 128, 4, 2, 8);
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16}) {
    const auto verifier = verifier_of(p, accuracy);
    std::vector<char> first(static_cast<std::size_t>(p.y_count() * bytes_of(element_of(accuracy)))), again = first;
    for (const std::string_view name : baseline_names()) {
      auto routes = find_baseline(name)->routes(*device_, p, accuracy, {}, unit_);
      ASSERT_TRUE(routes) << routes.failure().reason;
      int compared = 0;
      for (BaselineRoute& route : *routes) {
        if (!route.deterministic || !verifier->verify(*route.runnable)) continue;
        for (int repeat = 0; repeat < 20; ++repeat) {
          std::vector<char>& bits = repeat == 0 ? first : again;
          ASSERT_TRUE(route.runnable->launch());
          ASSERT_TRUE(device_->synchronize());
          TUNER_CUDA(cudaMemcpy(bits.data(), verifier->tensors().y, bits.size(), cudaMemcpyDeviceToHost));
          if (repeat > 0) {
            ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size()), 0) << route.runnable->name();
          }
        }
        ++compared;
      }
      EXPECT_GT(compared, 0) << name << " " << to_string(accuracy);
    }
  }
}

/// H50: each library offers several ways, each with engine, knobs and workspace to tell it by, and no two alike.
TEST_F(BaselineRoutesGpu, H50EveryRouteOfACliffProblemCanBeToldApart) {
  Problem p = problem(1, 512, 256, 16, 8, 861);
  p.padding = 4;
  const auto verifier = verifier_of(p, Accuracy::fp16);
  for (const std::string_view name : baseline_names()) {
    auto routes = find_baseline(name)->routes(*device_, p, Accuracy::fp16, {}, unit_);
    ASSERT_TRUE(routes) << routes.failure().reason;
    std::set<std::string> identities;
    int right = 0;
    for (BaselineRoute& route : *routes) {
      EXPECT_TRUE(identities.insert(route.route + "|" + route.engine + "|" + route.knobs).second)
          << route.runnable->name();
      right += static_cast<bool>(verifier->verify(*route.runnable));
    }
    EXPECT_GE(right, 3) << name;
  }
}

/// The note beside a channels-last route: without its conversions, and right once its result is converted.
TEST_F(BaselineRoutesGpu, ChannelsLastIsThereInEveryClassWithAndWithoutItsConversions) {
  Problem p = problem(3, 64, 48, 3, 1, 1001);
  for (const bool bias : {false, true}) {
    p.bias = bias;
    for (const Accuracy accuracy : kAccuracies) {
      SCOPED_TRACE(std::string(to_string(accuracy)) + (bias ? " with bias" : ""));
      const auto verifier = verifier_of(p, accuracy);
      auto routes = find_baseline("cudnn")->routes(*device_, p, accuracy, {}, unit_);
      ASSERT_TRUE(routes) << routes.failure().reason;
      std::set<std::string> right;
      for (BaselineRoute& route : *routes) {
        if (!route.inner || !verifier->verify(*route.runnable)) continue;
        EXPECT_THAT(route.route, HasSubstr("channels-last"));
        ASSERT_TRUE(route.inner->bind(verifier->tensors()));
        TUNER_CUDA(cudaMemset(verifier->tensors().y, 0xFF,
                              static_cast<std::size_t>(p.y_count() * bytes_of(element_of(accuracy)))));
        ASSERT_TRUE(route.inner->launch());
        EXPECT_FALSE(verifier->check_again(*route.runnable)) << "y was written without a conversion";
        ASSERT_TRUE(route.inner->deliver());
        const auto errors = verifier->check_again(*route.runnable);
        EXPECT_TRUE(errors) << route.inner->name() << ": " << errors.failure().reason;
        right.insert(route.route.substr(0, route.route.find(',')));
      }
      EXPECT_EQ(right, (std::set<std::string>{"backward-data", "forward"}));
    }
  }
}

TEST_F(BaselineRoutesGpu, WorkspaceLimitAndDeterminismAreKept) {
  const Problem p = problem(8, 64, 64, 3, 1, 4096);
  const auto verifier = verifier_of(p, Accuracy::tf32);
  BaselineOptions options;
  options.workspace_bytes = 1 << 20;
  options.deterministic = true;
  auto routes = find_baseline("cudnn")->routes(*device_, p, Accuracy::tf32, options, unit_);
  ASSERT_TRUE(routes);
  int right = 0, too_much = 0;
  for (BaselineRoute& route : *routes) {
    EXPECT_TRUE(route.deterministic);
    const auto errors = verifier->verify(*route.runnable);
    if (errors) {
      EXPECT_LE(route.workspace_bytes, options.workspace_bytes) << route.runnable->name();
      ++right;
    } else {
      too_much += errors.failure().reason.find("more workspace") != std::string::npos;
    }
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(too_much, 0);  // channels-last needs 16 MiB for its conversions alone
}

/// As the run-off asks: one name, all of whose routes are those of the whole list.
TEST_F(BaselineRoutesGpu, OneNameAloneGivesTheSameRoutes) {
  const Problem p = problem(2, 32, 32, 3, 1, 500);
  for (const std::string_view name : baseline_names()) {
    auto all = find_baseline(name)->routes(*device_, p, Accuracy::tf32, {}, unit_);
    ASSERT_TRUE(all);
    BaselineOptions options;
    options.only = all->front().route;
    auto some = find_baseline(name)->routes(*device_, p, Accuracy::tf32, options, unit_);
    ASSERT_TRUE(some);
    std::vector<std::string> expected, found;
    for (const BaselineRoute& route : *all)
      if (route.route == *options.only) expected.push_back(route.engine + route.knobs);
    for (const BaselineRoute& route : *some) found.push_back(route.engine + route.knobs);
    EXPECT_EQ(found, expected);
  }
}

/// A launch recorded in a CUDA graph does what the launch does. Some of cuDNN's plans cannot be recorded (seen: engine
/// 1 with a swept knob); that is the library's answer, but each library must have plans that can.
TEST_F(BaselineRoutesGpu, RoutesCanBeCaptured) {
  Problem p = problem(2, 16, 8, 4, 1, 300);
  p.bias = true;
  const auto verifier = verifier_of(p, Accuracy::fp32);
  for (const std::string_view name : baseline_names()) {
    auto routes = find_baseline(name)->routes(*device_, p, Accuracy::fp32, {}, unit_);
    ASSERT_TRUE(routes);
    int captured = 0;
    for (BaselineRoute& route : *routes) {
      if (!verifier->verify(*route.runnable)) continue;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      TUNER_CUDA(cudaStreamBeginCapture(device_->stream(), cudaStreamCaptureModeThreadLocal));
      const auto enqueued = route.runnable->launch();
      const cudaError_t ended = cudaStreamEndCapture(device_->stream(), &graph);
      if (!enqueued || ended != cudaSuccess) {
        cudaGetLastError();
        continue;
      }
      ++captured;
      TUNER_CUDA(cudaGraphInstantiate(&executable, graph, 0));
      TUNER_CUDA(
          cudaMemsetAsync(verifier->tensors().y, 0xFF, static_cast<std::size_t>(p.y_count()) * 4, device_->stream()));
      TUNER_CUDA(cudaGraphLaunch(executable, device_->stream()));
      EXPECT_TRUE(device_->synchronize());
      const auto errors = verifier->check_again(*route.runnable);
      EXPECT_TRUE(errors) << route.runnable->name() << ": " << errors.failure().reason;
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
    EXPECT_GT(captured, 0) << name;
  }
}

}  // namespace
}  // namespace tuner
