#include <algorithm>

#include "tuner/report/escape.h"
#include "tuner/report/report.h"
#include "tuner/report/sections.h"

namespace tuner {
namespace {

/// Our own words hold nothing that Markdown reads as markup but '<', '*', '_' and '~'.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '*' || c == '_' || c == '~') out += '\\';
    out += c;
  }
  return out;
}

std::string text_of(const Line& line) {
  std::string out;
  for (const Cell& cell : line)
    if (!cell.text.empty()) out += cell.foreign ? markdown_code(cell.text) : plain(cell.text);
  return out.substr(std::min(out.find_first_not_of(' '), out.size()));
}

}  // namespace

std::string report_markdown(const std::vector<RunResult>& results) {
  std::string out;
  const auto list = [&](const std::vector<Line>& lines) {
    for (const Line& line : lines) out += "- " + text_of(line) + '\n';
    if (!lines.empty()) out += '\n';
  };
  for (const RunResult& result : results) {
    const Section section = section_of(result);
    out += "## " + text_of(section.heading) + "\n\n";
    list(section.facts);
    for (const Line& line : section.verdicts) out += "**" + text_of(line) + "**\n\n";
    if (!section.grid.rows.empty()) out += to_markdown(section.grid) + '\n';
    if (!section.details.empty()) {
      out += "<details><summary>Outcomes and ties</summary>\n\n";
      for (const auto& [title, lines] : section.details) {
        out += text_of(title) + "\n\n";
        list(lines);
      }
      out += "</details>\n\n";
    }
    for (const Line& line : section.closing) out += text_of(line) + "\n\n";
  }
  return out;
}

}  // namespace tuner
