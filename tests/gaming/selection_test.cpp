// What may be chosen: nothing that was refused for its time or its result, and no winner by chance.
#include <gmock/gmock.h>

#include "tests/commands/program.h"
#include "tuner/commands/finals.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

VariantRecord timed(const std::string& id, Outcome outcome, double ms) {
  VariantRecord variant;
  variant.id = id;
  variant.outcome = outcome;
  variant.time.emplace();
  variant.time->samples.assign(40, ms);
  variant.time->interleaved = true;
  variant.time->ms = median_interval(variant.time->samples);
  return variant;
}

TEST(Selection, G11ATimeNextToNothingIsNotAmongThoseChosenFrom) {
  ClassRecord record;
  for (int i = 0; i < 19; ++i) record.variants.push_back(timed("v" + std::to_string(i), Outcome::ok, 1 + 0.1 * i));
  record.variants.push_back(timed("no time", Outcome::implausible, 1e-9));
  record.variants.push_back(timed("cheat", Outcome::wrong_result, 0.5));
  choose_best(record, "time");
  EXPECT_EQ(record.best, "v0");
  EXPECT_THAT(record.tie, IsEmpty());
}

TEST(Selection, H42WhereAllAreEqualTheFirstStandsAndTheOthersTie) {
  ClassRecord record;
  for (const char* const id : {"default", "second", "third"}) record.variants.push_back(timed(id, Outcome::ok, 1));
  choose_best(record, "time");
  EXPECT_EQ(record.best, "default");
  EXPECT_THAT(record.tie, ElementsAre("second", "third"));
}

TEST(Selection, H43NothingIsBestWhereNothingIsValid) {
  ClassRecord record;
  record.variants = {timed("wrong", Outcome::wrong_result, 1), timed("cut", Outcome::cut, 2)};
  choose_best(record, "time");
  EXPECT_EQ(record.best, "");
  EXPECT_THAT(record.ratios, IsEmpty());
}

TEST(Selection, H43ARunWithoutAnythingValidExitsOne) {
  const TemporaryFolder folder;
  const fs::path config = folder.write("none.json", R"({"name": "none", "baselines": [], "problems": [
      {"name": "p", "in_channels": 3, "out_channels": 2, "kernel_size": 3, "length": 9}],
      "families": {"cheat": {"cheat": ["stale_output", "half_written"]}}})");
  ProgramOptions options;
  options.program = TUNER_WITH_FAULTS;
  const Ended ended = run_to_end({"--config", config, "--device", "offline", "--out", folder.path()}, options);
  EXPECT_EQ(ended.code, 1) << ended.err;
  const std::string best = TemporaryFolder::content_of(folder.path() / "none/best.json");
  EXPECT_EQ(best.find("\"family\""), std::string::npos) << best;
}

}  // namespace
}  // namespace tuner
