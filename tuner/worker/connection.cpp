#include "tuner/worker/connection.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "tuner/worker/messages.h"
#include "tuner/worker/sanitizer_report.h"

namespace tuner {
namespace {

namespace msg = messages;

constexpr double kSanitizerSlowdown = 5;
constexpr double kSanitizedHangSeconds = 15;
constexpr double kSanitizerFlushSeconds = 20;
constexpr double kStartSeconds = 120;
constexpr double kEndSeconds = 2;
constexpr int kStarts = 3;  // attempts at a fresh worker: the memory of one that was killed may not be free yet

/// A process that a signal ended or stopped before it said anything: that may be another's doing.
class DisturbedStart : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

}  // namespace

Connection::Connection(const WorkerOptions& options) : options_(options) {
  for (int attempt = 1; !process_; ++attempt) {
    try {
      process_ = started({});
    } catch (const DisturbedStart&) {
      if (attempt == kStarts || interrupted()) throw;
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

/// Starts a process and waits until it serves. Throws NoDevice, DisturbedStart or EnvironmentError.
std::unique_ptr<WorkerProcess> Connection::started(const std::vector<std::string>& wrapper) {
  auto process =
      std::make_unique<WorkerProcess>(WorkerCommand{options_.program, wrapper, options_.device, options_.preload});
  Json hello;
  const Received got = receive(*process, hello, kStartSeconds);
  if (got == Received::message && hello.contains("ready")) return process;
  if (got == Received::message && hello.contains("none")) throw NoDevice(hello["none"].get<std::string>());
  const auto text = [&](const std::string& reason) {
    return fmt::format("device {} cannot be used: {}", options_.device, reason);
  };
  if (got == Received::message && hello.contains("fatal"))
    throw EnvironmentError(text(hello["fatal"].get<std::string>()));
  if (got == Received::stopped) throw DisturbedStart(text("its worker was stopped by a signal and not continued"));
  if (got != Received::closed) throw EnvironmentError(text("no answer"));
  process->finish(kEndSeconds);  // or the signal that ending() sends may come first
  const std::string ending = process->ending(), reason = ending + " " + process->error_output();
  if (ending.starts_with("signal")) throw DisturbedStart(text(reason));
  throw EnvironmentError(text(reason));
}

/// Tells a new process what the last one knew. Empty, or why that did not work.
std::string Connection::taught(WorkerProcess& process, double seconds) {
  for (const Json* message : {&support, &load}) {
    if (message->is_null()) continue;
    Json reply;
    if (exchange(process, *message, reply, seconds) != Received::message) return process.ending();
    if (reply.contains("failure")) return msg::failure(reply["failure"]).reason;
  }
  return {};
}

/// A fresh process that knows what the last one knew.
void Connection::restart() {
  std::string reason;
  for (int attempt = 0; attempt < kStarts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    try {
      auto process = started({});
      reason = taught(*process, options_.timeout_seconds);
      if (reason.empty()) {
        process_ = std::move(process);
        return;
      }
    } catch (const EnvironmentError& error) {
      reason = error.what();
    }
    if (interrupted()) break;
  }
  throw EnvironmentError(fmt::format("device {}: a fresh worker failed: {}", options_.device, reason));
}

Received Connection::receive(WorkerProcess& process, Json& message, double seconds) {
  return receive_message(process.socket(), message, seconds, [&]() -> std::optional<Received> {
    if (interrupted()) return Received::interrupted;
    if (process.stays_stopped()) return Received::stopped;
    return std::nullopt;
  });
}

/// `seconds` is how long it may be silent: signs of life are messages too, and may bring a part of the reply.
Received Connection::exchange(WorkerProcess& process, const Json& message, Json& reply, double seconds,
                              const Sign& sign) {
  if (!send_message(process.socket(), message)) return Received::closed;
  while (true) {
    const Received end = receive(process, reply, seconds);
    if (end != Received::message || !reply.is_object() || !reply.contains("alive")) return end;
    if (sign) sign(reply);
  }
}

std::optional<Failure> Connection::request(const Json& message, Json& reply, const Sign& sign) {
  if (!process_) restart();
  process_->forget_error_output();
  switch (exchange(*process_, message, reply, options_.timeout_seconds, sign)) {
    case Received::message:
      break;
    case Received::interrupted:
      process_.reset();
      return interruption();
    case Received::timed_out:
      return lost({Outcome::timed_out, fmt::format("no sign of life for {:g} s", options_.timeout_seconds), {}});
    case Received::stopped:
      return lost({Outcome::timed_out, "the worker was stopped by a signal and not continued", {}});
    case Received::closed: {
      const std::string ending = process_->ending();
      const std::string summary = address_sanitizer_summary(process_->error_output());
      return lost({Outcome::crashed, summary.empty() ? "the worker ended by " + ending : summary, {}});
    }
  }
  if (!reply.is_object()) return std::nullopt;
  if (reply.contains("failure")) {
    const Failure failure = msg::failure(reply["failure"]);
    return cost_the_worker(failure.outcome) ? lost(failure) : failure;
  }
  if (reply.contains("outcome") && cost_the_worker(*parse_outcome(reply["outcome"].get<std::string>())))
    return lost({*parse_outcome(reply["outcome"].get<std::string>()), reply["reason"].get<std::string>(),
                 reply["log"].get<std::string>()});
  return std::nullopt;
}

/// The worker is given up; what it printed meanwhile goes with the failure.
Failure Connection::lost(Failure failure) {
  const std::string printed = process_->error_output();
  process_.reset();
  if (const std::string line = assertion_line(printed); !line.empty()) failure.reason = line + ": " + failure.reason;
  if (!printed.empty()) failure.log += (failure.log.empty() ? "" : "\n") + printed;
  return failure;
}

std::string Connection::diagnose(Json message, Outcome blamed, std::string& log) {
  if (options_.compute_sanitizer.find('/') == std::string::npos) return "not found";
  const double seconds = kSanitizerSlowdown * options_.timeout_seconds;
  // What hangs will do so again.
  message["grace_seconds"] = blamed == Outcome::timed_out ? kSanitizedHangSeconds : seconds;
  try {
    auto process = started({options_.compute_sanitizer, "--tool", "memcheck", "--print-limit", "20"});
    if (const std::string reason = taught(*process, seconds); !reason.empty())
      return "its worker failed before the variant: " + reason;
    Json reply;
    const Received end = exchange(*process, message, reply, seconds);
    // It prints its findings when the program ends, which a worker does when nobody speaks to it any more.
    process->finish(kSanitizerFlushSeconds);
    const std::string printed = process->error_output();
    log += (log.empty() ? "" : "\n") + printed;
    const std::string line = memcheck_finding(printed);
    if (!line.empty()) return line;
    return end == Received::message ? "no error reported" : "no error reported before the worker ended or hung";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

}  // namespace tuner
