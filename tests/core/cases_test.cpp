#include <gmock/gmock.h>

#include "tests/core/temporary_folder.h"
#include "tuner/core/config.h"
#include "tuner/core/failure.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

/// One case with its members, those named replaced.
std::string case_with(const std::string& key = "", const std::string& value = "") {
  std::vector<std::pair<std::string, std::string>> members{
      {"name", "\"c\""},
      {"values", "\"normal\""},
      {"problem", R"({"in_channels": 1, "out_channels": 1, "kernel_size": 2, "length": 2, "bias": true})"},
      {"length_out", "3"},
      {"input", "[1, 2]"},
      {"weight", "[1, 10]"},
      {"bias", "[0.5]"},
      {"output", "[1.5, 12.5, 20.5]"}};
  std::string text;
  bool replaced = key.empty();
  for (auto& [name, content] : members) {
    if (name == key) {
      content = value;
      replaced = true;
    }
    if (!content.empty()) text += (text.empty() ? "" : ", ") + ("\"" + name + "\": " + content);
  }
  if (!replaced) text += ", \"" + key + "\": " + value;
  return "{" + text + "}";
}
std::string file_with(const std::string& key, const std::string& value) {
  return "{\"cases\": [" + case_with(key, value) + "]}";
}

TEST(Cases, AreReadAsTheyAre) {
  const TemporaryFolder folder;
  const auto cases = read_cases(folder.write("c.json", "{\"cases\": [" + case_with() + "]}"));
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].name, "c");
  EXPECT_EQ(cases[0].problem.length_out(), 3);
  EXPECT_THAT(cases[0].input, ElementsAre(1, 2));
  EXPECT_THAT(cases[0].weight, ElementsAre(1, 10));
  EXPECT_THAT(cases[0].bias, ElementsAre(0.5));
  EXPECT_THAT(cases[0].output, ElementsAre(1.5, 12.5, 20.5));
}

TEST(Cases, EveryFaultIsOneLineWithFileAndPath) {
  const TemporaryFolder folder;
  struct Row {
    std::string text, words;
  };
  for (
      const auto& [text, words] : {
          Row{"", "line 1, column 1"},
          Row{"[]", "$: "},
          Row{"{}", "lacks the key 'cases'"},
          Row{R"({"cases": []})", "$.cases: "},
          Row{R"({"cases": [1]})", "$.cases[0]: "},
          Row{R"({"cases": {}, "x": 1})", "$.x: "},
          Row{file_with("name", ""), "$.cases[0]: "},
          Row{file_with("name", "\"\""), "$.cases[0].name: "},
          Row{file_with("inputs", "[]"), "$.cases[0].inputs: unknown key"},
          Row{file_with("problem", "{}"), "$.cases[0].problem: "},
          Row{file_with(
                  "problem",
                  R"({"in_channels": 1, "out_channels": 1, "kernel_size": 2, "length": 2, "bias": true, "output_padding": 1})"),
              "$.cases[0].problem: "},
          Row{file_with("length_out", "4"), "$.cases[0].length_out: 4 is not allowed: expected 3"},
          Row{file_with("input", "[1]"), "$.cases[0].input: [1] is not allowed: expected an array of 2 numbers"},
          Row{file_with("input", "[1, \"2\"]"), "$.cases[0].input[1]: \"2\""},
          Row{file_with("input", "[1, null]"), "$.cases[0].input[1]: null"},
          Row{file_with("input", "[1, -1e39]"), "$.cases[0].input[1]: -1e+39 is not allowed: expected a number within"},
          Row{file_with("bias", "[1e300]"), "$.cases[0].bias[0]: 1e+300"},
          Row{file_with("weight", "{}"), "$.cases[0].weight: "},
          Row{file_with("bias", "null"), "$.cases[0].bias: null"},
          Row{file_with("bias", ""), "lacks the key 'bias'"},
          Row{file_with("output", "[1, 2, 3, 4]"), "$.cases[0].output: "},
          Row{file_with("output", "[1, 2, 1e999]"), "1e999"},
          Row{"{\"cases\": [" + case_with() + "," + case_with() + "]}", "$.cases[1].name: \"c\""},
          Row{"{\"cases\": [" + case_with().substr(0, 50), "line 1, column "},
      }) {
    const auto path = folder.write("c.json", text);
    EXPECT_THAT([&] { read_cases(path); }, ThrowsMessage<UsageError>(AllOf(StartsWith(path.string() + ": "),
                                                                           HasSubstr(words), Not(HasSubstr("\n")))))
        << text;
  }
}

TEST(Cases, NoBiasIsNull) {
  const TemporaryFolder folder;
  const std::string problem = R"({"in_channels": 1, "out_channels": 1, "kernel_size": 2, "length": 2})";
  EXPECT_THAT([&] { read_cases(folder.write("c.json", file_with("problem", problem))); },
              ThrowsMessage<UsageError>(HasSubstr("$.cases[0].bias: [0.5] is not allowed: expected null")));
}

}  // namespace
}  // namespace tuner
