// A tunable with names for values, as a number: configurations hold the name, layout.h's struct its place in the list.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "tuner/core/value.h"

namespace tuner {

/// Place of the configuration's one text among `names`; 0 where it has none.
template <std::size_t COUNT>
int place_of_name(const std::array<const char*, COUNT>& names, const Configuration& configuration) {
  for (const auto& [name, value] : configuration)
    if (const auto* text = std::get_if<std::string>(&value))
      return static_cast<int>(std::find(names.begin(), names.end(), *text) - names.begin());
  return 0;
}

}  // namespace tuner
