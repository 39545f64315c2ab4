// The model of the matrix unit against what an H200 computed, and its rules one by one.
#include "tuner/device/matrix_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "kernels/common/element.cuh"
#include "tests/device/matrix_vectors.h"

namespace tuner {
namespace {

using ct1d::bits_of_float;
using ct1d::float_of_bits;

using matrix_vectors::Product;

TEST(MatrixModel, ComputesWhatAnH200ComputedBitForBit) {
  const auto products = matrix_vectors::read_products(TUNER_SOURCE_DIR "/tests/data/wgmma_h200.bin");
  ASSERT_GE(products.size(), 36u);
  for (const Product& p : products) {
    float d[matrix_vectors::kRows * matrix_vectors::kColumns];
    std::memcpy(d, p.c, sizeof d);
    const auto element = static_cast<MatrixElement>(p.element);
    matrix_product(element, p.a, p.b, matrix_vectors::kColumns, p.accumulate != 0, d);
    for (int i = 0; i < matrix_vectors::kRows * matrix_vectors::kColumns; ++i) {
      ASSERT_EQ(bits_of_float(d[i]), p.d[i])
          << (p.element == 0 ? "fp16, " : "bf16, ") << matrix_vectors::kKinds[p.kind] << ", " << i;
      const float alone =
          matrix_dot(element, p.a + i / 8 * 16, p.b + i % 8 * 16, p.accumulate != 0 ? float_of_bits(p.c[i]) : 0);
      ASSERT_EQ(bits_of_float(alone), p.d[i]);
    }
  }
}

/// One output from products of powers of two: 2^exponents, negative where `signs` has a bit; bf16 as a, ones as b.
float sum_of(std::initializer_list<int> exponents, float sum, unsigned signs = 0) {
  std::uint16_t a[16] = {}, b[16];
  std::fill(b, b + 16, std::uint16_t{0x3F80});
  std::size_t k = 0;
  for (const int exponent : exponents) {
    a[k] = static_cast<std::uint16_t>((signs >> k & 1) << 15 | static_cast<unsigned>(exponent + 127) << 7);
    ++k;
  }
  return matrix_dot(MatrixElement::bfloat16, a, b, sum);
}

TEST(MatrixModel, TermsAreCutTo25BitsBelowTheLargestExponent) {
  EXPECT_EQ(sum_of({0, -24, -24}, 0), 1 + 0x1p-23f);
  EXPECT_EQ(sum_of({0, -25, -25, -25, -25}, 0), 1 + 0x1p-23f);
  EXPECT_EQ(sum_of({0, -26, -26, -26, -26, -26, -26, -26, -26}, 0), 1);  // each is lost
  EXPECT_EQ(sum_of({0, -26, 0}, 0, 4), 0);
  EXPECT_EQ(sum_of({0, -25, 0}, 0, 4), 0x1p-25f);
}

TEST(MatrixModel, TheSumIsATermLikeOthers) {
  EXPECT_EQ(sum_of({-25, -25, -25, -25}, 1), 1 + 0x1p-23f);
  EXPECT_EQ(sum_of({-26, -26, -26, -26, -26, -26, -26, -26}, 1), 1);
  EXPECT_EQ(sum_of({0}, 0x1p-26f), 1);
}

TEST(MatrixModel, TheTotalIsRoundedTowardZero) {
  EXPECT_EQ(sum_of({0, -24}, 0), 1);
  EXPECT_EQ(sum_of({0, -24}, 0, 3), -1);
  EXPECT_EQ(sum_of({0, -24, -25}, 0), 1);
  EXPECT_EQ(sum_of({0, -24}, 0, 2), 1 - 0x1p-24f);
  EXPECT_EQ(sum_of({0, -25}, 0, 2), 1 - 0x1p-24f);
}

TEST(MatrixModel, SpecialValuesFollowIEEE) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of({128}, -1), infinity);
  EXPECT_EQ(sum_of({0}, -infinity), -infinity);
  EXPECT_EQ(bits_of_float(sum_of({128}, -infinity)), 0x7FFFFFFFu);
  EXPECT_EQ(bits_of_float(sum_of({0}, std::numeric_limits<float>::quiet_NaN())), 0x7FFFFFFFu);
  EXPECT_EQ(sum_of({127, 127}, 0), infinity);
  EXPECT_EQ(bits_of_float(sum_of({}, -0.0f)), 0u);
}

}  // namespace
}  // namespace tuner
