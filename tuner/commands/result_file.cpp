#include "tuner/commands/result_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "tuner/core/failure.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

std::size_t records_of(const ClassRecord& record) {
  const auto run = [](const BaselineRecord& baseline) { return baseline.status != "not run"; };
  return record.variants.size() +
         static_cast<std::size_t>(std::count_if(record.baselines.begin(), record.baselines.end(), run));
}

/// Of all classes for which `counts` says so.
template <class Counts>
std::size_t records_of(const RunResult& result, Counts counts) {
  std::size_t records = 0;
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes)
      if (counts(problem.problem, record.accuracy)) records += records_of(record);
  return records;
}

std::optional<RunResult> result_in(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  try {
    return read_result(file);
  } catch (const UsageError&) {  // no result: nothing is lost
    return std::nullopt;
  }
}

}  // namespace

void require_replaceable(const fs::path& path) {
  const auto fail = [&](const std::string& why) {
    throw EnvironmentError(fmt::format("cannot write {}: {}", path.string(), why));
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(std::strerror(EISDIR));
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a pipe, /dev/stdout
    if (::access(path.c_str(), W_OK) != 0) fail(std::strerror(errno));
    return;
  }
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : path;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(std::strerror(errno));
}

ResultFile::ResultFile(const fs::path& folder, const Store& store, const Config& config)
    : folder_(folder), store_(store) {
  for (const fs::path& file : {result(), best()}) require_replaceable(file);
  const auto earlier = result_in(result());
  if (!earlier) return;
  stands_ = true;
  for (const NamedProblem& named : config.problems)
    for (const Accuracy accuracy : config.classes) {
      const auto asked = [&](const Problem& problem, Accuracy its) {
        return problem == named.problem && its == accuracy;
      };
      standing_.push_back({named.problem, accuracy, records_of(*earlier, asked)});
    }
}

bool ResultFile::has_less(const RunResult& result) const {
  return std::any_of(standing_.begin(), standing_.end(), [&](const Pair& pair) {
    return pair.records > records_of(result, [&](const Problem& problem, Accuracy accuracy) {
             return problem == pair.problem && accuracy == pair.accuracy;
           });
  });
}

void ResultFile::keep(const RunResult& result) {
  if (store_.puts() == written_ || has_less(result)) return;
  written_ = store_.puts();
  write_result(result, folder_);
}

bool ResultFile::keep_last(const RunResult& result, bool complete) {
  const bool nothing = records_of(result, [](const Problem&, Accuracy) { return true; }) == 0;
  if (!complete && stands_ && (nothing || has_less(result))) return false;
  write_result(result, folder_);
  return true;
}

}  // namespace tuner
