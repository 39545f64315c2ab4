// Results as `tuner` writes them, made by hand.
#pragma once

#include "tuner/core/result.h"
#include "tuner/family/family.h"

namespace tuner {

inline DeviceFacts sample_h200() {
  DeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.arch = "sm_90a";
  facts.compute_major = 9;
  facts.sm_count = 132;
  facts.shared_per_sm = 228 * 1024;
  facts.shared_per_block_optin = 227 * 1024;
  return facts;
}

/// Default configuration of a family for a problem, as a variant that ran right in `ms`.
inline VariantRecord sample_variant(const std::string& family, const Problem& problem, double ms) {
  VariantRecord record;
  record.variant = {family, find_family(family)->default_configuration({problem, Accuracy::fp32, sample_h200()})};
  record.id = id_of(record.variant);
  record.outcome = Outcome::ok;
  record.time = TimeRecord{{ms, ms * 0.99, ms * 1.01}, {ms}, "cold", "burst"};
  return record;
}

inline RunResult sample_result(const std::string& name, const Problem& problem, std::vector<VariantRecord> variants) {
  RunResult result;
  result.tool_version = "0.1.0";
  result.name = name;
  result.config_text = "{}";
  result.config_hash = "c0ffee";
  result.started = "2026-01-02T03:04:05Z";
  result.environment.device = sample_h200();
  result.measured = true;
  ClassRecord record;
  record.best = variants.back().id;
  record.variants = std::move(variants);
  result.problems = {{name, problem, {record}}};
  return result;
}

inline Problem seed_problem() { return {64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536}; }

/// direct at 80 ms and tiled, the best.
inline RunResult seed_result(double tiled_ms = 8.8) {
  return sample_result(
      "seed", seed_problem(),
      {sample_variant("direct", seed_problem(), 80), sample_variant("tiled", seed_problem(), tiled_ms)});
}

inline RunResult direct_result() {
  const Problem problem{2, 32, 16, 16, 8, 4, 0, 1, 1, true, 50};
  return sample_result("vocoder", problem, {sample_variant("direct", problem, 0.02)});
}

/// A strided problem for which tiled was best: other template arguments than the seed problem's.
inline RunResult strided_result() {
  const Problem problem{3, 6, 10, 5, 3, 2, 1, 7, 2, true, 41};
  return sample_result("odd", problem, {sample_variant("tiled", problem, 0.01)});
}

/// An upsampling layer for which winograd was best, whose weights three kernels prepare.
inline RunResult upsampling_result() {
  const Problem problem{2, 64, 48, 16, 8, 4, 0, 1, 1, true, 100};
  return sample_result("upsampling", problem, {sample_variant("winograd", problem, 0.01)});
}

/// The same layer, for which clusters of two blocks were best.
inline RunResult clusters_result() {
  RunResult result = upsampling_result();
  result.name = "clusters";
  VariantRecord& record = result.problems[0].classes[0].variants[0];
  record.variant = {"wgmma_packed",
                    {{"T", std::int64_t{64}},
                     {"rows", std::int64_t{128}},
                     {"products", std::int64_t{3}},
                     {"stages", std::int64_t{4}},
                     {"band", std::int64_t{2}},
                     {"blocks", std::int64_t{132}},
                     {"cluster", std::int64_t{2}}}};
  result.problems[0].classes[0].best = record.id = id_of(record.variant);
  return result;
}

/// The same layer, for which x converted in the block that multiplies it was best.
inline RunResult fused_result() {
  RunResult result = upsampling_result();
  result.name = "fused";
  VariantRecord& record = result.problems[0].classes[0].variants[0];
  record.variant = {"wgmma_fused",
                    {{"T", std::int64_t{64}},
                     {"rows", std::int64_t{128}},
                     {"products", std::int64_t{3}},
                     {"stages", std::int64_t{8}},
                     {"producers", std::int64_t{8}},
                     {"consumer_registers", std::int64_t{144}},
                     {"weights", std::int64_t{4}},
                     {"passes", std::int64_t{3}},
                     {"blocks", std::int64_t{132}}}};
  result.problems[0].classes[0].best = record.id = id_of(record.variant);
  return result;
}

inline RunResult unmeasured_result() {
  RunResult result = seed_result();
  result.name = "offline";
  result.measured = false;
  ClassRecord& record = result.problems[0].classes[0];
  record.best.clear();
  for (VariantRecord& variant : record.variants) variant.time.reset();
  record.shortlist = {record.variants[1].id, record.variants[0].id};
  return result;
}

}  // namespace tuner
