#include "tuner/commands/vocabulary.h"

#include <fmt/format.h>

#include "baselines/baseline.h"
#include "tuner/family/family.h"
#include "tuner/search/search.h"

namespace tuner {

Vocabulary vocabulary() {
  Vocabulary names;
  for (const Family* family : families()) {
    Vocabulary::FamilyNames entry;
    entry.name = family->name();
    for (const Tunable& tunable : family->tunables()) {
      if (std::holds_alternative<Block>(tunable.values.front())) {
        entry.block_tunables.push_back(tunable.name);
      } else if (std::holds_alternative<std::string>(tunable.values.front())) {
        for (const Value& value : tunable.values)
          entry.enumerated_tunables[tunable.name].push_back(std::get<std::string>(value));
      } else {
        entry.integer_tunables.push_back(tunable.name);
      }
    }
    names.families.push_back(std::move(entry));
  }
  for (const StrategyInfo& strategy : strategies()) names.strategies.emplace_back(strategy.name);
  for (const std::string_view baseline : baseline_names()) names.baselines.emplace_back(baseline);
  return names;
}

Accuracy class_named(const std::string& name) {
  if (const auto accuracy = parse_accuracy(name)) return *accuracy;
  throw UsageError(fmt::format("--class {}: allowed are fp32, tf32, fp16, bf16", name));
}

}  // namespace tuner
