#include "tuner/core/failure.h"

#include <array>

namespace tuner {
namespace {

constexpr std::array<std::string_view, 10> kOutcomeNames{"ok",           "rejected",  "compile_failed", "launch_failed",
                                                         "wrong_result", "timed_out", "crashed",        "implausible",
                                                         "cut",          "unproven"};

}  // namespace

std::string_view to_string(Outcome outcome) { return kOutcomeNames.at(static_cast<std::size_t>(outcome)); }

std::optional<Outcome> parse_outcome(std::string_view name) {
  for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
    if (kOutcomeNames[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace tuner
