// The fields of a result file, once: result.cpp writes and reads by the same visits. A visitor offers
//   v(key, member)            a key that must be there; a number is not negative, null where it is unknown
//   v.known(key, number)      above 0
//   v.any(key, number)        negative, too
//   v.extra(key, member)      left out when empty or zero
//   v.timed(key, member)      only where something was measured
//   v.timed_extra(key, member)  the same, left out when empty
//   v.derived(key, compute)   written; only its presence is asked for when read
//   v.checked(key, compute)   written; must agree when read
//   v.group(key, visit)       members of a nested object
#pragma once

#include <limits>
#include <type_traits>

#include "tuner/core/problem_json.h"
#include "tuner/core/result.h"

namespace tuner {

template <class T, class Record>
concept Of = std::is_same_v<std::remove_const_t<T>, Record>;

template <class V>
void visit(V& v, Of<Errors> auto& errors) {
  v("element", errors.element);
  v("row", errors.row);
}

/// Unbounded ends of an interval are null in the file.
template <class V>
void visit_interval(V& v, auto& low, auto& high) {
  v("low", low, -std::numeric_limits<double>::infinity());
  v("high", high, std::numeric_limits<double>::infinity());
}

template <class V>
void visit(V& v, Of<Interval> auto& interval) {
  v.known("median", interval.median);
  visit_interval(v, interval.low, interval.high);
}

template <class V>
void visit(V& v, Of<EnergyRecord> auto& energy) {
  v("median", energy.mj.median);
  visit_interval(v, energy.mj.low, energy.mj.high);
  v("samples", energy.samples);
}

template <class V>
void visit(V& v, Of<TimeRecord> auto& time) {
  visit(v, time.ms);
  v("samples", time.samples);
  v("l2", time.l2);
  v("regime", time.regime);
  v.extra("clock_mhz", time.clock_mhz);
  v.extra("dropped", time.dropped);
  v.extra("interleaved", time.interleaved);
  v.extra("throttling", time.throttling);
  v.extra("energy_mj", time.energy);
}

template <class V>
void visit(V& v, Of<VariantRecord> auto& variant) {
  v("family", variant.variant.family);
  v("tunables", variant.variant.tunables);
  v("id", variant.id);
  v("outcome", variant.outcome);
  v.extra("reason", variant.reason);
  v.extra("log", variant.log);
  v("registers", variant.registers);
  v("spill_bytes", variant.spill_bytes);
  v("shared_bytes", variant.shared_bytes);
  v("occupancy", variant.occupancy);
  v("cubin_sha256", variant.cubin_sha256);
  v("compile_ms", variant.compile_ms);
  v.extra("prepare_ms", variant.prepare_ms);
  v("errors", variant.errors);
  v.extra("proven_on", variant.proven_on);
  v.timed("time_ms", variant.time);
  v.timed_extra("other_regimes", variant.other_regimes);
  v.group("model", [&](auto& model) { model("lower_bound_ms", variant.lower_bound_ms); });
}

template <class V>
void visit(V& v, Of<BaselineRecord> auto& baseline) {
  v("name", baseline.name);
  v("route", baseline.route);
  v("engine", baseline.engine);
  v("knobs", baseline.knobs);
  v("workspace_bytes", baseline.workspace_bytes);
  v.extra("traffic_bytes", baseline.traffic_bytes);
  v("deterministic", baseline.deterministic);
  v.extra("not_comparable", baseline.not_comparable);
  v.status("outcome", baseline.status);
  v.extra("reason", baseline.reason);
  v("errors", baseline.errors);
  v.timed("time_ms", baseline.time);
  v.timed_extra("other_regimes", baseline.other_regimes);
  v.extra("best_of_its_name", baseline.best_of_its_name);
}

template <class V>
void visit(V& v, Of<RatioRecord> auto& ratio) {
  v("baseline", ratio.baseline);
  v.known("ratio", ratio.ratio);
  visit_interval(v, ratio.low, ratio.high);
  v.extra("regime", ratio.regime);
  v.extra("quantity", ratio.quantity);
}

template <class V>
void visit(V& v, Of<AgainRecord> auto& again) {
  v("id", again.id);
  v("time_ms", again.time);
  v("agrees", again.agrees);
}

template <class V>
void visit(V& v, Of<Conditions> auto& conditions) {
  v("power_limit_w", conditions.power_limit_w);
  v("mig", conditions.mig);
  v("other_processes", conditions.other_processes);
  v("throttling", conditions.throttling);
  v.extra("not_available", conditions.not_available);
  v.timed_extra("copy", conditions.copy);
}

template <class V>
void visit(V& v, Of<SearchAccount> auto& account) {
  v("wall_s", account.wall);
  v("compile_wait_s", account.compile_wait);
  v("load_s", account.load);
  v("verify_s", account.verify);
  v("measure_s", account.measure);
  v("idle_s", account.idle);
  v("store_s", account.store);
  v.any("other_s", account.other);  // the rest of a sum of rounded parts
  v("compile_cpu_s", account.compile_cpu);
  v("jobs", account.jobs);
  v.derived("bound_s", [&] { return account.bound(); });
}

template <class V>
void visit(V& v, Of<ClassRecord> auto& record) {
  v("class", record.accuracy);
  v("reference_error_of_plain_sum", record.plain_error);
  v.derived("bound", [&] { return std::string(bound_in_words(record.accuracy)); });
  v.extra("space_size", record.space_size);
  v.extra("rejections", record.rejections);
  v("variants", record.variants);
  v("baselines", record.baselines);
  v.timed("best", record.best);
  v.timed("tie", record.tie);
  v.timed("ratios", record.ratios);
  v.timed_extra("best_again", record.best_again);
  v.timed_extra("conditions", record.conditions);
  v.timed_extra("search_account", record.search_account);
  v.extra("warnings", record.warnings);
  v.extra("shortlist", record.shortlist);
}

template <class V>
void visit(V& v, Of<ProblemRecord> auto& record) {
  v("name", record.name);
  v("problem", record.problem);
  v.checked("length_out", [&] { return record.problem.length_out(); });
  v.derived("flop", [&] { return record.problem.flop(); });
  v.derived("min_bytes", [&] { return record.problem.min_bytes(4); });  // in fp32; half of it with 16-bit elements
  v("classes", record.classes);
}

template <class V>
void visit(V& v, Of<Environment> auto& environment) {
  auto& device = environment.device;
  v.gpu("gpu", device);
  v("uuid", environment.uuid);
  v("sm_count", device.sm_count);
  v("arch", device.arch);
  v("driver", environment.driver);
  v("cuda", environment.cuda);
  v("nvrtc", environment.nvrtc);
  v("cudnn", environment.cudnn);
  v("cublas", environment.cublas);
  v("power_limit_w", environment.power_limit_w);
  v.group("clocks", [&](auto& clocks) {
    clocks("sm_mhz", environment.sm_clock_mhz_now);
    clocks("sm_max_mhz", device.sm_clock_mhz);
  });
  v("other_processes", environment.other_processes);
  v.extra("mig", environment.mig);
  v.extra("energy_counter", environment.energy_counter);
  v("warnings", environment.warnings);
  v.group("device", [&](auto& facts) {
    facts("measured", device.measured);
    visit_facts(device, facts);
  });
}

template <class V>
void visit(V& v, Of<RunResult> auto& result) {
  v.version("schema_version", result.schema_version);
  v.group("tool", [&](auto& tool) {
    tool("version", result.tool_version);
    tool("commit", result.tool_commit);
  });
  v("name", result.name);
  v.document("config", result.config_text);
  v("config_hash", result.config_hash);
  v.measured("measured", result.measured);
  v.extra("interrupted", result.interrupted);
  v("started", result.started);
  v("command", result.command);
  v.extra("search_seconds", result.search_seconds);
  v.extra("objective", result.objective);
  v("environment", result.environment);
  v("problems", result.problems);
}

}  // namespace tuner
