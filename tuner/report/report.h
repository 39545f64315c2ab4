// Reports of finished runs: pure functions over result files; no GPU, no clock, no environment.
#pragma once

#include <string>
#include <vector>

#include "tuner/core/result.h"

namespace tuner {

/// The table that ends a run, for a terminal: a line for each problem and class, then outcomes with reasons and ties;
/// without a GPU the shortlist. Text from the results cannot act on the terminal. `color` adds ANSI colours.
std::string report_table(const std::vector<RunResult>& results, bool color);

/// The same as GitHub-flavoured Markdown, for a pull request or a job summary. Text from the results stays text.
std::string report_markdown(const std::vector<RunResult>& results);

/// What fails a test case beside "nothing valid was found", which always does.
struct JunitOptions {
  bool fail_if_slower = false;  // a vendor's route is certain to be faster
  bool fail_if_wrong = false;   // any variant gave a wrong result
};

/// JUnit XML: a suite for each result, a test case for each problem and class.
std::string report_junit(const std::vector<RunResult>& results, const JunitOptions& options = {});

}  // namespace tuner
