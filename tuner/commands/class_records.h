// One problem and class in the store: typed records in and out, each with what it holds for.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/core/result.h"
#include "tuner/store/store.h"

namespace tuner {

/// What a resumed run took over, and why it did the rest again.
struct TakenOver {
  std::size_t kept = 0;
  std::map<std::string, std::size_t> stale;  // reason -> records
};
/// "12 records taken over, 3 stale (driver branch 570, now 580: 3)".
std::string in_words(const TakenOver& taken);

class ClassRecords {
 public:
  /// `settings` of the search's measurements, as text. Equal problems of a config have records of their own.
  ClassRecords(Store& store, TakenOver& taken, const NamedProblem& problem, Accuracy accuracy, const Config& config,
               const Environment& environment, std::string settings);

  /// Records that hold now; what is there and does not hold is counted as stale.
  /// A variant as the search left it.
  struct Searched {
    VariantRecord variant;
    double best_before;     // which it may have been cut against; infinite where there was none
    SearchAccount account;  // of this class's search until then, in all processes of the run
  };
  std::optional<Searched> variant(const std::string& id, const std::string& unit);
  struct Proof {
    VariantRecord variant;
    double plain_error;
  };
  std::optional<Proof> proof(const std::string& id, const std::string& unit);
  std::optional<std::vector<BaselineRecord>> baseline(const std::string& name, const std::string& unit);
  /// Error of the plain sum on inputs drawn so.
  std::optional<double> inputs(const std::string& values);
  /// What the run-off of `entrants` (machine code and routes, as text) came to; only those that took part are in it.
  std::optional<ClassRecord> finals(const std::string& entrants, const std::string& settings);

  /// Each is on disk when the call returns.
  void keep_variant(const Searched& searched, const std::string& unit);
  void keep_proof(const Proof& proof, const std::string& unit);
  void keep_baseline(const std::string& name, const std::string& unit, const std::vector<BaselineRecord>& records);
  void keep_inputs(const std::string& values, double plain_error);
  void keep_finals(const std::string& entrants, const std::string& settings, const ClassRecord& record);
  void keep_search_end(const SearchAccount& account);

  /// One that held is found not to, after all.
  void was_stale(const std::string& why);

  /// What the class's search has cost so far.
  SearchAccount account();

 private:
  RecordKey key(const char* stage, const std::string& subject) const { return {problem_, accuracy_, stage, subject}; }
  void put(const RecordKey& key, const Validity& valid_for, const std::string& data, double elapsed = 0);
  /// The record, if it holds; `read` turns its data into a value and says how much that depends on.
  template <class Value, class Reader>
  std::optional<Value> take(const RecordKey& key, const Validity& now, Reader&& read);

  Store& store_;
  TakenOver& taken_;
  std::string problem_, accuracy_, provenance_, compile_limits_;
  bool measured_;
  Validity now_;
};

}  // namespace tuner
