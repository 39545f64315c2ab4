#include "tuner/report/legend.h"

#include <algorithm>
#include <string_view>

#include "tuner/report/digest.h"

namespace tuner {
namespace {

bool ours_has(const std::vector<Cell>& cells, std::string_view text) {
  return std::any_of(cells.begin(), cells.end(),
                     [&](const Cell& cell) { return !cell.foreign && cell.text.find(text) != cell.text.npos; });
}

bool table_has(const Section& section, std::string_view text) {
  return std::any_of(section.grid.rows.begin(), section.grid.rows.end(),
                     [&](const auto& row) { return ours_has(row, text); });
}

bool has(const Section& section, std::string_view text) {
  const auto in_lines = [&](const auto& part) {
    return std::any_of(part.second.begin(), part.second.end(), [&](const Line& line) { return ours_has(line, text); });
  };
  return table_has(section, text) || std::any_of(section.details.begin(), section.details.end(), in_lines);
}

}  // namespace

std::vector<Line> legend_of(const Section& section, const RunResult& result) {
  std::vector<Line> lines;
  const auto say = [&](std::string text) { lines.push_back({Cell{std::move(text)}}); };
  if (!result.measured) {
    if (!section.grid.rows.empty())
      say("#: the order of a model that no time calibrates: the lower bound, made longer for operands, latency, idle "
          "SMs and spills.");
    return lines;
  }
  say(std::string("Ratios are the vendor's time over ours: above 1 we are faster.") +
      (table_has(section, "~") ? " ~: of medians in one run, not of interleaved rounds." : ""));
  say("of limit: the time that operations and bytes need at the device's theoretical peaks, as a part of our median.");
  if (ours_has(section.grid.header, kDefaultTf32))
    say(std::string(kDefaultTf32) +
        ": cuDNN's best route of class tf32, which is PyTorch's default for convolutions; PyTorch was not run.");
  if (has(section, kUnbounded)) say(std::string(kUnbounded) + ": too few samples for an interval.");
  return lines;
}

}  // namespace tuner
