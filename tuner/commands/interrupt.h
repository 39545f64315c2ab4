// Ctrl-C and SIGTERM as a value that long work looks at between steps.
#pragma once

#include <chrono>
#include <future>

namespace tuner {

/// Thrown by a command that was interrupted after it saved what it had.
struct Interrupted {
  int signal;
};

/// From construction to destruction SIGINT and SIGTERM are noted instead of ending the process; a second one ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// The noted signal, 0 if none.
int interrupt_signal();

/// Waits for a future, however long; false if a signal was noted first.
template <class Future>
bool wait_unless_interrupted(const Future& future) {
  while (future.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
    if (interrupt_signal() != 0) return false;
  return true;
}

}  // namespace tuner
