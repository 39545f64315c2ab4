// A child process under limits of time and memory, whose end is a value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/jit/jit.h"

namespace tuner {

struct ProcessEnd {
  enum class Kind { exited, signalled, timed_out, cancelled, not_started };
  Kind kind = Kind::not_started;
  int code = 0;  // exit status, signal, or errno where it was not started
  double seconds = 0;
  std::size_t peak_bytes = 0;  // largest resident size of the child or a process that it waited for
  std::string reply;           // what it wrote to its reply descriptor
  std::string errors;          // what it wrote to stdout and stderr, the first MiB

  bool success() const { return kind == Kind::exited && code == 0; }
};

/// It could not be started, or a signal ended it that no process brings upon itself by a fault: nobody's doing but the
/// machine's, or a person's.
bool ended_from_outside(const ProcessEnd& end);

/// Forks a child that runs `body(reply descriptor)` and then exits with 0, in a process group of its own, under the
/// limits; it dies with this thread. Waits for its end; kills the group at the time limit, or as soon as `cancel`
/// (unless negative) is readable or hung up. In a process of several threads `body` may only do what is safe between
/// fork and exec.
ProcessEnd run_limited(const CompileLimits& limits, int cancel, const std::function<void(int)>& body);

/// run_limited of a program, found by PATH, with `arguments` (arguments[0] is the program) in `folder` (empty: here),
/// in the C locale: its messages are read.
ProcessEnd run_program(const CompileLimits& limits, int cancel, const std::vector<std::string>& arguments,
                       const std::string& folder = {});

/// "was killed after its limit of 60 s", "died of signal 11 (Segmentation fault)", ... after "the compiler".
std::string describe(const ProcessEnd& end, const CompileLimits& limits);

/// True where this build's own instrumentation reserves so much address space that memory limits cannot be set.
bool memory_limit_is_impossible();

}  // namespace tuner
