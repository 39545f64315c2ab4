#include "tuner/core/json.h"

#include <gmock/gmock.h>
#include <locale.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <locale>

#include "tests/core/temporary_folder.h"
#include "tuner/core/failure.h"
#include "tuner/core/json_node.h"
#include "tuner/core/random.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

auto refuses(const std::string& words) {
  return ThrowsMessage<UsageError>(AllOf(StartsWith("f.json: "), HasSubstr(words), Not(HasSubstr("\n"))));
}

std::string repeat(std::string_view piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(Json, NamesTheFaultAndWhereItIs) {
  struct Row {
    std::string text, words;
  };
  for (const Row& row : {
           Row{"", "the file is empty"},
           Row{"{", "line 1, column 2: not JSON"},
           Row{"{\"a\":\n\n  [1, }", "line 3, column 7: not JSON"},
           Row{"{\"a\": \"x", "line 1, column 9: not JSON"},
           Row{"[1] x", "line 1, column 5: not JSON"},
           Row{std::string("[1]\0[2]", 7), "line 1, column 4: not UTF-8"},
           Row{"[NaN]", "not JSON"},
           Row{"[Infinity]", "not JSON"},
           Row{"[1e999]", "1e999"},
           Row{"[01]", "not JSON"},
           Row{"[1,]", "not JSON"},
           Row{"// comment\n[]", "line 1, column 1: not JSON"},
           Row{"{'a': 1}", "not JSON"},
           Row{"[\"a\nb\"]", "not JSON"},
           Row{"[\"\\ud800\"]", "not JSON"},
           Row{"[1,\n\"\xff\"]", "line 2, column 2: not UTF-8"},
           Row{"\"\xc0\xaf\"", "not UTF-8"},
           Row{"\"\xed\xa0\x80\"", "not UTF-8"},
           Row{"\"\xf4\x90\x80\x80\"", "not UTF-8"},
           Row{"\"\xe2\x82\"", "not UTF-8"},
           Row{"\xff\xfe{\0}\0", "not UTF-8"},
           Row{"{\"a\": 1, \"a\": 2}", "$: key \"a\" is given twice"},
           Row{"{\"b\": [0, {\"c\\n\": 1, \"c\\n\": 1}]}", "$.b[1]: key \"c\\n\" is given twice"},
       }) {
    EXPECT_THAT([&] { parse_json(row.text, "f.json"); }, refuses(row.words)) << row.text;
  }
}

TEST(Json, AcceptsEveryValidForm) {
  EXPECT_EQ(parse_json(" \t\r\n[1, -0.5e3, true, null, \"\\u00e9\\ud83d\\ude00é\", {}]\n", "f"),
            Json::parse("[1,-500.0,true,null,\"é😀é\",{}]"));
  EXPECT_EQ(parse_json("\xef\xbb\xbf[1]", "f").size(), 1u) << "a byte order mark, as some editors write it";
  EXPECT_EQ(parse_json("7", "f"), 7);
}

TEST(Json, DepthIsLimitedWithoutRecursion) {
  EXPECT_EQ(parse_json(repeat("[", 64) + repeat("]", 64), "f").size(), 1u);
  EXPECT_THAT([] { parse_json(repeat("[", 65) + repeat("]", 65), "f.json"); }, refuses("deeper than 64 levels"));
  EXPECT_THAT([] { parse_json(repeat("[", 100000), "f.json"); }, refuses("deeper than 64 levels"));
  EXPECT_THAT([] { parse_json(repeat("{\"a\":", 100000), "f.json"); }, refuses("deeper than 64 levels"));
}

TEST(Json, SizeAndNumberOfValuesAreLimited) {
  EXPECT_THAT([] { parse_json(std::string(std::size_t{100} << 20, ' '), "f.json"); },
              refuses("more than the limit of 67108864"));
  JsonLimits limits;
  limits.values = 1000;
  EXPECT_THAT([&] { parse_json("[" + repeat("[],", 1000) + "1]", "f.json", limits); },
              refuses("more than 1000 values"));
  const TemporaryFolder folder;
  limits.bytes = 10;
  const auto path = folder.write("large.json", std::string(11, '1'));
  EXPECT_THAT([&] { read_json(path, limits); },
              ThrowsMessage<UsageError>(HasSubstr("large.json: larger than the limit of 10 bytes")));
}

TEST(Json, AnObjectOfManyKeysIsReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 300000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  EXPECT_EQ(parse_json(text + "\"last\":1}", "f").size(), 300001u);  // hours if each key searched all others
}

TEST(Json, KeepsTheOrderOfKeysAndWritesPlainArraysOnOneLine) {
  EXPECT_EQ(
      dump_json(parse_json(R"({"z":[1,2.5,"x"],"a":{"b":[[1],[]],"c":{}}})", "f")),
      "{\n  \"z\": [1, 2.5, \"x\"],\n  \"a\": {\n    \"b\": [\n      [1],\n      []\n    ],\n    \"c\": {}\n  }\n}\n");
}

TEST(Json, NeverWritesNanOrInfinity) {
  const Json json{{"nan", std::nan("")},
                  {"inf", std::numeric_limits<double>::infinity()},
                  {"low", -std::numeric_limits<double>::infinity()}};
  const std::string text = dump_json(json);
  EXPECT_EQ(text, "{\n  \"nan\": null,\n  \"inf\": null,\n  \"low\": null\n}\n");
  EXPECT_TRUE(parse_json(text, "f").at("nan").is_null());
}

TEST(Json, DoublesSurviveExactly) {
  Random random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t bits = random.next();
    double value = 0;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(parse_json(dump_json(value), "f").get<double>(), value);
  }
}

