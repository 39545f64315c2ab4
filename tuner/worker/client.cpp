// The coordinator's side: starts the worker process, speaks to it, replaces it when it dies or hangs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tuner/worker/channel.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/worker.h"

extern char** environ;

namespace tuner {
namespace {

namespace msg = messages;

/// A child process at the other end of a socket; its standard error is kept in memory.
class Process {
 public:
  Process(const std::filesystem::path& program, const std::string& device, const std::string& preload) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw EnvironmentError(fmt::format("cannot start a worker: socketpair: {}", std::strerror(errno)));
    socket_ = ends[0];
    stderr_ = memfd_create("worker-stderr", MFD_CLOEXEC);
    std::vector<std::string> variables;
    for (char** entry = environ; *entry; ++entry)
      if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0 || preload.empty()) variables.emplace_back(*entry);
    if (!preload.empty()) {
      variables.push_back("LD_PRELOAD=" + preload);
      variables.push_back("ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0:handle_segv=1");
    }
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    const std::string path = program.string(), fd = "3";
    char* const arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>("__worker"),
                               const_cast<char*>(fd.c_str()), const_cast<char*>(device.c_str()), nullptr};
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {  // only async-signal-safe calls from here
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(70);
      if (stderr_ >= 0) dup2(stderr_, STDERR_FILENO);
      dup2(STDERR_FILENO, STDOUT_FILENO);
      if (dup2(ends[1], 3) < 0) _exit(70);
      if (ends[1] == 3) fcntl(3, F_SETFD, 0);
      execve(path.c_str(), arguments, environment.data());
      _exit(70);
    }
    close(ends[1]);
    if (pid_ < 0) throw EnvironmentError(fmt::format("cannot start a worker: fork: {}", std::strerror(errno)));
  }

  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    close(socket_);
    if (stderr_ >= 0) close(stderr_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int socket() const { return socket_; }

  /// Reaps the child and says how it ended: "signal 11 (Segmentation fault)", "exit code 70".
  std::string ending() {
    int status = 0;
    kill(pid_, SIGKILL);  // no effect on one that is dead already
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("exit code {}", WEXITSTATUS(status));
  }

  /// The last 64 KiB that it wrote to standard error.
  std::string error_output() const {
    const off_t size = stderr_ < 0 ? 0 : lseek(stderr_, 0, SEEK_END);
    const off_t start = size > 65536 ? size - 65536 : 0;
    std::string text(static_cast<std::size_t>(size - start), '\0');
    const ssize_t got = text.empty() ? 0 : pread(stderr_, text.data(), text.size(), start);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  int stderr_ = -1;
};

/// The sanitizer's summary line if the log holds one, else nothing.
std::string sanitizer_summary(const std::string& log) {
  const auto at = log.rfind("SUMMARY: ");
  if (at == std::string::npos) return {};
  return log.substr(at + 9, log.find('\n', at) - at - 9);
}

class WorkerHandle : public Worker {
 public:
  explicit WorkerHandle(const WorkerOptions& options) : options_(options) { start(); }

  Environment environment() override {
    Json reply;
    if (const auto failure = request({{"op", "environment"}}, reply)) throw EnvironmentError(failure->reason);
    return msg::environment(reply);
  }

  void support(const CompiledUnit& verify, const CompiledUnit& baselines, const CompiledUnit& measure) override {
    support_ = {{"op", "support"},
                {"verify", msg::from(verify)},
                {"baselines", msg::from(baselines)},
                {"measure", msg::from(measure)}};
    Json reply;
    if (const auto failure = request(support_, reply)) throw EnvironmentError(failure->reason);
  }

  Expected<double> load(const BuildContext& context, Values values, std::uint64_t seed) override {
    Json message = load_message(context);
    message["values"] = to_string(values);
    message["seed"] = seed;
    return load(std::move(message));
  }

  Expected<double> load(const BuildContext& context, const Inputs& inputs) override {
    Json message = load_message(context);
    message["inputs"] = {{"x", inputs.x}, {"w", inputs.w}, {"bias", inputs.bias}};
    return load(std::move(message));
  }

  Evaluation evaluate(const Variant& variant, const CompiledUnit& unit, const MeasureOptions* measure) override {
    Json message{{"op", "evaluate"}, {"variant", msg::from(variant)}, {"unit", msg::from(unit)}};
    if (measure) message["measure"] = msg::from(*measure);
    Json reply;
    if (const auto failure = request(message, reply)) return failed_evaluation(*failure);
    return msg::evaluation(reply);
  }

  std::vector<BaselineRecord> baseline(const std::string& name, const CudnnOptions& options,
                                       const MeasureOptions& measure) override {
    Json message{{"op", "baseline"},
                 {"name", name},
                 {"workspace_mib", options.workspace_mib},
                 {"deterministic", options.deterministic},
                 {"measure", msg::from(measure)}};
    Json reply;
    if (const auto failure = request(message, reply)) {
      BaselineRecord record;
      record.name = name;
      record.status = to_string(failure->outcome);
      record.reason = failure->reason;
      return {record};
    }
    std::vector<BaselineRecord> records;
    for (const Json& record : reply) records.push_back(msg::baseline_record(record));
    return records;
  }

  Expected<RunOffTimes> run_off(const std::vector<Contestant>& contestants, const CudnnOptions& options,
                                const std::vector<MeasureOptions>& regimes, int most_rounds) override {
    Json entries = Json::array();
    for (const Contestant& contestant : contestants) {
      if (contestant.variant)
        entries.push_back(
            {{"variant", msg::from(contestant.variant->first)}, {"unit", msg::from(contestant.variant->second)}});
      else
        entries.push_back({{"baseline", contestant.baseline},
                           {"route", contestant.route},
                           {"engine", contestant.engine},
                           {"knobs", contestant.knobs}});
    }
    Json measures = Json::array();
    for (const MeasureOptions& measure : regimes) measures.push_back(msg::from(measure));
    Json reply;
    const Json message{{"op", "run_off"},
                       {"contestants", std::move(entries)},
                       {"workspace_mib", options.workspace_mib},
                       {"deterministic", options.deterministic},
                       {"measures", std::move(measures)},
                       {"rounds", most_rounds}};
    if (const auto failure = request(message, reply)) return *failure;
    return msg::run_off_times(reply);
  }

 private:
  static Json load_message(const BuildContext& context) {
    return {{"op", "load"},
            {"problem", msg::from(context.problem)},
            {"class", to_string(context.accuracy)},
            {"device", msg::from(context.device)}};
  }

  Expected<double> load(Json message) {
    load_ = Json();
    Json reply;
    if (const auto failure = request(message, reply)) return *failure;
    load_ = std::move(message);
    return reply.at("plain_error").get<double>();
  }

  void start() {
    process_.reset();
    process_ = std::make_unique<Process>(options_.program.empty() ? "/proc/self/exe" : options_.program,
                                         options_.device, options_.preload);
    Json hello;
    const Received got = receive_message(process_->socket(), hello, options_.timeout_seconds, options_.interrupted);
    if (got == Received::message && hello.contains("ready")) return;
    std::string reason = "no answer";
    if (got == Received::message && hello.contains("none")) throw NoDevice(hello["none"].get<std::string>());
    if (got == Received::message && hello.contains("fatal"))
      reason = hello["fatal"].get<std::string>();
    else if (got == Received::closed)
      reason = process_->ending() + " " + process_->error_output();
    process_.reset();
    throw EnvironmentError(fmt::format("device {} cannot be used: {}", options_.device, reason));
  }

  /// A fresh process that knows what the last one knew.
  void restart() {
    start();
    Json reply;
    for (const Json* message : {&support_, &load_})
      if (!message->is_null() && exchange(*message, reply, options_.timeout_seconds) != Received::message)
        throw EnvironmentError(
            fmt::format("device {}: a fresh worker failed: {}", options_.device, process_->ending()));
  }

  Received exchange(const Json& message, Json& reply, double seconds) {
    if (!send_message(process_->socket(), message)) return Received::closed;
    return receive_message(process_->socket(), reply, seconds, options_.interrupted);
  }

  /// The failure of this request, or nothing and `reply`.
  std::optional<Failure> request(const Json& message, Json& reply) {
    if (!process_) restart();
    switch (exchange(message, reply, options_.timeout_seconds)) {
      case Received::message:
        break;
      case Received::interrupted:
        process_.reset();
        return Failure{Outcome::unproven, "interrupted", {}};
      case Received::timed_out:
        process_.reset();
        return Failure{Outcome::timed_out, fmt::format("no answer within {:g} s", options_.timeout_seconds), {}};
      case Received::closed: {
        const std::string ending = process_->ending(), log = process_->error_output(), summary = sanitizer_summary(log);
        process_.reset();
        return Failure{Outcome::crashed, summary.empty() ? "the worker ended by " + ending : summary, log};
      }
    }
    const bool failed = reply.is_object() && reply.contains("failure");
    const bool crashed =
        reply.is_object() && reply.contains("outcome") && reply["outcome"] == to_string(Outcome::crashed);
    std::optional<Failure> failure;
    if (failed) failure = msg::failure(reply["failure"]);
    if (crashed || (failure && failure->outcome == Outcome::crashed)) process_.reset();
    return failure;
  }

  WorkerOptions options_;
  std::unique_ptr<Process> process_;
  Json support_, load_;
};

}  // namespace

std::unique_ptr<Worker> start_worker(const WorkerOptions& options) { return std::make_unique<WorkerHandle>(options); }

}  // namespace tuner
