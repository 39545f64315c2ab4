// A warp's matrix products under Host execution: the lanes' parts are put together as the instruction names them, and
// what warps may not do is reported.
#include <cstdint>
#include <cstring>

#include "tests/host/host_fixture.h"
#include "tuner/core/random.h"
#include "tuner/device/matrix_model.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::HasSubstr;

const char* const kWarpIncludes = "#include \"kernels/common/warp_matrix.cuh\"\nusing namespace ct1d;\n";

/// y (16 by 8) = 2 a b: x holds a (16 by 16), then b by columns (8 by 16), as halves.
const char* const kTwice = R"(
  const uint32* left = reinterpret_cast<const uint32*>(x);
  const uint32* b = left + 128;
  const int g = t / 4, q = t % 4;
  const uint32 rows[4] = {left[g * 8 + q], left[(g + 8) * 8 + q], left[g * 8 + q + 4], left[(g + 8) * 8 + q + 4]};
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = 0; i < 2; ++i) warp_multiply<Half>(d, rows, b[g * 8 + q], b[g * 8 + q + 4]);
  for (int i = 0; i < 4; ++i) y[(g + i / 2 * 8) * 8 + 2 * q + i % 2] = d[i];
)";

TEST(HostWarpMatrix, ComputesAsTheModelDoes) {
  Random random(3);
  std::vector<std::uint16_t> halves(16 * 16 + 8 * 16);
  for (auto& value : halves)
    value = static_cast<std::uint16_t>((random.next() & 0x83FF) | (12 + random.below(5)) << 10);
  std::vector<float> x(halves.size() / 2), want(16 * 8);
  std::memcpy(x.data(), halves.data(), halves.size() * 2);
  for (int i = 0; i < 2; ++i)
    matrix_product(MatrixElement::half, halves.data(), halves.data() + 256, 8, i > 0, want.data(), 16);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    LoadedKernel run(kernel_source(kTwice, kWarpIncludes), seed);
    const auto y = run(shape_of(1, 32), x, want.size());
    ASSERT_TRUE(y) << y.failure().reason;
    EXPECT_EQ(std::memcmp(y->data(), want.data(), want.size() * 4), 0) << "seed " << seed;
  }
}

TEST(HostWarpMatrix, ReportsLanesThatAreMissingOrElsewhere) {
  const std::vector<float> x(192, 0.0f);
  LoadedKernel gone(kernel_source(std::string("  if (t == 5) return;\n  __syncthreads();\n") + kTwice, kWarpIncludes),
                    1);
  const auto without = gone(shape_of(1, 32), x, 128);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.failure().reason, HasSubstr("needs all of its 32 lanes"));
  const std::string apart = R"(
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  const uint32 zeros[4] = {0, 0, 0, 0};
  if (t < 16) {
    warp_multiply<Half>(d, zeros, 0, 0);
  } else {
    warp_multiply<Half>(d, zeros, 0, 0);
  }
  y[t] = d[0];
)";
  LoadedKernel diverged(kernel_source(apart, kWarpIncludes), 1);
  const auto elsewhere = diverged(shape_of(1, 32), x, 128);
  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(elsewhere.failure().reason, HasSubstr("different matrix products"));
}

}  // namespace
}  // namespace tuner
