// What of a stored run is taken over, and what is found out again.
#include "tuner/commands/reuse.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "baselines/baseline.h"
#include "tests/core/temporary_folder.h"
#include "tests/report/samples.h"
#include "tuner/core/hash.h"
#include "tuner/core/record_json.h"

namespace tuner {
namespace {

using samples::baseline;
using samples::timed;
using testing::ElementsAre;

TimeRecord raced(double ms, std::string regime = "burst") {
  TimeRecord time{{ms, ms, ms}, samples::samples_of({ms, ms, ms}), "cold", std::move(regime)};
  time.interleaved = true;
  return time;
}

/// A class after its search: three variants and two routes of one baseline.
ClassRecord searched() {
  ClassRecord record;
  record.plain_error = 1e-7;
  record.variants = {timed("a", "tiled", {2, 1.9, 2.1}), timed("b", "tiled", {1, 0.9, 1.1}),
                     timed("c", "direct", {1.02, 1, 1.1})};
  record.baselines = {baseline("cudnn", "forward", {1.5, 1.4, 1.6}), baseline("cudnn", "backward-data", {3, 2, 4})};
  record.baselines[0].engine = "1";
  record.baselines[1].engine = "2";
  record.baselines[1].best_of_its_name = false;
  record.rejections = {{"direct: too large", 7}};
  record.space_size = 3;
  record.search_account = SearchAccount{};
  record.search_account->wall = 12;
  return record;
}

/// The same after a run-off of b, c and cuDNN's forward in which c failed.
ClassRecord raced_off() {
  ClassRecord record = searched();
  record.variants[1].time = raced(1.01);
  record.variants[1].other_regimes = {raced(1.2, "sustained")};
  record.variants[1].errors = Errors{0.8, 0.9};
  record.variants[2].outcome = Outcome::crashed;
  record.variants[2].reason = "in the run-off: the worker ended";
  record.variants[2].log = "trap";
  record.variants[2].time.reset();
  record.baselines[0].time = raced(1.49);
  record.plain_error = 2e-7;
  record.best = "b";
  record.ratios = {{"cudnn", 1.5, 1.4, 1.6, "burst"}};
  record.best_again = AgainRecord{"b", raced(1.01), true};
  record.conditions = Conditions{};
  record.conditions->power_limit_w = 700;
  record.warnings = {"clocks"};
  return record;
}

std::string text_of(const ClassRecord& record) { return record_json(record, true).dump(); }

TEST(Finals, HoldOnlyWhatTheRunOffTouched) {
  const ClassRecord finals = finals_of(searched(), raced_off());
  ASSERT_EQ(finals.variants.size(), 2u);
  EXPECT_EQ(finals.variants[0].id, "b");
  EXPECT_EQ(finals.variants[1].id, "c");
  ASSERT_EQ(finals.baselines.size(), 1u);
  EXPECT_EQ(finals.baselines[0].engine, "1");
}

TEST(Finals, PutBackGiveTheClassAsTheRunOffLeftIt) {
  EXPECT_EQ(text_of(with_finals(searched(), finals_of(searched(), raced_off()))), text_of(raced_off()));
  // A run-off that changed nothing leaves what was there.
  EXPECT_EQ(text_of(with_finals(searched(), finals_of(searched(), searched()))), text_of(searched()));
}

TEST(Finals, SurviveTheStoresText) {
  const ClassRecord finals = finals_of(searched(), raced_off());
  const auto read = read_record<ClassRecord>(record_json(finals, true), "finals", true);
  EXPECT_EQ(text_of(with_finals(searched(), read)), text_of(raced_off()));
}

TEST(Finals, FindTheirVariantsAndRoutesInAnotherOrderAndALargerSearch) {
  ClassRecord wider = searched();
  std::reverse(wider.variants.begin(), wider.variants.end());
  std::reverse(wider.baselines.begin(), wider.baselines.end());
  wider.variants.push_back(timed("d", "direct", {5, 5, 5}));
  wider.space_size = 4;
  wider.rejections.clear();
  wider.search_account->wall = 99;
  const ClassRecord after = with_finals(wider, finals_of(searched(), raced_off()));
  ASSERT_EQ(after.variants.size(), 4u);
  EXPECT_EQ(after.variants[0].outcome, Outcome::crashed);
  EXPECT_EQ(after.variants[1].time, raced(1.01));
  EXPECT_THAT(after.variants[1].other_regimes, ElementsAre(raced(1.2, "sustained")));
  EXPECT_EQ(after.variants[2].time, searched().variants[0].time);
  EXPECT_EQ(after.variants[3].id, "d");
  EXPECT_EQ(after.baselines[0].time, searched().baselines[1].time);
  EXPECT_EQ(after.baselines[1].time, raced(1.49));
  EXPECT_EQ(after.best, "b");
  // The search's own facts are those of the search that there was.
  EXPECT_EQ(after.space_size, 4u);
  EXPECT_TRUE(after.rejections.empty());
  EXPECT_EQ(after.search_account->wall, 99);
}

ClassRecords::Searched cut_at(double ms, double best_before) {
  ClassRecords::Searched searched{timed("slow", "direct", {ms, ms, ms}), best_before, {}};
  searched.variant.outcome = Outcome::cut;
  return searched;
}

TEST(ACut, HoldsWhileTheBestIsAsFastAsItWas) {
  EXPECT_TRUE(holds_against(cut_at(3, 1), 1, 2));
  EXPECT_TRUE(holds_against(cut_at(3, 1), 0.5, 2));
}

TEST(ACut, IsUndoneWhenWhatItWasCutAgainstIsGoneAndTheNextIsNotTwiceAsFast) {
  EXPECT_FALSE(holds_against(cut_at(3, 1), 1.6, 2));
  EXPECT_FALSE(holds_against(cut_at(3, 1), 1.5, 2));  // not more than cut_factor times slower
  EXPECT_FALSE(holds_against(cut_at(3, 1), std::numeric_limits<double>::infinity(), 2));  // nothing right before it
  ClassRecords::Searched untimed = cut_at(3, 1);
  untimed.variant.time.reset();
  EXPECT_FALSE(holds_against(untimed, 1.1, 2));
}

TEST(ACut, HoldsWhereItsTimesAreTooSlowForTheNextBestAsWell) {
  EXPECT_TRUE(holds_against(cut_at(3, 1), 1.4, 2));
  EXPECT_TRUE(holds_against(cut_at(3, 1), 1.6, 1.5));
}

TEST(ACut, IsTheOnlyOutcomeThatDependsOnTheBest) {
  ClassRecords::Searched searched = cut_at(3, 1);
  for (const Outcome outcome : {Outcome::ok, Outcome::wrong_result, Outcome::crashed, Outcome::implausible}) {
    searched.variant.outcome = outcome;
    EXPECT_TRUE(holds_against(searched, 100, 2)) << to_string(outcome);
  }
}

class StoredBaseline : public testing::Test {
 protected:
  StoredBaseline() {
    environment_.device.name = "NVIDIA H200";
    environment_.device.measured = true;
    environment_.cudnn = "9.14.0";
    environment_.cublas = "13.0";
  }
  ClassRecords records() { return {store_, taken_, {"p", samples::seed()}, Accuracy::fp32, {}, environment_, "burst"}; }
  std::string key() const { return baseline_key("cudnn", environment_, options_, kernels_, sources_); }

