#include "tuner/search/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuner {
namespace {

template <class Number>
std::optional<Number> tighter(std::optional<Number> a, std::optional<Number> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

SearchBudget SearchBudget::of_seconds(double seconds) {
  SearchBudget budget;
  budget.seconds_ = seconds;
  return budget;
}

SearchBudget SearchBudget::of_evaluations(std::int64_t evaluations) {
  SearchBudget budget;
  budget.evaluations_ = evaluations;
  return budget;
}

SearchBudget operator&(const SearchBudget& a, const SearchBudget& b) {
  SearchBudget budget;
  budget.seconds_ = tighter(a.seconds_, b.seconds_);
  budget.evaluations_ = tighter(a.evaluations_, b.evaluations_);
  return budget;
}

bool SearchBudget::exhausted(const Spent& spent) const {
  return (seconds_ && spent.seconds >= *seconds_) || (evaluations_ && spent.evaluations >= *evaluations_);
}

std::optional<std::int64_t> SearchBudget::evaluations_left(const Spent& spent) const {
  if (exhausted(spent)) return 0;
  if (!evaluations_) return std::nullopt;
  return *evaluations_ - spent.evaluations;
}

double SearchBudget::fraction(const Spent& spent) const {
  if (exhausted(spent)) return 1;
  double used = 0;
  if (seconds_) used = std::max(used, spent.seconds / *seconds_);
  if (evaluations_) used = std::max(used, static_cast<double>(spent.evaluations) / static_cast<double>(*evaluations_));
  return used;
}

std::string SearchBudget::describe() const {
  if (!seconds_ && !evaluations_) return "unlimited";
  if (!evaluations_) return fmt::format("{} s", *seconds_);
  const std::string evaluations = fmt::format("{} evaluation{}", *evaluations_, *evaluations_ == 1 ? "" : "s");
  return seconds_ ? fmt::format("{} s or {}", *seconds_, evaluations) : evaluations;
}

}  // namespace tuner
