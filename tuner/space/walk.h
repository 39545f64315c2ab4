// Depth-first walk over the raw combinations of a family's tunables, pruned by its constraints. Internal to the stage.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/core/random.h"
#include "tuner/family/family.h"

namespace tuner {

/// Axes are taken in an order in which constraints bind early; codes are mixed radix in the tunables' own order. A
/// constraint's answers are remembered for each combination of the values that it reads.
class Walk {
 public:
  Walk(const std::vector<Tunable>& tunables, std::vector<Constraint> constraints);

  /// Appends the codes (other axes at their first value) of the valid combinations of the first `depth` axes of the
  /// walk, and counts what each constraint refuses, in raw combinations.
  void enumerate(std::size_t depth, std::vector<std::uint64_t>& codes);
  /// Draws the axes from `depth` on for a valid prefix. The reason of the constraint that refuses, or null with `code`.
  const std::string* draw_below(std::size_t depth, std::uint64_t prefix, Random& random, std::uint64_t& code);

  /// Most axes whose raw combinations do not exceed `limit`.
  std::size_t depth_within(std::uint64_t limit) const;
  /// Raw combinations of the axes from `depth` on.
  std::uint64_t combinations_below(std::size_t depth) const { return below_[depth]; }
  std::map<std::string, std::uint64_t> rejections() const;
  void forget_rejections();

 private:
  struct Checked {
    Constraint constraint;
    std::vector<std::size_t> axes;          // read, as places in a configuration
    std::vector<std::uint64_t> multiplier;  // by axis: how a value's index enters the table's index
    std::vector<signed char> answers;       // unknown (-1), refuses (0), holds (1); empty where there would be too many
    std::uint64_t rejected = 0;
  };

  void order_axes();
  void make_table(Checked& checked);
  bool holds(Checked& checked);
  Checked* first_refusal(std::size_t level);
  void choose(std::size_t level, std::size_t index) { chosen_[order_[level]] = index; }
  std::uint64_t code() const;

  const std::vector<Tunable>& tunables_;
  std::vector<Checked> checks_;
  std::vector<std::size_t> order_;  // level of the walk -> axis
  std::vector<std::vector<std::size_t>>
      due_;                           // by level: checks whose last tunable is chosen there; level 0: none read
  std::vector<std::uint64_t> place_;  // by axis: weight of its index in the code
  std::vector<std::uint64_t> below_;  // by level: raw combinations of the levels from it on
  std::vector<std::size_t> chosen_;   // by axis: index of its value
  Configuration configuration_;       // scratch: what `holds` receives
};

}  // namespace tuner
