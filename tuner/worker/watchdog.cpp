#include "tuner/worker/watchdog.h"

namespace tuner {

Watchdog::Watchdog(std::function<void(double)> expired) : expired_(std::move(expired)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::expect(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    seconds_ = seconds;
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  changed_.notify_one();
}

/// The thread finds out by itself that its deadline has moved: signs of life are many.
void Watchdog::again() {
  const std::lock_guard lock(mutex_);
  if (deadline_)
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_));
}

void Watchdog::calm() {
  const std::lock_guard lock(mutex_);
  deadline_.reset();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!deadline_) {
      changed_.wait(lock);
    } else if (Clock::now() < *deadline_) {
      const auto until = *deadline_;
      changed_.wait_until(lock, until);
    } else {
      expired_(seconds_);
      deadline_.reset();
    }
  }
}

}  // namespace tuner
