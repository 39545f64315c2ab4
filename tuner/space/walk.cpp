#include "tuner/space/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tuner {
namespace {

constexpr std::uint64_t kTableEntries = std::uint64_t{1} << 22;

std::size_t axis_of(const std::vector<Tunable>& tunables, const std::string& name, const std::string& reason) {
  for (std::size_t axis = 0; axis < tunables.size(); ++axis)
    if (tunables[axis].name == name) return axis;
  throw std::invalid_argument(
      fmt::format("the constraint \"{}\" reads {}, which is no tunable of its family", reason, name));
}

}  // namespace

Walk::Walk(const std::vector<Tunable>& tunables, std::vector<Constraint> constraints)
    : tunables_(tunables), place_(tunables.size()), chosen_(tunables.size(), 0) {
  std::uint64_t place = 1;
  for (std::size_t axis = tunables.size(); axis-- > 0;) {
    place_[axis] = place;
    place *= tunables[axis].values.size();
  }
  for (const Tunable& tunable : tunables) configuration_.emplace_back(tunable.name, tunable.values.front());
  for (Constraint& constraint : constraints) {
    Checked checked;
    for (const std::string& name : constraint.reads) {
      const std::size_t axis = axis_of(tunables, name, constraint.reason);
      if (std::find(checked.axes.begin(), checked.axes.end(), axis) == checked.axes.end()) checked.axes.push_back(axis);
    }
    checked.constraint = std::move(constraint);
    make_table(checked);
    checks_.push_back(std::move(checked));
  }
  order_axes();
}

void Walk::make_table(Checked& checked) {
  std::uint64_t entries = 1;
  for (const std::size_t axis : checked.axes) {
    checked.multiplier.push_back(entries);
    entries *= tunables_[axis].values.size();
    if (entries > kTableEntries) return;
  }
  checked.answers.assign(entries, -1);
}

/// The constraint whose missing axes have the fewest combinations comes next, with those axes.
void Walk::order_axes() {
  const std::size_t count = tunables_.size();
  std::vector<bool> placed(count, false);
  std::vector<bool> bound(checks_.size(), false);
  due_.assign(count + 1, {});
  const auto missing = [&](const Checked& checked) {
    double product = 1;
    for (const std::size_t axis : checked.axes)
      if (!placed[axis]) product *= static_cast<double>(tunables_[axis].values.size());
    return product;
  };
  for (std::size_t round = 0; round < checks_.size(); ++round) {
    std::size_t next = checks_.size();
    for (std::size_t i = 0; i < checks_.size(); ++i)
      if (!bound[i] && (next == checks_.size() || missing(checks_[i]) < missing(checks_[next]))) next = i;
    bound[next] = true;
    for (std::size_t axis = 0; axis < count; ++axis) {
      const auto& axes = checks_[next].axes;
      if (placed[axis] || std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
      placed[axis] = true;
      order_.push_back(axis);
    }
    due_[order_.size()].push_back(next);
  }
  for (std::size_t axis = 0; axis < count; ++axis)
    if (!placed[axis]) order_.push_back(axis);
  below_.assign(count + 1, 1);
  for (std::size_t level = count; level-- > 0;)
    below_[level] = below_[level + 1] * tunables_[order_[level]].values.size();
}

bool Walk::holds(Checked& checked) {
  std::uint64_t entry = 0;
  if (!checked.answers.empty()) {
    for (std::size_t i = 0; i < checked.axes.size(); ++i) entry += checked.multiplier[i] * chosen_[checked.axes[i]];
    if (checked.answers[entry] >= 0) return checked.answers[entry] == 1;
  }
  for (const std::size_t axis : checked.axes) configuration_[axis].second = tunables_[axis].values[chosen_[axis]];
  const bool answer = checked.constraint.holds(configuration_);
  if (!checked.answers.empty()) checked.answers[entry] = answer ? 1 : 0;
  return answer;
}

/// Among the checks due once `level` axes are chosen.
Walk::Checked* Walk::first_refusal(std::size_t level) {
  for (const std::size_t i : due_[level])
    if (!holds(checks_[i])) return &checks_[i];
  return nullptr;
}

void Walk::enumerate(std::size_t depth, std::vector<std::uint64_t>& codes) {
  std::fill(chosen_.begin(), chosen_.end(), 0);
  if (Checked* refusal = first_refusal(0)) {
    refusal->rejected += below_[0];
    return;
  }
  if (depth == 0) return codes.push_back(0);
  std::uint64_t code = 0;
  std::size_t level = 0;  // chosen_[order_[level]] is the value being looked at
  while (true) {
    const std::size_t axis = order_[level];
    if (chosen_[axis] == tunables_[axis].values.size()) {  // this axis is exhausted: back to the one above
      code -= place_[axis] * chosen_[axis];
      chosen_[axis] = 0;
      if (level == 0) return;
      --level;
    } else if (Checked* refusal = first_refusal(level + 1)) {
      refusal->rejected += below_[level + 1];
    } else if (level + 1 < depth) {
      ++level;
      continue;
    } else {
      codes.push_back(code);
    }
    ++chosen_[order_[level]];
    code += place_[order_[level]];
  }
}

const std::string* Walk::draw_below(std::size_t depth, std::uint64_t prefix, Random& random, std::uint64_t& code) {
  for (std::size_t level = 0; level < depth; ++level) {
    const std::size_t axis = order_[level];
    choose(level, prefix / place_[axis] % tunables_[axis].values.size());
  }
  for (std::size_t level = depth; level < order_.size(); ++level)
    choose(level, random.below(tunables_[order_[level]].values.size()));
  for (std::size_t level = depth; level < order_.size(); ++level)
    if (const Checked* refusal = first_refusal(level + 1)) return &refusal->constraint.reason;
  code = this->code();
  return nullptr;
}

std::uint64_t Walk::code() const {
  std::uint64_t sum = 0;
  for (std::size_t axis = 0; axis < place_.size(); ++axis) sum += place_[axis] * chosen_[axis];
  return sum;
}

std::size_t Walk::depth_within(std::uint64_t limit) const {
  std::size_t depth = 0;
  while (depth < order_.size() && below_[0] / below_[depth + 1] <= limit) ++depth;
  return depth;
}

std::map<std::string, std::uint64_t> Walk::rejections() const {
  std::map<std::string, std::uint64_t> counts;
  for (const Checked& checked : checks_)
    if (checked.rejected != 0) counts[checked.constraint.reason] += checked.rejected;
  return counts;
}

void Walk::forget_rejections() {
  for (Checked& checked : checks_) checked.rejected = 0;
}

}  // namespace tuner
