// Work that others may do beside it, and work that is done while there is no other.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tuner {

class Solitude {
 public:
  /// Waits while somebody is alone or wants to be.
  template <class Work>
  auto together(const Work& work) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !taken_; });
      ++present_;
    }
    const Leave leave{*this, false};
    return work();
  }

  /// Lets nobody in, and begins when those that are in have left.
  template <class Work>
  auto alone(const Work& work) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !taken_; });
      taken_ = true;
      changed_.wait(lock, [this] { return present_ == 0; });
    }
    const Leave leave{*this, true};
    return work();
  }

 private:
  struct Leave {
    Solitude& from;
    bool alone;
    ~Leave() {
      {
        const std::lock_guard lock(from.mutex_);
        if (alone)
          from.taken_ = false;
        else
          --from.present_;
      }
      from.changed_.notify_all();
    }
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  int present_ = 0;
  bool taken_ = false;
};

}  // namespace tuner
