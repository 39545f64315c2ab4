// The blocks of a cluster on one OS thread: which of them runs next, and the barrier of all their threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/random.h"
#include "tuner/device/host_block.h"

namespace tuner {

inline constexpr unsigned kMaxClusterBlocks = 16;  // sm_90, where a kernel allows more than 8

/// 1 for a launch without clusters.
unsigned cluster_blocks(const HostKernel& kernel);

/// Runs clusters one after the other on the calling OS thread, which must stay the same for its lifetime. A block runs
/// until it cannot go on; then stretches of rounds, whose lengths and blocks the seed draws, let blocks drift apart.
class HostCluster {
 public:
  /// Runs the launch's cluster of that number. Nothing, or what its first block that failed did wrong.
  std::optional<std::string> run(const HostKernel& kernel, std::uint64_t number, std::uint64_t launch_seed);

  unsigned size() const { return size_; }
  BlockRunner& block(unsigned rank) { return *blocks_[rank]; }
  /// The barrier's phases that are complete.
  std::uint64_t phase() const { return phase_; }
  /// A thread arrived at the barrier, or exited: others may go on.
  void thread_arrived();
  void thread_exited(const HostThread& thread);

 private:
  void start(const HostKernel& kernel, std::uint64_t number, std::uint64_t launch_seed);
  BlockRunner* next_block();
  BlockRunner* failed_block();
  bool go_on_without_threads();
  std::string describe_stuck() const;

  std::vector<std::unique_ptr<BlockRunner>> blocks_;  // as many as the largest cluster so far
  unsigned size_ = 0;
  Random random_{0};
  unsigned running_ = 0;  // rank
  unsigned stretch_ = 0;  // rounds that it still has
  std::uint64_t phase_ = 0;
  std::size_t missing_ = 0;  // threads that have neither arrived in this phase nor exited
};

}  // namespace tuner
