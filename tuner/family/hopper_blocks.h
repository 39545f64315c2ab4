// Persistent blocks of the families for Hopper: one an SM, or a few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "tuner/core/device_facts.h"
#include "tuner/core/value.h"
#include "tuner/family/typed_family.h"

namespace tuner {

inline constexpr int kHopperBlocks[] = {132, 114, 78, 60, 46, 32, 26, 16, 8, 1};  // SMs of GPUs and of their MIG slices

/// The most blocks of the list that the device's SMs hold, one each.
inline int blocks_for(const DeviceFacts& device) {
  const int sms = device.sm_count > 0 ? device.sm_count : kHopperBlocks[0];
  return *std::find_if(std::begin(kHopperBlocks), std::end(kHopperBlocks), [sms](int blocks) { return blocks <= sms; });
}

template <class Tunables>
Constraint as_many_blocks_as_listed(const DeviceFacts& device) {
  return constraint<Tunables>({"blocks"}, "there must be as many blocks as the list has for the device's SMs",
                              [best = blocks_for(device)](const Tunables& t) { return t.blocks == best; });
}

/// The list as values of a tunable.
inline std::vector<Value> block_values() {
  std::vector<Value> values;
  for (const int count : kHopperBlocks) values.emplace_back(std::int64_t{count});
  return values;
}

}  // namespace tuner