  TemporaryFolder folder_;
  Store store_{folder_.path() / "store.sqlite"};
  TakenOver taken_{1};
  Environment environment_;
  CudnnOptions options_;
  std::string kernels_ = "k1", sources_ = "s1";
};

TEST_F(StoredBaseline, IsTakenOverAsItWasWhereNothingChanged) {
  records().keep_baseline("cudnn", key(), searched().baselines);
  const auto known = records().baseline("cudnn", key());
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 2u);
  EXPECT_EQ(known->front().route, "forward");
  EXPECT_EQ(known->front().time, searched().baselines.front().time);
  EXPECT_EQ(taken_.in_words(), "1 records taken over, 0 stale");
}

TEST_F(StoredBaseline, IsStaleOnceTheListOfRoutesLibrariesOrOptionsChange) {
  const std::string before = key();
  const std::vector<std::pair<const char*, std::function<void()>>> changes{
      {"list of routes", [&] { sources_ = "s2"; }},       {"helper kernels", [&] { kernels_ = "k2"; }},
      {"cuDNN", [&] { environment_.cudnn = "9.15.0"; }},  {"cuBLAS", [&] { environment_.cublas = "13.1"; }},
      {"workspace", [&] { options_.workspace_mib = 1; }}, {"determinism", [&] { options_.deterministic = true; }}};
  for (const auto& [what, change] : changes) {
    const auto environment = environment_;
    const auto options = options_;
    records().keep_baseline("cudnn", before, searched().baselines);
    taken_ = TakenOver(1);
    change();
    EXPECT_FALSE(records().baseline("cudnn", key())) << what;
    EXPECT_EQ(taken_.in_words(),
              "0 records taken over, 1 stale and done again (vendor library, its options or routes changed: 1)")
        << what;
    environment_ = environment;
    options_ = options;
    kernels_ = "k1";
    sources_ = "s1";
    EXPECT_TRUE(records().baseline("cudnn", key())) << what;
  }
}

TEST(TakenOver, CountsEachRecordOnceAndAddsUp) {
  const auto key = [](const char* subject) { return RecordKey{"p", "fp32", "variant", subject}; };
  TakenOver taken(5);
  taken.none(key("new"));
  taken.held(key("new"));  // this run made it meanwhile
  taken.held(key("a"));
  taken.held(key("a"));
  taken.stale(key("b"), "seed 1, now 2");
  taken.held(key("b"));  // done again, and found there
  taken.held(key("c"));
  taken.was_stale(key("c"), "cut against a faster one that is gone");
  EXPECT_EQ(
      taken.in_words(),
      "1 records taken over, 2 stale and done again (cut against a faster one that is gone: 1; seed 1, now 2: 1), "
      "2 not asked for");
}

// Whoever adds a route, or another way to walk them, need not remember to raise a number.
TEST(BaselineSources, AreAllFilesThatListAndWalkTheRoutes) {
  const std::filesystem::path root = TUNER_SOURCE_DIR;
  std::set<std::string> names{"tuner/worker/vendor_routes.cpp"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "baselines"))
    if (entry.path().extension() != ".txt") names.insert("baselines/" + entry.path().filename().string());
  EXPECT_GT(names.size(), 10u);
  std::string lines;
  for (const std::string& name : names) lines += name + " " + sha256(TemporaryFolder::content_of(root / name)) + "\n";
  EXPECT_EQ(baseline_sources(), sha256(lines));
}

}  // namespace
}  // namespace tuner
