#include "tuner/report/escape.h"
#include "tuner/report/report.h"
#include "tuner/report/sections.h"

namespace tuner {
namespace {

std::string text_of(const Line& line, bool color) {
  std::string out;
  for (const Cell& cell : line) out += toned(cell.foreign ? printable(cell.text) : cell.text, cell.tone, color);
  return out;
}

}  // namespace

std::string report_table(const std::vector<RunResult>& results, bool color) {
  std::string out;
  const auto print = [&](const std::vector<Line>& lines, const char* indent) {
    for (const Line& line : lines) out += indent + text_of(line, color) + '\n';
  };
  for (const RunResult& result : results) {
    const Section section = section_of(result);
    if (!out.empty()) out += '\n';
    out += toned(text_of(section.heading, false), Tone::strong, color) + '\n';
    print(section.facts, "  ");
    print(section.verdicts, "");
    if (!section.grid.rows.empty()) out += '\n' + to_text(section.grid, color) + '\n';
    for (const auto& [title, lines] : section.details) {
      out += text_of(title, color) + '\n';
      print(lines, "  ");
    }
    print(section.closing, "");
  }
  return out;
}

}  // namespace tuner
