// Jobs on a fixed number of threads, first come first served.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tuner/jit/wire.h"

namespace tuner {

class JobQueue {
 public:
  explicit JobQueue(int threads);
  /// Runs what is left with stopping() true, so that every promise is kept, and waits for it.
  ~JobQueue();

  void submit(std::function<void()> job);
  bool stopping() const;
  /// Readable once the queue is stopping.
  int stop_descriptor() const { return stop_.get(); }

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  Descriptor stop_;
  std::vector<std::thread> threads_;
};

}  // namespace tuner
