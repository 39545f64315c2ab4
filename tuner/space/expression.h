// A condition's text in the spelling of the library that evaluates it. Internal to the stage.
#pragma once

#include <string>
#include <vector>

namespace tuner {

/// An expression in muParser's spelling, every token at the place where the user wrote it, and the names it uses.
struct Translation {
  std::string text;
  std::vector<std::string> names;     // variables in order of appearance, "block.x" as block_x
  std::vector<std::string> literals;  // quoted names; literal i stands in the text as the number i
};

/// Refuses what muParser knows and a condition must not do (assignment, ?:), and chained comparisons, which would not
/// mean what they say.
Translation translate(const std::string& expression);

/// Throws UsageError: restrict: "<expression>": <fault>.
[[noreturn]] void refuse_condition(const std::string& expression, const std::string& fault);

}  // namespace tuner
