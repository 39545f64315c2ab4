#include "tuner/core/result.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/core/record_json.h"
#include "tuner/core/result_checks.h"
#include "tuner/core/result_fields.h"

namespace tuner {
namespace {

constexpr int kSchemaVersion = 1;

class Writer {
 public:
  Writer(Json& json, bool measured) : json_(json), measured_(measured) {}

  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = encode(value);
  }
  void operator()(const char* key, double value, double /*null_means*/) { json_[key] = encode(value); }
  void known(const char* key, double value) { json_[key] = encode(value); }
  void any(const char* key, double value) { json_[key] = encode(value); }
  template <class T>
  void extra(const char* key, const T& value) {
    if (!(value == T{})) json_[key] = encode(value);
  }
  template <class T>
  void timed(const char* key, const T& value) {
    if (measured_) json_[key] = encode(value);
  }
  template <class T>
  void timed_extra(const char* key, const T& value) {
    if (measured_) extra(key, value);
  }
  /// No best is written where nothing valid was found.
  void timed(const char* key, const std::string& value) {
    if (measured_ && !value.empty()) json_[key] = value;
  }
  template <class Compute>
  void derived(const char* key, Compute&& compute) {
    json_[key] = encode(compute());
  }
  template <class Compute>
  void checked(const char* key, Compute&& compute) {
    json_[key] = encode(compute());
  }
  template <class Visit>
  void group(const char* key, Visit&& visit_members) {
    Json members = Json::object();
    Writer inner(members, measured_);
    visit_members(inner);
    json_[key] = std::move(members);
  }
  void version(const char* key, int) { json_[key] = kSchemaVersion; }
  void measured(const char* key, bool measured) { json_[key] = measured_ = measured; }
  void status(const char* key, const std::string& status) { json_[key] = measured_ ? status : "not run"; }
  void document(const char* key, const std::string& text) {
    json_[key] = text.empty() ? Json() : parse_json(text, key);
  }
  /// The GPU that was there; facts from a profile name none.
  void gpu(const char* key, const DeviceFacts& device) { json_[key] = device.measured ? Json(device.name) : Json(); }

 private:
  template <class T>
  Json encode(const T& value) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? Json(value) : Json();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_same_v<T, Accuracy> || std::is_same_v<T, Outcome>) {
      return std::string(to_string(value));
    } else if constexpr (std::is_same_v<T, Problem>) {
      return problem_json(value);
    } else {
      Json members = Json::object();
      Writer inner(members, measured_);
      visit(inner, value);
      return members;
    }
  }
  template <class T>
  Json encode(const std::vector<T>& values) const {
    Json array = Json::array();
    for (const T& value : values) array.push_back(encode(value));
    return array;
  }
  template <class T>
  Json encode(const std::optional<T>& value) const {
    return value ? encode(*value) : Json();
  }
  Json encode(const std::map<std::string, std::uint64_t>& counts) const {
    Json members = Json::object();
    for (const auto& [key, count] : counts) members[key] = count;
    return members;
  }
  Json encode(const Configuration& configuration) const {
    Json members = Json::object();
    for (const auto& [name, value] : configuration) members[name] = value_json(value);
    return members;
  }

  Json& json_;
  bool measured_;
};

/// Key and value that tell one record of a list from the others.
std::pair<const char*, std::string> name_in_file(const VariantRecord& variant) { return {"id", variant.id}; }
std::pair<const char*, std::string> name_in_file(const ClassRecord& record) {
  return {"class", std::string(to_string(record.accuracy))};
}
std::pair<const char*, std::string> name_in_file(const ProblemRecord& problem) { return {"name", problem.name}; }

/// Numbers that no measurement gives.
void require_ordered(const Node& node, double low, double high) {
  if (!(low <= high)) node.at("low").refuse("a number that is not above 'high'");
}
void require_possible(const Node& node, const Interval& interval) {
  require_ordered(node, interval.low, interval.high);
  if (interval.median < interval.low || interval.median > interval.high)
    node.at("median").refuse("a number from 'low' to 'high'");
}
void require_possible(const Node& node, const RatioRecord& ratio) { require_ordered(node, ratio.low, ratio.high); }
void require_possible(const Node& node, const EnergyRecord& energy) {
  require_ordered(node, energy.mj.low, energy.mj.high);
  require_of_samples(node, energy.mj, energy.samples);
}
void require_possible(const Node& node, const TimeRecord& time) {
  require_possible(node, time.ms);
  for (const Node& sample : node.at("samples").elements()) sample.positive();
  require_of_samples(node, time.ms, time.samples);
}
void require_possible(const Node& node, const VariantRecord& variant) {
  if (variant.occupancy > 1) node.at("occupancy").refuse("a number from 0 to 1");
}

