#include "tuner/commands/result_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "tuner/core/failure.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

std::size_t records_of(const RunResult& result) {
  std::size_t records = 0;
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes) records += record.variants.size() + record.baselines.size();
  return records;
}

std::size_t records_in(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return 0;
  try {
    return records_of(read_result(file));
  } catch (const UsageError&) {  // no result: nothing is lost
    return 0;
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

ResultFile::ResultFile(const fs::path& folder, const Store& store, bool resumed)
    : folder_(folder), store_(store), resumed_(resumed) {
  for (const fs::path& file : {result(), best()}) require_replaceable(file);
  standing_ = records_in(result());
}

void ResultFile::keep(const RunResult& result) {
  if (store_.puts() == written_ || (resumed_ && records_of(result) < standing_)) return;
  written_ = store_.puts();
  write_result(result, folder_);
}

bool ResultFile::keep_last(const RunResult& result, bool complete) {
  const bool found = !resumed_ && store_.puts() > 0;
  if (!complete && !found && records_of(result) < standing_) return false;
  write_result(result, folder_);
  return true;
}

}  // namespace tuner
