#include "tuner/worker/messages.h"

#include <limits>

#include "tuner/core/problem_json.h"

namespace tuner::messages {
namespace {

/// JSON has no infinities: they travel as text.
Json number(double value) {
  if (value == std::numeric_limits<double>::infinity()) return "inf";
  if (value == -std::numeric_limits<double>::infinity()) return "-inf";
  if (value != value) return "nan";
  return value;
}

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

template <class Environment, class Visitor>
void visit_environment(Environment& environment, Visitor&& visit) {
  visit("uuid", environment.uuid);
  visit("driver", environment.driver);
  visit("cuda", environment.cuda);
  visit("nvrtc", environment.nvrtc);
  visit("cudnn", environment.cudnn);
  visit("cublas", environment.cublas);
  visit("power_limit_w", environment.power_limit_w);
  visit("sm_clock_mhz_now", environment.sm_clock_mhz_now);
  visit("other_processes", environment.other_processes);
  visit("mig", environment.mig);
  visit("energy_counter", environment.energy_counter);
  visit("warnings", environment.warnings);
}

template <class Unit, class Visitor>
void visit_unit(Unit& unit, Visitor&& visit) {
  visit("sha256", unit.sha256);
  visit("symbols", unit.symbols);
  visit("registers", unit.registers);
  visit("spill_bytes", unit.spill_bytes);
  visit("static_shared_bytes", unit.static_shared_bytes);
  visit("barriers", unit.barriers);
}

struct Writer {
  Json json;
  template <class Field>
  void operator()(const char* name, const Field& field) {
    json[name] = field;
  }
};

struct Reader {
  const Json& json;
  template <class Field>
  void operator()(const char* name, Field& field) const {
    json.at(name).get_to(field);
  }
};

}  // namespace

Json from(const Problem& value) { return problem_json(value); }

Problem problem(const Json& json) { return read_problem(Node(json, "worker message")); }

Json from(const DeviceFacts& value) {
  Writer writer;
  visit_facts(value, writer);
  writer("measured", value.measured);
  return writer.json;
}

DeviceFacts device_facts(const Json& json) {
  DeviceFacts value;
  visit_facts(value, Reader{json});
  json.at("measured").get_to(value.measured);
  return value;
}

Json from(const Environment& value) {
  Writer writer;
  visit_environment(value, writer);
  writer.json["device"] = from(value.device);
  return writer.json;
}

Environment environment(const Json& json) {
  Environment value;
  visit_environment(value, Reader{json});
  value.device = device_facts(json.at("device"));
  return value;
}

Json from(const Variant& value) {
  Json tunables = Json::object();
  for (const auto& [name, entry] : value.tunables) tunables[name] = value_json(entry);
  return {{"family", value.family}, {"tunables", std::move(tunables)}};
}

Variant variant(const Json& json) {
  Variant value{json.at("family").get<std::string>(), {}};
  for (const auto& [name, entry] : json.at("tunables").items())
    value.tunables.emplace_back(name, read_value(Node(entry, "worker message")));
  return value;
}

Json from(const CompiledUnit& value) {
  Writer writer;
  visit_unit(value, writer);
  writer.json["file"] = value.file.string();
  return writer.json;
}

CompiledUnit unit(const Json& json) {
  CompiledUnit value;
  visit_unit(value, Reader{json});
  value.file = json.at("file").get<std::string>();
  return value;
}

Json from(const MeasureOptions& value) {
  Json json{{"l2", to_string(value.l2)},
            {"regime", to_string(value.regime)},
            {"half_width", value.half_width},
            {"max_samples", value.max_samples},
            {"max_seconds", value.max_seconds},
            {"cut_factor", value.cut_factor},
            {"settle_seconds", value.settle_seconds},
            {"rest", value.rest},
            {"expected_mhz", value.expected_mhz},
            {"energy_windows", value.energy_windows}};
  if (value.best_ms) json["best_ms"] = *value.best_ms;
  return json;
}

MeasureOptions measure_options(const Json& json) {
  MeasureOptions value;
  value.l2 = l2_named(json.at("l2").get<std::string>());
  value.regime = regime_named(json.at("regime").get<std::string>());
  json.at("half_width").get_to(value.half_width);
  json.at("max_samples").get_to(value.max_samples);
  json.at("max_seconds").get_to(value.max_seconds);
  json.at("cut_factor").get_to(value.cut_factor);
  json.at("settle_seconds").get_to(value.settle_seconds);
  json.at("rest").get_to(value.rest);
  json.at("expected_mhz").get_to(value.expected_mhz);
  json.at("energy_windows").get_to(value.energy_windows);
  if (json.contains("best_ms")) value.best_ms = json["best_ms"].get<double>();
  return value;
}

Json from(const Interval& value) {
  return {{"median", number(value.median)}, {"low", number(value.low)}, {"high", number(value.high)}};
}

Interval interval(const Json& json) {
  return {number(json.at("median")), number(json.at("low")), number(json.at("high"))};
}

Json from(const TimeRecord& value) {
  Json json{{"ms", from(value.ms)},
            {"samples", value.samples},
            {"l2", value.l2},
            {"regime", value.regime},
            {"clock_mhz", from(value.clock_mhz)},
            {"dropped", value.dropped},
            {"interleaved", value.interleaved},
            {"throttling", value.throttling}};
  if (value.energy) json["energy"] = {{"mj", from(value.energy->mj)}, {"samples", value.energy->samples}};
  return json;
}

TimeRecord time_record(const Json& json) {
  TimeRecord value;
  value.ms = interval(json.at("ms"));
  json.at("samples").get_to(value.samples);
  json.at("l2").get_to(value.l2);
  json.at("regime").get_to(value.regime);
  value.clock_mhz = interval(json.at("clock_mhz"));
  json.at("dropped").get_to(value.dropped);
  json.at("interleaved").get_to(value.interleaved);
  json.at("throttling").get_to(value.throttling);
  if (json.contains("energy"))
    value.energy = {interval(json["energy"].at("mj")), json["energy"].at("samples").get<std::vector<double>>()};
  return value;
}

Json from(const Conditions& value) {
  Json copy = Json::array();
  for (const TimeRecord& time : value.copy) copy.push_back(from(time));
  return {{"copy", std::move(copy)},
          {"power_limit_w", value.power_limit_w},
          {"mig", value.mig},
          {"other_processes", value.other_processes},
          {"throttling", value.throttling},
          {"not_available", value.not_available}};
}

Conditions conditions(const Json& json) {
  Conditions value;
  json.at("power_limit_w").get_to(value.power_limit_w);
  json.at("mig").get_to(value.mig);
  json.at("other_processes").get_to(value.other_processes);
  json.at("throttling").get_to(value.throttling);
  json.at("not_available").get_to(value.not_available);
  for (const Json& time : json.at("copy")) value.copy.push_back(time_record(time));
  return value;
}

Json from(const Spent& value) {
  return {{"load", value.load}, {"verify", value.verify}, {"measure", value.measure}, {"idle", value.idle}};
}

Spent spent(const Json& json) {
  return {json.at("load").get<double>(), json.at("verify").get<double>(), json.at("measure").get<double>(),
          json.at("idle").get<double>()};
}

Json from(const std::optional<Errors>& value) {
  if (!value) return nullptr;
  return {{"element", number(value->element)}, {"row", number(value->row)}};
}

std::optional<Errors> errors(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return Errors{number(json.at("element")), number(json.at("row"))};
}

Json from(const Evaluation& value) {
  Json json{{"outcome", to_string(value.outcome)}, {"reason", value.reason},         {"log", value.log},
            {"errors", from(value.errors)},        {"prepare_ms", value.prepare_ms}, {"spent", from(value.spent)}};
  if (value.time) json["time"] = from(*value.time);
  return json;
}

Evaluation evaluation(const Json& json) {
  Evaluation value;
  value.outcome = parse_outcome(json.at("outcome").get<std::string>()).value();
  json.at("reason").get_to(value.reason);
  json.at("log").get_to(value.log);
  value.errors = errors(json.at("errors"));
  json.at("prepare_ms").get_to(value.prepare_ms);
  value.spent = spent(json.at("spent"));
  if (json.contains("time")) value.time = time_record(json["time"]);
  return value;
}

Json from(const BaselineRecord& value) {
  Json json{{"name", value.name},
            {"route", value.route},
            {"engine", value.engine},
            {"knobs", value.knobs},
            {"workspace_bytes", value.workspace_bytes},
            {"traffic_bytes", value.traffic_bytes},
            {"deterministic", value.deterministic},
            {"not_comparable", value.not_comparable},
            {"status", value.status},
            {"reason", value.reason},
            {"errors", from(value.errors)}};
  if (value.time) json["time"] = from(*value.time);
  return json;
}

BaselineRecord baseline_record(const Json& json) {
  BaselineRecord value;
  json.at("name").get_to(value.name);
  json.at("route").get_to(value.route);
  json.at("engine").get_to(value.engine);
  json.at("knobs").get_to(value.knobs);
  json.at("workspace_bytes").get_to(value.workspace_bytes);
  json.at("traffic_bytes").get_to(value.traffic_bytes);
  json.at("deterministic").get_to(value.deterministic);
  json.at("not_comparable").get_to(value.not_comparable);
  json.at("status").get_to(value.status);
  json.at("reason").get_to(value.reason);
  value.errors = errors(json.at("errors"));
  if (json.contains("time")) value.time = time_record(json["time"]);
  return value;
}

Json from(const Failure& value) {
  return {{"outcome", to_string(value.outcome)}, {"reason", value.reason}, {"log", value.log}};
}

Json from(const RunOffTimes& value) {
  Json entries = Json::array();
  for (const RunOffTimes::Entry& entry : value.entries) {
    Json times = Json::array();
    for (const TimeRecord& time : entry.times) times.push_back(from(time));
    Json json{{"times", std::move(times)}};
    if (entry.failure) json["why_not"] = from(*entry.failure);
    entries.push_back(std::move(json));
  }
  return {{"entries", std::move(entries)}, {"conditions", from(value.conditions)}};
}

RunOffTimes run_off_times(const Json& json) {
  RunOffTimes value;
  for (const Json& entry : json.at("entries")) {
    RunOffTimes::Entry& read = value.entries.emplace_back();
    for (const Json& time : entry.at("times")) read.times.push_back(time_record(time));
    if (entry.contains("why_not")) read.failure = failure(entry["why_not"]);
  }
  value.conditions = conditions(json.at("conditions"));
  return value;
}

Failure failure(const Json& json) {
  return {parse_outcome(json.at("outcome").get<std::string>()).value(), json.at("reason").get<std::string>(),
          json.at("log").get<std::string>()};
}

}  // namespace tuner::messages
