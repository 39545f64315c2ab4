#include "tuner/measure/stopwatch.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr std::size_t kLeastFlush = std::size_t{64} << 20;

}  // namespace

Stopwatch::Stopwatch(CudaDevice& device, L2 l2) : device_(device), l2_(l2) {
  if (l2_ == L2::warm) return;
  // Twice L2, so that whatever replacement it uses, nothing of the last call stays.
  flush_ = device.allocate(std::max(kLeastFlush, 2 * static_cast<std::size_t>(device.environment().device.l2_bytes)));
}

Expected<bool> Stopwatch::enqueue(Runnable& runnable, int launches) {
  if (used_ == samples_.size()) samples_.push_back(std::make_unique<Sample>());
  Sample& sample = *samples_[used_];
  sample.launches = launches;
  if (flush_) TUNER_CUDA(cudaMemsetAsync(flush_->data(), 0, flush_->size(), device_.stream()));
  TUNER_CUDA(cudaEventRecord(sample.start.get(), device_.stream()));
  for (int i = 0; i < launches; ++i)
    if (auto launched = runnable.launch(); !launched) return launched;
  TUNER_CUDA(cudaEventRecord(sample.stop.get(), device_.stream()));
  ++used_;
  return true;
}

Expected<std::vector<double>> Stopwatch::collect() {
  if (auto done = device_.synchronize(); !done) return done.failure();
  std::vector<double> times(used_);
  for (std::size_t i = 0; i < used_; ++i) {
    float ms = 0;
    TUNER_CUDA(cudaEventElapsedTime(&ms, samples_[i]->start.get(), samples_[i]->stop.get()));
    times[i] = static_cast<double>(ms) / samples_[i]->launches;
  }
  used_ = 0;
  return times;
}

Expected<double> Stopwatch::time_once(Runnable& runnable, int launches) {
  if (auto enqueued = enqueue(runnable, launches); !enqueued) return enqueued.failure();
  auto times = collect();
  if (!times) return times.failure();
  return times->back();
}

}  // namespace tuner
