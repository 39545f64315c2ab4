// Ends a process whose device no longer answers: destructors would wait for it for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace tuner {

class Watchdog {
 public:
  /// `expired` is called on a thread of the watchdog's own, once, and is to end the process: every other call here
  /// waits from then on. Its argument is the limit that was passed.
  explicit Watchdog(std::function<void(double seconds)> expired);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on a sign of life, again(), is due every `seconds`.
  void expect(double seconds);
  void again();
  /// Nothing is due.
  void calm();

 private:
  using Clock = std::chrono::steady_clock;
  void watch();

  std::function<void(double)> expired_;
  std::mutex mutex_;
  std::condition_variable changed_;
  double seconds_ = 0;
  std::optional<Clock::time_point> deadline_;
  bool over_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tuner
