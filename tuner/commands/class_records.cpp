#include "tuner/commands/class_records.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tuner/core/hash.h"
#include "tuner/core/problem_json.h"
#include "tuner/core/record_json.h"

namespace tuner {
namespace {

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A GPU's facts are the GPU's; a profile is a file that may be edited.
std::string gpu_text(const DeviceFacts& device) {
  if (device.measured) return device.name;
  Json facts = Json::object();
  visit_facts(device, [&](const char* key, const auto& value) { facts[key] = value; });
  return fmt::format("profile of {} ({})", device.name, sha256(text_of(facts)).substr(0, 10));
}

Holds holds_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::rejected:
    case Outcome::compile_failed:
    case Outcome::unproven:
      return Holds::compile;
    case Outcome::wrong_result:
      return Holds::proof;
    case Outcome::launch_failed:
    case Outcome::timed_out:
    case Outcome::crashed:
      return Holds::run;
    case Outcome::ok:
    case Outcome::implausible:
    case Outcome::cut:
      return Holds::time;
  }
  return Holds::time;
}

/// Equal problems that the config lists before this one, under other names.
std::size_t repeats_of(const NamedProblem& problem, const Config& config) {
  std::size_t repeats = 0;
  for (const NamedProblem& other : config.problems) {
    if (other.name == problem.name) break;
    if (other.problem == problem.problem) ++repeats;
  }
  return repeats;
}

/// What a stage's `unit` is the hash of.
std::string_view unit_of(std::string_view stage) {
  if (stage == "baseline") return "vendor library, its options or routes";
  if (stage == "finals") return "finalists";
  if (stage == "proof") return "kernel or C++ compiler";
  return "kernel, compiler or its options";
}

/// A value as it was read, and how much it depends on.
template <class Value>
struct Read {
  Value value;
  Holds holds;
  std::optional<std::string> stale = {};  // for a reason that only this kind of record knows
};

}  // namespace

std::string TakenOver::text(const RecordKey& key) {
  return fmt::format("{}\n{}\n{}\n{}", key.problem, key.accuracy, key.stage, key.subject);
}

void TakenOver::was_stale(const RecordKey& key, const std::string& why) {
  const auto found = verdicts_.find(text(key));
  if (found != verdicts_.end() && found->second.kind == Verdict::held) found->second = {Verdict::stale, why};
}

std::string TakenOver::in_words() const {
  std::int64_t held = 0, stale = 0;
  std::map<std::string, std::int64_t> whys;
  for (const auto& [key, verdict] : verdicts_) {
    held += verdict.kind == Verdict::held ? 1 : 0;
    stale += verdict.kind == Verdict::stale ? 1 : 0;
    if (verdict.kind == Verdict::stale) ++whys[verdict.why];
  }
  std::string reasons;
  for (const auto& [why, count] : whys) reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", why, count);
  const std::int64_t rest = there_ - held - stale;
  return fmt::format("{} records taken over, {} stale{}{}", held, stale,
                     reasons.empty() ? "" : " and done again (" + reasons + ")",
                     rest > 0 ? fmt::format(", {} not asked for", rest) : "");
}

ClassRecords::ClassRecords(Store& store, TakenOver& taken, const NamedProblem& problem, Accuracy accuracy,
                           const Config& config, const Environment& environment, std::string settings)
    : store_(store),
      taken_(taken),
      problem_(text_of(problem_json(problem.problem))),
      accuracy_(to_string(accuracy)),
      provenance_(environment.uuid.empty() ? "" : fmt::format("{}, driver {}", environment.uuid, environment.driver)),
      compile_limits_(fmt::format("{:g} s, {} MiB", config.compile.seconds, config.compile.memory_mib)),
      measured_(environment.device.measured) {
  if (const std::size_t repeats = repeats_of(problem, config); repeats > 0)
    problem_ += fmt::format(" again {}", repeats);
  now_.gpu = gpu_text(environment.device);
  now_.sm_count = environment.device.sm_count;
  now_.power_limit_w = environment.power_limit_w;
  now_.driver_branch = environment.driver.substr(0, environment.driver.find('.'));
  now_.settings = std::move(settings);
  now_.seed = config.search.seed;
}

template <class Value, class Reader>
std::optional<Value> ClassRecords::take(const RecordKey& key, const Validity& now, Reader&& read) {
  const auto stored = store_.find(key);
  if (!stored) {
    taken_.none(key);
    return std::nullopt;
  }
  std::optional<std::string> why;
  try {
    auto found = read(Json::parse(stored->data), fmt::format("{} {}", key.stage, key.subject));
    why = stale(stored->valid_for, now, found.holds, unit_of(key.stage));
    if (!why) why = found.stale;
    if (!why) {
      taken_.held(key);
      return std::move(found.value);
    }
  } catch (const Json::exception&) {
    why = "unreadable";
  } catch (const UsageError&) {  // of a version that wrote other fields
    why = "unreadable";
  }
  taken_.stale(key, *why);
  return std::nullopt;
}

void ClassRecords::put(const RecordKey& key, const Validity& valid_for, const std::string& data, double elapsed) {
  store_.put(key, {valid_for, data, elapsed, provenance_});
}

