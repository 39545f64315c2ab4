// The worker's side: owns the device and serves one request at a time.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "baselines/baseline.h"
#include "tuner/device/cuda_device.h"
#include "tuner/device/host_device.h"
#include "tuner/family/family.h"
#include "tuner/family/lower_bound.h"
#include "tuner/measure/probe.h"
#include "tuner/worker/channel.h"
#include "tuner/worker/limits.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/watchdog.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

namespace msg = messages;

Failure unknown_family(const std::string& name) {
  return {Outcome::rejected, fmt::format("this worker has no family `{}`", name), {}};
}

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

std::unique_ptr<Device> open_device(const std::string& name) {
  if (name.rfind("host", 0) == 0) {
    HostOptions options;
    if (const auto colon = name.find(':'); colon != std::string::npos)
      options.seed = std::stoull(name.substr(colon + 1));
    return make_host_device(options);
  }
  if (cuda_device_count() == 0 && cuda_unusable_reason().empty())
    throw NoDevice("the CUDA driver shows no device (CUDA_VISIBLE_DEVICES may hide it)");
  auto device = open_cuda_device(std::stoi(name.substr(name.find(':') + 1)));
  if (!device) throw EnvironmentError(device.failure().reason);
  return std::move(*device);
}

constexpr double kVendorSeconds = 60;       // a library's routes may compile before they run
constexpr double kSustainedSeconds = 5;     // of load before the first sample of a measurement
constexpr double kHostProductsPerMs = 1e6;  // a CPU's peak, of which Host execution reaches a hundredth

class Server {
 public:
  Server(int socket, const std::string& device)
      : device_(open_device(device)),
        watchdog_([socket](double seconds) { end_hung(socket, seconds); }),
        socket_(socket) {
    device_->on_progress([this] { sign_of_life(); });
  }

  /// To be called before a reply is sent: from then on nothing else is.
  void calm() { watchdog_.calm(); }

  /// True when the device can no longer be trusted: the process ends after the reply.
  bool poisoned() const { return poisoned_; }

  Json answer(const Json& request) {
    const auto op = request.at("op").get<std::string>();
    if (op == "environment") return msg::from(environment());
    if (op == "support") return support(request);
    if (op == "load") return load(request);
    if (op == "evaluate") return msg::from(evaluate(request));
    if (op == "baseline") return baseline(request);
    if (op == "run_off") return run_off(request);
    throw std::logic_error("request " + op);
  }

 private:
  /// The reply of a request that hangs, by the watchdog. Destructors would wait for the device.
  [[noreturn]] static void end_hung(int socket, double seconds) {
    const Failure hung{
        Outcome::timed_out, fmt::format("nothing ended within {:.3g} s: a kernel that does not end", seconds), {}};
    send_message(socket, {{"failure", msg::from(hung)}});
    _exit(0);
  }

  void sign_of_life() {
    watchdog_.again();
    const auto now = std::chrono::steady_clock::now();
    if (now - last_sign_ < std::chrono::seconds(1)) return;
    last_sign_ = now;
    send_message(socket_, {{"alive", true}});
  }

