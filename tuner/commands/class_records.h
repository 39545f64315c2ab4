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

/// What a resumed run took over of an earlier one's records, and why it did the rest again.
class TakenOver {
 public:
  /// `there`: how many records the store held at first.
  explicit TakenOver(std::int64_t there) : there_(there) {}

  /// The first verdict on a record stays, but for was_stale().
  void none(const RecordKey& key) { judge(key, {}); }  // made by this run, if at all
  void held(const RecordKey& key) { judge(key, {Verdict::held, {}}); }
  void stale(const RecordKey& key, const std::string& why) { judge(key, {Verdict::stale, why}); }
  /// One that held is found not to, after all.
  void was_stale(const RecordKey& key, const std::string& why);

  /// "12 records taken over, 3 stale and done again (driver branch 570, now 580: 3), 4 not asked for".
  std::string in_words() const;

 private:
  struct Verdict {
    enum { none, held, stale } kind = none;
    std::string why = {};
  };
  static std::string text(const RecordKey& key);
  void judge(const RecordKey& key, const Verdict& verdict) { verdicts_.emplace(text(key), verdict); }

  std::int64_t there_;
  std::map<std::string, Verdict> verdicts_;
};

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
  void was_stale(const std::string& id, const std::string& why) { taken_.was_stale(key("variant", id), why); }

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
