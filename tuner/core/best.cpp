// best.json: what production needs of a result, small.
#include <cmath>

#include "tuner/core/json.h"
#include "tuner/core/problem_json.h"
#include "tuner/core/result.h"

namespace tuner {
namespace {

constexpr std::size_t kShortlistShown = 3;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json describe(const VariantRecord& variant) {
  Json tunables = Json::object();
  for (const auto& [name, value] : variant.variant.tunables) tunables[name] = value_json(value);
  Json json{{"id", variant.id},
            {"family", variant.variant.family},
            {"tunables", tunables},
            {"cubin_sha256", variant.cubin_sha256}};
  if (variant.time) {
    json["median_ms"] = finite(variant.time->ms.median);
    json["low_ms"] = finite(variant.time->ms.low);
    json["high_ms"] = finite(variant.time->ms.high);
  }
  return json;
}

const VariantRecord* fastest(const ClassRecord& record) {
  const VariantRecord* best = nullptr;
  for (const VariantRecord& variant : record.variants) {
    if (variant.outcome != Outcome::ok || !variant.time) continue;
    if (best == nullptr || variant.time->ms.median < best->time->ms.median) best = &variant;
  }
  return best;
}

Json describe_measured(const ClassRecord& record) {
  Json json{{"class", to_string(record.accuracy)}};
  if (record.best.empty()) {
    json["why_none"] = "no variant and no baseline was valid";
    return json;
  }
  json["best"] = record.best;
  const VariantRecord* best = find_variant(record, record.best);
  if (best != nullptr) {
    json.update(describe(*best));
  } else if (const VariantRecord* ours = fastest(record)) {
    json["fastest_variant"] = describe(*ours);  // a vendor's route is faster
  }
  json["tie"] = record.tie;
  json["ratios"] = Json::array();
  for (const RatioRecord& ratio : record.ratios)
    json["ratios"].push_back({{"baseline", ratio.baseline},
                              {"ratio", finite(ratio.ratio)},
                              {"low", finite(ratio.low)},
                              {"high", finite(ratio.high)}});
  return json;
}

Json describe_shortlist(const ClassRecord& record) {
  Json shortlist = Json::array();
  for (const std::string& id : record.shortlist) {
    const VariantRecord* variant = find_variant(record, id);
    if (variant == nullptr || shortlist.size() == kShortlistShown) continue;
    if (variant->outcome != Outcome::ok && variant->outcome != Outcome::unproven) continue;  // found wrong on the CPU
    Json json = describe(*variant);
    json.erase("median_ms");
    json.erase("low_ms");
    json.erase("high_ms");
    json["outcome"] = to_string(variant->outcome);
    json["lower_bound_ms"] = finite(variant->lower_bound_ms);
    shortlist.push_back(json);
  }
  return {{"class", to_string(record.accuracy)}, {"shortlist", shortlist}};
}

}  // namespace

std::string best_to_json(const RunResult& result) {
  const DeviceFacts& device = result.environment.device;
  Json json{{"schema_version", 1},
            {"name", result.name},
            {"measured", result.measured},
            {"gpu", device.measured ? Json(device.name) : Json()},
            {"arch", device.arch},
            {"tool", {{"version", result.tool_version}, {"commit", result.tool_commit}}},
            {"config_hash", result.config_hash},
            {"started", result.started},
            {"reproduce", result.command},
            {"problems", Json::array()}};
  for (const ProblemRecord& problem : result.problems) {
    Json classes = Json::array();
    for (const ClassRecord& record : problem.classes)
      classes.push_back(result.measured ? describe_measured(record) : describe_shortlist(record));
    json["problems"].push_back(
        {{"name", problem.name}, {"problem", problem_json(problem.problem)}, {"classes", classes}});
  }
  return dump_json(json);
}

}  // namespace tuner
