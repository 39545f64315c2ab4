// What can be said about a variant without running it: occupancy, the fastest time that the device's limits allow, and
// an order for the offline shortlist. Pure functions; nothing here predicts a time.
#pragma once

#include <string>

#include "tuner/core/result.h"
#include "tuner/family/lower_bound.h"
#include "tuner/family/program.h"

namespace tuner {

struct Occupancy {
  int blocks_per_sm = 0;   // resident at once; 0: a block does not fit
  double fraction = 0;     // resident warps over the most that an SM holds, 0..1
  std::string limited_by;  // "registers", "shared memory", "threads", "blocks"
};

/// Resident blocks by NVIDIA's rules for compute capability 7.0 and later (CUDA C++ Programming Guide, "Technical
/// Specifications"; cuda_occupancy.h): registers go to a warp in units of 256, within the SM's four parts; shared
/// memory to a block in units of 128 bytes (256 before 8.0) with what the system reserves, the SM set to its largest
/// shared memory.
Occupancy occupancy_of(const DeviceFacts& device, int registers, int static_shared_bytes,
                       const ct1d::LaunchShape& shape);

/// Where a compiled variant stands on the offline shortlist: smaller comes first, infinite where a block does not fit.
/// Dimensionless in meaning: lower_bound_ms times penalties that say how far the kernel is from being able to reach it.
///   operands  a thread that keeps n outputs in registers reads at least 2 sqrt(n) operands for n multiply-adds, and
///             shared memory delivers one operand for every four multiply-adds that an SM starts: max(1, 8 / sqrt(n)).
///   latency   independent multiply-adds in flight on an SM, warps times n (at most 8), against the 64 that hide an
///             operand's way from shared memory: max(1, 64 / in flight).
///   waves     the last wave of blocks leaves SMs idle: waves rounded up over waves.
///   spills    1 + spilled bytes / 64: each spill is traffic within the inner loop, or may be.
/// Matrix instructions hold their operands otherwise: variants without FP32 work get no operand or latency penalty.
double shortlist_key(const VariantRecord& record, const Program& program, const BuildContext& context);

}  // namespace tuner
