#include "tuner/commands/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tuner/family/lower_bound.h"

namespace tuner {
namespace {

/// Narrows a family's lists to what the config names.
std::vector<Tunable> narrowed(std::vector<Tunable> tunables, const FamilySelection* selection) {
  if (!selection) return tunables;
  for (const auto& [name, values] : selection->values)
    for (Tunable& tunable : tunables)
      if (tunable.name == name) tunable.values = values;
  return tunables;
}

const FamilySelection* selection_of(const Config& config, std::string_view family) {
  if (config.families)
    for (const FamilySelection& selection : *config.families)
      if (selection.name == family) return &selection;
  return nullptr;
}

std::vector<std::vector<Tunable>> own_tunables() {
  std::vector<std::vector<Tunable>> own;
  for (const Family* family : families()) own.push_back(family->tunables());
  return own;
}

}  // namespace

std::vector<std::string> untouched_families(const Config& config) {
  std::vector<std::string> lines;
  const auto own = own_tunables();
  for (const std::string& condition : config.restrict_) {
    const auto bound = bind_conditions({condition}, own);
    std::vector<std::string_view> untouched;
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (bound[i].empty() && (!config.families || selection_of(config, families()[i]->name())))
        untouched.push_back(families()[i]->name());
    if (!untouched.empty())
      lines.push_back(fmt::format("restrict \"{}\" does not touch {}: no such tunables there", condition,
                                  fmt::join(untouched, ", ")));
  }
  return lines;
}

Candidates::Candidates(const Config& config, const BuildContext& context,
                       std::map<std::string, std::uint64_t>& rejections) {
  const auto own = own_tunables();
  const auto conditions = bind_conditions(config.restrict_, own);
  for (std::size_t i = 0; i < families().size(); ++i) {
    const Family* family = families()[i];
    const FamilySelection* selection = selection_of(config, family->name());
    if (config.families && !selection) continue;
    if (const auto refusal = family->refuses(context)) {
      ++rejections[fmt::format("{}: {}", family->name(), *refusal)];
      continue;
    }
    auto constraints = family->constraints(context);
    constraints.insert(constraints.end(), conditions[i].begin(), conditions[i].end());
    SpaceOptions options;
    options.seed = config.search.seed;
    Space space(narrowed(own[i], selection), std::move(constraints), options);
    for (const auto& [reason, count] : space.rejections())
      rejections[fmt::format("{}: {}", family->name(), reason)] += count;
    parts_.push_back({family, std::move(space)});
  }
}

std::size_t Candidates::size() const {
  std::size_t total = 0;
  for (const Part& part : parts_) total += part.space.size();
  return total;
}

Variant Candidates::at(std::size_t index) const {
  for (const Part& part : parts_) {
    if (index < part.space.size()) return {std::string(part.family->name()), part.space.at(index)};
    index -= part.space.size();
  }
  throw std::out_of_range("candidate index");
}

std::vector<std::size_t> Candidates::neighbours(std::size_t index) const {
  std::size_t offset = 0;
  for (const Part& part : parts_) {
    if (index - offset < part.space.size()) {
      std::vector<std::size_t> found = part.space.neighbours(index - offset);
      for (std::size_t& other : found) other += offset;
      return found;
    }
    offset += part.space.size();
  }
  throw std::out_of_range("candidate index");
}

std::vector<std::size_t> Candidates::defaults(const BuildContext& context) const {
  std::vector<std::tuple<std::size_t, double, std::size_t>> found;  // place in its family, lower bound, index
  std::size_t offset = 0;
  for (const Part& part : parts_) {
    std::size_t place = 0;
    for (const Configuration& configuration : part.family->promising_configurations(context))
      if (const auto index = part.space.find(configuration))
        found.emplace_back(place++,
                           lower_bound_ms(part.family->build(context, configuration).work, context.device, true),
                           offset + *index);
    offset += part.space.size();
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<std::size_t> indices;
  for (const auto& [place, bound, index] : found) indices.push_back(index);
  return indices;
}

}  // namespace tuner
