// A table of cells, printed for a terminal or as Markdown.
#pragma once

#include <string>
#include <vector>

namespace tuner {

enum class Tone { plain, good, bad, strong };

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
  bool foreign = false;  // text from a result file: escaped where it is printed
};

inline Cell foreign(std::string text) { return {std::move(text), Tone::plain, true}; }

struct Grid {
  std::vector<Cell> header;
  std::vector<std::vector<Cell>> rows;  // each as long as the header
};

/// Columns aligned by spaces, two between; a line each.
std::string to_text(const Grid& grid, bool color);
std::string to_markdown(const Grid& grid);

/// `text` in a tone's ANSI colour, if `color`.
std::string toned(std::string text, Tone tone, bool color);

}  // namespace tuner
