// Values of tunables and configurations of a variant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tuner {

/// Thread block shape: x runs along t, y along output channels. JSON: [x, y].
struct Block {
  int x = 1;
  int y = 1;
  bool operator==(const Block&) const = default;
  auto operator<=>(const Block&) const = default;
};

/// A tunable's value: whole number, block shape, or the name of an alternative ("shuffle", "staged").
using Value = std::variant<std::int64_t, Block, std::string>;

/// "128", "32x8", "shuffle".
std::string to_string(const Value& value);

/// Tunable names and values of one variant, in the family's order.
using Configuration = std::vector<std::pair<std::string, Value>>;

/// "T=128 OC_TILE=16 block=32x8".
std::string to_string(const Configuration& configuration);

/// A variant: identity does not hold the problem, so that one variant can meet many problems.
struct Variant {
  std::string family;
  Configuration tunables;
  bool operator==(const Variant&) const = default;
};

/// Short stable identity: family, '-', ten hex digits of the hash of family and tunables.
std::string id_of(const Variant& variant);

}  // namespace tuner
