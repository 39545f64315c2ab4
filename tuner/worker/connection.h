// The worker process that there is at a time: requests go to it, and a fresh one takes its place when it is lost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/json.h"
#include "tuner/worker/channel.h"
#include "tuner/worker/worker.h"
#include "tuner/worker/worker_process.h"

namespace tuner {

/// Whether a failure of this outcome has ended the worker.
inline bool cost_the_worker(Outcome outcome) { return outcome == Outcome::crashed || outcome == Outcome::timed_out; }

class Connection {
 public:
  /// Starts the first process, again where a signal ends or stops it meanwhile. Throws NoDevice or EnvironmentError.
  explicit Connection(const WorkerOptions& options);

  using Sign = std::function<void(const Json&)>;
  /// The failure of this request, or nothing and `reply`. After one that cost the worker there is none, and the next
  /// request begins with a fresh one. `sign` is given what comes before the reply.
  std::optional<Failure> request(const Json& message, Json& reply, const Sign& sign = {});
  /// Requests that a fresh process gets before any other, in this order; null ones are left out.
  Json support, load;

  /// Makes the request under compute-sanitizer: its first finding, or why there is none. What it printed is added to
  /// `log`.
  std::string diagnose(Json message, Outcome blamed, std::string& log);

  const WorkerOptions& options() const { return options_; }
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// What a request fails with that a signal ended.
  static Failure interruption() { return {Outcome::unproven, "interrupted", {}}; }

 private:
  std::unique_ptr<WorkerProcess> started(const std::vector<std::string>& wrapper);
  std::string taught(WorkerProcess& process, double seconds);
  void restart();
  Received receive(WorkerProcess& process, Json& message, double seconds);
  Received exchange(WorkerProcess& process, const Json& message, Json& reply, double seconds, const Sign& sign = {});
  Failure lost(Failure failure);

  WorkerOptions options_;
  std::unique_ptr<WorkerProcess> process_;
};

}  // namespace tuner