class Reader {
 public:
  Reader(const Node& node, bool measured) : node_(node), measured_(measured) {}

  template <class T>
  void operator()(const char* key, T& value) {
    decode(node_.at(key), value);
  }
  void operator()(const char* key, double& value, double null_means) { decode(node_.at(key), value, null_means); }
  void known(const char* key, double& value) { value = node_.at(key).positive(); }
  void any(const char* key, double& value) { value = node_.at(key).number(); }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    extra(key, value);
  }
  template <class T>
  void extra(const char* key, T& value) {
    if (const auto member = node_.find(key)) decode(*member, value);
  }
  template <class T>
  void timed(const char* key, T& value) {
    const auto member = node_.find(key);
    if (member && !measured_) member->fail(fmt::format("'{}' cannot stand in a result that was not measured", key));
    if (member) decode(*member, value);
  }
  template <class T>
  void timed_extra(const char* key, T& value) {
    timed(key, value);
  }
  template <class Compute>
  void derived(const char* key, Compute&&) {
    node_.at(key);
  }
  template <class Compute>
  void checked(const char* key, Compute&& compute) {
    const Node member = node_.at(key);
    if (const auto expected = compute(); member.integer() != expected)
      member.refuse(fmt::format("{}, as the problem says", expected));
  }
  template <class Visit>
  void group(const char* key, Visit&& visit_members) {
    const Node member = node_.at(key);
    member.expect_object();
    Reader inner(member, measured_);
    visit_members(inner);
  }
  void version(const char* key, int& version) {
    const Node member = node_.at(key);
    if (const auto read = member.integer(0); read != kSchemaVersion)
      member.fail(fmt::format("results of schema version {} cannot be read: this program knows version {}", read,
                              kSchemaVersion));
    version = kSchemaVersion;
  }
  void measured(const char* key, bool& measured) { measured_ = measured = node_.at(key).boolean(); }
  void status(const char* key, std::string& status) { decode(node_.at(key), status); }
  void document(const char* key, std::string& text) {
    const Json& json = node_.at(key).json();
    if (json.is_null()) return;
    node_.at(key).expect_object();
    text = dump_json(json);
  }
  void gpu(const char* key, DeviceFacts&) {
    const Node member = node_.at(key);
    if (!member.json().is_null()) member.string();  // the name is among the facts
  }

 private:
  void decode(const Node& node, std::string& value) const { value = node.string(); }
  void decode(const Node& node, bool& value) const { value = node.boolean(); }
  void decode(const Node& node, double& value, double null_means = std::numeric_limits<double>::quiet_NaN()) const {
    value = node.json().is_null() ? null_means : node.number(0);
  }
  void decode(const Node& node, Accuracy& value) const {
    std::vector<std::string> names;
    for (const Accuracy accuracy : kAccuracies) names.emplace_back(to_string(accuracy));
    value = *parse_accuracy(node.one_of(names));
  }
  void decode(const Node& node, Outcome& value) const {
    const auto outcome = parse_outcome(node.string());
    if (!outcome)
      node.refuse(
          "an outcome: ok, rejected, compile_failed, launch_failed, wrong_result, timed_out, crashed, "
          "implausible, cut or unproven");
    value = *outcome;
  }
  void decode(const Node& node, Problem& value) const { value = read_problem(node); }
  void decode(const Node& node, std::map<std::string, std::uint64_t>& counts) const {
    for (const auto& [key, count] : node.members()) decode(count, counts[key]);
  }
  void decode(const Node& node, Configuration& configuration) const {
    for (const auto& [name, value] : node.members()) configuration.emplace_back(name, read_value(value));
  }
  template <class T>
  void decode(const Node& node, std::vector<T>& values) const {
    const auto elements = node.elements();
    values.resize(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) decode(elements[i], values[i]);
    if constexpr (requires { name_in_file(values[0]); }) {
      std::set<std::string> names;
      for (std::size_t i = 0; i < elements.size(); ++i)
        if (const auto [key, name] = name_in_file(values[i]); !names.insert(name).second)
          elements[i].at(key).refuse("each value once");
    }
  }
  template <class T>
  void decode(const Node& node, std::optional<T>& value) const {
    if (!node.json().is_null()) decode(node, value.emplace());
  }
  template <class T>
  void decode(const Node& node, T& value) const {
    if constexpr (std::is_integral_v<T>) {
      const auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      value = static_cast<T>(node.integer(0, static_cast<std::int64_t>(std::min(most, std::uint64_t{INT64_MAX}))));
    } else {
      node.expect_object();
      Reader inner(node, measured_);
      visit(inner, value);
      if constexpr (requires { require_possible(node, value); }) require_possible(node, value);
    }
  }

  const Node& node_;
  bool measured_;
};

