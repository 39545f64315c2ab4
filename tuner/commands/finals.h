// The end of a search on a GPU: the fastest variants against each other and the vendors, and who is best.
#pragma once

#include <string>
#include <vector>

#include "tuner/commands/class_run.h"

namespace tuner {

/// A right variant that was timed while searching.
struct Finalist {
  std::size_t record;  // its place in ClassRecord::variants
  CompiledUnit unit;
  double objective;  // smaller is better
};

/// The options of one regime as the config states them.
MeasureOptions measure_options(const MeasureConfig& config, const std::string& regime);

/// How many of these, the best first, may win; 0 of none.
std::size_t finalist_count(const std::vector<double>& objectives);

/// Those of `ranked` (the best first) that may win, and the best route of each baseline, in interleaved rounds, once
/// for each of the config's regimes; then the finalists on fresh inputs, and the winner timed once more on others.
/// Their times, `best`, `tie`, `ratios` and what a reader of the times must know of `record` are replaced. The worker
/// holds the problem's inputs on entry. False where it was not brought to its end.
bool run_finals(Session& session, const std::string& problem, const BuildContext& context, std::vector<Finalist> ranked,
                ClassRecord& record);

/// What the search minimises of a time record: ms, or millijoules; nothing where that was not taken.
std::optional<double> objective_of(const std::optional<TimeRecord>& time, const std::string& objective);

/// The least by the records' times; a vendor route where nothing of ours is less.
void choose_best(ClassRecord& record, const std::string& objective);

}  // namespace tuner
