// What is known about a GPU without running anything on it: read off the device, or from
// configs/devices/<profile>.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuner {

struct DeviceFacts {
  std::string name;  // "NVIDIA H200", as the driver says
  std::string arch;  // NVRTC target: "sm_90a"
  int compute_major = 0;
  int compute_minor = 0;
  int sm_count = 0;
  int max_threads_per_block = 1024;
  int max_threads_per_sm = 2048;
  int max_blocks_per_sm = 32;
  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;
  int shared_per_sm = 0;           // bytes
  int shared_per_block_optin = 0;  // bytes
  int shared_reserved_per_block = 1024;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  double sm_clock_mhz = 0;  // maximum
  double memory_gbps = 0;   // theoretical peak, GB/s (1e9)
  double fp32_tflops = 0;   // theoretical peak of each pipe at sm_clock_mhz, dense
  double tf32_tflops = 0;
  double fp16_tflops = 0;
  bool measured = false;  // true when read off a device that is present
};

/// What stands in a result's `environment` beside the facts; empty strings where unknown.
struct Environment {
  DeviceFacts device;
  std::string uuid;
  std::string driver;
  std::string cuda;
  std::string nvrtc;
  std::string cudnn;
  std::string cublas;
  double power_limit_w = 0;
  double sm_clock_mhz_now = 0;
  int other_processes = 0;
  std::string mig;             // "off", "on", "not supported", or "not available: why"
  std::string energy_counter;  // "available", or "not available: why"
  std::vector<std::string> warnings;
};

}  // namespace tuner