/// What `best` names: a variant or a baseline's route of its class, timed. Nothing is named where nothing was valid.
void require_best(const Node& node, const ClassRecord& record) {
  if (record.best.empty()) return;
  const auto timed = [&](const auto& named) {
    if (!named.time) node.at("best").refuse("a variant or a route that has times");
  };
  for (const VariantRecord& variant : record.variants)
    if (variant.id == record.best) return timed(variant);
  for (const BaselineRecord& baseline : record.baselines)
    if (!baseline.not_comparable && record.best == baseline.name + ": " + baseline.route) return timed(baseline);
  node.at("best").fail(fmt::format("{} is neither a variant nor a baseline of this class", excerpt(record.best)));
}

void require_comparable(const Node& node, const ClassRecord& record) {
  for (std::size_t i = 0; i < record.baselines.size(); ++i) {
    const BaselineRecord& baseline = record.baselines[i];
    if (baseline.not_comparable && baseline.best_of_its_name)
      node.at("baselines")
          .elements()[i]
          .fail(fmt::format("{} cannot be the best of {}: it is not comparable", excerpt(baseline.route),
                            excerpt(baseline.name)));
  }
}

}  // namespace

std::string to_json(const RunResult& result) {
  Json json = Json::object();
  Writer writer(json, result.measured);
  visit(writer, result);
  return dump_json(json);
}

RunResult read_result(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const Node root(json, one_line(path.string(), 4096));
  root.expect_object();
  if (root.has("reproduce") && !root.has("config")) root.fail("this is a best.json; give the result.json beside it");
  RunResult result;
  Reader reader(root, false);
  visit(reader, result);
  const auto problems = root.at("problems").elements();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto classes = problems[i].at("classes").elements();
    for (std::size_t j = 0; j < classes.size(); ++j) {
      require_comparable(classes[j], result.problems[i].classes[j]);
      require_best(classes[j], result.problems[i].classes[j]);
      require_ratios(classes[j], result.problems[i].classes[j], result.objective);
    }
  }
  if (!problems.empty())
    for (const Node& node : {root.at("environment"), root.at("environment").at("device")})
      node.at("sm_count").integer(1);
  return result;
}

template <class Record>
Json record_json(const Record& record, bool measured) {
  Json json = Json::object();
  Writer writer(json, measured);
  visit(writer, record);
  return json;
}

template <class Record>
Record read_record(const Json& json, const std::string& where, bool measured) {
  const Node node(json, where);
  node.expect_object();
  Record record;
  Reader reader(node, measured);
  visit(reader, record);
  return record;
}

template Json record_json(const VariantRecord&, bool);
template Json record_json(const BaselineRecord&, bool);
template Json record_json(const ClassRecord&, bool);
template Json record_json(const SearchAccount&, bool);
template VariantRecord read_record(const Json&, const std::string&, bool);
template BaselineRecord read_record(const Json&, const std::string&, bool);
template ClassRecord read_record(const Json&, const std::string&, bool);
template SearchAccount read_record(const Json&, const std::string&, bool);

std::pair<std::filesystem::path, std::filesystem::path> write_result(const RunResult& result,
                                                                     const std::filesystem::path& folder) {
  const auto result_path = folder / "result.json";
  const auto best_path = folder / "best.json";
  write_file_atomically(result_path, to_json(result));
  write_file_atomically(best_path, best_to_json(result));
  return {result_path, best_path};
}

const VariantRecord* find_variant(const ClassRecord& record, std::string_view id) {
  const VariantRecord* found = nullptr;
  for (const VariantRecord& variant : record.variants) {
    if (variant.id == id) return &variant;
    if (!variant.id.starts_with(id)) continue;
    if (found != nullptr) return nullptr;
    found = &variant;
  }
  return found;
}

}  // namespace tuner
