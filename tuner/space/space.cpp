#include "tuner/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <unordered_set>

#include "tuner/core/random.h"
#include "tuner/space/walk.h"

namespace tuner {
namespace {

std::uint64_t product_of(const std::vector<Tunable>& tunables) {
  std::uint64_t product = 1;
  for (const Tunable& tunable : tunables) {
    const std::uint64_t count = tunable.values.size();
    if (count != 0 && product > (std::uint64_t{1} << 63) / count)
      throw UsageError("the space has more than 2^63 raw combinations; narrow the families' value lists");
    product *= count;
  }
  return product;
}

/// Random valid codes: a prefix of axes is enumerated with its pruning, one of the valid prefixes and the values of the
/// remaining axes are drawn uniformly, and what a constraint refuses is drawn again. Uniform over the valid ones.
class Sampler {
 public:
  static constexpr std::uint64_t kPrefixes = 1'000'000;
  static constexpr std::uint64_t kDraws = 8'000'000;  // at most, so that a space with hardly a valid one ends

  explicit Sampler(Walk& walk) : walk_(walk), depth_(walk.depth_within(kPrefixes)) {
    walk_.enumerate(depth_, prefixes_);
  }

  std::uint64_t remaining() const { return prefixes_.size() * walk_.combinations_below(depth_); }

  std::vector<std::uint64_t> draw(const SpaceOptions& options, std::map<std::string, std::uint64_t>& rejections) {
    Random random(options.seed);
    std::vector<std::uint64_t> valid;
    std::unordered_set<std::uint64_t> seen;
    std::map<std::string, std::uint64_t> refused;
    std::uint64_t draws = 0;
    while (!prefixes_.empty() && draws < kDraws && valid.size() < options.sample && seen.size() < remaining()) {
      ++draws;
      const std::uint64_t prefix = prefixes_[random.below(prefixes_.size())];
      std::uint64_t code = 0;
      const std::string* reason = walk_.draw_below(depth_, prefix, random, code);
      if (reason != nullptr)
        ++refused[*reason];
      else if (seen.insert(code).second)
        valid.push_back(code);
    }
    for (const auto& [reason, count] : refused)
      rejections[reason] += static_cast<std::uint64_t>(static_cast<double>(count) / static_cast<double>(draws) *
                                                       static_cast<double>(remaining()));
    return valid;
  }

 private:
  Walk& walk_;
  std::size_t depth_;
  std::vector<std::uint64_t> prefixes_;
};

}  // namespace

Space::Space(std::vector<Tunable> tunables, std::vector<Constraint> constraints, const SpaceOptions& options)
    : tunables_(std::move(tunables)), raw_count_(product_of(tunables_)) {
  if (raw_count_ == 0) return;
  Walk walk(tunables_, std::move(constraints));
  if (raw_count_ > options.max_enumerated) {
    Sampler sampler(walk);
    if (sampler.remaining() > options.max_enumerated) {
      sampled_ = true;
      rejections_ = walk.rejections();
      valid_ = sampler.draw(options, rejections_);
      std::sort(valid_.begin(), valid_.end());
      return;
    }
    walk.forget_rejections();  // pruning leaves few enough to list after all
  } else {
    valid_.reserve(raw_count_);  // pages that are not written cost nothing; growing would hold two copies
  }
  walk.enumerate(tunables_.size(), valid_);
  std::sort(valid_.begin(), valid_.end());
  if (valid_.size() < valid_.capacity() / 2) valid_.shrink_to_fit();
  rejections_ = walk.rejections();
}

Configuration Space::at(std::size_t index) const {
  std::uint64_t code = valid_.at(index);
  Configuration configuration(tunables_.size());
  for (std::size_t axis = tunables_.size(); axis-- > 0;) {
    const Tunable& tunable = tunables_[axis];
    configuration[axis] = {tunable.name, tunable.values[code % tunable.values.size()]};
    code /= tunable.values.size();
  }
  return configuration;
}

std::optional<std::size_t> Space::find(const Configuration& configuration) const {
  if (configuration.size() != tunables_.size()) return std::nullopt;
  std::uint64_t code = 0;
  for (std::size_t axis = 0; axis < tunables_.size(); ++axis) {
    const std::vector<Value>& values = tunables_[axis].values;
    const auto value = std::find(values.begin(), values.end(), configuration[axis].second);
    if (configuration[axis].first != tunables_[axis].name || value == values.end()) return std::nullopt;
    code = code * values.size() + static_cast<std::uint64_t>(value - values.begin());
  }
  return index_of(code);
}

std::optional<std::size_t> Space::index_of(std::uint64_t code) const {
  const auto found = std::lower_bound(valid_.begin(), valid_.end(), code);
  if (found == valid_.end() || *found != code) return std::nullopt;
  return static_cast<std::size_t>(found - valid_.begin());
}

std::vector<std::size_t> Space::neighbours(std::size_t index) const {
  const std::uint64_t code = valid_.at(index);
  std::vector<std::size_t> found;
  std::uint64_t weight = raw_count_;
  for (const Tunable& tunable : tunables_) {
    const std::uint64_t count = tunable.values.size();
    weight /= count;
    const std::uint64_t own = code / weight % count;
    for (std::uint64_t value = 0; value < count; ++value)
      if (value != own)
        if (const auto other = index_of(code - own * weight + value * weight)) found.push_back(*other);
  }
  return found;
}

}  // namespace tuner
