// `tuner compare --live`: the best variants of two results, timed against each other on the GPU that is here.
#pragma once

#include "tuner/commands/command_line.h"
#include "tuner/core/result.h"

namespace tuner {

/// For each problem and class of both: verifies both best variants, times them in interleaved rounds of one process,
/// and prints new / base. Exit code 4 where that is certain to be a regression. Throws EnvironmentError without a GPU.
int compare_live(const RunResult& base, const RunResult& now, const CompareCommand& options, const Settings& settings);

}  // namespace tuner
