// The measuring stage's own kernels: readings of the SMs' clocks, and a gate that holds a stream back.
#pragma once

#include "kernels/common/geometry.h"

namespace ct1d::probe {

inline constexpr int kSlots = 8;  // SMs whose clock is read

/// One SM's counters at one moment. Zero: no block of the reading ran there.
struct Reading {
  unsigned long long cycles;
  unsigned long long nanoseconds;
};

struct StampArguments {
  Reading* readings;  // kSlots
};

struct HoldArguments {
  const unsigned* released;  // host memory; the gate opens once it has reached `ticket`
  unsigned* timed_out;       // host memory; gets `ticket` where the gate opened by itself
  unsigned ticket;
  unsigned long long limit_nanoseconds;
};

#if defined(__CUDACC__)
__device__ inline unsigned long long global_nanoseconds() {
  unsigned long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

/// Cycle and nanosecond counters of the first SMs, as near to each other as two instructions. Two readings give the
/// clock that an SM had between them on average.
__global__ void stamp(const CT1D_GRID_CONSTANT StampArguments arguments) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x != 0 || sm >= kSlots) return;
  const unsigned long long nanoseconds = global_nanoseconds();
  unsigned long long cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  // One store of 16 bytes: blocks that share an SM must not mix their readings.
  asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(arguments.readings + sm), "l"(cycles), "l"(nanoseconds)
               : "memory");
}

/// Ends when the host says so, or at the limit: what is enqueued behind it starts back to back.
__global__ void hold(const CT1D_GRID_CONSTANT HoldArguments arguments) {
  const unsigned long long start = global_nanoseconds();
  const volatile unsigned* released = arguments.released;
  while (static_cast<int>(*released - arguments.ticket) < 0) {
    if (global_nanoseconds() - start > arguments.limit_nanoseconds) {
      *static_cast<volatile unsigned*>(arguments.timed_out) = arguments.ticket;
      return;
    }
  }
}
#endif

}  // namespace ct1d::probe
