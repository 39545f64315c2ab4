// configs/schema.json against the reader, which is the authority, by a validator of JSON Schema.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "tests/core/samples.h"
#include "tests/core/temporary_folder.h"
#include "tuner/core/failure.h"
#include "tuner/core/json.h"

namespace tuner {
namespace {

const std::string kSchema = TUNER_SOURCE_DIR "/configs/schema.json";

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 1000> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {
    lines.emplace_back(line.data());
    lines.back().erase(lines.back().find_last_not_of('\n') + 1);
  }
  pclose(pipe);
  return lines;
}

/// "accepts" or "refuses" for each text.
std::vector<std::string> verdicts_of_schema(const std::vector<std::string>& texts) {
  const TemporaryFolder folder;
  std::string command = "python3 '" TUNER_SOURCE_DIR "/tests/core/check_schema.py' '" + kSchema + "'";
  for (std::size_t i = 0; i < texts.size(); ++i)
    command += " " + folder.write(std::to_string(i) + ".json", texts[i]).string();
  return lines_of(command + " 2>&1");
}

std::string verdict_of_reader(const std::string& text) {
  const TemporaryFolder folder;
  try {
    read_config(folder.write("f.json", text), test_vocabulary());
    return "accepts";
  } catch (const UsageError&) {
    return "refuses";
  }
}

void expect_agreement(const std::vector<std::string>& texts) {
  const auto verdicts = verdicts_of_schema(texts);
  ASSERT_EQ(verdicts.size(), texts.size())
      << "needs python3 with jsonschema 4 (Debian: python3-jsonschema): " << (verdicts.empty() ? "" : verdicts.back());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(verdicts[i], verdict_of_reader(texts[i])) << texts[i];
}

TEST(Schema, AcceptsWhatTheReaderAccepts) {
  expect_agreement(good_configs());
  for (const std::string& text : good_configs()) EXPECT_EQ(verdict_of_reader(text), "accepts") << text;
}

TEST(Schema, RefusesWhatTheReaderRefusesForItsForm) {
  std::vector<std::string> texts;
  for (const BadConfig& bad : bad_configs())
    if (bad.fault == BadConfig::of_form) texts.push_back(bad.text);
  ASSERT_GE(texts.size(), 40u);
  expect_agreement(texts);
}

TEST(Schema, LeavesToTheReaderOnlyWhatASchemaCannotSay) {
  std::vector<std::string> texts;
  for (const BadConfig& bad : bad_configs())
    if (bad.fault == BadConfig::of_meaning) texts.push_back(bad.text);
  const auto verdicts = verdicts_of_schema(texts);
  ASSERT_EQ(verdicts.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(verdicts[i], "accepts") << texts[i];
}

TEST(Schema, AcceptsEveryShippedConfig) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(TUNER_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json")
      texts.push_back(TemporaryFolder::content_of(entry.path()));
  }
  ASSERT_GE(texts.size(), 4u);
  const auto verdicts = verdicts_of_schema(texts);
  EXPECT_EQ(verdicts, std::vector<std::string>(texts.size(), "accepts"));
}

TEST(Schema, StatesTheReadersDefaults) {
  const Json schema = read_json(kSchema);
  const auto stated = [&](const std::string& pointer) {
    Json::json_pointer path;
    for (std::size_t at = 0; at < pointer.size();) {
      const std::size_t end = std::min(pointer.find('.', at), pointer.size());
      path = path / "properties" / pointer.substr(at, end - at);
      at = end + 1;
    }
    return schema.at(path / "default");
  };
  const TemporaryFolder folder;
  const Config config = read_config(folder.write("f.json", good_configs()[0]), test_vocabulary());
  EXPECT_EQ(stated("schema_version"), config.schema_version);
  EXPECT_EQ(stated("classes"), Json::array({"fp32"}));
  EXPECT_EQ(config.classes, std::vector<Accuracy>{Accuracy::fp32});
  EXPECT_EQ(stated("restrict").size(), config.restrict_.size());
  EXPECT_EQ(stated("search.strategy"), config.search.strategy);
  EXPECT_EQ(stated("search.seed"), config.search.seed);
  EXPECT_EQ(stated("search.objective"), config.search.objective);
  EXPECT_EQ(stated("measure.l2"), config.measure.l2);
  EXPECT_EQ(stated("measure.regime"), Json(config.measure.regime));
  EXPECT_EQ(stated("measure.half_width"), config.measure.half_width);
  EXPECT_EQ(stated("measure.max_samples"), config.measure.max_samples);
  EXPECT_EQ(stated("measure.max_seconds"), config.measure.max_seconds);
  EXPECT_EQ(stated("measure.cut_factor"), config.measure.cut_factor);
  EXPECT_EQ(stated("baselines"), Json(config.baselines));
  EXPECT_EQ(stated("baseline_options.cudnn.workspace_mib"), config.cudnn.workspace_mib);
  EXPECT_EQ(stated("baseline_options.cudnn.deterministic"), config.cudnn.deterministic);
  EXPECT_EQ(stated("compile.seconds"), config.compile.seconds);
  EXPECT_EQ(stated("compile.memory_mib"), config.compile.memory_mib);
  EXPECT_EQ(stated("jobs"), config.jobs);
  EXPECT_EQ(stated("out"), config.out);
}

}  // namespace
}  // namespace tuner
