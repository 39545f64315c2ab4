#include "tuner/device/host_pool.h"

#include <exception>
#include <utility>

namespace tuner {

HostPool::HostPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
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
  job_.blocks = std::uint64_t{kernel.shape.grid_x} * kernel.shape.grid_y * kernel.shape.grid_z;
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

void HostPool::serve() {
  std::optional<BlockRunner> runner;  // made by the first job, on the thread that uses it
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closing_ || generation_ != seen; });
    if (closing_) return;
    seen = generation_;
    lock.unlock();
    try {
      if (!runner) runner.emplace();
      run_blocks(*runner);
    } catch (const std::exception& error) {
      record(0, std::string("Host execution ran out of memory for stacks or shared memory: ") + error.what());
      runner.reset();
    }
    lock.lock();
    if (--busy_ == 0) done_.notify_all();
  }
}

// Blocks are taken in order and finished once taken, so the lowest one that fails does not depend on timing.
void HostPool::run_blocks(BlockRunner& runner) {
  const ct1d::LaunchShape& shape = job_.kernel.shape;
  while (!job_.stop) {
    const std::uint64_t block = job_.next++;
    if (block >= job_.blocks) return;
    const ct1d_host::Dim3 index{static_cast<unsigned>(block % shape.grid_x),
                                static_cast<unsigned>(block / shape.grid_x % shape.grid_y),
                                static_cast<unsigned>(block / shape.grid_x / shape.grid_y)};
    if (auto what = runner.run(job_.kernel, index, mix64(job_.seed ^ mix64(block)))) record(block, std::move(*what));
  }
}

void HostPool::record(std::uint64_t block, std::string what) {
  const std::lock_guard lock(mutex_);
  job_.stop = true;
  if (!failure_ || block < failure_->first) failure_.emplace(block, std::move(what));
}

}  // namespace tuner
