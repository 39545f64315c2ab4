// Derives names, values, printing and template arguments from the one visit list in a family's layout.h.
//
// A family's layout.h states, free of the standard library:
//   struct Tunables {
//     int T = 128; int OC_TILE = 16; ct1d::BlockShape block{32, 8};
//     template <class Visitor> static constexpr void visit(Visitor&& v) {
//       v("T", &Tunables::T); v("OC_TILE", &Tunables::OC_TILE); v("block", &Tunables::block);
//     }
//   };
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/common/block_shape.h"
#include "tuner/family/family.h"

namespace tuner {

template <class Tunables>
Configuration to_configuration(const Tunables& tunables) {
  Configuration configuration;
  Tunables::visit([&](const char* name, auto member) {
    const auto& value = tunables.*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, ct1d::BlockShape>)
      configuration.emplace_back(name, Block{value.x, value.y});
    else
      configuration.emplace_back(name, static_cast<std::int64_t>(value));
  });
  return configuration;
}

/// Tunables that are missing in `configuration` keep their defaults.
template <class Tunables>
Tunables to_tunables(const Configuration& configuration) {
  Tunables tunables;
  std::size_t place = 0;  // a family's own order finds each name at once: constraints are evaluated millions of times
  Tunables::visit([&](const char* name, auto member) {
    const std::size_t count = configuration.size();
    for (std::size_t tried = 0; tried < count; ++tried, ++place) {
      const auto& [key, value] = configuration[place % count];
      if (key != name) continue;
      auto& target = tunables.*member;
      if constexpr (std::is_same_v<std::decay_t<decltype(target)>, ct1d::BlockShape>) {
        const Block block = std::get<Block>(value);
        target = {block.x, block.y};
      } else {
        target = static_cast<std::decay_t<decltype(target)>>(std::get<std::int64_t>(value));
      }
      ++place;
      return;
    }
  });
  return tunables;
}

/// What device code calls the element type of a class: the kernel template's last argument.
inline std::string element_name(Accuracy accuracy) {
  switch (element_of(accuracy)) {
    case Element::f16:
      return "ct1d::Half";
    case Element::bf16:
      return "ct1d::Bfloat16";
    case Element::f32:
      break;
  }
  return "float";
}

/// "128, 16, 32, 8": the kernel template's leading scalar arguments, in visit order (a block gives two).
template <class Tunables>
std::string template_arguments(const Tunables& tunables) {
  std::string text;
  const auto append = [&](long long number) {
    if (!text.empty()) text += ", ";
    text += std::to_string(number);
  };
  Tunables::visit([&](const char*, auto member) {
    const auto& value = tunables.*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, ct1d::BlockShape>) {
      append(value.x);
      append(value.y);
    } else {
      append(static_cast<long long>(value));
    }
  });
  return text;
}

/// A constraint stated over the family's own struct.
template <class Tunables>
Constraint constraint(std::vector<std::string> reads, std::string reason, std::function<bool(const Tunables&)> holds) {
  return {std::move(reads), std::move(reason),
          [holds = std::move(holds)](const Configuration& c) { return holds(to_tunables<Tunables>(c)); }};
}

/// What must hold for a configuration to run, then what is known not to pay.
inline std::vector<Constraint> joined(std::vector<Constraint> requirements, std::vector<Constraint> economies) {
  for (Constraint& economy : economies) requirements.push_back(std::move(economy));
  return requirements;
}

template <class Tunables>
bool satisfies(const std::vector<Constraint>& constraints, const Tunables& tunables) {
  const Configuration configuration = to_configuration(tunables);
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const Constraint& c) { return c.holds(configuration); });
}

}  // namespace tuner
