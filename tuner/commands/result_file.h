// When a run's result replaces the one that stands in its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "tuner/core/result.h"
#include "tuner/store/store.h"

namespace tuner {

class ResultFile {
 public:
  /// Throws EnvironmentError where `folder` cannot take result.json and best.json; makes the folder.
  ResultFile(const std::filesystem::path& folder, const Store& store, bool resumed);

  /// Between pairs: written where the store has something new. What a resumed run has so far does not replace more.
  void keep(const RunResult& result);
  /// At the end. One that was not brought to its end (`complete`) replaces no more than it holds itself, unless it is a
  /// new run that found something. False where the earlier one stays.
  bool keep_last(const RunResult& result, bool complete);

  std::filesystem::path result() const { return folder_ / "result.json"; }
  std::filesystem::path best() const { return folder_ / "best.json"; }

 private:
  std::filesystem::path folder_;
  const Store& store_;
  bool resumed_;
  std::size_t standing_ = 0;  // records in the file that was there at first
  std::int64_t written_ = 0;  // the store's puts when the result was written last
};

/// Throws EnvironmentError unless a file can be put at `path`, in place of one that is there.
void require_replaceable(const std::filesystem::path& path);

}  // namespace tuner
