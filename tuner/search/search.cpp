#include "tuner/search/search.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "tuner/search/climb.h"
#include "tuner/search/order.h"

namespace tuner {
namespace {

/// Proposes `first`, then the others in an order fixed beforehand, at full fidelity. Outcomes do not change what it
/// proposes, so it learns nothing from them and never waits for one.
class FixedOrder : public Strategy {
 public:
  FixedOrder(std::vector<std::size_t> first, std::unique_ptr<Order> order) : order_(std::move(order)) {
    for (const std::size_t index : first) {
      if (index >= order_->size()) throw std::out_of_range("a candidate to propose first is not in the space");
      if (first_set_.insert(index).second) first_.push_back(index);
    }
  }

  std::vector<Proposal> ask(std::size_t n) override {
    std::vector<Proposal> proposals;
    for (; proposals.size() < n && proposed_ < order_->size(); ++proposed_) proposals.push_back({next(), 1});
    return proposals;
  }
  void tell(const Told&) override {}
  void abandon(const Proposal&) override {}
  bool done() const override { return proposed_ == order_->size(); }

 private:
  std::size_t next() {
    if (proposed_ < first_.size()) return first_[proposed_];
    std::size_t index = order_->next();
    while (first_set_.count(index) != 0) index = order_->next();
    return index;
  }

  std::vector<std::size_t> first_;
  std::unordered_set<std::size_t> first_set_;
  std::unique_ptr<Order> order_;
  std::size_t proposed_ = 0;
};

}  // namespace

std::vector<StrategyInfo> strategies() {
  return {
      {"auto",
       "the families' defaults, then neighbours of the best ones found (one tunable changed), every third at random "
       "from families that may still win"},
      {"exhaustive", "every configuration, in the order of the space, the families' defaults first"},
      {"random", "every configuration once, in a random order fixed by the seed, the families' defaults first"}};
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, SearchSpace space, std::uint64_t seed) {
  if (name == "exhaustive")
    return std::make_unique<FixedOrder>(std::move(space.first), std::make_unique<Ascending>(space.size));
  if (name == "auto") return std::make_unique<Climb>(std::move(space), seed);
  if (name == "random")
    return std::make_unique<FixedOrder>(std::move(space.first), std::make_unique<Shuffled>(space.size, seed));
  return nullptr;
}

}  // namespace tuner
