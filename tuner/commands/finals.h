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

/// Those of `ranked` (the best first) that may win, and the best route of each baseline, in interleaved rounds; then
/// the finalists on fresh inputs. Their times, `best`, `tie` and `ratios` of `record` are replaced. The worker holds
/// the problem's inputs on entry.
void run_finals(Session& session, const std::string& problem, const BuildContext& context,
                const MeasureOptions& measure, std::vector<Finalist> ranked, ClassRecord& record);

/// The fastest by the times in the record; a vendor route where nothing of ours is faster.
void choose_best(ClassRecord& record);

}  // namespace tuner
