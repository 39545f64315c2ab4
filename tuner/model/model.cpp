#include "tuner/model/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tuner {
namespace {

constexpr int kWarp = 32;
constexpr int kParts = 4;           // of an SM, each with its share of the registers
constexpr int kRegisterUnit = 256;  // registers, per warp
constexpr int kUnlimited = std::numeric_limits<int>::max();

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

int blocks_by_registers(const DeviceFacts& device, int registers, int warps) {
  if (registers > device.max_registers_per_thread) return 0;
  const int per_warp = round_up(registers * kWarp, kRegisterUnit);
  if (per_warp == 0) return kUnlimited;
  if (per_warp * round_up(warps, kParts) > device.registers_per_sm) return 0;  // the hardware checks a block like this
  return device.registers_per_sm / kParts / per_warp * kParts / warps;
}

int blocks_by_shared(const DeviceFacts& device, std::int64_t bytes) {
  if (bytes > device.shared_per_block_optin) return 0;
  const std::int64_t unit = device.compute_major >= 8 ? 128 : 256;
  const std::int64_t taken = (bytes + device.shared_reserved_per_block + unit - 1) / unit * unit;
  return taken == 0 ? kUnlimited : static_cast<int>(device.shared_per_sm / taken);
}

double threads_of(const ct1d::LaunchShape& shape) {
  return static_cast<double>(shape.block_x) * shape.block_y * shape.block_z;
}
double blocks_of(const ct1d::LaunchShape& shape) {
  return static_cast<double>(shape.grid_x) * shape.grid_y * shape.grid_z;
}

}  // namespace

Occupancy occupancy_of(const DeviceFacts& device, int registers, int static_shared_bytes,
                       const ct1d::LaunchShape& shape) {
  const double threads = threads_of(shape);
  if (threads > device.max_threads_per_block) return {0, 0, "threads"};
  const int warps = (static_cast<int>(threads) + kWarp - 1) / kWarp;
  if (warps == 0) return {0, 0, "threads"};
  const int most_warps = device.max_threads_per_sm / kWarp;
  const std::pair<int, const char*> limits[] = {
      {most_warps / warps, "threads"},
      {device.max_blocks_per_sm, "blocks"},
      {blocks_by_registers(device, registers, warps), "registers"},
      {blocks_by_shared(device, std::int64_t{static_shared_bytes} + shape.shared_bytes), "shared memory"}};
  const auto& [blocks, name] =
      *std::min_element(std::begin(limits), std::end(limits), [](auto& a, auto& b) { return a.first < b.first; });
  return {blocks, std::min(1.0, static_cast<double>(blocks) * warps / most_warps), name};
}

double shortlist_key(const VariantRecord& record, const Program& program, const BuildContext& context) {
  if (program.run.empty()) return 0;  // an empty batch: nothing to launch
  const DeviceFacts& device = context.device;
  const Launch& main = *std::max_element(program.run.begin(), program.run.end(), [](const Launch& a, const Launch& b) {
    return blocks_of(a.shape) * threads_of(a.shape) < blocks_of(b.shape) * threads_of(b.shape);
  });
  const int static_bytes = std::max(0, record.shared_bytes - static_cast<int>(main.shape.shared_bytes));
  const Occupancy occupancy = occupancy_of(device, record.registers, static_bytes, main.shape);
  if (occupancy.blocks_per_sm == 0) return std::numeric_limits<double>::infinity();

  const double outputs = static_cast<double>(context.problem.y_count());
  const double per_thread = std::max(1.0, outputs / (blocks_of(main.shape) * threads_of(main.shape)));
  double key = lower_bound_ms(program.work, device, true) * (1 + record.spill_bytes / 64.0);
  if (program.work.fma_fp32 > 0) {
    const double warps = occupancy.fraction * device.max_threads_per_sm / kWarp;
    key *= std::max(1.0, 8 / std::sqrt(per_thread)) * std::max(1.0, 64 / (warps * std::min(per_thread, 8.0)));
  }
  const double waves =
      blocks_of(main.shape) / (static_cast<double>(occupancy.blocks_per_sm) * std::max(1, device.sm_count));
  return key * std::ceil(waves) / waves;
}

}  // namespace tuner
