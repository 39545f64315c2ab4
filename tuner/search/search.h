// Strategies over an indexed set of candidates. Outcomes may arrive in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/core/value.h"

namespace tuner {

/// A candidate to evaluate: its index in the search's space, and how much effort to spend (1: the full protocol).
struct Proposal {
  std::size_t index = 0;
  double fidelity = 1;
};

/// What became of a proposal. `objective` (smaller is better, e.g. milliseconds) only with Outcome::ok or cut.
struct Told {
  Proposal proposal;
  Outcome outcome = Outcome::ok;
  std::optional<double> objective;
  double cost_seconds = 0;
};

/// What strategies may look at: the candidates' configurations, in order.
struct SearchSpace {
  std::size_t size = 0;
  std::function<Variant(std::size_t)> at;
  std::vector<std::size_t> first;  // candidates that every strategy proposes first: the families' defaults, known bests
  std::function<std::vector<std::size_t>(std::size_t)> neighbours;  // those that differ from one in one tunable
};

/// Proposes each candidate at most once. `tell` and `abandon` may come in any order, and late.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Up to n proposals; fewer when it wants outcomes first; none and done() when it has nothing left.
  virtual std::vector<Proposal> ask(std::size_t n) = 0;
  virtual void tell(const Told& told) = 0;
  /// A proposal that will not be told about (budget, interrupt).
  virtual void abandon(const Proposal& proposal) = 0;
  virtual bool done() const = 0;
};

/// A strategy's name and, in a line, what it does today.
struct StrategyInfo {
  std::string_view name;
  std::string_view summary;
};
std::vector<StrategyInfo> strategies();
/// nullptr for an unknown name. Throws std::out_of_range when `first` names no candidate. The same seed, space and
/// outcomes give the same proposals.
std::unique_ptr<Strategy> make_strategy(std::string_view name, SearchSpace space, std::uint64_t seed);

}  // namespace tuner
