#include "tuner/worker/workbench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tuner/device/cuda_device.h"
#include "tuner/family/family.h"
#include "tuner/family/lower_bound.h"
#include "tuner/worker/channel.h"
#include "tuner/worker/limits.h"
#include "tuner/worker/messages.h"

namespace tuner {
namespace {

constexpr double kHostProductsPerMs = 1e6;  // a CPU's peak, of which Host execution reaches a hundredth

/// The same channels at two batches at most and a short, odd length; the problem itself where that is no smaller.
Problem tail_of(Problem problem) {
  constexpr std::int64_t kShort = 521;
  const Problem whole = problem;
  problem.batch = std::min<std::int64_t>(problem.batch, 2);
  problem.length = std::min(kShort, problem.length);
  return illegal(problem) ? whole : problem;
}

/// Wall seconds since it was made or last asked.
class Lap {
 public:
  double seconds() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The reply of a request that hangs, by the watchdog. Destructors would wait for the device.
[[noreturn]] void end_hung(int socket, double seconds) {
  const Failure hung{
      Outcome::timed_out, fmt::format("nothing ended within {:.3g} s: a kernel that does not end", seconds), {}};
  send_message(socket, {{"failure", messages::from(hung)}});
  _exit(0);
}

Expected<Program> program_of(const Variant& variant, const BuildContext& context) {
  const Family* family = find_family(variant.family);
  if (!family) return Failure{Outcome::rejected, fmt::format("this worker has no family `{}`", variant.family), {}};
  return family->build(context, variant.tunables);
}

}  // namespace

TimeRecord time_record(const Timing& timing) {
  TimeRecord record{timing.ms, timing.samples, std::string(to_string(timing.l2)),
                    std::string(to_string(timing.regime))};
  record.clock_mhz = timing.clock_mhz;
  record.dropped = timing.dropped;
  record.throttling = throttling_in_words(timing.throttling);
  if (timing.energy) record.energy = EnergyRecord{timing.energy->mj, timing.energy->samples};
  return record;
}

Workbench::Workbench(int socket, std::unique_ptr<Device> device)
    : device_(std::move(device)), watchdog_([socket](double seconds) { end_hung(socket, seconds); }), socket_(socket) {
  device_->on_progress([this] { sign_of_life(); });
}

void Workbench::send(const Json& sign) const { send_message(socket_, sign); }

void Workbench::sign_of_life() {
  watchdog_.again();
  const auto now = std::chrono::steady_clock::now();
  if (now - last_sign_ < std::chrono::seconds(1)) return;
  last_sign_ = now;
  send({{"alive", true}});
}

const Failure& Workbench::note(const Failure& failure) {
  if (failure.outcome == Outcome::crashed || failure.outcome == Outcome::timed_out) poisoned_ = true;
  return failure;
}

std::optional<Failure> Workbench::support(CompiledUnit verify, const CompiledUnit& measure) {
  verify_unit_ = std::move(verify);
  auto* const cuda = dynamic_cast<CudaDevice*>(device_.get());
  if (!cuda) return std::nullopt;
  auto probe = Probe::load(*cuda, measure);
  if (!probe) return note(probe.failure());
  probe_ = std::move(*probe);
  return std::nullopt;
}

Expected<double> Workbench::load(BuildContext context, const std::function<Made(const CompiledUnit* kernels)>& make) {
  verifier_.reset();  // frees its memory first
  context_ = std::move(context);
  const CompiledUnit* kernels = verify_unit_ ? &*verify_unit_ : nullptr;
  auto made = make(kernels);
  if (!made) return note(made.failure());
  verifier_ = std::move(*made);
  if (const auto failure = load_tail(kernels)) return note(*failure);
  return verifier_->plain_error();
}

/// A second, small problem whose length ends inside a tile: every variant must be right on it too, and on data there
/// that no one scale serves.
std::optional<Failure> Workbench::load_tail(const CompiledUnit* kernels) {
  tails_.clear();
  tail_context_ = context_;
  tail_context_.problem = tail_of(context_.problem);
  if (tail_context_.problem.y_count() == 0) return std::nullopt;
  for (const Values values : {Values::index_coded, Values::patches}) {
    if (values == Values::index_coded && tail_context_.problem == context_.problem) continue;
    auto made = make_verifier(*device_, tail_context_.problem, context_.accuracy, values, 1, kernels);
    // Where all outputs lie in a patch of zeros there is nothing to prove.
    if (!made && values == Values::patches && made.failure().outcome == Outcome::wrong_result) continue;
    if (!made) return made.failure();
    tails_.push_back({values, std::move(*made)});
  }
  return std::nullopt;
}

/// Between two signs of life of one evaluation.
double Workbench::limit_of(const Work& work, const MeasureOptions* options, double grace) const {
  LaunchForecast forecast;
  forecast.floor_ms = device_->is_cuda() ? lower_bound_ms(work, device_->environment().device, true)
                                         : context_.problem.flop() / 2 / kHostProductsPerMs;
  double seconds = 0;
  if (options) {
    forecast.best_ms = options->best_ms;
    forecast.cut_factor = options->cut_factor;
    seconds = options->max_seconds + options->settle_seconds;
    if (options->regime == Regime::sustained || options->energy_windows > 0) seconds += kSustainedSeconds;
  }
  return seconds + launch_limit(forecast, kQueuedLaunches, grace);
}

Expected<std::unique_ptr<Runnable>> Workbench::runnable_of(const Variant& variant, const CompiledUnit& unit) {
  return runnable_of(variant, program_of(variant, context_), unit);
}

Expected<std::unique_ptr<Runnable>> Workbench::runnable_of(const Variant& variant, const Expected<Program>& program,
                                                           const CompiledUnit& unit) {
  if (!program) return program.failure();
  return make_runnable(*device_, context_.problem, *program, unit, id_of(variant));
}

/// Nothing if the variant is right on the tail problem. A unit that is compiled for the one problem alone cannot run
/// there.
std::optional<Failure> Workbench::fails_on_tail(const Variant& variant, const CompiledUnit& unit) {
  if (tails_.empty()) return std::nullopt;
  const auto program = program_of(variant, tail_context_);
  if (!program) return program.failure();
  for (const std::string& kernel : program->unit.kernels)
    if (!unit.symbol(kernel)) return std::nullopt;
  auto made = make_runnable(*device_, tail_context_.problem, *program, unit, id_of(variant));
  if (!made) return made.failure();
  for (const Tail& tail : tails_) {
    const auto errors = tail.verifier->verify(**made);
    if (errors) continue;
    Failure failure = errors.failure();
    failure.reason =
        fmt::format("on {}, {}: {}", summary(tail_context_.problem), to_string(tail.values), failure.reason);
    return failure;
  }
  return std::nullopt;
}

Evaluation Workbench::check_and_time(Runnable& runnable, const MeasureOptions* options, bool demand_repeatable,
                                     bool* repeatable) {
  Evaluation evaluation;
  const auto fill = [&](const Failure& failure) {
    evaluation.outcome = note(failure).outcome;
    evaluation.reason = failure.reason;
    evaluation.log = failure.log;
    return evaluation;
  };
  std::optional<Timing> timing;
  Lap lap;
  const auto fill_cut = [&](const Timing& cut) {
    evaluation.time = time_record(cut);
    evaluation.outcome = Outcome::cut;
    evaluation.reason = fmt::format("at least {:.2g} times slower than the best so far", options->cut_factor);
    return evaluation;
  };
  if (options && options->best_ms) {  // what is much slower is not worth a proof
    if (const auto bound = runnable.bind(verifier_->tensors()); !bound) return fill(bound.failure());
    const auto slower = look(*device_, runnable, *options, probe_.get());
    evaluation.spent.measure += lap.seconds();
    if (!slower) return fill(slower.failure());
    if (*slower) return fill_cut(**slower);
  }
  const auto time = [&]() -> std::optional<Failure> {
    evaluation.spent.verify += lap.seconds();
    auto measured = measure(*device_, runnable, *options, probe_.get());
    evaluation.spent.measure += lap.seconds();
    if (!measured) return measured.failure();
    evaluation.spent.idle += measured->idle_seconds;
    evaluation.spent.measure -= measured->idle_seconds;
    timing = std::move(*measured);
    return std::nullopt;
  };
  const auto proof = options ? prove(*verifier_, runnable, time) : prove(*verifier_, runnable);
  evaluation.spent.verify += lap.seconds();
  if (!proof) return fill(proof.failure());
  if (repeatable) *repeatable = proof->repeatable;
  if (demand_repeatable && !proof->repeatable)
    return fill(
        {Outcome::wrong_result, "declared deterministic, but two launches on the same inputs gave other bits", {}});
  evaluation.errors = proof->errors;
  evaluation.outcome = Outcome::ok;
  if (!timing) return evaluation;
  if (timing->cut) return fill_cut(*timing);
  evaluation.time = time_record(*timing);
  return evaluation;
}

Evaluation Workbench::evaluate(const Variant& variant, const CompiledUnit& unit, const MeasureOptions* options,
                               double grace_seconds) {
  Lap lap;
  const auto program = program_of(variant, context_);
  const auto made = runnable_of(variant, program, unit);
  const double loading = lap.seconds();
  if (made) watchdog_.expect(limit_of((*made)->work(), options, grace_seconds));
  const auto failure = made ? fails_on_tail(variant, unit) : std::optional(made.failure());
  const double on_tail = lap.seconds();
  Evaluation evaluation =
      failure ? failed_evaluation(note(*failure)) : check_and_time(**made, options, program->deterministic);
  lap.seconds();
  if (evaluation.time)
    if (const auto prepare = measure_prepare(*device_, **made)) evaluation.prepare_ms = *prepare;
  evaluation.spent.load += loading;
  evaluation.spent.verify += on_tail;
  evaluation.spent.measure += lap.seconds();
  return evaluation;
}

}  // namespace tuner
