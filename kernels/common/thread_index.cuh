// The thread's index in its block, read anew at every call: what is computed from it then lives only where it is used,
// and takes no register across a loop whose sums need them all. The same value as from threadIdx.
#pragma once

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

inline int fresh_thread_x() { return static_cast<int>(threadIdx.x); }
inline int fresh_thread_y() { return static_cast<int>(threadIdx.y); }

#else

__device__ __forceinline__ int fresh_thread_x() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
__device__ __forceinline__ int fresh_thread_y() {
  int index;
  asm volatile("mov.u32 %0, %%tid.y;" : "=r"(index));
  return index;
}

#endif

}  // namespace ct1d
