// How much a search may spend. Pure values; whoever runs the search owns the clock and the counter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tuner {

struct Spent {
  double seconds = 0;
  std::int64_t evaluations = 0;
};

/// A limit on seconds, on evaluations, on both, or none. Limits compose: `a & b` ends when either does.
class SearchBudget {
 public:
  SearchBudget() = default;
  static SearchBudget of_seconds(double seconds);
  static SearchBudget of_evaluations(std::int64_t evaluations);
  friend SearchBudget operator&(const SearchBudget& a, const SearchBudget& b);

  bool exhausted(const Spent& spent) const;
  /// Most evaluations that may still be started: 0 once exhausted, nothing where evaluations are not limited.
  std::optional<std::int64_t> evaluations_left(const Spent& spent) const;
  /// 0..1 of the limit that is nearest to its end; 0 without limits.
  double fraction(const Spent& spent) const;
  /// "300 s", "200 evaluations", "300 s or 200 evaluations", "unlimited".
  std::string describe() const;
  bool operator==(const SearchBudget&) const = default;

 private:
  std::optional<double> seconds_;
  std::optional<std::int64_t> evaluations_;
};

}  // namespace tuner
