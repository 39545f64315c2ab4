// A worker as a child process: started, watched from outside, reaped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tuner {

struct WorkerCommand {
  std::filesystem::path program;     // implements `__worker`; empty: this one
  std::vector<std::string> wrapper;  // a program and its arguments that run it; mostly none
  std::string device;
  std::string preload;  // a sanitizer's runtime library
};

/// Dies with the calling thread. Its standard output and error are kept in memory.
class WorkerProcess {
 public:
  /// Throws EnvironmentError if no process can be made.
  explicit WorkerProcess(const WorkerCommand& command);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }
  /// True once it has been seen stopped (SIGSTOP) for two seconds.
  bool stays_stopped();
  /// Closes the socket, upon which a worker ends by itself, and waits for that up to `seconds`.
  void finish(double seconds);
  /// Kills and reaps it, and says how it ended: "signal 11 (Segmentation fault)", "exit code 70".
  std::string ending();
  /// Marks where the next error_output() begins.
  void forget_error_output();
  /// What it wrote since then, the last 64 KiB.
  std::string error_output() const;

 private:
  void kill_group() const;

  pid_t pid_ = -1;
  int socket_ = -1;
  int output_ = -1;
  long output_start_ = 0;
  std::optional<std::chrono::steady_clock::time_point> stopped_since_;
};

}  // namespace tuner
