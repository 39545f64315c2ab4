#include "tuner/report/grid.h"

#include <algorithm>

#include "tuner/report/escape.h"

namespace tuner {

std::string toned(std::string text, Tone tone, bool color) {
  if (!color || tone == Tone::plain) return text;
  const char* code = tone == Tone::good ? "\x1b[32m" : tone == Tone::bad ? "\x1b[31m" : "\x1b[1m";
  return code + text + "\x1b[0m";
}

std::string to_text(const Grid& grid, bool color) {
  const auto shown = [](const Cell& cell) { return cell.foreign ? printable(cell.text) : cell.text; };
  std::vector<std::size_t> widths(grid.header.size(), 0);
  const auto widen = [&](const std::vector<Cell>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(shown(row[i])));
  };
  widen(grid.header);
  for (const auto& row : grid.rows) widen(row);

  std::string out;
  const auto print = [&](const std::vector<Cell>& row, bool header) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = shown(row[i]);
      line += toned(text, header ? Tone::strong : row[i].tone, color);
      if (i + 1 < row.size()) line += std::string(widths[i] - display_width(text) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  print(grid.header, true);
  for (const auto& row : grid.rows) print(row, false);
  return out;
}

std::string to_markdown(const Grid& grid) {
  std::string out;
  const auto print = [&](const std::vector<Cell>& row) {
    for (const Cell& cell : row) {
      const std::string text = cell.foreign && !cell.text.empty() ? markdown_code(cell.text) : cell.text;
      out += "| " + (cell.tone == Tone::good || cell.tone == Tone::strong ? "**" + text + "**" : text) + ' ';
    }
    out += "|\n";
  };
  print(grid.header);
  for (std::size_t i = 0; i < grid.header.size(); ++i) out += "| --- ";
  out += "|\n";
  for (const auto& row : grid.rows) print(row);
  return out;
}

}  // namespace tuner
