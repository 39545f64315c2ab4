// A family's configurations that satisfy its constraints and the config's conditions: enumerated depth first, pruned
// early.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/family/family.h"

namespace tuner {

/// A user's condition of `restrict`, parsed by a library, never executed. Comparison, arithmetic (`/` divides as real
/// numbers, `%` is the remainder), `and` `or` `not` (or && || !), min, max, abs, floor, ceil. Variables are tunable
/// names; a block gives `block` (threads), `block_x` and `block_y` (or block.x, block.y); a tunable with named values
/// is compared with a quoted name: epilogue == "shuffle".
class Condition {
 public:
  /// Throws UsageError naming the expression and the fault (syntax, a name that is no tunable of `tunables`).
  Condition(const std::string& expression, const std::vector<Tunable>& tunables);
  /// As a Constraint: what it reads, `restrict: <expression>` as the reason. Holds when the value is not zero (nor NaN,
  /// as of 0 / 0). One thread at a time may evaluate it.
  const Constraint& constraint() const { return constraint_; }

 private:
  Constraint constraint_;
};

/// The conditions as they apply to each of several families (given by their tunables): result[i] belongs to
/// families[i]. A condition that names a tunable which a family lacks does not apply to it. Throws UsageError as above,
/// and for a condition with a name that no family has. `families` hold the families' own lists, before a config narrows
/// them.
std::vector<std::vector<Constraint>> bind_conditions(const std::vector<std::string>& expressions,
                                                     const std::vector<std::vector<Tunable>>& families);

struct SpaceOptions {
  std::uint64_t max_enumerated = 20'000'000;  // raw combinations; above it the space is sampled, not listed
  std::uint64_t sample = 200'000;             // valid configurations kept when sampled
  std::uint64_t seed = 1;
};

/// Valid configurations by index. Memory is 8 bytes for each valid configuration. The same tunables, constraints and
/// options give the same indices.
class Space {
 public:
  /// Throws UsageError when the raw combinations do not fit 63 bits; std::invalid_argument for a constraint that reads
  /// a name which is no tunable.
  Space(std::vector<Tunable> tunables, std::vector<Constraint> constraints, const SpaceOptions& options = {});

  std::uint64_t raw_count() const { return raw_count_; }  // product of the lists' lengths
  std::size_t size() const { return valid_.size(); }      // valid ones listed
  bool sampled() const { return sampled_; }               // true: a uniform sample of a larger space
  Configuration at(std::size_t index) const;
  /// Index of a configuration; nothing if it is not listed.
  std::optional<std::size_t> find(const Configuration& configuration) const;
  /// Indices of the listed configurations that differ from this one in one tunable: axis by axis, in the order of its
  /// values.
  std::vector<std::size_t> neighbours(std::size_t index) const;
  /// Raw combinations refused, by reason (of the first constraint that fails, depth first). Estimates when sampled.
  const std::map<std::string, std::uint64_t>& rejections() const { return rejections_; }
  const std::vector<Tunable>& tunables() const { return tunables_; }

 private:
  std::optional<std::size_t> index_of(std::uint64_t code) const;

  std::vector<Tunable> tunables_;
  std::vector<std::uint64_t> valid_;  // mixed-radix codes, ascending, the last tunable's value varying fastest
  std::map<std::string, std::uint64_t> rejections_;
  std::uint64_t raw_count_ = 0;
  bool sampled_ = false;
};

}  // namespace tuner
