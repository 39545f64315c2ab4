#include "tuner/device/cuda_facts.h"

#include <gmock/gmock.h>

#include "tuner/device/cuda_device.h"

namespace tuner {
namespace {

// Data sheets: dense TFLOP/s = rate * SMs * boost clock.
TEST(CudaFacts, PipeRatesGiveTheDataSheetsPeaks) {
  EXPECT_NEAR(pipe_rates(8, 0).fp16 * 108 * 1.410e9, 312e12, 1e12);  // A100
  EXPECT_NEAR(pipe_rates(8, 0).tf32 * 108 * 1.410e9, 156e12, 1e12);
  EXPECT_NEAR(pipe_rates(8, 0).fp32 * 108 * 1.410e9, 19.5e12, 0.1e12);
  EXPECT_NEAR(pipe_rates(9, 0).fp16 * 132 * 1.830e9, 989e12, 1e12);  // H100, H200 SXM
  EXPECT_NEAR(pipe_rates(9, 0).tf32 * 132 * 1.830e9, 494.7e12, 1e12);
  EXPECT_NEAR(pipe_rates(9, 0).fp32 * 132 * 1.980e9, 66.9e12, 0.1e12);
  EXPECT_NEAR(pipe_rates(8, 9).fp16 * 142 * 2.520e9, 366e12, 5e12);     // L40S
  EXPECT_NEAR(pipe_rates(12, 0).fp16 * 188 * 2.617e9, 503.8e12, 1e12);  // RTX PRO 6000
}

TEST(CudaFacts, ArchitecturesWithAnAcceleratedFormUseIt) {
  EXPECT_EQ(nvrtc_arch(8, 6), "sm_86");
  EXPECT_EQ(nvrtc_arch(9, 0), "sm_90a");
  EXPECT_EQ(nvrtc_arch(12, 0), "sm_120a");
}

TEST(CudaErrors, OnlyErrorsThatTakeTheContextDownAreSticky) {
  EXPECT_TRUE(is_sticky_cuda_error(cudaErrorIllegalAddress));
  EXPECT_TRUE(is_sticky_cuda_error(cudaErrorLaunchTimeout));
  EXPECT_TRUE(is_sticky_cuda_error(cudaErrorIllegalInstruction));
  EXPECT_FALSE(is_sticky_cuda_error(cudaErrorInvalidValue));
  EXPECT_FALSE(is_sticky_cuda_error(cudaErrorMemoryAllocation));
  EXPECT_FALSE(is_sticky_cuda_error(cudaErrorLaunchOutOfResources));
}

TEST(CudaErrors, AreNamedWithCallAndPlace) {
  EXPECT_EQ(describe_cuda_error(cudaErrorInvalidValue, "cudaFoo(1)", "a.cpp", 7),
            "a.cpp:7: cudaFoo(1): cudaErrorInvalidValue: invalid argument");
  EXPECT_THROW(throw_on_cuda_error(cudaErrorMemoryAllocation, "cudaMalloc", "a.cpp", 7), std::bad_alloc);
  EXPECT_THROW(throw_on_cuda_error(cudaErrorInvalidValue, "cudaFoo", "a.cpp", 7), CudaError);
  EXPECT_NO_THROW(throw_on_cuda_error(cudaSuccess, "cudaFoo", "a.cpp", 7));
}

// Holds on machines with and without a GPU: devices and a reason against them exclude each other.
TEST(CudaDevice, CountAndReasonAgree) {
  const int count = cuda_device_count();
  EXPECT_GE(count, 0);
  if (count > 0) {
    EXPECT_EQ(cuda_unusable_reason(), "");
  }
  const auto device = open_cuda_device(count);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.failure().outcome, Outcome::launch_failed);
  EXPECT_FALSE(device.failure().reason.empty());
}

}  // namespace
}  // namespace tuner
