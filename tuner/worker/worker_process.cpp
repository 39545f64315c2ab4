#include "tuner/worker/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "tuner/core/failure.h"

extern char** environ;

namespace tuner {
namespace {

constexpr int kSocket = 3;  // the descriptor in the worker
constexpr long kLongestOutput = 65536;
constexpr std::chrono::seconds kStopped{2};

std::vector<std::string> environment_with(const std::string& preload) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (preload.empty() || std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) variables.emplace_back(*entry);
  if (!preload.empty()) {
    variables.push_back("LD_PRELOAD=" + preload);
    // Memory that cannot be had is the variant's failure, not the worker's end.
    variables.emplace_back(
        "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0:handle_segv=1:"
        "allocator_may_return_null=1");
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

/// In the forked child: only what is safe there.
[[noreturn]] void become_worker(pid_t parent, int socket, int output, char* const* arguments,
                                char* const* environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(70);
  setpgid(0, 0);  // a wrapper's child is killed with it
  if (output >= 0) dup2(output, STDERR_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (dup2(socket, kSocket) < 0) _exit(70);
  if (socket == kSocket) fcntl(kSocket, F_SETFD, 0);
  execve(arguments[0], arguments, environment);
  _exit(70);
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerCommand& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw EnvironmentError(fmt::format("cannot start a worker: socketpair: {}", std::strerror(errno)));
  socket_ = ends[0];
  output_ = memfd_create("worker-output", MFD_CLOEXEC);
  std::vector<std::string> variables = environment_with(command.preload);
  std::vector<std::string> words = command.wrapper;
  // A wrapper would take /proc/self/exe for itself.
  std::error_code ignored;
  words.push_back(!command.program.empty() ? command.program.string()
                  : words.empty()          ? std::string("/proc/self/exe")
                                           : std::filesystem::read_symlink("/proc/self/exe", ignored).string());
  words.insert(words.end(), {"__worker", std::to_string(kSocket), command.device});
  const std::vector<char*> arguments = pointers(words), environment = pointers(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become_worker(parent, ends[1], output_, arguments.data(), environment.data());
  close(ends[1]);
  if (pid_ > 0) {
    setpgid(pid_, pid_);  // in both, since either may come first
    return;
  }
  const int error = errno;
  close(socket_);
  if (output_ >= 0) close(output_);
  throw EnvironmentError(fmt::format("cannot start a worker: fork: {}", std::strerror(error)));
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) ending();
  close(socket_);
  if (output_ >= 0) close(output_);
}

bool WorkerProcess::stays_stopped() {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');
  const bool stopped = name_end != std::string::npos && text.compare(name_end, 3, ") T") == 0;
  const auto now = std::chrono::steady_clock::now();
  if (!stopped)
    stopped_since_.reset();
  else if (!stopped_since_)
    stopped_since_ = now;
  return stopped && now - *stopped_since_ >= kStopped;
}

void WorkerProcess::kill_group() const {
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);  // where the group could not be made
}

void WorkerProcess::finish(double seconds) {
  shutdown(socket_, SHUT_RDWR);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0 &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

std::string WorkerProcess::ending() {
  int status = 0;
  kill_group();  // no effect on one that is dead already
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

void WorkerProcess::forget_error_output() {
  if (output_ >= 0) output_start_ = lseek(output_, 0, SEEK_END);
}

std::string WorkerProcess::error_output() const {
  const long end = output_ < 0 ? 0 : lseek(output_, 0, SEEK_END);
  const long start = std::max(output_start_, end - kLongestOutput);
  if (end <= start) return {};
  std::string text(static_cast<std::size_t>(end - start), '\0');
  const ssize_t got = pread(output_, text.data(), text.size(), start);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace tuner
