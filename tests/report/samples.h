// Literal results for the tests of reports.
#pragma once

#include <string>

#include "tuner/core/result.h"

namespace tuner::samples {

inline Problem seed() {
  Problem problem;
  problem.batch = 64;
  problem.in_channels = problem.out_channels = 128;
  problem.kernel_size = 3;
  problem.length = 65536;
  return problem;
}

inline VariantRecord variant(std::string id, std::string family, Outcome outcome, std::string reason = {}) {
  VariantRecord record;
  record.id = std::move(id);
  record.variant = {std::move(family),
                    {{"T", std::int64_t{128}}, {"OC_TILE", std::int64_t{64}}, {"block", Block{32, 8}}}};
  record.outcome = outcome;
  record.reason = std::move(reason);
  record.registers = 96;
  record.shared_bytes = 50 * 1024;
  record.occupancy = 0.5;
  record.cubin_sha256 = outcome == Outcome::rejected || outcome == Outcome::compile_failed ? "" : "c0ffee";
  record.lower_bound_ms = 6.2;
  return record;
}

/// Six samples whose median has this interval.
inline std::vector<double> samples_of(const Interval& ms) {
  return {ms.low, ms.median, ms.median, ms.median, ms.median, ms.high};
}

inline VariantRecord timed(std::string id, std::string family, Interval ms) {
  VariantRecord record = variant(std::move(id), std::move(family), Outcome::ok);
  record.time = TimeRecord{ms, samples_of(ms), "cold", "burst"};
  record.errors = Errors{0.4, 0.5};
  return record;
}

inline BaselineRecord baseline(std::string name, std::string route, Interval ms) {
  BaselineRecord record;
  record.name = std::move(name);
  record.route = std::move(route);
  record.status = "ok";
  record.time = TimeRecord{ms, samples_of(ms), "cold", "burst"};
  record.best_of_its_name = true;
  return record;
}

/// Classes fp32 (ours wins against both, one tie, failures) and tf32 (cuDNN wins) of the seed problem on an H200.
inline RunResult measured() {
  RunResult result;
  result.tool_version = "0.1.0";
  result.name = "seed-h200";
  result.started = "2026-11-30T12:00:00Z";
  result.command = "tuner --config configs/h200.json";
  result.measured = true;
  Environment& e = result.environment;
  e.device.name = "NVIDIA H200";
  e.device.arch = "sm_90a";
  e.device.sm_count = 132;
  e.driver = "580.95.05";
  e.cuda = "13.0";
  e.cudnn = "9.19.0";
  e.cublas = "13.1.0";
  e.power_limit_w = 700;

  ClassRecord fp32;
  fp32.accuracy = Accuracy::fp32;
  fp32.space_size = 12345;
  fp32.variants = {timed("direct-0000000001", "direct", {80, 79.9, 80.1}),
                   timed("tiled-0000000002", "tiled", {8.8, 8.79, 8.81}),
                   timed("tiled-0000000003", "tiled", {8.805, 8.79, 8.82}),
                   variant("tiled-0000000004", "tiled", Outcome::wrong_result, "element bound exceeded 30 times"),
                   variant("tiled-0000000005", "tiled", Outcome::compile_failed, "ptxas: out of registers"),
                   variant("tiled-0000000006", "tiled", Outcome::compile_failed, "ptxas: out of registers")};
  fp32.best = "tiled-0000000002";
  fp32.tie = {"tiled-0000000003"};
  fp32.baselines = {baseline("cudnn", "forward, flipped kernel", {10, 9.98, 10.02}),
                    baseline("cublas_shift_add", "strided-batched GEMM a tap", {11.6, 11.5, 11.7})};
  fp32.ratios = {{"cudnn", 1.136, 1.134, 1.139}, {"cublas_shift_add", 1.318, 1.307, 1.329}};

  ClassRecord tf32;
  tf32.accuracy = Accuracy::tf32;
  tf32.space_size = 1;
  tf32.variants = {timed("tiled-0000000002", "tiled", {8.8, 8.79, 8.81})};
  tf32.baselines = {baseline("cudnn", "backward-data", {4.23, 4.22, 4.24})};
  BaselineRecord failed;
  failed.name = "cublas_shift_add";
  failed.status = "wrong_result";
  failed.reason = "row 0, 3 exceeds the bound";
  tf32.baselines.push_back(failed);
  tf32.best = "cudnn: backward-data";
  tf32.ratios = {{"cudnn", 0.481, 0.480, 0.482}};
  result.problems = {{"seed", seed(), {fp32, tf32}}};
  return result;
}

/// measured() with class fp32 timed under sustained load too, and what a run-off leaves beside its times.
inline RunResult in_two_regimes() {
  RunResult result = measured();
  result.environment.mig = "off";
  result.problems[0].classes.pop_back();
  ClassRecord& fp32 = result.problems[0].classes[0];
  VariantRecord& best = fp32.variants[1];
  best.time->clock_mhz = {1980, 1965, 1980};
  best.time->energy = EnergyRecord{{4200, 4100, 4300}, {4200}};
  best.other_regimes = {TimeRecord{{9.9, 9.8, 10}, {9.9}, "cold", "sustained", {1605, 1590, 1620}}};
  fp32.baselines[0].other_regimes = {TimeRecord{{14, 13.9, 14.1}, {14}, "cold", "sustained"}};
  for (RatioRecord& ratio : fp32.ratios) ratio.regime = "burst";
  fp32.ratios.push_back({"cudnn", 1.414, 1.4, 1.43, "sustained"});
  fp32.conditions = Conditions{700, "off", 2, {"the software power cap"}, {}};
  fp32.conditions->copy = {TimeRecord{{1.1, 1.09, 1.11}, {1.1}, "cold", "burst"},
                           TimeRecord{{1.2, 1.19, 1.21}, {1.2}, "cold", "sustained"}};
  fp32.best_again = AgainRecord{best.id, TimeRecord{{9.5, 9.4, 9.6}, {9.5}, "cold", "burst"}, false};
  fp32.warnings = {"measured again, tiled-0000000002 took longer"};
  fp32.search_account = SearchAccount{60, 1, 2, 20, 30, 3, 0.5, 3.5, 231, 16};
  return result;
}

/// The same problem without a GPU: one variant proven, one not on the shortlist, one that spills.
inline RunResult offline() {
  RunResult result = measured();
  result.measured = false;
  result.environment.warnings = {"the config expects NVIDIA H100"};
  ClassRecord& fp32 = result.problems[0].classes[0];
  result.problems[0].classes.pop_back();
  fp32.variants = {variant("tiled-0000000002", "tiled", Outcome::ok),
                   variant("tiled-0000000003", "tiled", Outcome::unproven, "compiled; not on the shortlist"),
                   variant("tiled-0000000005", "tiled", Outcome::compile_failed, "ptxas: out of registers")};
  fp32.variants[0].proven_on = seed();
  fp32.shortlist = {"tiled-0000000002"};
  fp32.best.clear();
  fp32.tie.clear();
  fp32.ratios.clear();
  fp32.baselines.clear();
  for (const char* name : {"cudnn", "cublas_shift_add"}) {
    BaselineRecord not_run;
    not_run.name = name;
    not_run.status = "not run";
    not_run.reason = "no CUDA device";
    fp32.baselines.push_back(not_run);
  }
  return result;
}

inline const std::string kHostile =
    "</code>|`a`<script>alert(1)</script>\x1b[31m\n\"'&&amp; ]]> @user \xff \xe2\x80\xae";

/// Every text of a result is hostile.
inline RunResult hostile() {
  RunResult result = measured();
  result.name = result.command = result.started = result.tool_version = kHostile;
  result.environment.device.name = result.environment.driver = result.environment.cudnn = kHostile;
  result.environment.warnings = {kHostile};
  ProblemRecord& problem = result.problems[0];
  problem.name = kHostile;
  for (ClassRecord& record : problem.classes) {
    for (VariantRecord& variant : record.variants) {
      variant.variant.family = variant.reason = variant.id = kHostile;
      if (variant.time) variant.time->regime = kHostile;
    }
    for (BaselineRecord& baseline : record.baselines) baseline.name = baseline.route = baseline.reason = kHostile;
    record.best = kHostile;
    record.tie = {kHostile};
    record.ratios.clear();
  }
  return result;
}

}  // namespace tuner::samples
