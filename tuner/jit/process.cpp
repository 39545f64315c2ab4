#include "tuner/jit/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "tuner/jit/wire.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TUNER_SHADOW_MEMORY 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TUNER_SHADOW_MEMORY 1
#endif

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kLongestErrors = std::size_t{1} << 20;
constexpr int kCannotExec = 127;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Pages mapped by this process now, in bytes. Safe between fork and exec.
std::size_t mapped_bytes() {
  char text[64] = {};
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  std::size_t pages = 0;
  for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; ++i)
    pages = pages * 10 + static_cast<std::size_t>(text[i] - '0');
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, rlim_t value) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max) value = now.rlim_max;
  const rlimit wanted{value, now.rlim_max};
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted);
}

void become_limited_child(pid_t parent, const CompileLimits& limits, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotExec);
  ::setpgid(0, 0);
  for (int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(errors, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(limits.seconds)) + 1);
  if (!memory_limit_is_impossible()) limit(RLIMIT_AS, mapped_bytes() + limits.memory_bytes);
}

/// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& text, std::size_t most) {
  char piece[65536];
  const ssize_t got = ::read(fd, piece, sizeof piece);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  if (text.size() < most) text.append(piece, std::min(static_cast<std::size_t>(got), most - text.size()));
  return true;
}

/// Collects both streams until they end; says why it stopped early.
ProcessEnd::Kind collect(ProcessEnd& end, Descriptor reply, Descriptor errors, const CompileLimits& limits, int cancel,
                         Clock::time_point start) {
  while (reply || errors) {
    const double left = limits.seconds - seconds_since(start);
    if (left <= 0) return ProcessEnd::Kind::timed_out;
    pollfd watched[3] = {{reply.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}, {cancel, POLLIN, 0}};
    const int ready = ::poll(watched, 3, static_cast<int>(std::min(left * 1000 + 1, 1e9)));
    if (ready < 0 && errno != EINTR) return ProcessEnd::Kind::cancelled;
    if (ready <= 0) continue;
    if (watched[0].revents != 0 && !drain(reply.get(), end.reply, end.reply.max_size())) reply.reset();
    if (watched[1].revents != 0 && !drain(errors.get(), end.errors, kLongestErrors)) errors.reset();
    if (watched[2].revents != 0) return ProcessEnd::Kind::cancelled;
  }
  return ProcessEnd::Kind::exited;
}

/// Waits for a child that closed its streams, but no longer than the limit.
bool reaped(pid_t child, int& status, rusage& usage, const CompileLimits& limits, Clock::time_point start) {
  while (true) {
    const pid_t got = ::wait4(child, &status, WNOHANG, &usage);
    if (got == child || (got < 0 && errno != EINTR)) return true;
    if (seconds_since(start) > limits.seconds) return false;
    ::poll(nullptr, 0, 1);
  }
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

bool memory_limit_is_impossible() {
#ifdef TUNER_SHADOW_MEMORY
  return true;
#else
  return false;
#endif
}

bool ended_from_outside(const ProcessEnd& end) {
  constexpr std::array kOwnFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU};
  if (end.kind == ProcessEnd::Kind::not_started) return true;
  return end.kind == ProcessEnd::Kind::signalled &&
         std::find(kOwnFaults.begin(), kOwnFaults.end(), end.code) == kOwnFaults.end();
}

ProcessEnd run_limited(const CompileLimits& limits, int cancel, const std::function<void(int)>& body) {
  ProcessEnd end;
  const auto start = Clock::now();
  auto [reply, reply_end] = make_pipe();
  auto [errors, errors_end] = make_pipe();
  if (!reply || !errors) {
    end.code = errno;
    return end;
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    end.code = errno;
    return end;
  }
  if (child == 0) {
    become_limited_child(parent, limits, errors_end.get());
    body(reply_end.get());
    ::_exit(0);
  }
  ::setpgid(child, child);  // in both, since either may come first
  reply_end.reset();
  errors_end.reset();
  end.kind = collect(end, std::move(reply), std::move(errors), limits, cancel, start);
  int status = 0;
  rusage usage{};
  if (end.kind == ProcessEnd::Kind::exited && !reaped(child, status, usage, limits, start))
    end.kind = ProcessEnd::Kind::timed_out;
  if (end.kind != ProcessEnd::Kind::exited) {
    ::kill(-child, SIGKILL);
    while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) continue;
  } else if (WIFSIGNALED(status)) {
    end.kind = WTERMSIG(status) == SIGXCPU ? ProcessEnd::Kind::timed_out : ProcessEnd::Kind::signalled;
    end.code = WTERMSIG(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  end.seconds = seconds_since(start);
  end.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  return end;
}

ProcessEnd run_program(const CompileLimits& limits, int cancel, const std::vector<std::string>& arguments,
                       const std::string& folder) {
  std::vector<char*> pointers, variables;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::string english = "LC_ALL=C";
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "LC_ALL=", 7) != 0) variables.push_back(*entry);
  variables.insert(variables.end(), {english.data(), nullptr});
  return run_limited(limits, cancel, [&](int) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(kCannotExec);
    ::execvpe(pointers[0], pointers.data(), variables.data());
    ::_exit(kCannotExec);
  });
}

std::string describe(const ProcessEnd& end, const CompileLimits& limits) {
  const double mib = 1024.0 * 1024.0;
  const auto allowed = static_cast<double>(limits.memory_bytes);
  std::string memory;
  if (static_cast<double>(end.peak_bytes) > 0.8 * allowed)
    memory = fmt::format("; it held {:.0f} MiB, near its memory limit of {:.0f} MiB",
                         static_cast<double>(end.peak_bytes) / mib, allowed / mib);
  switch (end.kind) {
    case ProcessEnd::Kind::exited:
      return fmt::format("ended with exit code {}{}", end.code, memory);
    case ProcessEnd::Kind::signalled:
      return fmt::format("died of signal {} ({}){}", end.code, ::strsignal(end.code), memory);
    case ProcessEnd::Kind::timed_out:
      return fmt::format("was killed at its time limit of {:g} s", limits.seconds);
    case ProcessEnd::Kind::cancelled:
      return "was abandoned";
    case ProcessEnd::Kind::not_started:
      return fmt::format("could not be started ({})", std::strerror(end.code));
  }
  return {};
}

}  // namespace tuner
