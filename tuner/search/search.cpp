#include "tuner/search/search.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "tuner/core/random.h"

namespace tuner {
namespace {

/// Yields each of 0..size-1 once.
class Order {
 public:
  explicit Order(std::size_t size) : size_(size) {}
  virtual ~Order() = default;
  virtual std::size_t next() = 0;  // called `size()` times at most
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
};

class Ascending : public Order {
 public:
  using Order::Order;
  std::size_t next() override { return next_++; }

 private:
  std::size_t next_ = 0;
};

/// Fisher-Yates shuffle, drawn as it is asked for: memory grows with what was drawn, not with the space.
class Shuffled : public Order {
 public:
  Shuffled(std::size_t size, std::uint64_t seed) : Order(size), random_(seed) {}

  std::size_t next() override {
    const std::size_t place = drawn_++;
    const std::size_t other = place + static_cast<std::size_t>(random_.below(size() - place));
    const std::size_t chosen = at(other);
    moved_[other] = at(place);
    moved_.erase(place);
    return chosen;
  }

 private:
  std::size_t at(std::size_t place) const {
    const auto found = moved_.find(place);
    return found == moved_.end() ? place : found->second;
  }

  Random random_;
  std::size_t drawn_ = 0;
  std::unordered_map<std::size_t, std::size_t> moved_;  // place -> what stands there, where it is not the place itself
};

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
  return {{"auto", "the families' default configurations, then the rest at random; at present the same as random"},
          {"exhaustive", "every configuration, in the order of the space, the families' defaults first"},
          {"random", "every configuration once, in a random order fixed by the seed, the families' defaults first"}};
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, SearchSpace space, std::uint64_t seed) {
  if (name == "exhaustive")
    return std::make_unique<FixedOrder>(std::move(space.first), std::make_unique<Ascending>(space.size));
  if (name == "random" || name == "auto")
    return std::make_unique<FixedOrder>(std::move(space.first), std::make_unique<Shuffled>(space.size, seed));
  return nullptr;
}

}  // namespace tuner
