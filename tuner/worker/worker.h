// The process that owns a GPU (or Host execution), and the coordinator's handle on it.
//
// The coordinator speaks to a worker over a socket pair, one JSON request and one JSON reply at a time. A worker that
// dies or hangs costs the request in flight; the handle starts a fresh one, and repeats the request alone there before
// anybody is blamed.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/core/result.h"
#include "tuner/device/device.h"
#include "tuner/measure/measure.h"
#include "tuner/verify/verify.h"

namespace tuner {

struct WorkerOptions {
  std::string device;               // "cuda:0", "host", "host:SEED"
  std::filesystem::path program;    // executable that implements `__worker`; default: this one
  std::string preload;              // host only: the sanitizer's runtime library, where objects are sanitised
  double timeout_seconds = 120;     // without any sign of life
  double grace_seconds = 5;         // for what a variant's launches do not account for (tuner/worker/limits.h)
  bool (*interrupted)() = nullptr;  // asked when a signal ends a wait; true gives the request up
  std::string compute_sanitizer;    // what is blamed is run under this program once more; empty: it is not
};

/// Wall seconds of a worker's parts of a request.
struct Spent {
  double load = 0;     // modules, buffers, packing
  double verify = 0;   // running and comparing, before and after timing
  double measure = 0;  // without pauses
  double idle = 0;     // pauses, so that the clock recovers
};

/// What an evaluation of one variant brought.
struct Evaluation {
  Outcome outcome = Outcome::unproven;
  std::string reason;
  std::string log;
  std::optional<Errors> errors;
  std::optional<TimeRecord> time;
  double prepare_ms = 0;  // the once-per-weights step, timed apart
  Spent spent = {};
  int attempts = 1;  // 2: the first cost a worker, and the rest is what came of the variant alone in a fresh one
};
inline Evaluation failed_evaluation(const Failure& failure) {
  Evaluation evaluation;
  evaluation.outcome = failure.outcome;
  evaluation.reason = failure.reason;
  evaluation.log = failure.log;
  return evaluation;
}

/// What a run-off brought: for each contestant its times by regime, in the order asked for, or why it was not timed.
struct RunOffTimes {
  struct Entry {
    std::vector<TimeRecord> times;
    std::optional<Failure> failure;
  };
  std::vector<Entry> entries;
  Conditions conditions;
};

class Worker {
 public:
  virtual ~Worker() = default;
  /// Facts read off the device. Throws EnvironmentError when it cannot be used.
  virtual Environment environment() = 0;
  /// The units that verification, baselines and timing launch beside the kernels, compiled for this device. Needed on a
  /// GPU before load(); a fresh worker gets them again by itself, as it gets the last load().
  virtual void support(const CompiledUnit& verify, const CompiledUnit& baselines, const CompiledUnit& measure) = 0;

  /// Makes inputs and reference for a problem and class; later requests are about it. Returns the plain sum's error.
  virtual Expected<double> load(const BuildContext& context, Values values, std::uint64_t seed) = 0;
  /// The same over a case's own data.
  virtual Expected<double> load(const BuildContext& context, const Inputs& inputs) = 0;
  /// Verifies and, if `measure` is given, times a variant. Where that costs the worker, once more in a fresh one: only
  /// what fails alone is blamed with `crashed` or `timed_out`; what does not keeps its evaluation, and its reason says
  /// what came first.
  virtual Evaluation evaluate(const Variant& variant, const CompiledUnit& unit, const MeasureOptions* measure) = 0;
  /// Verifies and times every route of a baseline; where `seconds` are given those that it gets to within them, each
  /// direction's first choices first, and the others are recorded as not tried.
  virtual std::vector<BaselineRecord> baseline(const std::string& name, const CudnnOptions& options,
                                               const MeasureOptions& measure, std::optional<double> seconds) = 0;
  /// Times finalists and the named baselines' best routes in interleaved rounds, once for each of `regimes`. Where a
  /// worker is lost, each is run alone under as many launches: one that costs a worker again has its failure in its
  /// entry, and the rest is timed without it. A failure in place of it all where nobody can be blamed.
  struct Contestant {
    std::optional<std::pair<Variant, CompiledUnit>> variant;
    std::string baseline, route, engine, knobs;  // where it is not a variant
    double expected_ms = 0;                      // as it was timed before; 0: unknown
  };
  virtual Expected<RunOffTimes> run_off(const std::vector<Contestant>& contestants, const CudnnOptions& options,
                                        const std::vector<MeasureOptions>& regimes, int most_rounds) = 0;
};

/// No GPU at all, as opposed to one that cannot be used: a run may go on offline.
class NoDevice : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Throws NoDevice, or EnvironmentError with the driver's reason.
std::unique_ptr<Worker> start_worker(const WorkerOptions& options);

/// Entry of the worker process (`tuner __worker SOCKET DEVICE`): serves requests on `socket` until it closes. Exit
/// code.
int worker_main(int socket, const std::string& device);

}  // namespace tuner
