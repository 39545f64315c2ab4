// Words for what happens in Host execution, and for the sanitizer's reports.
#pragma once

#include <string>

#include "tuner/device/host_block.h"

namespace tuner {

std::string describe(const HostKernel& kernel, ct1d_host::Dim3 block);  // "kernel<4, float>, block (1, 0, 0)"
std::string describe(const ct1d_host::Thread& thread);                  // "thread (3, 0, 0)"
std::string describe(const ct1d_host::Site& site);                      // "kernels/tiled/kernel.cuh:88"
bool same_place(const ct1d_host::Site& a, const ct1d_host::Site& b);
std::string describe_wait(const HostThread& thread);  // "__syncthreads() at kernels/tiled/kernel.cuh:88"

/// While it lives, a report of the sanitizer from this OS thread is followed by a line on stderr that names kernel,
/// block, thread, and the address's place in the block's dynamic shared memory.
class RunningBlock {
 public:
  RunningBlock(const ct1d_host::Worker& worker, const HostKernel& kernel, const GuardedMemory* dynamic_shared);
  ~RunningBlock();
  RunningBlock(const RunningBlock&) = delete;
  RunningBlock& operator=(const RunningBlock&) = delete;

  std::string describe_fault(const void* address) const;

 private:
  const ct1d_host::Worker& worker_;
  const HostKernel& kernel_;
  const GuardedMemory* dynamic_shared_;
};

/// Once a process; does nothing where the sanitizer's runtime is absent.
void report_context_on_sanitizer_death();

}  // namespace tuner
