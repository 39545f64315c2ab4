// A worker's device with the problem that is loaded on it, and what a variant or a vendor route goes through there:
// proofs, around its timing where that is asked for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/core/json.h"
#include "tuner/device/device.h"
#include "tuner/measure/probe.h"
#include "tuner/worker/watchdog.h"
#include "tuner/worker/worker.h"

namespace tuner {

inline constexpr double kSustainedSeconds = 5;  // of load before the first sample of a measurement

class Workbench {
 public:
  /// `socket` gets a sign of life once a second at most, and the reply of a request that hangs; then the process ends.
  Workbench(int socket, std::unique_ptr<Device> device);

  Device& device() { return *device_; }
  const BuildContext& context() const { return context_; }
  /// Of the problem that is loaded.
  Verifier& verifier() { return *verifier_; }
  Probe* probe() { return probe_.get(); }
  Watchdog& watchdog() { return watchdog_; }
  /// A message that comes before the reply.
  void send(const Json& sign) const;

  /// The units that it launches beside the kernels. A failure is noted.
  std::optional<Failure> support(CompiledUnit verify, const CompiledUnit& measure);
  /// Makes a verifier of the problem by `make`, and one of a short problem. A failure is noted. Returns the plain sum's
  /// error.
  using Made = Expected<std::unique_ptr<Verifier>>;
  Expected<double> load(BuildContext context, const std::function<Made(const CompiledUnit* kernels)>& make);

  Expected<std::unique_ptr<Runnable>> runnable_of(const Variant& variant, const CompiledUnit& unit);
  /// Proves a variant on both problems and times it where `options` say how. `grace_seconds` as in limits.h.
  Evaluation evaluate(const Variant& variant, const CompiledUnit& unit, const MeasureOptions* options,
                      double grace_seconds);
  /// Proves a Runnable, around its timing where asked. `repeatable` says what was seen of it; where it is demanded,
  /// other bits from the same inputs are wrong.
  Evaluation check_and_time(Runnable& runnable, const MeasureOptions* options, bool demand_repeatable,
                            bool* repeatable = nullptr);

  /// True when the device can no longer be trusted: the process is to end after the reply.
  bool poisoned() const { return poisoned_; }
  /// To be told of every failure; returns it.
  const Failure& note(const Failure& failure);

 private:
  struct Tail {
    Values values;
    std::unique_ptr<Verifier> verifier;
  };

  void sign_of_life();
  double limit_of(const Work& work, const MeasureOptions* options, double grace) const;
  std::optional<Failure> load_tail(const CompiledUnit* kernels);
  std::optional<Failure> fails_on_tail(const Variant& variant, const CompiledUnit& unit);
  Expected<std::unique_ptr<Runnable>> runnable_of(const Variant& variant, const Expected<Program>& program,
                                                  const CompiledUnit& unit);

  std::unique_ptr<Device> device_;
  Watchdog watchdog_;
  int socket_;
  std::chrono::steady_clock::time_point last_sign_{};
  std::optional<CompiledUnit> verify_unit_;
  std::unique_ptr<Probe> probe_;
  BuildContext context_;
  BuildContext tail_context_;
  std::unique_ptr<Verifier> verifier_;
  std::vector<Tail> tails_;
  bool poisoned_ = false;
};

/// As it is stored.
TimeRecord time_record(const Timing& timing);

}  // namespace tuner
