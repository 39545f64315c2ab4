// `tuner report`, `tuner compare`, `tuner emit`: they read result files alone and need no GPU.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/commands/command_line.h"
#include "tuner/commands/live.h"
#include "tuner/core/file.h"
#include "tuner/core/result.h"
#include "tuner/emit/emit.h"
#include "tuner/report/compare.h"
#include "tuner/report/report.h"

namespace tuner {
namespace {

std::vector<RunResult> read_results(const std::vector<std::filesystem::path>& paths) {
  std::vector<RunResult> results;
  for (const auto& path : paths) results.push_back(read_result(path));
  return results;
}

/// Leaves the problems and classes that the command line names.
void keep_named(RunResult& result, const CompareCommand& options) {
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  std::erase_if(result.problems, [&](const ProblemRecord& problem) { return !named(options.problems, problem.name); });
  for (ProblemRecord& problem : result.problems)
    std::erase_if(problem.classes,
                  [&](const ClassRecord& record) { return !named(options.classes, to_string(record.accuracy)); });
}

}  // namespace

int report(const ReportOptions& options, const Settings& settings) {
  const auto results = read_results(options.results);
  std::string text;
  if (options.format == "markdown")
    text = report_markdown(results);
  else if (options.format == "junit")
    text = report_junit(results);
  else
    text = report_table(results, settings.color && !options.out);
  if (options.out)
    write_file_atomically(*options.out, text);
  else
    fmt::print("{}", text);
  return 0;
}

int compare(const CompareCommand& options, const Settings& settings) {
  RunResult base = read_result(options.base), now = read_result(options.now);
  for (RunResult* result : {&base, &now}) keep_named(*result, options);
  if (options.live) return compare_live(base, now, options, settings);
  const Comparison comparison = compare(base, now, CompareOptions{options.fail_slower, options.allow_different});
  fmt::print("{}", to_text(comparison, settings.color));
  return comparison.regressed() ? 4 : 0;
}

int emit(const EmitCommand& options, const Settings&) {
  EmitOptions emit_options;
  emit_options.name_space = options.name_space;
  emit_options.unmeasured = options.unmeasured;
  emit_options.command = options.command;
  const std::string header = emit_header(read_results(options.results), emit_options);
  write_file_atomically(options.out, header);
  fmt::print("Header: {} ({} lines)\n", options.out.string(), std::count(header.begin(), header.end(), '\n'));
  return 0;
}

}  // namespace tuner
