#include "tuner/jit/job_queue.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "tuner/core/failure.h"

namespace tuner {

JobQueue::JobQueue(int threads) : stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw EnvironmentError("no file descriptor left to start the compiler's jobs");
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(stop_.get(), 1);
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobQueue::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

bool JobQueue::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace tuner
