// Configs and results that the tests of core share.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/core/result.h"

namespace tuner {

/// The names that the tests' configs may use.
inline Vocabulary test_vocabulary() {
  Vocabulary names;
  names.families = {{"direct", {"T", "OC_TILE", "IC_TILE"}, {"block"}, {}},
                    {"tiled", {"T", "OC_TILE", "IC_TILE", "stages"}, {"block"}, {{"store", {"plain", "streaming"}}}}};
  names.strategies = {"exhaustive", "random"};
  names.baselines = {"cudnn", "cublas_shift_add"};
  return names;
}

/// A malformed config: the place its one line must name, words of the rule, and whether a JSON Schema can tell.
struct BadConfig {
  std::string text;
  std::string place;
  std::string words;
  enum Fault { of_form, of_meaning, not_json } fault = of_form;
};

inline const std::string kProblem = R"({"in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 8})";

/// A config whose one problem has these further members.
inline std::string config_of_problem(const std::string& members) {
  return R"({"problems": [{"name": "p", )" + members + "}]}";
}
/// A config with a right problem and these further members.
inline std::string config_with(const std::string& members) {
  return R"({"problems": [)" + kProblem + "], " + members + "}";
}

inline std::vector<BadConfig> bad_configs() {
  using B = BadConfig;
  const std::string sizes = R"("in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 8)";
  return {
      {"", "line 1, column 1", "empty", B::not_json},
      {"{\"problems\": [", "line 1, column 15", "not JSON", B::not_json},
      {config_with("\"jobs\": 1, \"jobs\": 2"), "$", "given twice", B::not_json},
      {config_with("\"name\": \"\xff\""), "line 1", "not UTF-8", B::not_json},
      {config_with("\"jobs\": 1e999"), "line 1", "1e999", B::not_json},
      {config_with("\"jobs\": NaN"), "line 1", "not JSON", B::not_json},
      {config_with("\"jobs\": 1") + "x", "line 1", "not JSON", B::not_json},
      {std::string(100000, '['), "f.json", "deeper than 64", B::not_json},
      {"[]", "$", "an object"},
      {"7", "$", "an object"},
      {"{}", "$", "'problems' and 'workloads'"},
      {R"({"problems": []})", "$.problems", "at least 1"},
      {R"({"problems": [], "workloads": []})", "$", "at least one"},
      {R"({"problems": {}})", "$.problems", "an array"},
      {R"({"problems": [7]})", "$.problems[0]", "an object"},
      {config_with(R"("schema_version": 2)"), "$.schema_version", "from 1 to 1"},
      {config_with(R"("problem": 1)"), "$.problem", "unknown key"},
      {config_with("\"a\\nb\": 1"), "$[\"a\\nb\"]", "unknown key"},
      {config_with(R"("name": "../x")"), "$.name", "a folder's"},
      {config_with(R"("name": "..")"), "$.name", "a folder's"},
      {config_with(R"("name": "")"), "$.name", "1 to 200 bytes"},
      {config_with(R"("name": "a\u0000b")"), "$.name", "control characters"},
      {config_with(R"("name": 5)"), "$.name", "1 to 200 bytes"},
      {config_of_problem(R"("in_channels": 4, "out_channels": 4, "kernel_size": 3)"), "$.problems[0]",
       "lacks the key 'length'"},
      {config_of_problem(sizes + R"(, "stride": 0)"), "$.problems[0].stride",
       "0 is not allowed: expected a whole number of at least 1"},
      {config_of_problem(sizes + R"(, "stride": -1)"), "$.problems[0].stride", "-1"},
      {config_of_problem(sizes + R"(, "stride": 1.5)"), "$.problems[0].stride", "1.5"},
      {config_of_problem(sizes + R"(, "stride": "2")"), "$.problems[0].stride", "\"2\""},
      {config_of_problem(sizes + R"(, "stride": null)"), "$.problems[0].stride", "null"},
      {config_of_problem(sizes + R"(, "stride": 99999999999999999999)"), "$.problems[0].stride", "whole number"},
      {config_of_problem(sizes + R"(, "padding": -1)"), "$.problems[0].padding", "at least 0"},
      {config_of_problem(sizes + R"(, "batch": -1)"), "$.problems[0].batch", "at least 0"},
      {config_of_problem(sizes + R"(, "bias": 1)"), "$.problems[0].bias", "true or false"},
      {config_of_problem(sizes + R"(, "paddign": 1)"), "$.problems[0].paddign", "allowed here are name, batch"},
      {config_of_problem(sizes + R"(, "groups": 3)"), "$.problems[0]", "divisible by groups", B::of_meaning},
      {config_of_problem(sizes + R"(, "output_padding": 1)"), "$.problems[0]", "output_padding must be smaller",
       B::of_meaning},
      {config_of_problem(sizes + R"(, "padding": 9)"), "$.problems[0]", "output length", B::of_meaning},
      {config_of_problem(R"("in_channels": 4, "out_channels": 4, "kernel_size": 3, "length": 4611686018427387904)"),
       "$.problems[0]", "overflows 64-bit", B::of_meaning},
      {R"({"problems": [)" + kProblem + "," + kProblem + "]}", "$.problems[1]", "given twice", B::of_meaning},
      {config_with(R"("workloads": ["none.json"])"), "$.workloads[0]", "No such file", B::of_meaning},
      {config_with(R"("workloads": "audio.json")"), "$.workloads", "an array"},
      {config_with(R"("workloads": [""])"), "$.workloads[0]", "a path"},
      {config_with(R"("classes": ["fp64"])"), "$.classes[0]",
       "\"fp64\" is not allowed: expected 'fp32', 'tf32', 'fp16' or 'bf16'"},
      {config_with(R"("classes": [])"), "$.classes", "at least 1 element"},
      {config_with(R"("classes": ["fp32", "fp32"])"), "$.classes[1]", "each value once"},
      {config_with(R"("families": {"magic": {}})"), "$.families.magic", "allowed are 'direct' or 'tiled'",
       B::of_meaning},
      {config_with(R"("families": ["direct"])"), "$.families", "an object"},
      {config_with(R"("families": {})"), "$.families", "at least one family"},
      {config_with(R"("families": {"direct": {"TILE": [1]}})"), "$.families.direct.TILE",
       "no tunable of family 'direct'", B::of_meaning},
      {config_with(R"("families": {"direct": {"T": []}})"), "$.families.direct.T", "at least 1 element"},
      {config_with(R"("families": {"direct": {"T": 64}})"), "$.families.direct.T", "an array"},
      {config_with(R"("families": {"direct": {"T": [64, 64.0]}})"), "$.families.direct.T[1]", "each value once"},
      {config_with(R"("families": {"direct": {"T": [-64]}})"), "$.families.direct.T[0]", "from 0 to"},
      {config_with(R"("families": {"direct": {"T": ["big"]}})"), "$.families.direct.T[0]", "a whole number",
       B::of_meaning},
      {config_with(R"("families": {"direct": {"block": [32]}})"), "$.families.direct.block[0]", "[x, y]",
       B::of_meaning},
      {config_with(R"("families": {"direct": {"block": [[32, 8, 1]]}})"), "$.families.direct.block[0]", "[x, y]"},
      {config_with(R"("families": {"direct": {"block": [[32, 0]]}})"), "$.families.direct.block[0][1]",
       "from 1 to 1024"},
      {config_with(R"("families": {"tiled": {"store": ["fast"]}})"), "$.families.tiled.store[0]",
       "'plain' or 'streaming'", B::of_meaning},
      {config_with(R"("restrict": "T > 1")"), "$.restrict", "an array"},
      {config_with(R"("restrict": [""])"), "$.restrict[0]", "a condition"},
      {config_with(R"("device": {"target": "90a"})"), "$.device.target", "sm_90a"},
      {config_with(R"("device": {"profile": "h300"})"), "$.device.profile", "'h200'", B::of_meaning},
      {config_with(R"("device": {"profile": "./none.json"})"), "$.device.profile", "none.json", B::of_meaning},
      {config_with(R"("device": {"gpu": "x"})"), "$.device.gpu", "expect, target, profile"},
      {config_with(R"("search": {"strategy": "psychic"})"), "$.search.strategy", "'auto', 'exhaustive' or 'random'",
       B::of_meaning},
      {config_with(R"("search": {"seed": -1})"), "$.search.seed", "at least 0"},
      {config_with(R"("search": {"objective": "beauty"})"), "$.search.objective", "'time'"},
      {config_with(R"("search": {"budget": {"seconds": 0}})"), "$.search.budget.seconds", "above 0"},
      {config_with(R"("search": {"budget": {"evaluations": 0}})"), "$.search.budget.evaluations", "at least 1"},
      {config_with(R"("search": {"budget": 60})"), "$.search.budget", "an object"},
      {config_with(R"("measure": {"l2": "lukewarm"})"), "$.measure.l2", "'cold' or 'warm'"},
      {config_with(R"("measure": {"regime": "burst"})"), "$.measure.regime", "an array"},
      {config_with(R"("measure": {"half_width": 0})"), "$.measure.half_width", "above 0"},
      {config_with(R"("measure": {"max_samples": 0})"), "$.measure.max_samples", "from 1 to 1000000"},
      {config_with(R"("measure": {"cut_factor": 0.5})"), "$.measure.cut_factor", "from 1"},
      {config_with(R"("baselines": ["cudnn", "cudnn"])"), "$.baselines[1]", "each value once"},
      {config_with(R"("baselines": ["mkl"])"), "$.baselines[0]", "'cudnn' or 'cublas_shift_add'"},
      {config_with(R"("compile": {"minutes": 1})"), "$.compile.minutes", "seconds"},
      {config_with(R"("compile": {"seconds": 0})"), "$.compile.seconds", "0"},
      {config_with(R"("compile": {"memory_mib": 63})"), "$.compile.memory_mib", "64"},
      {config_with(R"("baseline_options": {"cublas": {}})"), "$.baseline_options.cublas", "cudnn"},
      {config_with(R"("baseline_options": {"cudnn": {"deterministic": "yes"}})"),
       "$.baseline_options.cudnn.deterministic", "true or false"},
      {config_with(R"("jobs": -1)"), "$.jobs", "from 0 to 4096"},
      {config_with(R"("out": "")"), "$.out", "a path"},
  };
}

