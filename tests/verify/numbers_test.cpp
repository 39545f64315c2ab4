#include "tuner/verify/numbers.cuh"

#include <gtest/gtest.h>

#include <limits>

namespace ct1d::check {
namespace {

TEST(Numbers, RoundToNearestEvenInEachFormat) {
  const Format f16 = format_of(Storage::f16), bf16 = format_of(Storage::bf16), f32 = format_of(Storage::f32);
  EXPECT_EQ(round_to(1 + 0x1p-11, f16), 1.0);             // tie, to even
  EXPECT_EQ(round_to(1 + 3 * 0x1p-11, f16), 1 + 0x1p-9);  // tie, to even upwards
  EXPECT_EQ(round_to(-(1 + 0x1p-11 + 0x1p-40), f16), -(1 + 0x1p-10));
  EXPECT_EQ(round_to(65519.99, f16), 65504.0);
  EXPECT_EQ(round_to(65520.0, f16), infinity());
  EXPECT_EQ(round_to(0x1p-25, f16), 0.0);  // tie between 0 and the smallest subnormal
  EXPECT_EQ(round_to(0x1.8p-25, f16), 0x1p-24);
  EXPECT_EQ(round_to(1 + 0x1p-8, bf16), 1.0);
  EXPECT_EQ(round_to(1 + 0x1.8p-8, bf16), 1 + 0x1p-7);
  EXPECT_EQ(round_to(0.1, f32), static_cast<double>(0.1f));
  EXPECT_EQ(round_to(1e39, f32), infinity());
  EXPECT_EQ(round_to(1e-46, f32), 0.0);
  EXPECT_EQ(f32.largest, std::numeric_limits<float>::max());
}

TEST(Numbers, UlpIsTheDistanceToTheNextNumber) {
  const Format f16 = format_of(Storage::f16);
  EXPECT_EQ(ulp(1.0, f16), 0x1p-10);
  EXPECT_EQ(ulp(1.99, f16), 0x1p-10);
  EXPECT_EQ(ulp(0.0, f16), 0x1p-24);
  EXPECT_EQ(ulp(0x1p-20, f16), 0x1p-24);
  EXPECT_EQ(ulp(1.0, format_of(Storage::bf16)), 0x1p-7);
}

TEST(Numbers, Tf32RoundsToNearestAwayFromZero) {
  EXPECT_EQ(round_to_tf32(1 + 0x1p-11f), 1 + 0x1p-10f);
  EXPECT_EQ(round_to_tf32(-(1 + 0x1p-11f)), -(1 + 0x1p-10f));
  EXPECT_EQ(round_to_tf32(1 + 0x1p-12f), 1.0f);
  EXPECT_EQ(round_to_tf32(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
}

TEST(Numbers, EveryHalfAndBfloatSurvivesStorage) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto word = static_cast<unsigned short>(bits);
    unsigned short stored = 0;
    if ((bits & 0x7c00) != 0x7c00 || (bits & 0x3ff) == 0) {
      store(&stored, 0, widen(F16{word}), Storage::f16);
      ASSERT_EQ(stored, word);
      ASSERT_EQ(round_to(widen(F16{word}), format_of(Storage::f16)), widen(F16{word}));
    }
    store(&stored, 0, widen(Bf16{word}), Storage::bf16);
    ASSERT_EQ(stored, word);
  }
  EXPECT_EQ(widen(F16{0x3c01}), 1 + 0x1p-10f);
  EXPECT_EQ(widen(F16{0x8001}), -0x1p-24f);
  EXPECT_NE(widen(F16{0x7e00}), widen(F16{0x7e00}));
}

TEST(Numbers, NonFiniteStaysAsItIs) {
  const Format f32 = format_of(Storage::f32);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(is_nan(round_to(std::numeric_limits<float>::quiet_NaN(), f32)));
  EXPECT_EQ(round_to(-inf, f32), -inf);
}

}  // namespace
}  // namespace ct1d::check
