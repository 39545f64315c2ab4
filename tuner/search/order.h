// Orders of all candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "tuner/core/random.h"

namespace tuner {

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

}  // namespace tuner
