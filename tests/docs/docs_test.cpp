// The documents against what they describe: results/, the result writer, configs/schema.json, the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>
#include <set>

#include "tests/core/samples.h"
#include "tuner/core/file.h"
#include "tuner/core/json.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TUNER_SOURCE_DIR;
using Keys = std::set<std::string>;

/// Exit status and what the command printed.
std::pair<int, std::string> run(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "cannot be started"};
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), static_cast<int>(piece.size()), pipe) != nullptr) text += piece.data();
  return {pclose(pipe), text};
}

/// Objects whose keys a user or a family chose, or that another section describes.
bool is_described_elsewhere(const std::string& key) {
  for (const char* name : {"config", "tunables", "rejections", "problem", "proven_on", "device"})
    if (key == name) return true;
  return false;
}

void collect(const Json& json, Keys& keys) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (!(json.is_object() && is_described_elsewhere(key))) collect(value, keys);
  }
}

void collect_properties(const Json& schema, Keys& keys) {
  if (!schema.is_structured()) return;
  for (const auto& [key, value] : schema.items()) {
    if (key == "properties")
      for (const auto& [name, property] : value.items()) keys.insert(name);
    collect_properties(value, keys);
  }
}

/// The part of docs/FORMATS.md under a heading of the second level.
std::string section(const std::string& heading) {
  const std::string text = read_file(kRoot / "docs/FORMATS.md");
  const auto begin = text.find("\n## " + heading + "\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

void expect_described(const Keys& keys, const std::string& heading) {
  const std::string text = section(heading);
  ASSERT_FALSE(text.empty()) << "docs/FORMATS.md has no section " << heading;
  for (const std::string& key : keys)
    EXPECT_TRUE(text.find("`" + key + "`") != std::string::npos)
        << heading << " of docs/FORMATS.md lacks `" << key << '`';
}

/// Keys of results with and without a GPU, nothing left out.
Keys keys_of(std::string (*write)(const RunResult&)) {
  Keys keys;
  for (RunResult result : {measured_result(), offline_result()}) {
    result.interrupted = true;
    collect(parse_json(write(result), "result"), keys);
    for (ProblemRecord& problem : result.problems)
      for (ClassRecord& record : problem.classes) record.best = result.measured ? "cudnn: backward data" : "";
    collect(parse_json(write(result), "result"), keys);
    result.problems[0].classes[0].best.clear();
    collect(parse_json(write(result), "result"), keys);
  }
  return keys;
}

TEST(Documents, ShowTheFiguresOfTheFilesUnderResults) {
  const auto [status, text] =
      run("python3 '" + (kRoot / "tests/docs/tables.py").string() + "' --tuner '" TUNER_PROGRAM "'");
  EXPECT_EQ(status, 0) << text;
}

TEST(Documents, FormatsDescribesEveryKeyOfAResult) {
  const Keys keys = keys_of(to_json);
  ASSERT_GE(keys.size(), 60u);
  expect_described(keys, "Result");
}

TEST(Documents, FormatsDescribesEveryKeyOfBestJson) {
  const Keys keys = keys_of(best_to_json);
  ASSERT_GE(keys.size(), 20u);
  expect_described(keys, "best.json");
}

TEST(Documents, FormatsDescribesEveryKeyOfAConfig) {
  Keys keys;
  collect_properties(read_json(kRoot / "configs/schema.json"), keys);
  ASSERT_GE(keys.size(), 40u);
  expect_described(keys, "Config");
}

TEST(Documents, FormatsDescribesEveryKeyOfADeviceProfile) {
  Keys keys;
  collect(read_json(kRoot / "configs/devices/h200.json"), keys);
  ASSERT_GE(keys.size(), 20u);
  expect_described(keys, "Device profiles");
}

TEST(Documents, FormatsDescribesEveryOptionOfTheCommandLine) {
  const std::string program = TUNER_PROGRAM;
  Keys options;
  for (const char* subcommand : {"", "verify", "inspect", "report", "compare", "emit", "list", "describe", "doctor"}) {
    const auto [status, help] = run("'" + program + "' " + subcommand + " --help");
    ASSERT_EQ(status, 0) << help;
    const std::regex option("(^|[ ,])(--[a-z][a-z-]*)");
    for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at) options.insert((*at)[2]);
  }
  ASSERT_GE(options.size(), 20u);
  const std::string text = section("Command line");
  for (const std::string& option : options) EXPECT_NE(text.find(option), std::string::npos) << option;
}

TEST(Documents, LinkToFilesThatExist) {
  std::size_t links = 0;
  for (const char* name : {"README.md", "docs/ARCHITECTURE.md", "docs/FORMATS.md", "docs/PERFORMANCE.md",
                           "docs/MEASURING.md", "kernels/README.md", "results/README.md"}) {
    const fs::path document = kRoot / name;
    const std::string text = read_file(document);
    const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");  // no colon: not an address on the web
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at, ++links)
      EXPECT_TRUE(fs::exists(document.parent_path() / (*at)[1].str())) << name << " links to " << (*at)[1];
  }
  EXPECT_GE(links, 10u);
}

TEST(Documents, ReadmeIsShort) {
  const std::string text = read_file(kRoot / "README.md");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 150);
}

}  // namespace
}  // namespace tuner
