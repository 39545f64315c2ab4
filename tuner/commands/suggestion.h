// What a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

/// The name that needs the fewest letters changed, added, left out or exchanged with their neighbour, if that is at
/// most a third of them; else nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace tuner
