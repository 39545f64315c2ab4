// The interface that kernels/<family>/family.cpp fills. See kernels/README.md for a page on adding one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/family/program.h"

namespace tuner {

/// One axis of a family's space.
struct Tunable {
  std::string name;
  std::vector<Value> values;  // default list, best guess first is not required
  std::string meaning;        // one line for `tuner describe`
  /// What results hold that are older than the tunable, if the default configuration may have another value.
  std::optional<Value> before{};
};

/// A condition on a configuration, evaluated as soon as all tunables that it reads are chosen.
/// `holds` receives a full configuration in the family's order; tunables not in `reads` are unspecified.
struct Constraint {
  std::vector<std::string> reads;
  std::string reason;  // the one line a user reads: "T must be a multiple of block.x * 4"
  std::function<bool(const Configuration&)> holds;
};

class Family {
 public:
  virtual ~Family() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  /// Why the family as a whole cannot serve a problem, class or device; nothing if it can.
  virtual std::optional<std::string> refuses(const BuildContext& context) const = 0;
  virtual std::vector<Tunable> tunables() const = 0;
  virtual std::vector<Constraint> constraints(const BuildContext& context) const = 0;
  /// A right, reasonable configuration that satisfies the constraints for any problem the family does not refuse.
  virtual Configuration default_configuration(const BuildContext& context) const = 0;
  /// What a search tries first: the default, then configurations of other shapes that the family's own model of time
  /// holds for nearly as good, the best first. All satisfy the constraints.
  virtual std::vector<Configuration> promising_configurations(const BuildContext& context) const {
    return {default_configuration(context)};
  }
  /// A configuration whose unit is the same for every problem that the family serves: all geometry at run time.
  virtual Configuration general_configuration(const BuildContext& context) const = 0;
  /// The program for a configuration that satisfies the constraints.
  virtual Program build(const BuildContext& context, const Configuration& configuration) const = 0;
};

/// Families of this program in name order: one for each folder of kernels/ that has a family.cpp.
const std::vector<const Family*>& families();
/// nullptr if there is none of that name.
const Family* find_family(std::string_view name);

}  // namespace tuner
