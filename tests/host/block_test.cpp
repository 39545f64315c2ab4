// CUDA C++ that uses shared memory, barriers, shuffles and asynchronous copies runs unchanged and gives its result.
#include <numeric>

#include "tests/host/host_fixture.h"

namespace tuner {
namespace {

using namespace host_test;

TEST(HostBlock, SumsInSharedMemory) {
  LoadedKernel run(kernel_source(R"(
  __shared__ float partial[256];
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + t;
  partial[t] = i < a.geometry.length ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = partial[0];
)"));
  const auto x = ramp(1000);
  const auto y = run(shape_of(4, 256), x, 4);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t b = 0; b < 4; ++b)
    EXPECT_EQ((*y)[b],
              std::accumulate(x.begin() + 256 * b, x.begin() + std::min<std::size_t>(1000, 256 * b + 256), 0.0f));
}

TEST(HostBlock, TransposesThroughDynamicAndStaticSharedMemory) {
  const std::string body = R"(
  const int column = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  const int width = static_cast<int>(blockDim.x);
  for (int r = row; r < 32; r += static_cast<int>(blockDim.y)) tile[r * 33 + column] = x[r * 32 + column];
  __syncthreads();
  for (int r = row; r < 32; r += static_cast<int>(blockDim.y)) y[r * 32 + column] = tile[column * 33 + r];
  (void)width;
)";
  const auto x = ramp(1024);
  for (const char* declaration : {"extern __shared__ __align__(16) float tile[];", "__shared__ float tile[32 * 33];"}) {
    LoadedKernel run(kernel_source(declaration + body));
    const auto y = run({1, 1, 1, 32, 4, 1, 32 * 33 * 4, 1}, x, 1024);
    ASSERT_TRUE(y) << y.failure().reason;
    for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ((*y)[i], x[i % 32 * 32 + i / 32]) << declaration << " " << i;
  }
}

TEST(HostBlock, ShufflesBallotsAndCounts) {
  LoadedKernel run(kernel_source(R"(
  const int lane = t % 32;
  y[t * 8 + 0] = __shfl_xor_sync(0xffffffffu, x[t], 5);
  y[t * 8 + 1] = __shfl_up_sync(0xffffffffu, x[t], 3, 16);
  y[t * 8 + 2] = __shfl_down_sync(0xffffffffu, x[t], 3);
  y[t * 8 + 3] = __shfl_sync(0xffffffffu, x[t], 9, 8);
  y[t * 8 + 4] = static_cast<float>(__popc(__ballot_sync(0xffffffffu, lane % 3 == 0)));
  y[t * 8 + 5] = static_cast<float>(__syncthreads_count(t % 5 == 0));
  if (lane < 7) y[t * 8 + 6] = __shfl_sync(0x7fu, x[t], 2);
  else y[t * 8 + 6] = __any_sync(0xffffff80u, lane == 31) + 2 * __all_sync(0xffffff80u, lane > 6);
  y[t * 8 + 7] = static_cast<float>(__shfl_sync(0xffffffffu, static_cast<double>(x[t]), 31));
)"));
  const auto x = ramp(64);
  const auto y = run(shape_of(1, 64), x, 512);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::size_t lane = t % 32, warp = t - lane;
    const float* got = y->data() + t * 8;
    EXPECT_EQ(got[0], x[warp + (lane ^ 5)]);
    EXPECT_EQ(got[1], x[lane % 16 < 3 ? t : t - 3]);
    EXPECT_EQ(got[2], x[lane + 3 > 31 ? t : t + 3]);
    EXPECT_EQ(got[3], x[t / 8 * 8 + 1]);
    EXPECT_EQ(got[4], 11);
    EXPECT_EQ(got[5], 13);
    EXPECT_EQ(got[6], lane < 7 ? x[warp + 2] : 3);
    EXPECT_EQ(got[7], x[warp + 31]);
  }
}

const char* const kDoubleBuffered = R"(
  extern __shared__ float tile[];
  constexpr int kTile = 64;
  const auto fetch = [&](int n) {
    ct1d::copy_async<4>(tile + n % 2 * kTile + t, x + n * kTile + t, n * kTile + t < a.geometry.length);
    ct1d::copy_commit();
  };
  const int tiles = static_cast<int>((a.geometry.length + kTile - 1) / kTile);
  float sum = 0;
  fetch(0);
  for (int n = 0; n < tiles; ++n) {
    if (n + 1 < tiles) { fetch(n + 1); ct1d::copy_wait<1>(); } else { ct1d::copy_wait<0>(); }
    __syncthreads();
    sum += tile[n % 2 * kTile + (t + 1) % kTile];
    __syncthreads();
  }
  y[t] = sum;
)";

