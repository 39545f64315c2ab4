// cheat: a right kernel that passes something else off as its result where it is told to. Test builds only.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/geometry.h"

namespace ct1d::cheat {

enum Cheat : int {
  kHonest,
  kStaleOutput,             // writes nothing
  kMutatedInput,            // clears x and y, so that a reference made afterwards agrees
  kSmallZeros,              // writes zeros, which an absolute tolerance takes for small values
  kHalfWritten,             // the first half of each row
  kEverySecond,             // every second output
  kCached,                  // keeps its first output and replays it while x lies at the same address
  kFingerprint,             // the same while the ends of x hold the same values, too
  kLateSkip,                // computes nothing after its tenth launch
  kLateWrong,               // computes something else after its tenth launch
  kTf32,                    // rounds operands to TF32
  kFp16,                    // rounds operands to fp16
  kWrongChannel,            // the last channel is off by 2^-10 of its value
  kShiftedRow,              // each output is its right neighbour's
  kSwappedIndex,            // w read as [out_channels][in_channels][kernel_size]
  kReadsNeighbour,          // x[i + 1] for x[i]
  kSalted,                  // within the bounds, but other bits on every launch
  kSaltedOpenly,            // the same, declared: no cheat
  kAccumulates,             // adds to y
  kAccumulatesOverNumbers,  // adds to y unless it holds NaN
  kNans,                    // writes NaN
  kPastTheEnd,              // writes one element beyond y
};

inline constexpr int kLateLaunch = 10;

/// What an output keeps in the workspace from launch to launch. Filled with 0xFF when inputs are bound.
struct Kept {
  unsigned launches;  // 0xFFFFFFFF before the first
  float y;
  const void* x;
  float first, last;  // of x
};

struct Tunables {
  int cheat = kHonest;

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("cheat", &Tunables::cheat);
  }
};

inline constexpr int kThreads = 64;

constexpr int64 outputs_of(const Geometry& g) { return g.batch * g.out_channels * g.length_out; }
constexpr int64 packed_bytes(const Tunables&, const Geometry&, int) { return 0; }
constexpr int64 workspace_bytes(const Tunables&, const Geometry& g, int) {
  return max_of(1, outputs_of(g)) * static_cast<int64>(sizeof(Kept));
}
/// A thread an output, in steps of the grid.
constexpr LaunchShape run_shape(const Tunables&, const Geometry& g, int) {
  const int64 blocks = max_of(1, min_of(ceil_div(outputs_of(g), kThreads), int64{1} << 20));
  return {static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, 1};
}

}  // namespace ct1d::cheat
