// Everything that a run found out, on disk before the next thing is begun: a SQLite file that one coordinator at a time
// has open, one row a record, one transaction a row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/store/database.h"
#include "tuner/store/validity.h"

namespace tuner {

/// What a record is about. There is one record of each key at most.
struct RecordKey {
  std::string problem;   // canonical text, not its name: problems may be renamed
  std::string accuracy;  // class
  std::string stage;     // "variant", "proof", "baseline", ...
  std::string subject;   // id of a variant, name of a baseline
};

struct StoredRecord {
  Validity valid_for;
  std::string data;        // JSON
  double elapsed = 0;      // seconds of searching in its problem and class until it was there
  std::string provenance;  // which GPU and driver exactly; nothing depends on it
};

class Store {
 public:
  /// Opens the file or makes it. UsageError (one line) for a file that is damaged, foreign, or of another format
  /// version, and where the write-ahead log beside it is another store's; EnvironmentError if another process has it
  /// open, or where it cannot be written. Nothing is changed then.
  explicit Store(const std::filesystem::path& file);

  /// Moves all records to a file of their own and says where; nothing if there are none. The file is
  /// <stem>.previous.sqlite or, where that stands, <stem>.previous-2.sqlite and so on: none is ever replaced. Either
  /// name holds the records at every moment.
  std::optional<std::filesystem::path> set_aside();

  std::int64_t size();
  std::optional<StoredRecord> find(const RecordKey& key);
  /// In place of the key's record, if there is one. On disk when it returns. EnvironmentError where that fails; then
  /// the store is as it was.
  void put(const RecordKey& key, const StoredRecord& record);
  /// How many were put since the file was opened.
  std::int64_t puts() const { return puts_; }
  /// The class's record with the largest `elapsed`.
  std::optional<StoredRecord> latest(const std::string& problem, const std::string& accuracy);

  /// A fact of the whole run; empty if it was never set. The first value stays.
  std::string fact(const std::string& name);
  void set_fact(const std::string& name, const std::string& value);

 private:
  void use_file_alone();
  void use_journal();

  Database database_;
  std::optional<Statement> find_, put_, count_;
  std::int64_t puts_ = 0;
};

}  // namespace tuner
