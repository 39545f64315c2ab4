// fault: a right kernel that fails where it is told to. Test builds only.
#pragma once

#include "kernels/common/block_shape.h"
#include "kernels/common/geometry.h"

namespace ct1d::fault {

/// What goes wrong. From kOutOfMemory on it is what the launch asks for.
enum Fault : int {
  kNone,
  kIllegalAddress,
  kMisalignedAddress,  // the CPU does not mind
  kSharedOutOfBounds,
  kInfiniteLoop,
  kTrap,
  kDeviceAssert,
  kLate,            // at its 50th launch
  kCompilerMemory,  // instantiates templates until the compiler's memory is gone
  kCompilerHang,    // instantiates templates until the compiler's time is gone
  kSyntaxError,
  kWorkerKilled,  // by Host execution only, like the next
  kWorkerStopped,
  kOutOfMemory,  // asks for more workspace than there is
  kTooMuchShared,
  kTooManyThreads,
};

inline constexpr int kFatalLaunch = 50;
inline constexpr int64 kHugeWorkspace = int64{1} << 46;

struct Tunables {
  int fault = kNone;
  BlockShape block{128, 1};
  int repeat = 1;  // the sum is made so many times: right variants that differ in time

  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("fault", &Tunables::fault);
    v("block", &Tunables::block);
    v("repeat", &Tunables::repeat);
  }
};

constexpr int64 workspace_bytes(const Tunables& t, const Geometry&, int) {
  return t.fault == kOutOfMemory ? kHugeWorkspace : t.fault == kLate ? 256 : 0;
}
constexpr int64 packed_bytes(const Tunables&, const Geometry&, int) { return 0; }

/// Blocks take outputs in steps of the grid. One float of shared memory a thread.
constexpr LaunchShape run_shape(const Tunables& t, const Geometry& g, int) {
  const int64 outputs = g.batch * g.out_channels * g.length_out;
  const int64 blocks = max_of(1, min_of(ceil_div(outputs, t.block.threads()), int64{1} << 20));
  const unsigned threads = t.fault == kTooManyThreads ? 2048 : static_cast<unsigned>(t.block.threads());
  const unsigned shared = t.fault == kTooMuchShared ? 1u << 20 : threads * 4;
  return {static_cast<unsigned>(blocks), 1, 1, threads, 1, 1, shared, 1};
}

}  // namespace ct1d::fault
