// Whether a result's numbers follow from the samples that stand beside them. Used by the reader of results.
#pragma once

#include <string>
#include <vector>

#include "tuner/core/json_node.h"
#include "tuner/core/result.h"

namespace tuner {

/// Refuses an interval (at `node`) that is not that of the median of its samples at 95 %.
void require_of_samples(const Node& node, const Interval& interval, const std::vector<double>& samples);

/// Refuses a ratio of the class (at `node`) that does not follow from the samples, or the energies, of our best by
/// `objective` and of the route that stands for the baseline.
void require_ratios(const Node& node, const ClassRecord& record, const std::string& objective);

}  // namespace tuner
