// What a family builds for a problem: sources to compile and launches to make. Values only; devices execute them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/common/geometry.h"
#include "tuner/core/accuracy.h"
#include "tuner/core/device_facts.h"
#include "tuner/core/problem.h"
#include "tuner/core/value.h"

namespace tuner {

/// One translation unit for NVRTC or the host compiler. `source` includes files of kernels/ by their path from the
/// repository root ("kernels/direct/kernel.cuh"), which the program carries within itself.
struct CompileUnit {
  std::string source;
  std::vector<std::string> kernels;  // name expressions, e.g. "ct1d::direct::kernel<128, 16, 32, 32, 8, 1, 3, float>"
  std::vector<std::string> options;  // beyond those every unit gets (architecture, C++17, -default-device, ptxas -v)
};

/// One kernel launch. A run kernel takes one ct1d::RunArguments by value, a prepare kernel one ct1d::PrepareArguments.
struct Launch {
  std::string kernel;  // a name expression of the program's unit
  ct1d::LaunchShape shape{1, 1, 1, 1, 1, 1, 0, 1};
};

/// Floating-point operations per pipe that the kernel executes at least (the arithmetic floor), and bytes it must move.
struct Work {
  double fma_fp32 = 0;     // operations (2 per multiply-add) on the FP32 pipe
  double tensor_tf32 = 0;  // on the matrix unit, by operand type
  double tensor_fp16 = 0;
  double bytes = 0;            // cold minimum through device memory
  double shared_accesses = 0;  // warp-wide reads of shared memory at least; an SM serves one a cycle
};

struct Program {
  CompileUnit unit;
  std::vector<Launch> prepare;      // once per weights; timed apart
  std::vector<Launch> run;          // per call; what is timed
  std::size_t packed_bytes = 0;     // what prepare writes; 0: run kernels read w itself
  std::size_t workspace_bytes = 0;  // per call
  bool deterministic = true;        // the same bits on every call
  Work work;
};

/// What a program is built for. Everything a family may look at.
struct BuildContext {
  Problem problem;
  Accuracy accuracy = Accuracy::fp32;
  DeviceFacts device;
};

}  // namespace tuner
