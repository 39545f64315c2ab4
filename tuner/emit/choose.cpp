#include "tuner/emit/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tuner/family/checks.h"

namespace tuner {
namespace {

bool holds_all(const Family& family, const BuildContext& context, const Configuration& configuration) {
  if (family.refuses(context)) return false;
  const auto constraints = family.constraints(context);
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const Constraint& c) { return c.holds(configuration); });
}

const VariantRecord* fastest(const ClassRecord& record) {
  const VariantRecord* best = nullptr;
  for (const VariantRecord& variant : record.variants)
    if (variant.outcome == Outcome::ok && variant.time &&
        (best == nullptr || variant.time->ms.median < best->time->ms.median))
      best = &variant;
  return best;
}

const VariantRecord* first_of_shortlist(const ClassRecord& record) {
  return record.shortlist.empty() ? nullptr : find_variant(record, record.shortlist.front());
}

std::optional<Chosen> choose_one(const RunResult& result, const ProblemRecord& problem, const ClassRecord& record) {
  // The run-off decides, where it named one of ours.
  const VariantRecord* named = record.best.empty() ? nullptr : find_variant(record, record.best);
  const VariantRecord* variant = !result.measured   ? first_of_shortlist(record)
                                 : named != nullptr ? named
                                                    : fastest(record);
  if (variant == nullptr) return std::nullopt;
  const Family* family = find_family(variant->variant.family);
  if (family == nullptr)
    throw UsageError(
        fmt::format("the result {} uses a family {} that this program lacks", result.name, variant->variant.family));
  Chosen chosen;
  chosen.context = {problem.problem, record.accuracy, result.environment.device};
  chosen.context.problem.batch = std::max<std::int64_t>(1, problem.problem.batch);
  chosen.problem_name = problem.name;
  chosen.variant = {variant->variant.family, recorded_configuration(*family, chosen.context, variant->variant)};
  chosen.program = family->build(chosen.context, chosen.variant.tunables);
  if (result.measured && variant->time) chosen.median_ms = variant->time->ms.median;
  if (result.measured && named == nullptr && !record.best.empty()) chosen.note = record.best + " was faster";
  return chosen;
}

bool same_call(const BuildContext& a, const BuildContext& b) {
  Problem x = a.problem;
  x.bias = b.problem.bias;
  return x == b.problem && a.accuracy == b.accuracy && a.device.name == b.device.name;
}

/// Problems as unlike each other as are legal: what a general configuration must take.
std::vector<Problem> probes() {
  //       batch in out  K  s  p op  d  g bias length
  return {{2, 512, 512, 16, 8, 4, 0, 1, 1, true, 2048}, {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1},
          {2, 4, 8, 3, 1, 1, 0, 1, 1, false, 100},      {1, 32, 16, 31, 16, 7, 3, 1, 1, true, 77},
          {3, 8, 12, 5, 3, 2, 1, 7, 4, false, 50},      {1, 64, 64, 12, 2, 5, 1, 1, 64, true, 999},
          {1, 2, 3, 700, 1, 0, 0, 1, 1, false, 9},      {1, 3, 5, 3, 1, 0, 0, 3000, 1, false, 33},
          {2, 16, 16, 2, 100, 0, 7, 1, 1, false, 5},    {1, 6, 6, 4, 4, 1, 1, 2, 2, true, 65536}};
}

/// The same kernels for all of the probes. A family that cannot do that is no way out for a problem that was not tuned.
bool general(const Family& family, BuildContext context, const Configuration& configuration) {
  std::string names;
  for (const Problem& problem : probes()) {
    context.problem = problem;
    if (!holds_all(family, context, configuration)) return false;
    const Program program = family.build(context, configuration);
    std::string own;
    for (const auto* launches : {&program.prepare, &program.run})
      for (const Launch& launch : *launches) own += launch.kernel + ";";
    if (names.empty()) names = own;
    if (own != names) return false;
  }
  return true;
}

}  // namespace

std::vector<Chosen> choose(const std::vector<RunResult>& results) {
  std::vector<Chosen> chosen;
  for (const RunResult& result : results)
    for (const ProblemRecord& problem : result.problems)
      for (const ClassRecord& record : problem.classes) {
        std::optional<Chosen> one = choose_one(result, problem, record);
        if (!one) continue;
        const auto known = std::find_if(chosen.begin(), chosen.end(),
                                        [&](const Chosen& c) { return same_call(c.context, one->context); });
        if (known == chosen.end())
          chosen.push_back(std::move(*one));
        else if (one->median_ms && (!known->median_ms || *one->median_ms < *known->median_ms))
          *known = std::move(*one);
      }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Chosen& a, const Chosen& b) { return a.context.device.name < b.context.device.name; });
  return chosen;
}

std::optional<Chosen> choose_general(Accuracy accuracy, const std::vector<Chosen>& chosen) {
  std::map<std::string, int> uses;
  for (const Chosen& one : chosen)
    if (one.context.accuracy == accuracy) ++uses[one.variant.family];
  std::vector<const Family*> order = families();
  std::stable_sort(order.begin(), order.end(), [&](const Family* a, const Family* b) {
    return uses[std::string(a->name())] > uses[std::string(b->name())];
  });
  const auto of_class =
      std::find_if(chosen.begin(), chosen.end(), [&](const Chosen& c) { return c.context.accuracy == accuracy; });
  if (of_class == chosen.end()) return std::nullopt;
  BuildContext context = of_class->context;
  context.problem = probes().front();
  for (const Family* family : order) {
    if (family->refuses(context)) continue;
    const Configuration configuration = family->general_configuration(context);
    if (!general(*family, context, configuration)) continue;
    return Chosen{context,      "", {std::string(family->name()), configuration}, family->build(context, configuration),
                  std::nullopt, ""};
  }
  return std::nullopt;
}

}  // namespace tuner