TEST(Json, ExcerptsAreShortAndOnOneLine) {
  EXPECT_EQ(excerpt(Json("a\nb")), "\"a\\nb\"");
  EXPECT_EQ(excerpt(Json(std::string(1000, 'x'))), "\"" + std::string(56, 'x') + "...");
  EXPECT_EQ(excerpt(Json::array({1, 2})), "[1,2]");
  EXPECT_EQ(excerpt(Json(std::vector<int>(1000))), "an array of 1000 values");
  const std::string cut = excerpt(Json(repeat("é", 100)));
  EXPECT_LE(cut.size(), 60u);
  EXPECT_NO_THROW(parse_json("\"" + cut.substr(1) + "\"", "f")) << "cut at a character's boundary";
  EXPECT_EQ(one_line("a\x01\x7f\tb", 60), "a\\x01\\x7f\\tb");
}

struct CommaDecimal : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

void expect_numbers_with_points() {
  EXPECT_EQ(dump_json(Json::array({0.125, 1234567.5, 1234567})), "[0.125, 1234567.5, 1234567]\n");
  const Json json = parse_json("[0.125, 1234567.5]", "f");
  EXPECT_EQ(json[0].get<double>(), 0.125);
  EXPECT_EQ(json[1].get<double>(), 1234567.5);
  EXPECT_THAT(
      [] {
        const Json two = Json::array({2.5});
        Node(two, "f.json").elements()[0].number(0, 0.125);
      },
      refuses("$[0]: 2.5 is not allowed: expected a number from 0 to 0.125"));
}

TEST(JsonLocale, TheCxxLocaleChangesNothing) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaDecimal));
  expect_numbers_with_points();
  std::locale::global(before);
}

TEST(JsonLocale, TheCLocaleChangesNothing) {
  const TemporaryFolder folder;
  const std::string compiled = (folder.path() / "de_DE.UTF-8").string();
  const std::string command = "localedef -c -i de_DE -f UTF-8 " + compiled + " >/dev/null 2>&1";
  [[maybe_unused]] const int status = std::system(command.c_str());
  setenv("LOCPATH", folder.path().c_str(), 1);
  const bool german = setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  unsetenv("LOCPATH");
  if (!german) GTEST_SKIP() << "localedef cannot make the locale de_DE.UTF-8 here (Debian: package locales)";
  EXPECT_STREQ(localeconv()->decimal_point, ",");
  expect_numbers_with_points();
  setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace tuner