/// From the least to one with every key.
inline std::vector<std::string> good_configs() {
  return {
      R"({"problems": [)" + kProblem + "]}",
      config_with(R"("workloads": [])"),
      config_with(R"("schema_version": 1.0, "jobs": 2e0, "restrict": [], "baselines": [])"),
      config_of_problem(R"("batch": 0, "in_channels": 6, "out_channels": 9, "kernel_size": 2, "stride": 4, "padding": 1,
                           "output_padding": 3, "dilation": 2, "groups": 3, "bias": true, "length": 5)"),
      config_with(R"("$schema": "./schema.json", "schema_version": 1, "name": "all keys", "classes": ["bf16", "fp16"],
        "device": {"expect": "NVIDIA H100", "target": "sm_120a", "profile": "rtx5090"},
        "families": {"direct": {"T": [64, 128], "block": [[32, 8]]}, "tiled": {"store": ["plain"]}},
        "restrict": ["T >= OC_TILE"],
        "search": {"strategy": "random", "seed": 7, "objective": "energy", "budget": {"seconds": 0.5, "evaluations": 3}},
        "measure": {"l2": "warm", "regime": ["burst", "sustained"], "half_width": 0.01, "max_samples": 50,
                    "max_seconds": 1, "cut_factor": 1},
        "baselines": ["cublas_shift_add"], "baseline_options": {"cudnn": {"workspace_mib": 0, "deterministic": true}},
        "compile": {"seconds": 0.5, "memory_mib": 64},
        "jobs": 3, "out": "/tmp/x")"),
  };
}

