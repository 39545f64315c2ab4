// The `cheat` family's units and names for the tests that must catch it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tuner/family/family.h"

namespace tuner::testing {

/// A problem whose parameters all differ, with groups, gaps and a bias.
inline constexpr Problem kAllDifferent{7, 12, 6, 5, 4, 1, 0, 3, 2, true, 11};
/// One where many are equal, so that an index in another's place shows least.
inline constexpr Problem kAllEqual{3, 3, 3, 3, 1, 1, 0, 1, 1, false, 9};

inline const Family& cheat_family() {
  const Family* family = find_family("cheat");
  if (!family) throw std::logic_error("this program has no family cheat: it is linked with the shipped registry");
  return *family;
}

inline Variant cheat(const std::string& name) { return {"cheat", {{"cheat", name}}}; }

/// All that the family knows, "honest" first.
inline std::vector<std::string> cheats() {
  const std::vector<Tunable> tunables = cheat_family().tunables();
  std::vector<std::string> names;
  for (const Value& value : tunables.front().values) names.push_back(std::get<std::string>(value));
  return names;
}

/// One unit with the kernels of all of them, so that one compile serves all tests.
inline CompileUnit unit_of_all(const BuildContext& context) {
  CompileUnit unit;
  for (const std::string& name : cheats()) {
    const Program program = cheat_family().build(context, cheat(name).tunables);
    unit.source = program.unit.source;
    unit.kernels.push_back(program.unit.kernels.front());
  }
  return unit;
}

inline BuildContext context_of(const Problem& problem, Accuracy accuracy) {
  BuildContext context{problem, accuracy, {}};
  context.device.arch = "sm_90a";
  return context;
}

}  // namespace tuner::testing
