// `tuner list` and `tuner describe`: what there is, and a family's tunables with their meaning and constraints.
#include <fmt/format.h>

#include "tuner/commands/command_line.h"
#include "tuner/commands/vocabulary.h"
#include "tuner/core/device_facts.h"
#include "tuner/family/family.h"
#include "tuner/search/search.h"
#include "tuner/space/space.h"

namespace tuner {
namespace {

/// The project's seed problem: what lists and descriptions are made for where no problem is given.
BuildContext seed_context() {
  BuildContext context;
  context.problem = {64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};
  context.device = read_profile("h200");
  return context;
}

std::string values_text(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_string(value);
  return text;
}

void list_problems() {
  for (const auto& [file, text] : shipped_configs()) {
    fmt::print("{}\n", file);
    for (const NamedProblem& problem : problems_of_text(std::string(text), std::string(file)))
      fmt::print("  {:<44} {}\n", problem.name, summary(problem.problem));
  }
}

}  // namespace

int list(const std::string& what, const Settings&) {
  if (what == "families")
    for (const Family* family : families()) fmt::print("{:<10} {}\n", family->name(), family->summary());
  if (what == "strategies")
    for (const StrategyInfo& strategy : strategies()) fmt::print("{:<12} {}\n", strategy.name, strategy.summary);
  if (what == "devices")
    for (const std::string& name : profile_names()) {
      const DeviceFacts facts = read_profile(name);
      fmt::print("{:<10} {:<32} {:<8} {:>3} SMs, {:>5.0f} GB/s, {:>5.1f} TFLOP/s fp32\n", name, facts.name, facts.arch,
                 facts.sm_count, facts.memory_gbps, facts.fp32_tflops);
    }
  if (what == "problems") list_problems();
  return 0;
}

int describe(const std::string& name, const Settings&) {
  const Family* family = find_family(name);
  if (!family) {
    std::string known;
    for (const Family* each : families()) known += (known.empty() ? "" : ", ") + std::string(each->name());
    throw UsageError(fmt::format("describe {}: allowed are {}", name, known));
  }
  const BuildContext context = seed_context();
  fmt::print("{}: {}\n\nTunables\n", family->name(), family->summary());
  for (const Tunable& tunable : family->tunables())
    fmt::print("  {:<14} {}\n  {:<14}   values: {}\n", tunable.name, tunable.meaning, "", values_text(tunable.values));
  fmt::print("\nConstraints (for {} on {})\n", summary(context.problem), context.device.name);
  for (const Constraint& constraint : family->constraints(context)) fmt::print("  {}\n", constraint.reason);
  const Space space(family->tunables(), family->constraints(context));
  fmt::print("\n{} of {} combinations are valid there. Default: {}\n", space.size(), space.raw_count(),
             to_string(family->default_configuration(context)));
  return 0;
}

}  // namespace tuner
