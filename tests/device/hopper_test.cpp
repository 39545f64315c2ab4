// Hopper's vocabulary on the device: its headers compile for every form, and a GPU computes what Host execution does.
#include <cstring>

#include "tests/core/temporary_folder.h"
#include "tests/device/gpu.h"
#include "tests/host/cluster_kernel.h"
#include "tests/host/hopper_kernel.h"
#include "tests/host/rounding_kernel.h"

namespace tuner {
namespace {

using namespace host_test;

std::string unit_source(const std::string& kernel) {
  return std::string("#include \"kernels/common/geometry.h\"\n") + kIncludes + kernel;
}

TEST(Hopper, EveryFormOfMatrixProductsCompiles) {
  CompileUnit unit;
  unit.source = unit_source(R"(
template <class Element, int N>
__device__ void products(float (&d)[N / 2], uint64 descriptor) {
  uint32 a[4] = {1, 2, 3, 4};
  matrix_multiply<N, Element>(d, descriptor, descriptor, false);
  matrix_multiply<N, Element>(d, a, descriptor, true);
}
template <int N>
__global__ void kernel(const CT1D_GRID_CONSTANT RunArguments a) {
  float d[N / 2] = {};
  matrix_fence();
  products<Half, N>(d, a.geometry.length);
  products<Bfloat16, N>(d, a.geometry.length);
  matrix_commit();
  matrix_wait<0>();
  pin(d);
  for (int i = 0; i < N / 2; ++i) static_cast<float*>(a.y)[i * 128 + threadIdx.x] = d[i];
}
)");
  for (int columns = 8; columns <= 256; columns += 8) unit.kernels.push_back("kernel<" + std::to_string(columns) + ">");
  const TemporaryFolder cache;
  CompilerOptions options;
  options.arch = "sm_90a";
  options.cache = cache.path();
  options.program = TUNER_PROGRAM;
  const auto compiled = make_nvrtc_compiler(options)->compile(unit).get();
  ASSERT_TRUE(compiled) << compiled.failure().reason << compiled.failure().log;
  EXPECT_EQ(compiled->spill_bytes, 0);
}

class HopperGpu : public tuner::testing::GpuTest {
 protected:
  /// A kernel of Host execution's tests, compiled for the GPU.
  Expected<std::unique_ptr<Module>> load(std::string source) {
    source.replace(source.find("__global__"), 10, "extern \"C\" __global__");
    CompileUnit unit;
    unit.source = std::move(source);
    unit.kernels = {"kernel"};
    return device_->load(compile(unit));
  }
};

TEST_F(HopperGpu, ComputesWhatHostExecutionDoes) {
  if (device_->environment().device.arch != "sm_90a") GTEST_SKIP() << "the GPU is no sm_90a";
  CompileUnit unit;
  unit.source = unit_source(std::string("extern \"C\" __global__ void __launch_bounds__(384, 1) kernel(") +
                            "const CT1D_GRID_CONSTANT RunArguments a) {\n  float* y = static_cast<float*>(a.y);\n" +
                            "  const int t = static_cast<int>(threadIdx.x);\n" + kProducts + "}\n");
  unit.kernels = {"kernel"};
  const auto module = device_->load(compile(unit));
  ASSERT_TRUE(module) << module.failure().reason;
  const Products problem = make_products();
  const auto x = device_->allocate(problem.x.size() * 4), y = device_->allocate(kOutputs * 4);
  x->upload(problem.x.data(), problem.x.size() * 4);
  y->fill(0xFFFFFFFF);
  ct1d::RunArguments arguments{};
  arguments.x = x->data();
  arguments.y = y->data();
  const auto launched = (*module)->launch({"kernel", {1, 1, 1, kThreads, 1, 1, kSharedBytes, 1}}, arguments);
  ASSERT_TRUE(launched) << launched.failure().reason;
  const auto done = device_->synchronize();
  ASSERT_TRUE(done) << done.failure().reason;
  std::vector<float> got(kOutputs);
  y->download(got.data(), kOutputs * 4);
  EXPECT_EQ(std::memcmp(got.data(), problem.y.data(), kOutputs * 4), 0);
  EXPECT_EQ(y->guard_violations(), 0u);
}

TEST_F(HopperGpu, RoundsHalvesAsHostExecutionDoes) {
  const auto module = load(kernel_source(kRounding, kRoundingIncludes));
  ASSERT_TRUE(module) << module.failure().reason;
  const std::vector<float> values = values_to_round();
  const auto x = device_->allocate(values.size() * 4), y = device_->allocate(values.size() * 4);
  x->upload(values.data(), values.size() * 4);
  ct1d::RunArguments arguments{};
  arguments.x = x->data();
  arguments.y = y->data();
  const auto launched = (*module)->launch({"kernel", shape_of(1, static_cast<unsigned>(values.size()))}, arguments);
  ASSERT_TRUE(launched) << launched.failure().reason;
  const auto done = device_->synchronize();
  ASSERT_TRUE(done) << done.failure().reason;
  std::vector<float> got(values.size());
  y->download(got.data(), got.size() * 4);
  EXPECT_EQ(got, rounded_values());
}

TEST_F(HopperGpu, BlocksOfAClusterLoadForEachOther) {
  if (device_->environment().device.arch != "sm_90a") GTEST_SKIP() << "the GPU is no sm_90a";
  constexpr unsigned kBlocks = 528;  // in turns on the SMs
  const auto module = load(kernel_source(kShared, kClusterIncludes));
  ASSERT_TRUE(module) << module.failure().reason;
  const auto values = ramp(kTiles * kTileFloats);
  const auto x = device_->allocate(values.size() * 4), y = device_->allocate(kBlocks * 32 * 4);
  x->upload(values.data(), values.size() * 4);
  ct1d::RunArguments arguments{};
  arguments.x = x->data();
  arguments.y = y->data();
  for (int again = 0; again < 20; ++again) {
    y->fill(0xFFFFFFFF);
    const auto launched = (*module)->launch({"kernel", cluster_shape(kBlocks)}, arguments);
    ASSERT_TRUE(launched) << launched.failure().reason;
    const auto done = device_->synchronize();
    ASSERT_TRUE(done) << done.failure().reason;
    std::vector<float> got(kBlocks * 32);
    y->download(got.data(), got.size() * 4);
    ASSERT_EQ(got, expected_of_clusters(values, kBlocks));
  }
}

}  // namespace
}  // namespace tuner
