// What a store holds, read from a copy, so that neither SQLite's recovery nor its locks touch the store itself.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/core/temporary_folder.h"
#include "tuner/store/database.h"

namespace tuner {

/// A copy of a store with its journals.
class StoreCopy {
 public:
  explicit StoreCopy(const std::filesystem::path& store) {
    for (const char* suffix : {"", "-wal", "-journal"}) {
      std::error_code missing;
      std::filesystem::copy_file(store.string() + suffix, file().string() + suffix, missing);
    }
  }
  std::filesystem::path file() const { return folder_.path() / "copy.sqlite"; }
  std::string text_of(const std::string& sql) const { return Database(file()).text_of(sql); }

  /// "problem|class|stage|subject" to all else.
  std::map<std::string, std::string> rows() const {
    Database database(file());
    Statement select(database,
                     "SELECT problem || '|' || class || '|' || stage || '|' || subject, "
                     "unit || '|' || cubin || '|' || gpu || '|' || sm_count || '|' || power_limit_w || '|' || "
                     "driver_branch || '|' || settings || '|' || seed || '|' || protocol || '|' || elapsed || '|' || "
                     "provenance || '|' || data FROM records");
    std::map<std::string, std::string> rows;
    while (select.step()) EXPECT_TRUE(rows.emplace(select.text(0), select.text(1)).second) << "a record is there twice";
    return rows;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tuner
