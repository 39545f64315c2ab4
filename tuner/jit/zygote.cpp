#include "tuner/jit/zygote.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

extern char** environ;

namespace tuner {
namespace {

constexpr int kControl = 3;  // descriptor of the control socket in the zygote
constexpr rlim_t kStackBytes = rlim_t{64} << 20;
constexpr double kStartSeconds = 120;  // in which the zygote loads NVRTC
constexpr double kGuardSeconds = 5;    // beyond a compile's limit, in which its guard kills it and says so

/// What the zygote keeps of the environment: how to find libraries, and options of a build's own instrumentation.
std::vector<char*> zygote_environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry)
    for (const char* prefix : {"LD_", "ASAN_", "LSAN_", "UBSAN_", "TSAN_", "GCOV_", "LLVM_PROFILE_"})
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0) kept.push_back(*entry);
  kept.push_back(nullptr);
  return kept;
}

/// The layout of memory follows the stack's limit, so it is made the same everywhere.
void fix_stack_limit() {
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0) return;
  stack.rlim_cur = stack.rlim_max == RLIM_INFINITY ? kStackBytes : std::min(kStackBytes, stack.rlim_max);
  ::setrlimit(RLIMIT_STACK, &stack);
}

/// In the forked child of a process with threads: only what is safe there.
[[noreturn]] void exec_zygote(pid_t parent, int control, const char* program, char* const* arguments,
                              char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);                   // an interrupt from the terminal is the coordinator's to handle
  ::personality(ADDR_NO_RANDOMIZE);  // refused in some containers: the zygote reports what came of it
  fix_stack_limit();
  // dup2 onto itself would keep close-on-exec.
  if (control == kControl) control = ::dup(control);
  ::dup2(control, kControl);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execve(program, arguments, environment);
  ::_exit(1);
}

/// Reading and writing fail with EAGAIN where the other end stands still for so long.
void limit_waits(int socket, double seconds) {
  const timeval time{static_cast<time_t>(std::ceil(seconds)), 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) ::setsockopt(socket, SOL_SOCKET, option, &time, sizeof time);
}

enum class Read { whole, cancelled, overdue };

/// Everything until the end of the stream, within `seconds`; ends as soon as `cancel` is readable.
Read read_until_end(int socket, int cancel, double seconds, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  char piece[65536];
  while (true) {
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    pollfd watched[2] = {{socket, POLLIN, 0}, {cancel, POLLIN, 0}};
    const int ready = ::poll(watched, 2, static_cast<int>(std::clamp(left * 1000 + 1, 0.0, 1e9)));
    if (ready < 0 && errno != EINTR) return Read::cancelled;
    if (ready < 0) continue;
    if (watched[1].revents != 0) return Read::cancelled;
    if (watched[0].revents == 0) {
      if (left <= 0) return Read::overdue;
      continue;
    }
    const ssize_t got = ::read(socket, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Read::whole;
    text.append(piece, static_cast<std::size_t>(got));
  }
}

NvrtcReply stood_still(const CompileLimits& limits) {
  NvrtcReply reply;
  reply.died = true;
  reply.reason =
      fmt::format("the compiler's process gave no answer at its time limit of {:g} s (was it stopped?) and was killed",
                  limits.seconds);
  return reply;
}

}  // namespace

Zygote::Zygote(std::filesystem::path program, std::vector<std::string> candidates)
    : program_(std::move(program)), candidates_(std::move(candidates)) {}

Zygote::~Zygote() { stop_locked(); }

void Zygote::stop(pid_t process) {
  const std::lock_guard lock(mutex_);
  if (process_ == process) stop_locked();
}

void Zygote::stop_locked() {
  control_.reset();
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);  // its children die with it
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
}

NvrtcFound Zygote::start() {
  const std::lock_guard lock(mutex_);
  return start_locked();
}

NvrtcFound Zygote::start_locked() {
  stop_locked();
  auto [here, there] = socket_pair();
  if (!here) throw EnvironmentError("no file descriptor left to start the compiler's process");
  std::string name = "tuner", command = "__zygote", descriptor = std::to_string(kControl);
  char* const arguments[] = {name.data(), command.data(), descriptor.data(), nullptr};
  const auto environment = zygote_environment();
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) exec_zygote(parent, there.get(), program_.c_str(), arguments, environment.data());
  if (process_ < 0)
    throw EnvironmentError(fmt::format("cannot start the compiler's process: {}", std::strerror(errno)));
  there.reset();
  control_ = std::move(here);
  limit_waits(control_.get(), kStartSeconds);

  std::optional<NvrtcFound> found;
  if (write_all(control_.get(), encode(candidates_)))
    if (const auto fields = read_message(control_.get())) found = found_from(*fields);
  if (!found) {
    stop_locked();
    throw EnvironmentError(fmt::format("the compiler's process ({} __zygote) gave no answer", program_.string()));
  }
  if (found->path.empty()) {
    stop_locked();
    std::replace(found->tried.begin(), found->tried.end(), '\n', ';');
    throw EnvironmentError("NVRTC (libnvrtc.so of CUDA 12.4 or newer) was not found; tried " + found->tried);
  }
  return *found;
}

std::pair<Descriptor, pid_t> Zygote::open_request() {
  const std::lock_guard lock(mutex_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (process_ < 0 || ::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      start_locked();
    }
    auto [here, there] = socket_pair();
    if (!here) return {Descriptor(), -1};
    if (send_descriptor(control_.get(), there.get())) return {std::move(here), process_};
    stop_locked();
  }
  return {Descriptor(), -1};
}

std::optional<NvrtcReply> Zygote::compile(const NvrtcRequest& request, int cancel) {
  const std::string message = encode(to_fields(request));
  const double seconds = request.limits.seconds + kGuardSeconds;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto [socket, zygote] = open_request();
    if (!socket) return std::nullopt;
    limit_waits(socket.get(), seconds);
    std::string answer;
    Read read = Read::overdue;
    if (write_all(socket.get(), message))
      read = read_until_end(socket.get(), cancel, seconds, answer);
    else if (errno != EAGAIN)
      continue;
    if (read == Read::cancelled) return std::nullopt;
    if (read == Read::overdue) {
      stop(zygote);  // SIGKILL ends what is stopped, too
      return stood_still(request.limits);
    }
    if (const auto fields = decode(answer))
      if (auto reply = reply_from(*fields)) return reply;
  }
  return std::nullopt;
}

}  // namespace tuner
