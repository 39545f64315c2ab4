#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuner/space/space.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Tunable integers(std::string name, std::vector<std::int64_t> values) {
  Tunable tunable{std::move(name), {}, ""};
  for (const std::int64_t value : values) tunable.values.emplace_back(value);
  return tunable;
}

const std::vector<Tunable> kTunables{integers("T", {64, 128}), integers("IC_TILE", {8, 16}),
                                     Tunable{"block", {Block{32, 8}, Block{16, 16}}, ""},
                                     Tunable{"epilogue", {std::string("shuffle"), std::string("staged")}, ""}};
const Configuration kChosen{{"T", std::int64_t{128}},
                            {"IC_TILE", std::int64_t{8}},
                            {"block", Block{32, 8}},
                            {"epilogue", std::string("shuffle")}};

bool holds(const std::string& expression) { return Condition(expression, kTunables).constraint().holds(kChosen); }

std::string fault(const std::string& expression) {
  try {
    Condition(expression, kTunables);
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(expression)) << "the message must name the expression";
    EXPECT_THAT(std::string(error.what()), testing::Not(HasSubstr("\n")));
    return error.what();
  }
  return "accepted";
}

TEST(Condition, ComparesAndCalculates) {
  EXPECT_TRUE(holds("T == 128"));
  EXPECT_FALSE(holds("T != 128"));
  EXPECT_TRUE(holds("T * IC_TILE <= 1024"));
  EXPECT_FALSE(holds("T * IC_TILE < 1024"));
  EXPECT_TRUE(holds("T - 2 * (IC_TILE + 1) >= 110"));
  EXPECT_TRUE(holds("T % 3 == 2"));
  EXPECT_TRUE(holds("IC_TILE / 16 == 0.5")) << "division is of real numbers";
  EXPECT_TRUE(holds("-T < -127"));
  EXPECT_TRUE(holds("min(T, 5) == 5 and max(T, 5) == T and floor(7 / 2) == 3 and ceil(7 / 2) == 4 and abs(-2) == 2"));
}

TEST(Condition, TakesBothSpellingsOfTheLogicalOperators) {
  for (const char* expression : {"T == 128 and IC_TILE == 8", "T == 128 && IC_TILE == 8", "T == 1 or IC_TILE == 8",
                                 "T == 1 || IC_TILE == 8", "not T == 64", "!(T == 64)", "not (T == 64 or T == 32)",
                                 "T == 64 and IC_TILE == 9 or IC_TILE == 8", "not T == 64 and not IC_TILE == 16"})
    EXPECT_TRUE(holds(expression)) << expression;
  for (const char* expression : {"T == 128 and IC_TILE == 9", "T == 1 or IC_TILE == 9", "not T == 128",
                                 "not (T == 128) or not IC_TILE == 8", "IC_TILE == 9 and (T == 64 or T == 128)"})
    EXPECT_FALSE(holds(expression)) << expression;
}

TEST(Condition, SeesABlockAsThreadsAndExtents) {
  EXPECT_TRUE(holds("block == 256 and block_x == 32 and block_y == 8"));
  EXPECT_TRUE(holds("block.x > block.y"));
  EXPECT_THAT(Condition("block.x > block.y and T > 1", kTunables).constraint().reads, ElementsAre("block", "T"));
}

TEST(Condition, ComparesNamedValues) {
  EXPECT_TRUE(holds("epilogue == \"shuffle\""));
  EXPECT_TRUE(holds("epilogue != 'staged'"));
  EXPECT_FALSE(holds("epilogue == 'staged'"));
  EXPECT_THAT(fault("epilogue == 'shufle'"),
              HasSubstr("\"shufle\" is no value of a tunable in it; allowed: shuffle, staged"));
}

TEST(Condition, DoesNotHoldWhereItHasNoValue) {
  EXPECT_FALSE(holds("0 / (T - 128) == 0"));
  EXPECT_FALSE(holds("T % 0"));
}

TEST(Condition, NamesTheFault) {
  EXPECT_THAT(fault("TT == 3"), HasSubstr("no tunable is called TT; there are T, IC_TILE, block, epilogue"));
  EXPECT_THAT(fault("T = 3"), HasSubstr("\"=\" at column 3: equality is =="));
  EXPECT_THAT(fault("8 <= T <= 64"), HasSubstr("cannot be chained (column 8)"));
  EXPECT_THAT(fault("T =="), HasSubstr("ends where a value is expected"));
  EXPECT_THAT(fault("(T == 3"), HasSubstr("\"(\" is not closed"));
  EXPECT_THAT(fault("T == 3)"), HasSubstr("\")\" at column 7 closes nothing"));
  EXPECT_THAT(fault("T == 3 4"), HasSubstr("near column 8"));
  EXPECT_THAT(fault("T ? 1 : 2"), HasSubstr("unexpected \"?\" at column 3"));
  EXPECT_THAT(fault("T == 0x10"), HasSubstr("\"0x10\" at column 6 is not a number"));
  EXPECT_THAT(fault("system(T)"), HasSubstr("no tunable is called system"));
  EXPECT_THAT(fault("epilogue == \"shuffle"), HasSubstr("not closed"));
  EXPECT_THAT(fault("T == 3; T"), HasSubstr("unexpected \";\""));
  EXPECT_THAT(fault("T == 3, T == 4"), HasSubstr("several values"));
  EXPECT_THAT(fault("min(T)"), HasSubstr("wrong number of arguments"));
  EXPECT_THAT(fault("T == \xff"), HasSubstr("unexpected character at column 6"));
  EXPECT_THROW(Condition("", kTunables), UsageError);
  EXPECT_THROW(Condition(" ", kTunables), UsageError);
  EXPECT_THROW(Condition(std::string(100'000, '('), kTunables), UsageError);
}

TEST(BindConditions, AppliesAConditionOnlyToFamiliesThatHaveItsNames) {
  const std::vector<Tunable> other{integers("T", {1}), integers("STAGES", {2})};
  const auto bound = bind_conditions({"T > 1", "STAGES > 1", "T > STAGES"}, {kTunables, other});
  ASSERT_THAT(bound, SizeIs(2));
  ASSERT_THAT(bound[0], SizeIs(1));
  EXPECT_EQ(bound[0][0].reason, "restrict: T > 1");
  ASSERT_THAT(bound[1], SizeIs(3));
  EXPECT_THAT(bound[1][2].reads, ElementsAre("T", "STAGES"));
  EXPECT_FALSE(bound[1][2].holds({{"T", std::int64_t{1}}, {"STAGES", std::int64_t{2}}}));
}

TEST(BindConditions, RefusesANameThatNoFamilyHasAndBadSyntaxAnywhere) {
  const std::vector<Tunable> other{integers("STAGES", {2})};
  EXPECT_THROW(bind_conditions({"STAGE > 1"}, {kTunables, other}), UsageError);
  EXPECT_THROW(bind_conditions({"T > STAGES >"}, {kTunables, other}), UsageError) << "applies to neither, yet is wrong";
  EXPECT_THROW(bind_conditions({"epilogue == 'no'"}, {kTunables, other}), UsageError);
  EXPECT_THAT(bind_conditions({}, {kTunables}), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace tuner
