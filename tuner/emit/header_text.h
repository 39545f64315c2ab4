// The parts of an emitted header that do not depend on what was tuned. Internal to the stage.
#pragma once

#include <string_view>

namespace tuner {

/// The manual, as comments; stands before the namespace.
std::string_view header_manual();
/// Status, Problem, Accuracy. Within the user's namespace.
std::string_view header_types();
/// Legality and the table's types. Within the user's namespace.
std::string_view header_details();
/// Plan and make_plan. Within the user's namespace, after the table.
std::string_view header_plan();

}  // namespace tuner
