// The report as a tree that a renderer prints: the terminal's table and Markdown differ only in the rendering.
#pragma once

#include <string>
#include <vector>

#include "tuner/core/result.h"
#include "tuner/report/grid.h"

namespace tuner {

/// A line made of our words and of text from the result.
using Line = std::vector<Cell>;

struct Section {
  Line heading;
  std::vector<Line> facts;     // machine, warnings
  std::vector<Line> verdicts;  // what the run comes to, before the table
  Grid grid;
  std::vector<std::pair<Line, std::vector<Line>>> details;  // a title (problem and class) and its lines
  std::vector<Line> closing;
};

Section section_of(const RunResult& result);

}  // namespace tuner
