#include "tuner/device/host_pool.h"

#include <exception>
#include <utility>

namespace tuner {

HostPool::HostPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { serve(static_cast<std::size_t>(i)); });
}

HostPool::~HostPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<std::string> HostPool::run(const HostKernel& kernel, std::uint64_t seed) {
  std::unique_lock lock(mutex_);
  job_.kernel = kernel;
  job_.seed = seed;
  job_.clusters =
      std::uint64_t{kernel.shape.grid_x} * kernel.shape.grid_y * kernel.shape.grid_z / cluster_blocks(kernel);
  job_.next = 0;
  job_.stop = false;
  failure_.reset();
  busy_ = threads_.size();
  ++generation_;
  wake_.notify_all();
  done_.wait(lock, [this] { return busy_ == 0; });
  if (!failure_) return std::nullopt;
  return failure_->second;
}

void HostPool::serve(std::size_t thread) {
  std::optional<HostCluster> cluster;  // made by the first job, on the thread that uses it
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closing_ || generation_ != seen; });
    if (closing_) return;
    seen = generation_;
    lock.unlock();
    // No more blocks at a time than without clusters.
    const bool takes_part = thread == 0 || (thread + 1) * cluster_blocks(job_.kernel) <= kMaxPoolThreads;
    try {
      if (takes_part && !cluster) cluster.emplace();
      if (takes_part) run_clusters(*cluster);
    } catch (const std::exception& error) {
      record(0, std::string("Host execution ran out of memory for stacks or shared memory: ") + error.what());
      cluster.reset();
    }
    lock.lock();
    if (--busy_ == 0) done_.notify_all();
  }
}

// Clusters are taken in order and finished once taken, so the lowest one that fails does not depend on timing.
void HostPool::run_clusters(HostCluster& cluster) {
  while (!job_.stop) {
    const std::uint64_t number = job_.next++;
    if (number >= job_.clusters) return;
    if (auto what = cluster.run(job_.kernel, number, job_.seed)) record(number, std::move(*what));
  }
}

void HostPool::record(std::uint64_t cluster, std::string what) {
  const std::lock_guard lock(mutex_);
  job_.stop = true;
  if (!failure_ || cluster < failure_->first) failure_.emplace(cluster, std::move(what));
}

}  // namespace tuner
