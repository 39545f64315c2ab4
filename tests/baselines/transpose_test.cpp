// The conversions between layouts, run on the CPU thread by thread as the kernels run them.
#include "baselines/transpose.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace ct1d {
namespace baseline {
namespace {

constexpr float kUnwritten = -1.0f;

/// What a launch over all tiles does.
template <class Tile, class Element>
void run(const TransposeArguments& a) {
  std::vector<Element> tile(static_cast<std::size_t>(Tile::kRows * Tile::kPitch));
  for (int64 batch = 0; batch < a.batches; ++batch)
    for (int64 row = 0; row < a.rows; row += Tile::kRows)
      for (int64 column = 0; column < a.columns; column += Tile::kColumns) {
        for (int t = 0; t < kTransposeThreads; ++t) Tile::load(a, batch, row, column, t, tile.data());
        for (int t = 0; t < kTransposeThreads; ++t) Tile::store(a, batch, row, column, t, tile.data());
      }
}

template <class Tile, class Element>
void check(int64 batches, int64 rows, int64 columns, bool with_bias) {
  SCOPED_TRACE(::testing::Message() << batches << " x " << rows << " x " << columns);
  std::vector<Element> source(static_cast<std::size_t>(batches * rows * columns));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<Element>(i % 65521);
  std::vector<float> bias(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) * 0.5f;
  // The end of a target that is one element too long must stay as it was.
  std::vector<Element> target(source.size() + 1, static_cast<Element>(kUnwritten));
  run<Tile, Element>({source.data(), target.data(), with_bias ? bias.data() : nullptr, batches, rows, columns});
  EXPECT_EQ(target.back(), static_cast<Element>(kUnwritten));
  for (int64 b = 0; b < batches; ++b)
    for (int64 r = 0; r < rows; ++r)
      for (int64 c = 0; c < columns; ++c) {
        const auto from = source[static_cast<std::size_t>((b * rows + r) * columns + c)];
        const auto to = target[static_cast<std::size_t>((b * columns + c) * rows + r)];
        const float expected = static_cast<float>(from) + (with_bias ? bias[static_cast<std::size_t>(c)] : 0.0f);
        ASSERT_EQ(static_cast<float>(to), expected) << b << ", " << r << ", " << c;
      }
}

template <class Element>
void check_both(int64 batches, int64 channels, int64 length) {
  check<ToChannelsLast<Element>, Element>(batches, channels, length, false);
  check<ToChannelsFirst<Element>, Element>(batches, length, channels, false);
}

TEST(Transpose, MovesEveryElementOfWholeAndCutTiles) {
  for (const int64 channels : {1, 31, 32, 64, 65, 130})
    for (const int64 length : {1, 127, 128, 129, 300}) {
      check_both<float>(2, channels, length);
      check_both<unsigned short>(2, channels, length);
    }
}

TEST(Transpose, AddsTheBiasOfTheColumnThatBecomesARow) {
  check<ToChannelsFirst<float>, float>(3, 150, 40, true);
  check<ToChannelsLast<float>, float>(1, 33, 129, true);
}

/// The threads of a warp touch 32 different banks, or the same word of one, and neighbours in memory.
template <class Tile, class Element>
void expect_no_bank_conflict() {
  for (int warp = 0; warp < kTransposeThreads / 32; ++warp) {
    std::map<int, std::set<int>> words;  // by bank
    for (int lane = 0; lane < 32; ++lane) {
      const int thread = warp * 32 + lane, row = thread % Tile::kRows, column = thread / Tile::kRows;
      const int word = (row * Tile::kPitch + column) * static_cast<int>(sizeof(Element)) / 4;
      words[word % 32].insert(word);
    }
    for (const auto& [bank, touched] : words) EXPECT_EQ(touched.size(), 1u) << "bank " << bank;
  }
}

TEST(Transpose, ReadsColumnsOfATileWithoutBankConflicts) {
  expect_no_bank_conflict<ToChannelsLast<float>, float>();
  expect_no_bank_conflict<ToChannelsFirst<float>, float>();
  expect_no_bank_conflict<ToChannelsLast<unsigned short>, unsigned short>();
  expect_no_bank_conflict<ToChannelsFirst<unsigned short>, unsigned short>();
}

}  // namespace
}  // namespace baseline
}  // namespace ct1d