  /// Between two signs of life of one evaluation.
  double limit_of(const Work& work, const MeasureOptions* options, double grace) const {
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

  /// The device's, with the versions of the vendor libraries that its baselines use.
  Environment environment() const {
    Environment environment = device_->environment();
    if (!device_->is_cuda()) return environment;
    const auto version_of = [](std::string_view name) {
      const auto version = find_baseline(name)->version();
      return version ? *version : "not available: " + version.failure().reason;
    };
    environment.cudnn = version_of("cudnn");
    environment.cublas = version_of("cublas_shift_add");
    return environment;
  }

  Json support(const Json& request) {
    verify_unit_ = msg::unit(request.at("verify"));
    baseline_unit_ = msg::unit(request.at("baselines"));
    if (auto* const cuda = dynamic_cast<CudaDevice*>(device_.get())) {
      auto probe = Probe::load(*cuda, msg::unit(request.at("measure")));
      if (!probe) return {{"failure", msg::from(note(probe.failure()))}};
      probe_ = std::move(*probe);
    }
    return Json::object();
  }

  struct Tail {
    Values values;
    std::unique_ptr<Verifier> verifier;
  };

  Json load(const Json& request) {
    verifier_.reset();  // frees its memory first
    context_.problem = msg::problem(request.at("problem"));
    context_.accuracy = *parse_accuracy(request.at("class").get<std::string>());
    context_.device = msg::device_facts(request.at("device"));
    const CompiledUnit* kernels = verify_unit_ ? &*verify_unit_ : nullptr;
    auto made = [&] {
      if (!request.contains("inputs")) {
        const auto values = *parse_values(request.at("values").get<std::string>());
        return make_verifier(*device_, context_.problem, context_.accuracy, values,
                             request.at("seed").get<std::uint64_t>(), kernels);
      }
      const Json& given = request["inputs"];
      Inputs inputs{given.at("x").get<std::vector<float>>(), given.at("w").get<std::vector<float>>(),
                    given.at("bias").get<std::vector<float>>()};
      return make_verifier(*device_, context_.problem, context_.accuracy, std::move(inputs), kernels);
    }();
    if (!made) return {{"failure", msg::from(note(made.failure()))}};
    verifier_ = std::move(*made);
    if (const auto failure = load_tail(kernels)) return {{"failure", msg::from(note(*failure))}};
    return {{"plain_error", verifier_->plain_error()}};
  }

  /// A second, small problem whose length ends inside a tile: every variant must be right on it too, and on data there
  /// that no one scale serves.
  std::optional<Failure> load_tail(const CompiledUnit* kernels) {
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

  Expected<Program> program_of(const Variant& variant, const BuildContext& context) const {
    const Family* family = find_family(variant.family);
    if (!family) return unknown_family(variant.family);
    return family->build(context, variant.tunables);
  }

  Expected<std::unique_ptr<Runnable>> runnable_of(const Variant& variant, const Expected<Program>& program,
                                                  const CompiledUnit& unit) {
    if (!program) return program.failure();
    return make_runnable(*device_, context_.problem, *program, unit, id_of(variant));
  }

  /// Nothing if the variant is right on the tail problem. A unit that is compiled for the one problem alone cannot run
  /// there.
  std::optional<Failure> fails_on_tail(const Variant& variant, const CompiledUnit& unit) {
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

  /// Proves a Runnable, around its timing where asked. `repeatable` says what was seen of it; where it is demanded,
  /// other bits from the same inputs are wrong.
  Evaluation check_and_time(Runnable& runnable, const MeasureOptions* options, bool demand_repeatable,
                            bool* repeatable = nullptr) {
    Evaluation evaluation;
    const auto fill = [&](const Failure& failure) {
      evaluation.outcome = note(failure).outcome;
      evaluation.reason = failure.reason;
      evaluation.log = failure.log;
      return evaluation;
    };
    std::optional<Timing> timing;
    Lap lap;
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
    evaluation.time = record(*timing);
    if (timing->cut) {
      evaluation.outcome = Outcome::cut;
      evaluation.reason = fmt::format("at least {:.2g} times slower than the best so far", options->cut_factor);
    }
    return evaluation;
  }

  Evaluation evaluate(const Json& request) {
    const Variant variant = msg::variant(request.at("variant"));
    const CompiledUnit unit = msg::unit(request.at("unit"));
    Lap lap;
    const auto program = program_of(variant, context_);
    const auto made = runnable_of(variant, program, unit);
    const double loading = lap.seconds();
    std::optional<MeasureOptions> options;
    if (request.contains("measure")) options = msg::measure_options(request["measure"]);
    if (made)
      watchdog_.expect(
          limit_of((*made)->work(), options ? &*options : nullptr, request.at("grace_seconds").get<double>()));
    const auto failure = made ? fails_on_tail(variant, unit) : std::optional(made.failure());
    const double on_tail = lap.seconds();
    Evaluation evaluation;
    if (failure) {
      evaluation = failed_evaluation(note(*failure));
    } else {
      evaluation = check_and_time(**made, options ? &*options : nullptr, program->deterministic);
    }
    lap.seconds();
    if (evaluation.time)
      if (const auto prepare = measure_prepare(*device_, **made)) evaluation.prepare_ms = *prepare;
    evaluation.spent.load += loading;
    evaluation.spent.verify += on_tail;
    evaluation.spent.measure += lap.seconds();
    return evaluation;
  }

  Expected<std::vector<BaselineRoute>> routes_of(const std::string& name, const BaselineOptions& options) {
    Baseline* baseline = find_baseline(name);
    if (!baseline) return Failure{Outcome::rejected, fmt::format("no baseline `{}`", name), {}};
    if (!baseline_unit_) return Failure{Outcome::rejected, "not run: no GPU", {}};
    return baseline->routes(*device_, context_.problem, context_.accuracy, options, *baseline_unit_);
  }

  static BaselineOptions baseline_options(const Json& request) {
    BaselineOptions options;
    options.workspace_bytes = request.at("workspace_mib").get<std::size_t>() << 20;
    options.deterministic = request.at("deterministic").get<bool>();
    return options;
  }

  /// Before each route a sign of life that names it and brings the records of the one before; the last ones are the
  /// reply. `skip`: routes that an earlier worker is done with.
  Json baseline(const Json& request) {
    const auto name = request.at("name").get<std::string>();
    const BaselineOptions offer = baseline_options(request);
    auto routes = routes_of(name, offer);
    if (!routes) return {{"failure", msg::from(note(routes.failure()))}};
    // A library has hundreds of routes: those certain to be slower than the best so far are cut as variants are.
    MeasureOptions options = msg::measure_options(request.at("measure")), for_notes = options;
    const auto skip = request.at("skip").get<std::size_t>();
    Json done = Json::array();
    for (std::size_t i = skip; i < routes->size(); ++i) {
      BaselineRoute& route = (*routes)[i];
      BaselineRecord record;
      record.name = name;
      record.route = route.route;
      record.engine = route.engine;
      record.knobs = route.knobs;
      record.workspace_bytes = route.workspace_bytes;
      record.traffic_bytes = route.traffic_bytes;
      send_message(socket_,
                   {{"alive", true}, {"routes", i}, {"records", std::move(done)}, {"next", msg::from(record)}});
      done = Json::array();
      bool repeatable = true;
      watchdog_.expect(kVendorSeconds + options.max_seconds);
      const Evaluation evaluation = check_and_time(*route.runnable, &options, offer.deterministic, &repeatable);
      if (poisoned_) return {{"failure", msg::from(Failure{evaluation.outcome, evaluation.reason, evaluation.log})}};
      record.deterministic = route.deterministic && repeatable;
      record.status = to_string(evaluation.outcome);
      record.reason = evaluation.reason;
      record.errors = evaluation.errors;
      record.time = evaluation.time;
      if (evaluation.outcome == Outcome::ok && evaluation.time)
        options.best_ms = std::min(options.best_ms.value_or(evaluation.time->ms.median), evaluation.time->ms.median);
      done.push_back(msg::from(record));
      if (route.inner && evaluation.time) {
        const BaselineRecord beside = note_beside(*route.inner, *route.runnable, record, for_notes);
        if (poisoned_) return {{"failure", msg::from(Failure{*parse_outcome(beside.status), beside.reason, {}})}};
        done.push_back(msg::from(beside));
      }
      route.inner.reset();
      route.runnable.reset();  // its plan, packed weights and share of the workspace: the next may need more
      watchdog_.calm();
    }
    return {{"records", std::move(done)}};
  }

  /// A right route's work between its conversions, timed in the same way; what it computed is checked afterwards.
  BaselineRecord note_beside(InnerRunnable& inner, Runnable& whole, BaselineRecord record, MeasureOptions& options) {
    record.route += ", conversions not counted";
    record.not_comparable = true;
    record.traffic_bytes = 0;
    record.time.reset();
    const auto timing = [&]() -> Expected<Timing> {
      if (auto bound = inner.bind(verifier_->tensors()); !bound) return bound.failure();
      auto timed = measure(*device_, inner, options, probe_.get());
      if (!timed) return timed.failure();
      if (auto delivered = inner.deliver(); !delivered) return delivered.failure();
      if (auto errors = verifier_->check_again(whole); !errors) return errors.failure();
      return timed;
    }();
    if (!timing) {
      record.status = to_string(note(timing.failure()).outcome);
      record.reason = timing.failure().reason;
      return record;
    }
    record.status = to_string(timing->cut ? Outcome::cut : Outcome::ok);
    record.reason.clear();
    record.time = this->record(*timing);
    if (!timing->cut) options.best_ms = std::min(options.best_ms.value_or(timing->ms.median), timing->ms.median);
    return record;
  }

  Json run_off(const Json& request) {
    std::vector<std::unique_ptr<Runnable>> owned;
    std::map<std::pair<std::string, std::string>, std::vector<BaselineRoute>> routes;  // by baseline and route
    std::vector<Runnable*> entrants;
    for (const Json& contestant : request.at("contestants")) {
      if (contestant.contains("variant")) {
        const Variant variant = msg::variant(contestant["variant"]);
        auto made = runnable_of(variant, program_of(variant, context_), msg::unit(contestant.at("unit")));
        if (!made) return {{"failure", msg::from(note(made.failure()))}};
        owned.push_back(std::move(*made));
        entrants.push_back(owned.back().get());
      } else {
        const auto name = contestant.at("baseline").get<std::string>();
        BaselineOptions options = baseline_options(request);
        options.only = contestant.at("route").get<std::string>();
        std::vector<BaselineRoute>& offered = routes[{name, *options.only}];
        if (offered.empty()) {
          auto found = routes_of(name, options);
          if (!found) return {{"failure", msg::from(note(found.failure()))}};
          offered = std::move(*found);
        }
        for (BaselineRoute& route : offered)
          if (route.route == contestant.at("route") && route.engine == contestant.at("engine") &&
              route.knobs == contestant.at("knobs"))
            entrants.push_back(route.runnable.get());
      }
    }
    if (entrants.size() != request.at("contestants").size())
      return {{"failure", msg::from(Failure{Outcome::rejected, "a baseline no longer offers its best route", {}})}};
    watchdog_.expect(kVendorSeconds);
    for (Runnable* entrant : entrants)
      if (const auto bound = entrant->bind(verifier_->tensors()); !bound)
        return {{"failure", msg::from(note(bound.failure()))}};
    const int rounds = request.at("rounds").get<int>();
    double ms_a_round = 0;
    for (const Json& contestant : request["contestants"]) ms_a_round += contestant.at("expected_ms").get<double>();
    watchdog_.expect(kSustainedSeconds + run_off_limit(ms_a_round, rounds, request.at("grace_seconds").get<double>()));
    RunOffTimes times;
    times.entries.resize(entrants.size());
    for (const Json& measure : request.at("measures")) {
      const auto timings = measure_interleaved(*device_, entrants, msg::measure_options(measure), rounds, probe_.get());
      if (!timings) return {{"failure", msg::from(note(timings.failure()))}};
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        const Timing& timing = (*timings)[i];
        if (timing.failure && !times.entries[i].failure) times.entries[i].failure = timing.failure;
        times.entries[i].times.push_back(record(timing));
        times.entries[i].times.back().interleaved = true;
      }
    }
    for (std::size_t i = 0; i < entrants.size(); ++i)
      if (!times.entries[i].failure)
        if (const auto right = prove_again(*verifier_, *entrants[i]); !right)
          times.entries[i].failure = note(right.failure());
    times.conditions = conditions(times);
    return msg::from(times);
  }

  /// The machine's state while its times were taken.
  Conditions conditions(const RunOffTimes& times) const {
    Conditions conditions;
    const auto* const cuda = dynamic_cast<const CudaDevice*>(device_.get());
    if (!cuda) return conditions;
    const NvmlFacts facts = cuda->sensors().facts();
    conditions.power_limit_w = facts.power_limit_w;
    conditions.mig = facts.mig;
    conditions.other_processes = std::max(0, facts.processes - 1);  // one is this worker
    if (!facts.missing.empty()) conditions.not_available = "not available: " + facts.missing;
    for (const RunOffTimes::Entry& entry : times.entries)
      for (const TimeRecord& time : entry.times)
        for (const std::string& reason : time.throttling)
          if (std::find(conditions.throttling.begin(), conditions.throttling.end(), reason) ==
              conditions.throttling.end())
            conditions.throttling.push_back(reason);
    return conditions;
  }

  static TimeRecord record(const Timing& timing) {
    TimeRecord record{timing.ms, timing.samples, std::string(to_string(timing.l2)),
                      std::string(to_string(timing.regime))};
    record.clock_mhz = timing.clock_mhz;
    record.dropped = timing.dropped;
    record.throttling = throttling_in_words(timing.throttling);
    if (timing.energy) record.energy = EnergyRecord{timing.energy->mj, timing.energy->samples};
    return record;
  }

  const Failure& note(const Failure& failure) {
    if (failure.outcome == Outcome::crashed || failure.outcome == Outcome::timed_out) poisoned_ = true;
    return failure;
  }

  std::unique_ptr<Device> device_;
  Watchdog watchdog_;
  int socket_;
  std::chrono::steady_clock::time_point last_sign_{};
  std::optional<CompiledUnit> verify_unit_, baseline_unit_;
  std::unique_ptr<Probe> probe_;
  BuildContext context_;
  BuildContext tail_context_;
  std::unique_ptr<Verifier> verifier_;
  std::vector<Tail> tails_;
  bool poisoned_ = false;
};

}  // namespace

int worker_main(int socket, const std::string& device) {
  std::optional<Server> server;
  try {
    server.emplace(socket, device);
  } catch (const NoDevice& none) {
    send_message(socket, {{"none", none.what()}});
    return 3;
  } catch (const std::exception& error) {
    send_message(socket, {{"fatal", error.what()}});
    return 3;
  }
  send_message(socket, {{"ready", true}});
  Json request;
  while (receive_message(socket, request, -1) == Received::message) {
    Json reply;
    try {
      reply = server->answer(request);
    } catch (const std::bad_alloc&) {
      reply = {{"failure", messages::from(Failure{Outcome::launch_failed, "out of memory", {}})}};
    } catch (const UsageError& error) {
      reply = {{"failure", messages::from(Failure{Outcome::wrong_result, error.what(), {}})}};
    } catch (const std::exception& error) {
      reply = {{"failure", messages::from(Failure{Outcome::crashed, error.what(), {}})}};
    }
    server->calm();
    if (!send_message(socket, reply)) return 0;
    if (server->poisoned()) _exit(0);  // destructors would call a driver that only returns errors now
  }
  return 0;
}

}  // namespace tuner
