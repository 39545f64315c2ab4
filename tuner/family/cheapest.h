// The candidates that a model's cost holds for the best, one of each kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tuner/family/typed_family.h"

namespace tuner {

/// `Kind`: what makes two candidates so much alike that only the cheaper one is worth a try.
template <class Tunables, class Kind>
class CheapestByKind {
 public:
  /// What the kind's cheapest costs so far.
  double least(const Kind& kind) const {
    const auto found = of_.find(kind);
    return found == of_.end() ? std::numeric_limits<double>::infinity() : found->second.cost;
  }
  void offer(const Kind& kind, double cost, const Tunables& tunables) {
    if (cost < least(kind)) of_.insert_or_assign(kind, Best{cost, turn_++, tunables});
  }
  /// Up to `count`, the cheapest first; of those that cost the same the one that was offered first.
  std::vector<Tunables> cheapest(std::size_t count) const {
    std::vector<const Best*> order;
    for (const auto& [kind, best] : of_) order.push_back(&best);
    std::sort(order.begin(), order.end(),
              [](const Best* a, const Best* b) { return std::pair(a->cost, a->turn) < std::pair(b->cost, b->turn); });
    std::vector<Tunables> tunables;
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i) tunables.push_back(order[i]->tunables);
    return tunables;
  }

 private:
  struct Best {
    double cost;
    std::size_t turn;
    Tunables tunables;
  };
  std::map<Kind, Best> of_;
  std::size_t turn_ = 0;
};

/// The same as configurations; `otherwise` alone where nothing was offered.
template <class Tunables, class Kind>
std::vector<Configuration> promising_of(const CheapestByKind<Tunables, Kind>& candidates, std::size_t count,
                                        const Tunables& otherwise) {
  std::vector<Configuration> promising;
  for (const Tunables& t : candidates.cheapest(count)) promising.push_back(to_configuration(t));
  if (promising.empty()) promising.push_back(to_configuration(otherwise));
  return promising;
}

}  // namespace tuner