std::vector<float> double_buffered_sums(const std::vector<float>& x) {
  std::vector<float> sums(64, 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) sums[(i + 63) % 64] += x[i];
  return sums;
}

TEST(HostBlock, DoubleBufferedCopiesWithZeroFill) {
  const auto x = ramp(1000);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    LoadedKernel run(kernel_source(kDoubleBuffered), seed);
    const auto y = run(shape_of(1, 64, 512), x, 64);
    ASSERT_TRUE(y) << y.failure().reason;
    EXPECT_EQ(*y, double_buffered_sums(x));
  }
}

TEST(HostBlock, ThreadsThatHaveExitedDoNotCountAtBarriers) {
  LoadedKernel run(kernel_source(R"(
  __shared__ float tile[100];
  if (t % 3 == 1) return;
  tile[t] = x[t];
  __syncthreads();
  y[t] = tile[(t + 3) % 99];
  if (t < 32) y[t] += __shfl_sync(0xffffffffu, 1.0f, 0);
)"));
  const auto x = ramp(99);
  const auto y = run(shape_of(1, 99), x, 99);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t t = 0; t < 99; ++t)
    if (t % 3 != 1) {
      EXPECT_EQ((*y)[t], x[(t + 3) % 99] + (t < 32 ? 1 : 0));
    }
}

TEST(HostBlock, AtomicsOfBlocksOnSeveralCoresAddUp) {
  LoadedKernel run(kernel_source("  atomicAdd(y, 1.0f); atomicMax(reinterpret_cast<int*>(y) + 1, t);\n"));
  const auto zeros = run(shape_of(1, 1), {}, 2);  // y starts as NaN: both stay
  ASSERT_TRUE(zeros) << zeros.failure().reason;
  EXPECT_NE((*zeros)[0], (*zeros)[0]);
  LoadedKernel counted(
      kernel_source("  int* n = reinterpret_cast<int*>(y); atomicExch(n + 1 + t, t); atomicAdd(n, 1);\n"));
  const auto y = counted(shape_of(50, 128), {}, 129);
  ASSERT_TRUE(y) << y.failure().reason;
  int total;
  std::memcpy(&total, y->data(), sizeof total);
  EXPECT_EQ(total, 50 * 128 - 1);  // memory that was never written reads as -1
}

TEST(HostBlock, AMillionThreadsRun) {
  LoadedKernel run(kernel_source(R"(
  __shared__ float first;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + t;
  if (t == 17) first = static_cast<float>(blockIdx.x);
  __syncthreads();
  y[i] = first + static_cast<float>(t);
)"));
  const auto y = run(shape_of(4096, 256), {}, std::size_t{1} << 20);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t i = 0; i < y->size(); ++i) ASSERT_EQ((*y)[i], static_cast<float>(i / 256 + i % 256));
}

TEST(HostBlock, ASeedFixesTheOrderOfThreads) {
  const std::string source = kernel_source(R"(
  __shared__ int next;
  if (t == 0) next = 0;
  __syncthreads();
  y[blockIdx.x * blockDim.x + atomicAdd(&next, 1)] = static_cast<float>(t);
)");
  LoadedKernel first(source, 5), again(source, 5), other(source, 6);
  const auto a = first(shape_of(3, 64), {}, 192);
  const auto b = again(shape_of(3, 64), {}, 192);
  const auto c = other(shape_of(3, 64), {}, 192);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
  EXPECT_NE(std::vector<float>(a->begin(), a->begin() + 64), std::vector<float>(a->begin() + 64, a->begin() + 128));
}

TEST(HostBlock, BlocksOfEveryShapeSeeTheirIndices) {
  LoadedKernel run(kernel_source(R"(
  const long long block = (static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<float>(block * 1000 + thread);
)"));
  const auto y = run({3, 2, 4, 5, 3, 2, 0, 1}, {}, 720);
  ASSERT_TRUE(y) << y.failure().reason;
  for (std::size_t i = 0; i < 720; ++i) EXPECT_EQ((*y)[i], static_cast<float>(i / 30 * 1000 + i % 30));
}

TEST(HostBlock, MemoryStartsAsNaN) {
  LoadedKernel run(kernel_source(R"(
  extern __shared__ float dynamic[];
  __shared__ float fixed[8];
  y[2 * t] = dynamic[t];
  y[2 * t + 1] = fixed[t];
  dynamic[t] = fixed[t] = 1.0f;
)"));
  const auto y = run(shape_of(2, 8, 32), {}, 18);
  ASSERT_TRUE(y) << y.failure().reason;
  for (const float value : *y) EXPECT_NE(value, value);  // the last two were never written
}

}  // namespace
}  // namespace tuner
