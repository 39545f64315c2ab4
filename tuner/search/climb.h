// Local search from the best configurations found, beside random draws.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_set>

#include "tuner/search/order.h"
#include "tuner/search/search.h"

namespace tuner {

/// Proposes `first`; then, of three proposals, two neighbours of the best candidates told so far and one drawn at
/// random from the families whose best is within kMayWin of the best of all. Candidates of other families come last.
/// Proposals depend on what was told, not on its order.
class Climb : public Strategy {
 public:
  Climb(SearchSpace space, std::uint64_t seed);

  std::vector<Proposal> ask(std::size_t n) override;
  void tell(const Told& told) override;
  void abandon(const Proposal&) override {}
  bool done() const override { return proposed_.size() == space_.size; }

 private:
  static constexpr double kMayWin = 2;        // times the best objective
  static constexpr std::size_t kCentres = 8;  // candidates whose neighbours are tried, the best first

  std::size_t next();
  std::optional<std::size_t> neighbour();
  std::optional<std::size_t> drawn();
  bool may_win(const std::string& family) const;
  bool propose(std::size_t index) { return proposed_.insert(index).second; }

  SearchSpace space_;
  Random random_;
  Shuffled order_;
  std::size_t ordered_ = 0;          // of order_
  std::deque<std::size_t> put_off_;  // drawn, of families that cannot win
  std::unordered_set<std::size_t> proposed_;
  std::size_t firsts_ = 0;  // of space_.first
  std::uint64_t turn_ = 0;
  std::set<std::pair<double, std::size_t>> told_;            // objective, index
  std::map<std::size_t, std::vector<std::size_t>> untried_;  // neighbours of a centre, the next one last
  std::map<std::string, double> best_of_;                    // family -> its best objective
};

}  // namespace tuner
