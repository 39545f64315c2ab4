// A fixture for tests on a CUDA GPU: skips, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tuner/device/cuda_device.h"
#include "tuner/jit/jit.h"

namespace tuner::testing {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) {
      const std::string unusable = cuda_unusable_reason();
      GTEST_SKIP() << (unusable.empty() ? "there is no CUDA GPU" : unusable);
    }
    auto opened = open_cuda_device(0);
    ASSERT_TRUE(opened) << opened.failure().reason;
    device_ = std::move(*opened);
    folder_ = std::filesystem::temp_directory_path() / "tuner-gpu-test-XXXXXX";
    std::string name = folder_.string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    device_.reset();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  /// Compiled for this GPU.
  CompiledUnit compile(const CompileUnit& unit) {
    CompilerOptions options;
    options.arch = device_->environment().device.arch;
    options.cache = folder_;
    options.program = TUNER_PROGRAM;
    auto compiled = make_nvrtc_compiler(options)->compile(unit).get();
    if (!compiled) throw std::runtime_error(compiled.failure().reason + "\n" + compiled.failure().log);
    return *compiled;
  }

  std::unique_ptr<CudaDevice> device_;
  std::filesystem::path folder_;
};

/// Kernels that behave well and badly, each a run kernel.
inline CompileUnit probe_unit() {
  CompileUnit unit;
  unit.source = R"(
#include "kernels/common/geometry.h"
namespace probe {
// y = x, as many floats as y has.
__global__ void copy(const __grid_constant__ ct1d::RunArguments a) {
  const ct1d::int64 count = a.geometry.batch * a.geometry.out_channels * a.geometry.length_out;
  const ct1d::int64 step = static_cast<ct1d::int64>(gridDim.x) * blockDim.x;
  for (ct1d::int64 i = static_cast<ct1d::int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    static_cast<float*>(a.y)[i] = static_cast<const float*>(a.x)[i];
}
// Copies one element too many.
__global__ void past_the_end(const __grid_constant__ ct1d::RunArguments a) {
  const ct1d::int64 count = a.geometry.batch * a.geometry.out_channels * a.geometry.length_out;
  for (ct1d::int64 i = threadIdx.x; i <= count; i += blockDim.x)
    static_cast<float*>(a.y)[i] = static_cast<const float*>(a.x)[i < count ? i : 0];
}
__global__ void illegal_address(const __grid_constant__ ct1d::RunArguments) { *reinterpret_cast<volatile int*>(8) = 1; }
// Writes the last word of its dynamic shared memory, beside 16 static bytes.
__global__ void shared(const __grid_constant__ ct1d::RunArguments a) {
  __shared__ int fixed[4];
  extern __shared__ int dynamic[];
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  fixed[threadIdx.x % 4] = 1;
  dynamic[bytes / 4 - 1] = 7;
  __syncthreads();
  if (threadIdx.x == 0) static_cast<float*>(a.y)[0] = static_cast<float>(dynamic[bytes / 4 - 1] * fixed[0]);
}
}
)";
  unit.kernels = {"probe::copy", "probe::past_the_end", "probe::illegal_address", "probe::shared"};
  return unit;
}

/// A one-kernel program of probe_unit().
inline Program probe_program(const std::string& kernel, ct1d::LaunchShape shape) {
  Program program;
  program.unit = probe_unit();
  program.run = {{"probe::" + kernel, shape}};
  return program;
}

}  // namespace tuner::testing
