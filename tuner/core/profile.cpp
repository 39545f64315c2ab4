// Device profiles: embedded in the program, or a path.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <type_traits>

#include "tuner/core/config.h"
#include "tuner/core/device_facts.h"
#include "tuner/core/failure.h"
#include "tuner/core/problem_json.h"

namespace tuner {

/// Path from the repository root and content of each file of configs/devices/ (tuner/CMakeLists.txt).
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_profiles();

namespace {

std::string stem(std::string_view path) { return std::filesystem::path(path).stem().string(); }

struct FactsReader {
  const Node& node;

  template <class Member>
  void operator()(const char* key, Member& member) const {
    if constexpr (std::is_same_v<Member, std::string>) {
      member = read_label(node.at(key));
    } else if constexpr (std::is_floating_point_v<Member>) {
      member = node.at(key).number(0);
    } else {
      member = static_cast<Member>(node.at(key).integer(0, std::numeric_limits<Member>::max()));
    }
  }
};

DeviceFacts parse_profile(const Json& json, const std::string& file) {
  const Node node(json, file);
  node.expect_object();
  DeviceFacts facts;
  visit_facts(facts, FactsReader{node});
  if (!is_target(facts.arch)) node.at("arch").refuse("a target such as \"sm_90a\"");
  for (const char* key : {"compute_major", "sm_count", "shared_per_sm", "shared_per_block_optin"})
    node.at(key).integer(1);
  for (const char* key : {"sm_clock_mhz", "memory_gbps", "fp32_tflops"}) node.at(key).positive();
  read_label(node.at("source").elements(1).front());
  return facts;
}

}  // namespace

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& [path, content] : embedded_profiles()) names.push_back(stem(path));
  std::sort(names.begin(), names.end());
  return names;
}

DeviceFacts read_profile(const std::string& name) {
  if (name.find('/') != name.npos) return parse_profile(read_json(name), name);
  for (const auto& [path, content] : embedded_profiles()) {
    if (stem(path) == name) return parse_profile(parse_json(content, std::string(path)), std::string(path));
  }
  throw UsageError(fmt::format("device profile '{}' is unknown: allowed are {} or a path with a '/'",
                               one_line(name, 60), alternatives(profile_names())));
}

}  // namespace tuner
