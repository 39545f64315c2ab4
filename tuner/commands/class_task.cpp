#include "tuner/commands/class_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/commands/finals.h"
#include "tuner/commands/interrupt.h"
#include "tuner/family/family.h"
#include "tuner/worker/messages.h"

namespace tuner {
namespace {

constexpr std::size_t kSamplesOfAClock = 8;
constexpr Values kValues = Values::normal;

MeasureOptions first_regime(const Config& config) {
  MeasureOptions options = measure_options(config.measure, config.measure.regime.front());
  if (config.search.objective == "energy") options.energy_windows = 1;
  return options;
}

}  // namespace

MeasureOptions search_options(MeasureOptions options) {
  options.half_width = std::max(options.half_width, 0.01);
  options.max_samples = std::min(options.max_samples, 20);
  options.max_seconds = std::min(options.max_seconds, 0.25);
  options.settle_seconds = 0;
  options.rest = false;  // a pause only where the clock fell
  return options;
}

ClassTask::ClassTask(Session& its_session, const NamedProblem& problem, Accuracy accuracy)
    : session(its_session),
      name(problem.name),
      context{problem.problem, accuracy, session.target.environment.device},
      measure(first_regime(session.config)),
      records(session.store, session.taken_over, problem, accuracy, session.config, session.target.environment,
              messages::from(search_options(measure)).dump()) {
  result.accuracy = accuracy;
  if (!session.target.measured()) return;
  if (const auto known = records.inputs(std::string(to_string(kValues)))) result.plain_error = *known;
}

std::string ClassTask::label() const { return fmt::format("{} {}", name, to_string(context.accuracy)); }

bool ClassTask::stopped() const {
  return interrupt_signal() != 0 || no_inputs_ || session.out_of_time || !session.lost.empty();
}

bool ClassTask::load() {
  if (loaded_) return true;
  const auto loaded = session.target.worker->load(context, kValues, session.config.search.seed);
  if (loaded) {
    if (result.plain_error != *loaded) records.keep_inputs(std::string(to_string(kValues)), *loaded);
    result.plain_error = std::max(result.plain_error, *loaded);
    return loaded_ = true;
  }
  if (stopped()) return false;
  no_inputs_ = true;
  session.progress.note(fmt::format("{}: {}", label(), loaded.failure().reason));
  VariantRecord none;
  none.id = "inputs";
  none.outcome = loaded.failure().outcome;
  none.reason = loaded.failure().reason;
  result.variants.push_back(none);
  return false;
}

Program ClassTask::program_of(const Variant& variant) const {
  return find_family(variant.family)->build(context, variant.tunables);
}

void ClassTask::note_clock(const TimeRecord& time) {
  if (time.regime == "burst" && time.samples.size() >= kSamplesOfAClock)
    clock_mhz = std::max(clock_mhz, time.clock_mhz.median);
}

}  // namespace tuner
