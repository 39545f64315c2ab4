#include "tuner/worker/sanitizer_report.h"

#include <sstream>
#include <string_view>

namespace tuner {
namespace {

constexpr std::string_view kPrefix = "=========";
constexpr int kLinesOfFinding = 4;  // what, where, by whom, which address

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// An error's first line: not a banner, a total or a stack.
bool begins_finding(std::string_view line) {
  for (const std::string_view start : {"COMPUTE-SANITIZER", "ERROR SUMMARY", "LEAK SUMMARY", "Target application",
                                       "Error: process didn't", "No attachable process"})
    if (line.substr(0, start.size()) == start) return false;
  return true;
}

}  // namespace

std::string address_sanitizer_summary(const std::string& printed) {
  constexpr std::string_view kSummary = "SUMMARY: ";
  const auto at = printed.rfind(kSummary);
  if (at == std::string::npos) return {};
  return printed.substr(at + kSummary.size(), printed.find('\n', at) - at - kSummary.size());
}

std::string assertion_line(const std::string& printed) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);)
    if (line.find("Assertion `") != std::string::npos) return std::string(trimmed(line));
  return {};
}

std::string memcheck_finding(const std::string& printed) {
  std::istringstream lines(printed);
  std::string finding;
  int taken = 0;
  for (std::string line; std::getline(lines, line) && taken < kLinesOfFinding;) {
    if (line.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    const std::string_view text = trimmed(std::string_view(line).substr(kPrefix.size()));
    if (taken == 0 && (text.empty() || !begins_finding(text))) continue;
    if (text.empty() || text.find("backtrace") != std::string_view::npos) break;  // the end of this one
    if (taken > 0) finding += text.substr(0, 3) == "at " ? " " : ", ";
    finding += text;
    ++taken;
  }
  return finding;
}

}  // namespace tuner
