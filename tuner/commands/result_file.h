// When a run's result replaces the one that stands in its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/core/result.h"
#include "tuner/store/store.h"

namespace tuner {

class ResultFile {
 public:
  /// Throws EnvironmentError where `folder` cannot take result.json and best.json; makes the folder.
  ResultFile(const std::filesystem::path& folder, const Store& store, const Config& config);

  /// Between pairs: written where the store has something new, and in place of no result that has more of a problem and
  /// class of the config, whether or not the run was resumed.
  void keep(const RunResult& result);
  /// At the end. The result of a run that was brought to its end (`complete`) replaces any; another one none that has
  /// more, nor any at all if it holds nothing. False where the earlier one stays.
  bool keep_last(const RunResult& result, bool complete);

  std::filesystem::path result() const { return folder_ / "result.json"; }
  std::filesystem::path best() const { return folder_ / "best.json"; }

 private:
  struct Pair {
    Problem problem;
    Accuracy accuracy;
    std::size_t records;
  };
  bool has_less(const RunResult& result) const;

  std::filesystem::path folder_;
  const Store& store_;
  bool stands_ = false;         // a result was there at first
  std::vector<Pair> standing_;  // what it has of the config's pairs
  std::int64_t written_ = 0;    // the store's puts when the result was written last
};

/// Throws EnvironmentError unless a file can be put at `path`, in place of one that is there.
void require_replaceable(const std::filesystem::path& path);

}  // namespace tuner
