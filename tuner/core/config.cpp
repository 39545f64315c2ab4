#include "tuner/core/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tuner/core/device_facts.h"
#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/core/hash.h"
#include "tuner/core/problem_json.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

/// A name for a problem that was given none, easy to type on a command line.
std::string default_name(const Problem& problem) {
  std::string name = summary(problem);
  name.replace(name.find("->"), 2, "to");
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

template <class Value>
void expect_new(std::vector<Value>& seen, Value value, const Node& node) {
  if (std::find(seen.begin(), seen.end(), value) != seen.end()) node.refuse("each value once");
  seen.push_back(std::move(value));
}

class Reader {
 public:
  Reader(const fs::path& path, const Vocabulary& vocabulary) : path_(path), vocabulary_(vocabulary) {}

  Config read() {
    config_.text = read_file(path_, JsonLimits{}.bytes);
    hashed_ = config_.text;
    const Json json = parse_json(config_.text, path_.string());
    const Node root(json, one_line(path_.string(), 4096));
    root.expect_keys({"$schema", "schema_version", "name", "device", "problems", "workloads", "classes", "families",
                      "restrict", "search", "measure", "baselines", "baseline_options", "compile", "jobs", "out"});
    if (const auto schema = root.find("$schema")) schema->string();
    if (const auto version = root.find("schema_version")) version->integer(1, 1);
    read_name(root);
    if (const auto device = root.find("device")) read_device(*device);
    read_problems(root);
    if (const auto classes = root.find("classes")) read_classes(*classes);
    if (const auto families = root.find("families")) read_families(*families);
    if (const auto conditions = root.find("restrict")) read_restrict(*conditions);
    if (const auto search = root.find("search")) read_search(*search);
    if (const auto measure = root.find("measure")) read_measure(*measure);
    if (const auto baselines = root.find("baselines")) read_baselines(*baselines);
    if (const auto options = root.find("baseline_options")) read_baseline_options(*options);
    if (const auto limits = root.find("compile")) read_compile(*limits);
    if (const auto jobs = root.find("jobs")) config_.jobs = static_cast<int>(jobs->integer(0, 4096));
    if (const auto out = root.find("out")) config_.out = read_path(*out);
    config_.hash = sha256(hashed_);
    return std::move(config_);
  }

 private:
  static std::string read_path(const Node& node) {
    const std::string text = node.json().is_string() ? node.string() : "";
    if (text.empty() || text.size() > 4096 || one_line(text, text.size()) != text)
      node.refuse("a path of 1 to 4096 bytes without control characters");
    return text;
  }

  fs::path beside_config(const std::string& path) const { return path_.parent_path() / path; }

  void read_name(const Node& root) {
    if (const auto name = root.find("name")) {
      config_.name = read_file_name(*name);
      return;
    }
    const Json stem = path_.stem().string();
    config_.name = read_file_name(Node(stem, path_.string(), "$.name, by default the file's name,"));
  }

  void read_device(const Node& node) {
    node.expect_keys({"expect", "target", "profile"});
    if (const auto expect = node.find("expect")) config_.device_expect = read_label(*expect);
    if (const auto target = node.find("target")) {
      config_.device_target = target->json().is_string() ? target->string() : "";
      if (!is_target(config_.device_target)) target->refuse("a compiler target such as \"sm_90a\"");
    }
    if (const auto profile = node.find("profile")) {
      config_.device_profile = read_label(*profile);
      if (config_.device_profile.find('/') == std::string::npos) {
        profile->one_of(profile_names());
        return;
      }
      config_.device_profile = beside_config(config_.device_profile).string();
      if (config_.device_profile.find('/') == std::string::npos) config_.device_profile.insert(0, "./");
      naming(*profile, [&] { read_profile(config_.device_profile); });
    }
  }

  /// Runs `read`, whose refusal of another file is prefixed with the place that names that file.
  template <class Read>
  static void naming(const Node& node, Read&& read) {
    try {
      read();
    } catch (const UsageError& error) {
      node.refuse(fmt::format("a file that can be used; {}", error.what()));
    }
  }

  void read_problems(const Node& root) {
    if (!root.has("problems") && !root.has("workloads"))
      root.fail("one of the keys 'problems' and 'workloads' is required");
    if (const auto problems = root.find("problems")) {
      for (const Node& node : problems->elements(root.has("workloads") ? 0 : 1)) {
        const Problem problem = read_problem(node, true);
        const auto name = node.find("name");
        add_problem({name ? read_label(*name) : default_name(problem), problem}, name ? *name : node);
      }
    }
    if (const auto workloads = root.find("workloads")) {
      for (const Node& node : workloads->elements(root.has("problems") ? 0 : 1)) {
        const fs::path file = beside_config(read_path(node));
        std::string text;
        naming(node, [&] { text = read_file(file, JsonLimits{}.bytes); });
        read_workloads(text, file.string());
      }
    }
    if (config_.problems.empty()) root.fail("'problems' and 'workloads' name no problem: at least one is required");
  }

  void read_workloads(const std::string& text, const std::string& file) {
    hashed_ += '\0' + text;
    const Json json = parse_json(text, file);
    const Node root(json, one_line(file, 4096));
    root.expect_keys({"$schema", "what", "workloads"});
    if (const auto what = root.find("what")) what->string();
    for (const Node& node : root.at("workloads").elements(1)) {
      const Problem problem = read_problem(node.at("problem"));
      if (const auto length = node.find("length_out"); length && length->integer() != problem.length_out())
        length->refuse(fmt::format("{}, as the problem says", problem.length_out()));
      add_problem({read_label(node.at("name")), problem}, node.at("name"));
    }
  }

  void add_problem(NamedProblem problem, const Node& named) {
    if (!names_.insert(problem.name).second)
      named.fail(fmt::format("the name {} is given twice: names of problems must differ", excerpt(problem.name)));
    config_.problems.push_back(std::move(problem));
  }

  void read_classes(const Node& node) {
    config_.classes.clear();
    std::vector<std::string> names;
    for (const Accuracy accuracy : kAccuracies) names.emplace_back(to_string(accuracy));
    for (const Node& element : node.elements(1))
      expect_new(config_.classes, *parse_accuracy(element.one_of(names)), element);
  }

  void read_families(const Node& node) {
    std::vector<std::string> known;
    for (const auto& family : vocabulary_.families) known.push_back(family.name);
    config_.families.emplace();
    for (const auto& [name, member] : node.members()) {
      const auto family = std::find(known.begin(), known.end(), name);
      if (family == known.end())
        member.fail(fmt::format("family {} is unknown: allowed are {}", excerpt(name), alternatives(known)));
      FamilySelection selection{name, {}};
      for (const auto& [tunable, list] : member.members())
        selection.values.emplace_back(
            tunable,
            read_values(vocabulary_.families[static_cast<std::size_t>(family - known.begin())], tunable, list));
      config_.families->push_back(std::move(selection));
    }
    if (config_.families->empty()) node.refuse("at least one family, or no key 'families' for all that apply");
  }

  static std::vector<Value> read_values(const Vocabulary::FamilyNames& family, const std::string& tunable,
                                        const Node& list) {
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), tunable) != names.end();
    };
    const auto enumerated = family.enumerated_tunables.find(tunable);
    const bool whole = is_in(family.integer_tunables);
    const bool block = is_in(family.block_tunables);
    if (!whole && !block && enumerated == family.enumerated_tunables.end()) {
      std::vector<std::string> known = family.integer_tunables;
      known.insert(known.end(), family.block_tunables.begin(), family.block_tunables.end());
      for (const auto& [name, values] : family.enumerated_tunables) known.push_back(name);
      list.fail(fmt::format("{} is no tunable of family '{}': allowed are {}", excerpt(tunable), family.name,
                            alternatives(known)));
    }
    std::vector<Value> values;
    for (const Node& element : list.elements(1)) {
      if (whole && !element.json().is_number()) element.refuse("a whole number");
      if (block && !element.json().is_array()) element.refuse("a block shape [x, y]");
      if (!whole && !block) element.one_of(enumerated->second);
      expect_new(values, read_value(element), element);
    }
    return values;
  }

  void read_restrict(const Node& node) {
    for (const Node& element : node.elements()) {
      const std::string text = element.json().is_string() ? element.string() : "";
      if (text.empty() || text.size() > 1000)
        element.refuse("a condition of 1 to 1000 bytes, such as \"T >= OC_TILE\"");
      config_.restrict_.push_back(text);
    }
  }

  void read_search(const Node& node) {
    node.expect_keys({"strategy", "seed", "objective", "budget"});
    std::vector<std::string> strategies = vocabulary_.strategies;
    if (std::find(strategies.begin(), strategies.end(), "auto") == strategies.end())
      strategies.insert(strategies.begin(), "auto");
    if (const auto strategy = node.find("strategy")) config_.search.strategy = strategy->one_of(strategies);
    if (const auto seed = node.find("seed")) config_.search.seed = static_cast<std::uint64_t>(seed->integer(0));
    if (const auto objective = node.find("objective")) config_.search.objective = objective->one_of({"time", "energy"});
    if (const auto budget = node.find("budget")) {
      budget->expect_keys({"seconds", "evaluations"});
      if (const auto seconds = budget->find("seconds")) config_.search.budget_seconds = seconds->positive(1e8);
      if (const auto count = budget->find("evaluations")) config_.search.budget_evaluations = count->integer(1);
    }
  }

  void read_measure(const Node& node) {
    node.expect_keys({"l2", "regime", "half_width", "max_samples", "max_seconds", "cut_factor"});
    MeasureConfig& measure = config_.measure;
    if (const auto l2 = node.find("l2")) measure.l2 = l2->one_of({"cold", "warm"});
    if (const auto regimes = node.find("regime")) {
      measure.regime.clear();
      for (const Node& element : regimes->elements(1))
        expect_new(measure.regime, element.one_of({"burst", "sustained"}), element);
    }
    if (const auto width = node.find("half_width")) measure.half_width = width->positive(1);
    if (const auto samples = node.find("max_samples"))
      measure.max_samples = static_cast<int>(samples->integer(1, 1'000'000));
    if (const auto seconds = node.find("max_seconds")) measure.max_seconds = seconds->positive(86400);
    if (const auto factor = node.find("cut_factor")) measure.cut_factor = factor->number(1, 1e6);
  }

  void read_baselines(const Node& node) {
    config_.baselines.clear();
    for (const Node& element : node.elements())
      expect_new(config_.baselines, element.one_of(vocabulary_.baselines), element);
  }

  void read_baseline_options(const Node& node) {
    node.expect_keys({"cudnn"});
    if (const auto cudnn = node.find("cudnn")) {
      cudnn->expect_keys({"workspace_mib", "deterministic"});
      if (const auto mib = cudnn->find("workspace_mib"))
        config_.cudnn.workspace_mib = mib->integer(0, std::int64_t{1} << 30);
      if (const auto only = cudnn->find("deterministic")) config_.cudnn.deterministic = only->boolean();
    }
  }

  void read_compile(const Node& node) {
    node.expect_keys({"seconds", "memory_mib"});
    if (const auto seconds = node.find("seconds")) config_.compile.seconds = seconds->positive(86400);
    if (const auto mib = node.find("memory_mib")) config_.compile.memory_mib = mib->integer(64, std::int64_t{1} << 30);
  }

  fs::path path_;
  const Vocabulary& vocabulary_;
  Config config_;
  std::string hashed_;
  std::set<std::string> names_;
};

}  // namespace

Config read_config(const fs::path& path, const Vocabulary& vocabulary) { return Reader(path, vocabulary).read(); }

}  // namespace tuner