std::optional<ClassRecords::Searched> ClassRecords::variant(const std::string& id, const std::string& unit) {
  Validity now = now_;
  now.unit = unit;
  return take<Searched>(key("variant", id), now, [&](const Json& json, const std::string& where) {
    const Json& best = json.at("best_before");
    Read<Searched> read{{read_record<VariantRecord>(json.at("variant"), where, measured_),
                         best.is_null() ? std::numeric_limits<double>::infinity() : best.get<double>(),
                         read_record<SearchAccount>(json.at("account"), where, true)},
                        Holds::compile};
    read.holds = holds_of(read.value.variant.outcome);
    if (read.value.variant.outcome == Outcome::compile_failed && json.at("compile_limits") != compile_limits_)
      read.stale = "limits of a compile changed";
    return read;
  });
}

void ClassRecords::keep_variant(const Searched& searched, const std::string& unit) {
  const VariantRecord& record = searched.variant;
  // Given up from outside, or not compiled for a reason that is not its own: nothing is known of it.
  if (record.outcome == Outcome::unproven && (measured_ || record.cubin_sha256.empty())) return;
  Validity valid = now_;
  valid.unit = unit;
  valid.cubin = record.cubin_sha256;
  const Json json{{"variant", record_json(record, measured_)},
                  {"best_before", std::isfinite(searched.best_before) ? Json(searched.best_before) : Json()},
                  {"compile_limits", compile_limits_},
                  {"account", record_json(searched.account, true)}};
  put(key("variant", record.id), valid, text_of(json), searched.account.wall);
}

std::optional<ClassRecords::Proof> ClassRecords::proof(const std::string& id, const std::string& unit) {
  Validity now = now_;
  now.unit = unit;
  return take<Proof>(key("proof", id), now, [&](const Json& json, const std::string& where) {
    return Read<Proof>{
        {read_record<VariantRecord>(json.at("variant"), where, measured_), json.at("plain_error").get<double>()},
        Holds::proof};
  });
}

void ClassRecords::keep_proof(const Proof& proof, const std::string& unit) {
  if (proof.variant.outcome == Outcome::unproven) return;
  Validity valid = now_;
  valid.unit = unit;
  valid.cubin = proof.variant.cubin_sha256;
  put(key("proof", proof.variant.id), valid,
      text_of({{"variant", record_json(proof.variant, measured_)}, {"plain_error", proof.plain_error}}));
}

std::optional<std::vector<BaselineRecord>> ClassRecords::baseline(const std::string& name, const std::string& unit) {
  using Records = std::vector<BaselineRecord>;
  Validity now = now_;
  now.unit = unit;
  return take<Records>(key("baseline", name), now, [&](const Json& json, const std::string& where) {
    Read<Records> read{{}, Holds::run};
    for (const Json& each : json) {
      read.value.push_back(read_record<BaselineRecord>(each, where, measured_));
      if (read.value.back().time) read.holds = Holds::time;
    }
    return read;
  });
}

void ClassRecords::keep_baseline(const std::string& name, const std::string& unit,
                                 const std::vector<BaselineRecord>& records) {
  Validity valid = now_;
  valid.unit = unit;
  Json json = Json::array();
  for (const BaselineRecord& record : records) json.push_back(record_json(record, measured_));
  put(key("baseline", name), valid, text_of(json));
}

std::optional<double> ClassRecords::inputs(const std::string& values) {
  return take<double>(key("inputs", values), now_, [](const Json& json, const std::string&) {
    return Read<double>{json.at("plain_error").get<double>(), Holds::proof};
  });
}

void ClassRecords::keep_inputs(const std::string& values, double plain_error) {
  put(key("inputs", values), now_, text_of({{"plain_error", plain_error}}));
}

std::optional<ClassRecord> ClassRecords::finals(const std::string& entrants, const std::string& settings) {
  Validity now = now_;
  now.unit = entrants;
  now.settings = settings;
  return take<ClassRecord>(key("finals", "finals"), now, [&](const Json& json, const std::string& where) {
    return Read<ClassRecord>{read_record<ClassRecord>(json, where, measured_), Holds::time};
  });
}

void ClassRecords::keep_finals(const std::string& entrants, const std::string& settings, const ClassRecord& record) {
  Validity valid = now_;
  valid.unit = entrants;
  valid.settings = settings;
  put(key("finals", "finals"), valid, text_of(record_json(record, measured_)));
}

void ClassRecords::keep_search_end(const SearchAccount& account) {
  put(key("search", "end"), now_, text_of({{"account", record_json(account, true)}}), account.wall);
}

SearchAccount ClassRecords::account() {
  if (const RecordKey end = key("search", "end"); store_.find(end)) taken_.held(end);
  const auto latest = store_.latest(problem_, accuracy_);
  if (!latest || latest->elapsed == 0) return {};
  try {
    return read_record<SearchAccount>(Json::parse(latest->data).at("account"), "account", true);
  } catch (const std::exception&) {  // of a version that wrote other fields: the sum at least is known
    SearchAccount account;
    account.wall = account.other = latest->elapsed;
    return account;
  }
}

}  // namespace tuner
