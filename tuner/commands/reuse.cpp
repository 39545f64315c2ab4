#include "tuner/commands/reuse.h"

#include <fmt/format.h>

#include <utility>

#include "tuner/core/hash.h"
#include "tuner/core/record_json.h"

namespace tuner {

std::string baseline_key(const std::string& name, const Environment& environment, const CudnnOptions& options,
                         const std::string& kernels, std::string_view sources) {
  return sha256(fmt::format("{} {} {} {} {} {} {}", name, environment.cudnn, environment.cublas, options.workspace_mib,
                            options.deterministic, kernels, sources));
}

bool too_slow(const VariantRecord& cut, double best, double cut_factor) {
  return cut.time && cut.time->ms.median > cut_factor * best;
}

bool holds_against(const ClassRecords::Searched& stored, double best, double cut_factor) {
  return stored.variant.outcome != Outcome::cut || best <= stored.best_before ||
         too_slow(stored.variant, best, cut_factor);
}

ClassRecord finals_of(const ClassRecord& before, const ClassRecord& after) {
  const auto same = [](const auto& a, const auto& b) { return record_json(a, true) == record_json(b, true); };
  ClassRecord finals = after;
  finals.variants.clear();
  finals.baselines.clear();
  for (std::size_t i = 0; i < after.variants.size(); ++i)
    if (!same(before.variants[i], after.variants[i])) finals.variants.push_back(after.variants[i]);
  for (std::size_t i = 0; i < after.baselines.size(); ++i)
    if (!same(before.baselines[i], after.baselines[i])) finals.baselines.push_back(after.baselines[i]);
  return finals;
}

ClassRecord with_finals(const ClassRecord& before, ClassRecord finals) {
  const auto same_route = [](const BaselineRecord& a, const BaselineRecord& b) {
    return a.name == b.name && a.route == b.route && a.engine == b.engine && a.knobs == b.knobs;
  };
  ClassRecord after = finals;  // what belongs to the class as a whole
  after.variants = before.variants;
  after.baselines = before.baselines;
  after.space_size = before.space_size;
  after.rejections = before.rejections;
  after.search_account = before.search_account;
  for (const VariantRecord& timed : finals.variants)
    for (VariantRecord& variant : after.variants)
      if (variant.id == timed.id) variant = timed;
  for (const BaselineRecord& timed : finals.baselines)
    for (BaselineRecord& baseline : after.baselines)
      if (same_route(baseline, timed)) baseline = timed;
  return after;
}

}  // namespace tuner
