// The whole program with cheats among its variants: none is proven, none wins.
#include "tests/commands/program.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/gaming/cheats.h"
#include "tuner/core/json.h"
#include "tuner/device/cuda_device.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using namespace tuner::testing;

ProgramOptions with_cheats() {
  ProgramOptions options;
  options.program = TUNER_WITH_FAULTS;
  return options;
}

/// A config whose variants are these cheats, on one problem with all parameters different.
fs::path config_of(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  const Json problem{{"name", "small"},  {"batch", 7},   {"in_channels", 12}, {"out_channels", 6},
                     {"kernel_size", 5}, {"stride", 4},  {"padding", 1},      {"dilation", 3},
                     {"groups", 2},      {"bias", true}, {"length", 11}};
  const Json config{{"name", "cheats"},
                    {"problems", {problem}},
                    {"classes", {"fp32"}},
                    {"measure", {{"cut_factor", 100}}},
                    {"families", {{"cheat", {{"cheat", names}}}}},
                    {"baselines", Json::array()}};
  return folder.write("cheats.json", config.dump());
}

struct Verdict {
  std::string outcome, reason;
};
/// By cheat; `best` and `shortlist` name cheats, too.
struct Verdicts {
  std::map<std::string, Verdict> of;
  std::string best;
  std::vector<std::string> proven;  // on the shortlist, and ok
};

Verdicts verdicts_of(const fs::path& result) {
  Verdicts verdicts;
  std::map<std::string, std::string> names;
  const Json record = read_json(result)["problems"][0]["classes"][0];
  for (const Json& variant : record["variants"]) {
    const auto name = variant["tunables"]["cheat"].get<std::string>();
    names[variant["id"]] = name;
    verdicts.of[name] = {variant["outcome"], variant.value("reason", "")};
  }
  if (record.contains("best") && record["best"].is_string()) verdicts.best = names[record["best"]];
  if (record.contains("shortlist"))
    for (const Json& id : record["shortlist"])
      if (verdicts.of[names[id]].outcome == "ok") verdicts.proven.push_back(names[id]);
  return verdicts;
}

TEST(CheatsInARun, NoneIsProvenWithoutAGraphicsCard) {
  std::vector<std::string> all = cheats(), seen;
  all.erase(std::remove_if(all.begin(), all.end(), [](const std::string& name) { return name.rfind("late_", 0) == 0; }),
            all.end());
  ASSERT_EQ(all.front(), "honest");
  for (std::size_t at = 1; at < all.size(); at += 7) {  // a shortlist has 8 places
    std::vector<std::string> names{"honest"};
    for (std::size_t i = at; i < std::min(at + 7, all.size()); ++i) names.push_back(all[i]);
    const TemporaryFolder folder;
    const Ended ended = run_to_end(
        {"--config", config_of(folder, names), "--device", "offline", "--out", folder.path()}, with_cheats());
    ASSERT_EQ(ended.code, 0) << ended.err;
    Verdicts verdicts = verdicts_of(folder.path() / "cheats/result.json");
    ASSERT_EQ(verdicts.of.size(), names.size());
    EXPECT_TRUE(verdicts.best.empty());
    for (const std::string& name : verdicts.proven)
      EXPECT_TRUE(name == "honest" || name == "nondeterministic_openly") << name << " is on the shortlist as proven";
    EXPECT_EQ(verdicts.of["honest"].outcome, "ok") << verdicts.of["honest"].reason;
    for (std::size_t i = 1; i < names.size(); ++i) {
      const Verdict& verdict = verdicts.of[names[i]];
      if (names[i] == "nondeterministic_openly") continue;
      EXPECT_EQ(verdict.outcome, names[i] == "writes_past_the_end" ? "crashed" : "wrong_result") << names[i];
      EXPECT_FALSE(verdict.reason.empty()) << names[i];
      seen.push_back(names[i]);
    }
  }
  EXPECT_GT(seen.size(), 15u);
}

TEST(CheatsInARunGpu, NoneWinsAndEachIsNamed) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "there is no CUDA GPU";
  const TemporaryFolder folder;
  const Ended ended =
      run_to_end({"--config", config_of(folder, cheats()), "--device", "cuda", "--out", folder.path()}, with_cheats());
  ASSERT_EQ(ended.code, 0) << ended.err;
  Verdicts verdicts = verdicts_of(folder.path() / "cheats/result.json");
  ASSERT_EQ(verdicts.of.size(), cheats().size());
  EXPECT_TRUE(verdicts.best == "honest" || verdicts.best == "nondeterministic_openly") << verdicts.best;
  for (const auto& [name, verdict] : verdicts.of) {
    if (name == "honest" || name == "nondeterministic_openly") {
      EXPECT_EQ(verdict.outcome, "ok") << name << ": " << verdict.reason;
    } else {
      EXPECT_EQ(verdict.outcome, "wrong_result") << name << ": " << verdict.reason;
      EXPECT_FALSE(verdict.reason.empty()) << name;
    }
  }
}

}  // namespace
}  // namespace tuner
