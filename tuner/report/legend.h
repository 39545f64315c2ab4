// What the words and signs of a report mean.
#pragma once

#include <vector>

#include "tuner/core/result.h"
#include "tuner/report/sections.h"

namespace tuner {

/// A line for each that the section's table or details hold.
std::vector<Line> legend_of(const Section& section, const RunResult& result);

}  // namespace tuner
