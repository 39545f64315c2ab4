// The search of one problem and class: candidates are asked for, compiled and evaluated, or taken over from the store,
// and told.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/commands/candidates.h"
#include "tuner/commands/class_task.h"
#include "tuner/search/search.h"

namespace tuner {

class ClassSearch {
 public:
  explicit ClassSearch(ClassTask& task);

  /// Valid configurations.
  std::size_t space_size() const { return candidates_.size(); }
  /// Begins to compile the first candidates; to be called once, before run(). What is done in between is no time of the
  /// search, and hides how long the first compile takes, which is most of a search of few variants.
  void start(std::optional<std::int64_t> evaluations);
  /// `seconds`: that the search may take, what earlier processes of the run spent included.
  void run(std::optional<double> seconds);

  /// What is kept of one that may win.
  struct Kept {
    std::size_t record;                // its place among the result's variants
    std::optional<CompiledUnit> unit;  // none yet where the record is from the store
    double objective;
  };
  /// Those of this outcome, the best objective first.
  std::vector<Kept*> ranking(Outcome outcome);
  /// Compiles what the store only has a record of. False where the machine code is no longer what was measured: then
  /// the variant was evaluated again, and its place may be another; or where it has to be given up.
  bool have_unit(Kept& kept);
  /// Places of those that were cut, once those they may have been cut against are no longer right: all that would not
  /// be cut against the fastest that is left.
  std::vector<std::size_t> undone_cuts();
  /// Evaluates what stands at these places anew, each cut against the fastest that is right by then. What ranking()
  /// gave is no longer valid.
  void evaluate_again(const std::vector<std::size_t>& places);
  /// Stores a record that the run-off changed, so that a resumed search meets it as it is now.
  void keep(const VariantRecord& record);

 private:
  using Clock = std::chrono::steady_clock;

  /// A candidate on its way through compiling, or taken over from the store.
  struct Pending {
    Proposal proposal;
    Variant variant;
    Program program;
    std::string key;  // of its unit
    std::optional<ClassRecords::Searched> stored;
    std::future<Expected<CompiledUnit>> unit;  // where it is not stored
    Clock::time_point started;
  };

  void fill();
  Pending begin(const Proposal& proposal);
  void drop_undone_cut(Pending& pending);
  bool ready(const Pending& pending);
  std::optional<Told> finish(Pending pending);
  Told retell(Pending pending);
  Told note(const Pending& pending, VariantRecord record, std::optional<CompiledUnit> unit, double cost);
  void note_compile_facts(VariantRecord& record, const Program& program, const CompiledUnit& unit);
  void judge(VariantRecord& record, const CompiledUnit& unit);
  void store(const VariantRecord& record, const std::string& key, double best_before);
  std::optional<double> evaluate_again(VariantRecord& record, const Program& program,
                                       const Expected<CompiledUnit>& unit);
  std::optional<Expected<CompiledUnit>> compiled(const Program& program);
  void find_best();
  std::optional<double> value_of(const VariantRecord& record, const Program& program) const;
  std::string best_text() const;
  double searched() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  SearchAccount account() const;

  ClassTask& task_;
  Candidates candidates_;
  std::unique_ptr<Strategy> strategy_;
  std::optional<double> seconds_;  // that the search may take
  bool counted_ = false;           // evaluations are under a budget
  bool stored_any_ = false;
  std::size_t limit_ = 0, asked_ = 0;
  std::size_t least_ = 0;  // tried however little time there is: the families' defaults
  std::deque<Pending> pipeline_;
  std::vector<Kept> kept_;
  std::optional<SearchAccount> spent_;  // once the search has ended
  SearchAccount account_;               // but for wall and other
  Clock::time_point start_;             // moved into the past by what earlier processes of the run spent
  Clock::time_point paused_;
  double best_ = std::numeric_limits<double>::infinity();  // ms, or mJ
  std::string best_id_;
};

}  // namespace tuner
