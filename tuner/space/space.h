// A family's configurations that satisfy its constraints and the config's conditions: enumerated depth first, pruned
// early.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/family/family.h"

namespace tuner {

/// A user's condition of `restrict`, parsed by a library, never executed. Variables are tunable names; a block gives
/// `block` (threads), `block_x` and `block_y`.
class Condition {
 public:
  /// Throws UsageError naming the expression and the fault (syntax, a name that is no tunable of `tunables`).
  Condition(const std::string& expression, const std::vector<Tunable>& tunables);
  /// As a Constraint: what it reads, `restrict: <expression>` as the reason.
  const Constraint& constraint() const { return constraint_; }
  /// False where it names a tunable that this family lacks: it then does not apply to the family.
 private:
  Constraint constraint_;
};

struct SpaceOptions {
  std::uint64_t max_enumerated = 20'000'000;  // raw combinations; above it the space is sampled, not listed
  std::uint64_t sample = 200'000;             // valid configurations kept when sampled
  std::uint64_t seed = 1;
};

/// Valid configurations by index. Memory is 8 bytes for each valid configuration.
class Space {
 public:
  Space(std::vector<Tunable> tunables, std::vector<Constraint> constraints, const SpaceOptions& options = {});

  std::uint64_t raw_count() const { return raw_count_; }  // product of the lists' lengths
  std::size_t size() const { return valid_.size(); }      // valid ones listed
  bool sampled() const { return sampled_; }               // true: a uniform sample of a larger space
  Configuration at(std::size_t index) const;
  /// Raw combinations refused, by reason (of the first constraint that fails, depth first). Estimates when sampled.
  const std::map<std::string, std::uint64_t>& rejections() const { return rejections_; }
  const std::vector<Tunable>& tunables() const { return tunables_; }

 private:
  std::vector<Tunable> tunables_;
  std::vector<std::uint64_t> valid_;  // mixed-radix codes
  std::map<std::string, std::uint64_t> rejections_;
  std::uint64_t raw_count_ = 0;
  bool sampled_ = false;
};

}  // namespace tuner