/// A result with every field filled, NaN and unbounded intervals among them.
inline RunResult measured_result() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  RunResult result;
  result.tool_version = "0.1.0";
  result.tool_commit = "abc";
  result.config_text = R"({"problems": [{"length": 65536.0, "name": "seed"}], "x": 0.1})";
  result.config_hash = "0123";
  result.name = "seed-h200";
  DeviceFacts& device = result.environment.device;
  device.name = "NVIDIA H200";
  device.arch = "sm_90a";
  device.sm_count = 132;
  device.l2_bytes = std::int64_t{50} << 20;
  device.memory_bytes = 150'000'000'000;
  device.sm_clock_mhz = 1980;
  device.memory_gbps = 4800;
  device.measured = true;
  result.environment.uuid = "GPU-1";
  result.environment.driver = "580.1";
  result.environment.power_limit_w = 700;
  result.environment.sm_clock_mhz_now = 1965.5;
  result.environment.mig = "off";
  result.environment.energy_counter = "available";
  result.environment.warnings = {"a \"quoted\" <script> warning\nof two lines"};
  result.started = "2025-11-30T02:00:00Z";
  result.command = "tuner --config configs/h200.json";
  result.measured = true;
  result.search_seconds = 12.25;
  ProblemRecord problem;
  problem.name = "seed";
  problem.problem = {64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536};
  ClassRecord record;
  record.plain_error = 1.5e-7;
  record.space_size = 81;
  record.rejections = {{"direct: too many threads", 12}, {"tiled: shared memory", 3}};
  VariantRecord fast;
  fast.variant = {"tiled", {{"T", std::int64_t{128}}, {"block", Block{32, 8}}, {"store", std::string("plain")}}};
  fast.id = id_of(fast.variant);
  fast.outcome = Outcome::ok;
  fast.registers = 128;
  fast.shared_bytes = 65536;
  fast.occupancy = 0.25;
  fast.cubin_sha256 = std::string(64, 'a');
  fast.compile_ms = 321.5;
  fast.prepare_ms = 0.01;
  fast.errors = Errors{0.5, 0.25};
  fast.time = TimeRecord{{8.75, 8.5, 9}, {8.5, 8.75, 8.75, 8.75, 8.75, 9}, "cold", "burst"};
  fast.lower_bound_ms = 6.2;
  VariantRecord hasty = fast;  // one sample bounds nothing, and its error was not a number
  hasty.variant.tunables[0].second = std::int64_t{64};
  hasty.id = id_of(hasty.variant);
  hasty.errors = Errors{std::nan(""), inf};
  hasty.time = TimeRecord{{9.5, -inf, inf}, {9.5}, "warm", "sustained"};
  fast.time->clock_mhz = {1980, 1965, 1980};
  fast.time->dropped = 3;
  fast.time->interleaved = true;
  fast.time->throttling = {"the software power cap"};
  fast.time->energy = EnergyRecord{{4200, -inf, inf}, {4200}};
  fast.other_regimes = {TimeRecord{{9.25, -inf, inf}, {9, 9.25, 9.5}, "cold", "sustained", {1605, 1590, 1620}}};
  VariantRecord broken;
  broken.variant = {"direct", {{"T", std::int64_t{0}}}};
  broken.id = id_of(broken.variant);
  broken.outcome = Outcome::compile_failed;
  broken.reason = "error: x";
  broken.log = "line 1\nline 2\t\x01";
  record.variants = {fast, hasty, broken};
  BaselineRecord cudnn;
  cudnn.name = "cudnn";
  cudnn.route = "backward data";
  cudnn.engine = "eng3";
  cudnn.workspace_bytes = std::size_t{5} << 30;
  cudnn.traffic_bytes = 6.5e9;
  cudnn.status = "ok";
  cudnn.errors = Errors{0.1, 0.2};
  cudnn.time = TimeRecord{{15.5, 15.4, 15.6}, {15.4, 15.5, 15.5, 15.5, 15.5, 15.6}, "cold", "burst"};
  cudnn.time->energy = EnergyRecord{{6300, -inf, inf}, {6300}};
  cudnn.best_of_its_name = true;
  cudnn.other_regimes = {TimeRecord{{16, -inf, inf}, {15, 16, 17}, "cold", "sustained"}};
  BaselineRecord cublas;
  cublas.name = "cublas_shift_add";
  cublas.status = "not available";
  cublas.reason = "libcublas.so.13 not found";
  cublas.deterministic = false;
  BaselineRecord note = cudnn;
  note.route = "backward data, conversions not counted";
  note.best_of_its_name = false;
  note.not_comparable = true;
  record.baselines = {cudnn, cublas, note};
  record.best = fast.id;
  record.tie = {hasty.id};
  record.ratios = {{"cudnn", 15.5 / 8.75, 15.6 / 9, 15.4 / 8.5, "burst"},
                   {"cudnn", 16 / 9.25, -inf, inf, "sustained"},
                   {"cudnn", 1.5, -inf, inf, "sustained", "energy"}};
  record.best_again = AgainRecord{fast.id, TimeRecord{{9.75, -inf, inf}, {9.75}, "cold", "burst"}, false};
  record.conditions = Conditions{700, "off", 1, {"the software power cap"}, "not available: why"};
  record.conditions->copy = {TimeRecord{{1.006, -inf, inf}, {1.006, 1.005, 1.007}, "cold", "burst"}};
  record.search_account = SearchAccount{60, 1, 2, 20, 30, 3, 0.5, 3.5, 231, 16};
  record.warnings = {"measured again, it took longer"};
  problem.classes = {record};
  result.problems = {problem};
  return result;
}

inline RunResult offline_result() {
  RunResult result = measured_result();
  result.measured = false;
  result.environment.device.measured = false;
  ClassRecord& record = result.problems[0].classes[0];
  for (VariantRecord& variant : record.variants) variant.time.reset();
  record.variants[0].proven_on = Problem{1, 128, 128, 3, 1, 0, 0, 1, 1, false, 130};
  record.variants[1].outcome = Outcome::unproven;
  for (BaselineRecord& baseline : record.baselines) {
    baseline.status = "not run";
    baseline.time.reset();
  }
  record.best.clear();
  record.tie.clear();
  record.ratios.clear();
  for (VariantRecord& variant : record.variants) variant.other_regimes.clear();
  for (BaselineRecord& baseline : record.baselines) baseline.other_regimes.clear();
  record.best_again.reset();
  record.conditions.reset();
  record.search_account.reset();
  record.warnings.clear();
  record.shortlist = {record.variants[0].id, record.variants[1].id};
  return result;
}

}  // namespace tuner
