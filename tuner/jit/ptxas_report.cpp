#include "tuner/jit/ptxas_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tuner {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The number that stands right before `words` ("12 bytes smem"); 0 if there is none.
int number_before(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return 0;
  std::size_t start = end;
  while (start > 0 && is_digit(line[start - 1])) --start;
  int number = 0;
  for (std::size_t i = start; i < end; ++i) number = number * 10 + (line[i] - '0');
  return number;
}

bool has(std::string_view line, std::string_view words) { return line.find(words) != std::string_view::npos; }

/// From "(C75nn)" on; empty where there is none. Codes of other hundreds are about other things, and an injected
/// warpgroup.arrive is a fence more that waits for nothing.
std::string_view matrix_remark_in(std::string_view line) {
  const std::size_t at = line.find("(C75");
  if (!line.starts_with("ptxas") || at == std::string_view::npos || at + 7 > line.size()) return {};
  const std::string_view remark = line.substr(at);
  if (!is_digit(remark[4]) || !is_digit(remark[5]) || remark[6] != ')') return {};
  return has(remark, "warpgroup.arrive is injected") ? std::string_view{} : remark;
}

}  // namespace

PtxasReport parse_ptxas_report(std::string_view log, const std::vector<std::string>& spills_of) {
  PtxasReport report;
  int spills = 0;  // of the entry function being read
  bool counts = true;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log = end == std::string_view::npos ? std::string_view{} : log.substr(end + 1);
    if (report.matrix_remark.empty()) report.matrix_remark = matrix_remark_in(line);
    if (has(line, "Compiling entry function")) {
      ++report.kernels;
      spills = 0;
      counts = spills_of.empty() || std::any_of(spills_of.begin(), spills_of.end(), [line](const std::string& symbol) {
                 return has(line, "'" + symbol + "'");
               });
    } else if (has(line, "bytes spill stores")) {
      spills += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
      if (counts) report.spill_bytes = std::max(report.spill_bytes, spills);
    } else if (has(line, "Used ") && has(line, " registers")) {
      report.registers = std::max(report.registers, number_before(line, " registers"));
      report.static_shared_bytes = std::max(report.static_shared_bytes, number_before(line, " bytes smem"));
      report.barriers = std::max(report.barriers, number_before(line, " barriers"));
    }
  }
  return report;
}

std::optional<std::string> objection_to(const PtxasReport& report, bool spills_allowed) {
  if (!report.matrix_remark.empty()) return fmt::format("the compiler's report: {}", report.matrix_remark);
  if (report.spill_bytes > 0 && !spills_allowed)
    return fmt::format("the compiler's report: {} bytes of registers spilled", report.spill_bytes);
  return std::nullopt;
}

std::string without_compile_times(std::string_view log) {
  std::string kept;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size() - 1);
    const std::string_view line = log.substr(0, end + 1);
    if (!line.starts_with("ptxas info") || !has(line, "Compile time = ")) kept += line;
    log.remove_prefix(end + 1);
  }
  return kept;
}

}  // namespace tuner
