#include "tuner/device/host_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tuner {

using ct1d_host::Site;
using ct1d_host::Worker;

unsigned cluster_blocks(const HostKernel& kernel) { return std::max(1u, kernel.shape.cluster_x); }

std::optional<std::string> HostCluster::run(const HostKernel& kernel, std::uint64_t number, std::uint64_t launch_seed) {
  start(kernel, number, launch_seed);
  std::string stuck;
  const BlockRunner* failed = nullptr;
  while (failed == nullptr) {
    if (BlockRunner* const next = next_block()) {
      next->run_round();
    } else if (std::all_of(blocks_.begin(), blocks_.begin() + size_, [](const auto& b) { return b->has_ended(); })) {
      if ((failed = failed_block()) == nullptr) return std::nullopt;
    } else if (!go_on_without_threads() && failed_block() == nullptr) {
      stuck = describe_stuck();
      break;
    }
    failed = failed_block();
  }
  for (unsigned rank = 0; rank < size_; ++rank) blocks_[rank]->abandon();
  return failed != nullptr ? failed->describe_place() + ": " + *failed->failure() : stuck;
}

void HostCluster::start(const HostKernel& kernel, std::uint64_t number, std::uint64_t launch_seed) {
  size_ = cluster_blocks(kernel);
  while (blocks_.size() < size_)
    blocks_.push_back(std::make_unique<BlockRunner>(*this, static_cast<unsigned>(blocks_.size())));
  const ct1d::LaunchShape& shape = kernel.shape;
  missing_ = 0;
  phase_ = 0;
  for (unsigned rank = 0; rank < size_; ++rank) {
    const std::uint64_t block = number * size_ + rank;  // along x, of which the cluster's size is a divisor
    const ct1d_host::Dim3 index{static_cast<unsigned>(block % shape.grid_x),
                                static_cast<unsigned>(block / shape.grid_x % shape.grid_y),
                                static_cast<unsigned>(block / shape.grid_x / shape.grid_y)};
    blocks_[rank]->start(kernel, index, mix64(launch_seed ^ mix64(block)));
    missing_ += blocks_[rank]->live_threads();
  }
  random_ = Random(mix64(launch_seed ^ mix64(~number)));
  running_ = size_ > 1 ? static_cast<unsigned>(random_.below(size_)) : 0;
  stretch_ = std::numeric_limits<unsigned>::max();
}

BlockRunner* HostCluster::next_block() {
  if (stretch_ == 0 || !blocks_[running_]->can_run()) {
    std::vector<unsigned> ready;
    for (unsigned rank = 0; rank < size_; ++rank)
      if (blocks_[rank]->can_run()) ready.push_back(rank);
    if (ready.empty()) return nullptr;
    running_ = ready.size() > 1 ? ready[random_.below(ready.size())] : ready.front();
    stretch_ = size_ > 1 ? 1u << random_.below(8) : std::numeric_limits<unsigned>::max();
  }
  --stretch_;
  return blocks_[running_].get();
}

BlockRunner* HostCluster::failed_block() {
  for (unsigned rank = 0; rank < size_; ++rank)
    if (blocks_[rank]->failure()) return blocks_[rank].get();
  return nullptr;
}

bool HostCluster::go_on_without_threads() {
  const unsigned first = size_ > 1 ? static_cast<unsigned>(random_.below(size_)) : 0;
  for (unsigned i = 0; i < size_; ++i)
    if (blocks_[(first + i) % size_]->go_on_without_threads()) return true;
  return false;
}

std::string HostCluster::describe_stuck() const {
  std::string text = blocks_[0]->describe_place() + ": deadlock: no thread can go on" + blocks_[0]->describe_waits();
  for (unsigned rank = 1; rank < size_; ++rank)
    text += fmt::format("; of the cluster's block {}{}", rank, blocks_[rank]->describe_waits());
  return text;
}

void HostCluster::thread_arrived() {
  if (--missing_ != 0) return;
  ++phase_;
  for (unsigned rank = 0; rank < size_; ++rank) {
    missing_ += blocks_[rank]->live_threads();
    blocks_[rank]->release_from_cluster();
  }
}

void HostCluster::thread_exited(const HostThread& thread) {
  if (thread.cluster_arrivals == phase_) thread_arrived();
}

// What kernels call.

void BlockRunner::release_from_cluster() {
  for (std::size_t i = 0; i < block_threads_; ++i)
    if (threads_[i]->state == ThreadState::at_cluster) release(*threads_[i]);
}

void BlockRunner::cluster_arrive(Worker* worker, Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  if (thread.cluster_arrivals != thread.cluster_waits)
    runner.fail_here("a second cluster_arrive() before a cluster_wait()", site);
  ++thread.cluster_arrivals;
  runner.cluster_.thread_arrived();
}

void BlockRunner::cluster_wait(Worker* worker, Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  if (thread.cluster_arrivals == thread.cluster_waits)
    runner.fail_here("a cluster_wait() without a cluster_arrive() before it", site);
  ++thread.cluster_waits;
  if (runner.cluster_.phase() >= thread.cluster_arrivals) return;
  thread.site = site;
  thread.mask = 0;
  thread.state = ThreadState::at_cluster;
  runner.suspend(thread);
}

BlockRunner& BlockRunner::block_of_rank(const char* what, unsigned rank, Site site) {
  if (rank >= cluster_.size())
    fail_here(fmt::format("{} block {} of a cluster of {}", what, rank, cluster_.size()), site);
  BlockRunner& block = cluster_.block(rank);
  if (block.has_ended()) fail_here(fmt::format("{} block {} of the cluster, which has ended", what, rank), site);
  return block;
}

void BlockRunner::mbarrier_arrive_of_block(Worker* worker, unsigned address, unsigned rank, Site site) {
  BlockRunner& runner = of(worker);
  BlockRunner& to = runner.block_of_rank("an arrival in", rank, site);
  std::vector<std::uint16_t> released;
  runner.check(to.mbarriers_.arrive(address, 0, released), site);
  to.release_all(released);
}

void BlockRunner::bulk_load_to_blocks(Worker* worker, unsigned shared, const void* global, unsigned bytes,
                                      unsigned barrier, unsigned blocks, void (*read)(void*, const void*, unsigned),
                                      Site site) {
  BlockRunner& runner = of(worker);
  runner.check_bulk("bulk_load_to_blocks", global, shared, bytes, site);
  if (blocks == 0) runner.fail_here("bulk_load_to_blocks with no block", site);
  std::vector<unsigned char> data(bytes);
  read(data.data(), global, bytes);
  for (unsigned rank = 0; rank < 32; ++rank) {
    if ((blocks >> rank & 1) == 0) continue;
    BlockRunner& to = runner.block_of_rank("bulk_load_to_blocks to", rank, site);
    runner.check(to.mbarriers_.usable_by_loads(barrier), site);
    if (to.shared_.at(shared, bytes) == nullptr)
      runner.fail_here(
          fmt::format("bulk_load_to_blocks to shared address {:#x}, where block {} has no array", shared, rank), site);
    runner.issue_load(to, shared, data, barrier, site);
  }
}

}  // namespace tuner
