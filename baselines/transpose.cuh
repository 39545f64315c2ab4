// Between PyTorch's layout (batch, channel, position) and a channels-last one (batch, position, channel): a tile at a
// time through shared memory, so that both sides move whole lines.
//
// Compiled by NVRTC into kernels and by the host compiler into tests: C++17, no standard library.
#pragma once

#include "kernels/common/geometry.h"

#if defined(__CUDACC__)
#define CT1D_BASELINE_UNROLL _Pragma("unroll 8")
#else
#define CT1D_BASELINE_UNROLL
#endif

namespace ct1d {
namespace baseline {

/// target[batch][column][row] = source[batch][row][column], both contiguous; plus bias[column], where there is one.
struct TransposeArguments {
  const void* source;
  void* target;
  const float* bias;  // fp32 elements only
  int64 batches;
  int64 rows;  // of the source
  int64 columns;
};

constexpr int kTransposeThreads = 256;

/// One tile of kRows x kColumns elements, by kTransposeThreads threads. `Element` is float, or unsigned short for
/// 16-bit types, whose bits are moved as they are.
template <class Element, int kTileRows, int kTileColumns>
struct TransposeTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kCount = kRows * kColumns;
  /// An odd number of 32-bit words: a column's elements lie in different banks.
  static constexpr int kPitch = kColumns + 4 / static_cast<int>(sizeof(Element));
  static_assert(kRows % 32 == 0 && kColumns % 32 == 0, "a warp moves 32 neighbours");
  static_assert(kTransposeThreads % kRows == 0 && kTransposeThreads % kColumns == 0, "a thread keeps to its line");

  CT1D_HD static constexpr int64 blocks_of(int64 extent, int tile) { return (extent + tile - 1) / tile; }

  CT1D_HD static void load(const TransposeArguments& a, int64 batch, int64 first_row, int64 first_column, int thread,
                           Element* tile) {
    const int column = thread % kColumns, step = kTransposeThreads / kColumns;
    if (first_column + column >= a.columns) return;
    const int rows = static_cast<int>(min_of(kRows, a.rows - first_row));
    const Element* source =
        static_cast<const Element*>(a.source) + (batch * a.rows + first_row) * a.columns + first_column + column;
    CT1D_BASELINE_UNROLL
    for (int row = thread / kColumns; row < rows; row += step) tile[row * kPitch + column] = source[row * a.columns];
  }

  CT1D_HD static void store(const TransposeArguments& a, int64 batch, int64 first_row, int64 first_column, int thread,
                            const Element* tile) {
    const int row = thread % kRows, step = kTransposeThreads / kRows;
    if (first_row + row >= a.rows) return;
    const int columns = static_cast<int>(min_of(kColumns, a.columns - first_column));
    Element* target = static_cast<Element*>(a.target) + (batch * a.columns + first_column) * a.rows + first_row + row;
    CT1D_BASELINE_UNROLL
    for (int column = thread / kRows; column < columns; column += step) {
      const Element value = tile[row * kPitch + column];
      target[column * a.rows] = a.bias == nullptr ? value : added(value, a.bias[first_column + column]);
    }
  }

 private:
  CT1D_HD static float added(float value, float bias) { return value + bias; }
  CT1D_HD static unsigned short added(unsigned short value, float) { return value; }  // never: bias is fp32's alone
};

/// The tile's long side lies along the positions, where rows begin at any address; its short side is a whole line of
/// 128 bytes along the channels.
template <class Element>
using ToChannelsLast = TransposeTile<Element, 128 / static_cast<int>(sizeof(Element)), 128>;
template <class Element>
using ToChannelsFirst = TransposeTile<Element, 128, 128 / static_cast<int>(sizeof(Element))>;

}  // namespace baseline
}  // namespace ct1d
