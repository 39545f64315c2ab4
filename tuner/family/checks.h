// Values and configurations from files, before a family's arithmetic meets them: it divides by them and multiplies
// them.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "tuner/family/family.h"

namespace tuner {

constexpr std::int64_t kMostOfTunable = 4096;  // products of three fit an int with room for bytes of few elements

/// What `tunable` takes, when `value` is none of that: its kind, in its range. Zero is a value only where the family's
/// own list has it.
inline std::optional<std::string> unfit(const Tunable& tunable, const Value& value) {
  const Value& own = tunable.values.front();
  if (own.index() != value.index()) return fmt::format("a value as {}", to_string(own));
  const auto* number = std::get_if<std::int64_t>(&value);
  const bool zero =
      std::find(tunable.values.begin(), tunable.values.end(), Value(std::int64_t{0})) != tunable.values.end();
  const std::int64_t least = zero ? 0 : 1;
  if (number && (*number < least || *number > kMostOfTunable))
    return fmt::format("a whole number from {} to {}", least, kMostOfTunable);
  return std::nullopt;
}

/// The reasons of all constraints that a configuration breaks.
inline std::vector<std::string> broken(const Family& family, const BuildContext& context,
                                       const Configuration& configuration) {
  std::vector<std::string> reasons;
  for (const Constraint& c : family.constraints(context))
    if (!c.holds(configuration)) reasons.push_back(c.reason);
  return reasons;
}

/// A recorded variant as a configuration that the family can build: in its order, tunables that an older result lacks
/// at what they were before, or their defaults. Throws UsageError for a name, value or combination that this program's
/// family does not take.
inline Configuration recorded_configuration(const Family& family, const BuildContext& context, const Variant& variant) {
  if (const auto refusal = family.refuses(context)) throw UsageError(fmt::format("{}: {}", variant.family, *refusal));
  Configuration configuration = family.default_configuration(context);
  const auto tunables = family.tunables();
  for (auto& [name, value] : configuration)
    for (const Tunable& tunable : tunables)
      if (tunable.name == name && tunable.before) value = *tunable.before;
  for (const auto& [name, value] : variant.tunables) {
    const auto place = std::find_if(configuration.begin(), configuration.end(),
                                    [&name = name](const auto& entry) { return entry.first == name; });
    if (place == configuration.end())
      throw UsageError(
          fmt::format("the result's family {} has a tunable {} that this program does not know", variant.family, name));
    const auto tunable =
        std::find_if(tunables.begin(), tunables.end(), [&name = name](const Tunable& t) { return t.name == name; });
    if (const auto takes = unfit(*tunable, value))
      throw UsageError(
          fmt::format("the result's {} has {}={}: expected {}", variant.family, name, to_string(value), *takes));
    place->second = value;
  }
  if (const auto reasons = broken(family, context, configuration); !reasons.empty())
    throw UsageError(fmt::format("the result's {} {} is refused by this program: {}", variant.family,
                                 to_string(configuration), reasons.front()));
  return configuration;
}

}  // namespace tuner
