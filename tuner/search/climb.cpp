#include "tuner/search/climb.h"

#include <algorithm>
#include <stdexcept>

namespace tuner {

Climb::Climb(SearchSpace space, std::uint64_t seed)
    : space_(std::move(space)), random_(mix64(seed)), order_(space_.size, seed) {
  for (const std::size_t index : space_.first)
    if (index >= space_.size) throw std::out_of_range("a candidate to propose first is not in the space");
}

std::vector<Proposal> Climb::ask(std::size_t n) {
  std::vector<Proposal> proposals;
  while (proposals.size() < n && !done()) proposals.push_back({next(), 1});
  return proposals;
}

void Climb::tell(const Told& told) {
  if (!told.objective) return;
  told_.insert({*told.objective, told.proposal.index});
  const auto [best, is_new] = best_of_.insert({space_.at(told.proposal.index).family, *told.objective});
  if (!is_new) best->second = std::min(best->second, *told.objective);
}

std::size_t Climb::next() {
  while (firsts_ < space_.first.size())
    if (propose(space_.first[firsts_++])) return space_.first[firsts_ - 1];
  if (turn_++ % 3 != 2)
    if (const auto index = neighbour()) return *index;
  if (const auto index = drawn()) return *index;
  if (const auto index = neighbour()) return *index;
  while (true) {
    const std::size_t index = put_off_.front();
    put_off_.pop_front();
    if (propose(index)) return index;
  }
}

std::optional<std::size_t> Climb::neighbour() {
  if (!space_.neighbours) return std::nullopt;
  std::size_t centres = 0;
  for (auto centre = told_.begin(); centre != told_.end() && centres < kCentres; ++centre, ++centres) {
    const auto [found, is_new] = untried_.try_emplace(centre->second);
    std::vector<std::size_t>& untried = found->second;
    if (is_new) {
      untried = space_.neighbours(centre->second);
      for (std::size_t i = untried.size(); i > 1; --i) std::swap(untried[i - 1], untried[random_.below(i)]);
    }
    while (!untried.empty()) {
      const std::size_t index = untried.back();
      untried.pop_back();
      if (propose(index)) return index;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> Climb::drawn() {
  while (ordered_ < space_.size) {
    const std::size_t index = order_.next();
    ++ordered_;
    if (proposed_.count(index) != 0) continue;
    if (may_win(space_.at(index).family)) {
      propose(index);
      return index;
    }
    put_off_.push_back(index);
  }
  return std::nullopt;
}

bool Climb::may_win(const std::string& family) const {
  const auto own = best_of_.find(family);
  return own == best_of_.end() || own->second <= kMayWin * told_.begin()->first;
}

}  // namespace tuner
