// Runs that end before their time and go on with --resume, and what becomes of a store that is in use, full or unfit.
#include <gmock/gmock.h>

#include <set>

#include "tests/commands/processes.h"
#include "tests/commands/program.h"
#include "tests/commands/store_rows.h"
#include "tuner/core/json.h"
#include "tuner/core/result.h"
#include "tuner/store/store.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> ids_of(const RunResult& result, std::size_t problem = 0) {
  std::vector<std::string> ids;
  for (const VariantRecord& variant : result.problems.at(problem).classes.at(0).variants) ids.push_back(variant.id);
  return ids;
}

class Resume : public testing::Test {
 protected:
  fs::path file(const std::string& name) const { return folder_.path() / "tiny" / name; }
  RunResult result() const { return read_result(file("result.json")); }
  Json json() const {
    Json json = read_json(file("result.json"));
    for (const char* key : {"started", "search_seconds"}) json.erase(key);
    for (Json& problem : json["problems"])
      for (Json& variant : problem["classes"][0]["variants"]) variant.erase("compile_ms");
    return json;
  }
  Ended run(const std::vector<std::string>& more = {}) const { return run_tiny(folder_.path(), more); }
  Ended resume(std::vector<std::string> more = {}) const {
    more.push_back("--resume");
    return run(more);
  }
  /// The tiny config with other lists.
  Ended run_config(const Json& config, bool resume) const {
    std::vector<std::string> words{"--config",  folder_.write("tiny.json", config.dump()),
                                   "--device",  "offline",
                                   "--out",     folder_.path(),
                                   "--problem", "same-rate",
                                   "--family",  "direct"};
    if (resume) words.push_back("--resume");
    return run_to_end(words);
  }
  void edit(const std::string& sql) const { Database(file("store.sqlite")).run(sql); }

  TemporaryFolder folder_;
};

TEST_F(Resume, WithoutAStoreJustBegins) {
  const Ended ended = resume({"--budget", "2evals"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("0 records taken over, 0 stale"));
  EXPECT_EQ(result().command.find("--resume"), std::string::npos);
}

TEST_F(Resume, OfAFinishedRunDoesNothingAgainAndGivesTheSameFiles) {
  ASSERT_EQ(run().code, 0);
  const Json first = json();
  const std::string started = result().started;
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  const Ended ended = resume({"--verbose"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("(from the store)"), HasSubstr(" 0 stale"), Not(HasSubstr("proving"))));
  Json second = json();
  EXPECT_EQ(second["command"].get<std::string>(), first["command"].get<std::string>() + " --verbose");
  second["command"] = first["command"];
  EXPECT_EQ(second, first);
  EXPECT_EQ(result().started, started);
  EXPECT_EQ(StoreCopy(file("store.sqlite")).rows(), rows);
}

TEST_F(Resume, AfterAKillDoesOnlyWhatWasNotDone) {
  TemporaryFolder cache;
  ProgramOptions cold;
  cold.cache = cache.path();  // each variant takes its time
  const std::vector<std::string> words{"--config",  data_file("tiny.json"),
                                       "--device",  "offline",
                                       "--out",     folder_.path(),
                                       "--jobs",    "1",
                                       "--problem", "same-rate",
                                       "--verbose"};
  ChildProgram killed(words, cold);
  const auto lines = [&] {
    const std::string err = killed.err();
    std::size_t count = 0;
    for (const std::string& line : lines_of(err.substr(0, err.rfind('\n') + 1)))
      count += line.rfind("  direct-", 0) == 0 || line.rfind("  tiled-", 0) == 0;
    return count;
  };
  ASSERT_TRUE(eventually(100, [&] { return lines() == 3; }));
  kill(killed.pid(), SIGKILL);
  EXPECT_EQ(killed.wait(20).code, -SIGKILL);
  const auto stored = StoreCopy(file("store.sqlite")).rows().size();
  ASSERT_GE(stored, 3u);
  ASSERT_LE(stored, 4u);

  auto again = words;
  again.push_back("--resume");
  const Ended ended = run_to_end(again);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr(std::to_string(stored) + " records taken over, 0 stale"));
  EXPECT_EQ(ids_of(result()).size(), 8u);
}

TEST_F(Resume, InterruptedStillHasAllThatTheStoreKnows) {
  ASSERT_EQ(run({"--family", "direct"}).code, 0);
  const std::string whole = TemporaryFolder::content_of(file("result.json"));
  const auto first = ids_of(result(), 0), second = ids_of(result(), 1);
  ASSERT_EQ(first.size(), 4u);
  edit("DELETE FROM records WHERE stage = 'variant' AND subject = '" + first[1] +
       "' AND problem LIKE '%\"length\":200%'");
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  ASSERT_GE(rows.size(), 15u) << "of 8 variants and their proofs";
  for (const bool standing : {true, false}) {  // the result that has it all, or none, as after a kill
    if (!standing) fs::remove(file("result.json"));
    TemporaryFolder cache;
    ProgramOptions cold;
    cold.cache = cache.path();
    ChildProgram program({"--config", data_file("tiny.json"), "--device", "offline", "--out", folder_.path(),
                          "--family", "direct", "--jobs", "1", "--verbose", "--resume"},
                         cold);
    ASSERT_TRUE(eventually(100, [&] { return program.err().find("(from the store)") != std::string::npos; }));
    kill(program.pid(), SIGINT);  // while the one that is missing compiles
    const Ended ended = program.wait(30);
    EXPECT_EQ(ended.code, 130) << ended.err;
    EXPECT_EQ(StoreCopy(file("store.sqlite")).rows(), rows);
    if (standing) {
      EXPECT_EQ(TemporaryFolder::content_of(file("result.json")), whole);
      EXPECT_THAT(ended.err, HasSubstr("has more and stays as it was"));
      continue;
    }
    EXPECT_THAT(ended.err, HasSubstr("everything found out so far is in the result"));
    EXPECT_TRUE(result().interrupted);
    EXPECT_EQ(ids_of(result(), 0), (std::vector<std::string>{first[0], first[2], first[3]}));
    EXPECT_EQ(ids_of(result(), 1), second) << "it never got so far";
    for (const std::size_t problem : {0, 1})
      for (const VariantRecord& variant : result().problems[problem].classes[0].variants)
        EXPECT_EQ(variant.outcome, Outcome::ok) << variant.reason;
  }
}

TEST_F(Resume, NotAskedForAndInterruptedAtOnceLeavesTheResult) {
  ASSERT_EQ(run({"--family", "direct"}).code, 0);
  const std::string whole = TemporaryFolder::content_of(file("result.json"));
  TemporaryFolder cache;
  ProgramOptions cold;
  cold.cache = cache.path();
  ChildProgram program(
      {"--config", data_file("tiny.json"), "--device", "offline", "--out", folder_.path(), "--jobs", "1"}, cold);
  ASSERT_TRUE(eventually(100, [&] { return program.err().find("valid configurations") != std::string::npos; }));
  kill(program.pid(), SIGINT);
  const Ended ended = program.wait(30);
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_EQ(StoreCopy(file("store.sqlite")).rows().size(), 0u);
  EXPECT_EQ(TemporaryFolder::content_of(file("result.json")), whole);
  EXPECT_THAT(ended.err, HasSubstr("has more and stays as it was"));
}

TEST_F(Resume, NotAskedForAndInterruptedWithLessLeavesTheResult) {
  ASSERT_EQ(run({"--problem", "same-rate"}).code, 0);
  const std::string whole = TemporaryFolder::content_of(file("result.json"));
  const std::string best = TemporaryFolder::content_of(file("best.json"));
  TemporaryFolder cache;
  ProgramOptions cold;
  cold.cache = cache.path();
  ChildProgram program({"--config", data_file("tiny.json"), "--device", "offline", "--out", folder_.path(), "--jobs",
                        "1", "--problem", "same-rate", "--verbose"},
                       cold);
  ASSERT_TRUE(eventually(100, [&] { return program.err().find(": unproven") != std::string::npos; }));
  kill(program.pid(), SIGINT);
  const Ended ended = program.wait(30);
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_GE(StoreCopy(file("store.sqlite")).rows().size(), 1u) << "it found something";
  EXPECT_EQ(TemporaryFolder::content_of(file("result.json")), whole);
  EXPECT_EQ(TemporaryFolder::content_of(file("best.json")), best);
  EXPECT_THAT(ended.err, HasSubstr("has more and stays as it was"));
}

TEST_F(Resume, NotAskedForBeginsAnewAndKeepsTheEarlierRecordsAside) {
  ASSERT_EQ(run({"--budget", "2evals"}).code, 0);
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  const Ended anew = run({"--budget", "2evals", "--verbose"});
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_THAT(anew.err, AllOf(HasSubstr(file("store.previous.sqlite").string()), Not(HasSubstr("from the store"))));
  EXPECT_EQ(StoreCopy(file("store.previous.sqlite")).rows(), rows);
  EXPECT_EQ(StoreCopy(file("store.sqlite")).rows().size(), rows.size());
}

TEST_F(Resume, NotAskedForTwiceKeepsBothAndTheWayBackLeadsToTheFirst) {
  ASSERT_EQ(run({"--problem", "same-rate"}).code, 0);
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  const auto ids = ids_of(result());
  EXPECT_EQ(run({"--problem", "same-rate", "--budget", "1evals"}).code, 0);
  const Ended third = run({"--problem", "same-rate", "--budget", "2evals"});
  EXPECT_THAT(third.err, HasSubstr(file("store.previous-2.sqlite").string()));
  EXPECT_EQ(ids_of(result()).size(), 2u);
  for (const char* name : {"store.sqlite", "store.sqlite-wal"}) fs::remove(file(name));
  fs::rename(file("store.previous.sqlite"), file("store.sqlite"));
  const Ended back = resume({"--problem", "same-rate"});
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(StoreCopy(file("store.sqlite")).rows(), rows);
  EXPECT_EQ(ids_of(result()), ids);
}

TEST_F(Resume, BudgetsCoverTheWholeRun) {
  ASSERT_EQ(run({"--budget", "3evals", "--problem", "same-rate"}).code, 0);
  const auto first = ids_of(result());
  ASSERT_EQ(first.size(), 3u);
  const Ended more = resume({"--budget", "5evals", "--problem", "same-rate", "--verbose"});
  EXPECT_EQ(more.code, 0) << more.err;
  const auto all = ids_of(result());
  ASSERT_EQ(all.size(), 5u);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin())) << "another order";
  const double searched = result().search_seconds;
  EXPECT_GT(searched, 0);

  const Ended spent = resume({"--budget", "0.000001s", "--problem", "same-rate"});
  EXPECT_EQ(spent.code, 0) << spent.err;
  EXPECT_EQ(ids_of(result()).size(), 5u) << "what is stored costs nothing, and there is no time for more";
  EXPECT_GE(result().search_seconds, searched);
}

TEST_F(Resume, EditingListsThrowsNothingAway) {
  Json config = read_json(data_file("tiny.json"));
  config["search"] = {{"strategy", "random"}};
  Json& lists = config["families"]["direct"];
  lists["IC_TILE"] = {16};
  ASSERT_EQ(run_config(config, false).code, 0);
  const auto few = ids_of(result());
  EXPECT_EQ(few.size(), 4u);

  lists["IC_TILE"] = {16, 32};
  const Ended wider = run_config(config, true);
  EXPECT_EQ(wider.code, 0) << wider.err;
  EXPECT_THAT(wider.err, HasSubstr("8 records taken over, 0 stale")) << "4 variants, 4 proofs";
  const auto many = ids_of(result());
  EXPECT_EQ(many.size(), 8u);
  for (const std::string& id : few) EXPECT_THAT(many, testing::Contains(id));

  lists["IC_TILE"] = {32};
  lists["OC_TILE"] = {8};
  config["problems"][0]["name"] = "renamed";
  const Ended narrower =
      run_to_end({"--config", folder_.write("tiny.json", config.dump()), "--device", "offline", "--out", folder_.path(),
                  "--problem", "renamed", "--family", "direct", "--resume"});
  EXPECT_EQ(narrower.code, 0) << narrower.err;
  EXPECT_THAT(narrower.err, HasSubstr("4 records taken over, 0 stale, 12 not asked for")) << "2 variants, 2 proofs";
  EXPECT_EQ(ids_of(result()).size(), 2u);
  EXPECT_EQ(result().problems[0].name, "renamed");
  EXPECT_EQ(StoreCopy(file("store.sqlite")).rows().size(), 16u) << "all are kept";
}

TEST_F(Resume, AnotherSeedRedoesProofsAndKeepsCompiles) {
  const std::vector<std::string> direct{"--problem", "same-rate", "--family", "direct", "--budget", "100evals"};
  ASSERT_EQ(run(direct).code, 0);
  auto words = direct;
  words.insert(words.end(), {"--seed", "2"});
  const Ended ended = resume(words);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("the store holds 17 records"),
                               HasSubstr("9 records taken over, 8 stale and done again (seed 1, now 2: 8)"),
                               Not(HasSubstr("not asked for"))))
      << "8 compiles and the search's end, 8 proofs";
}

TEST_F(Resume, RecordsOfWhatTheConfigNoLongerHasAreCountedAsNotAskedFor) {
  Json config = read_json(data_file("tiny.json"));
  ASSERT_EQ(run_config(config, false).code, 0);
  config["problems"][0]["length"] = 201;
  const Ended edited = run_config(config, true);
  EXPECT_EQ(edited.code, 0) << edited.err;
  EXPECT_THAT(edited.err, AllOf(HasSubstr("the store holds 17 records"),
                                HasSubstr("0 records taken over, 0 stale, 17 not asked for")));
}

TEST_F(Resume, AnotherTargetIsTheReasonThatIsGiven) {
  const std::vector<std::string> words{
      "--config", data_file("tiny.json"), "--out", folder_.path(), "--problem", "same-rate", "--family", "direct",
      "--device"};
  const auto on = [&](const std::string& device, bool resumed) {
    auto all = words;
    all.push_back(device);
    if (resumed) all.push_back("--resume");
    return run_to_end(all);
  };
  ASSERT_EQ(on("offline:a100", false).code, 0);
  const Ended other = on("offline:h100", true);
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("1 records taken over, 16 stale and done again (profile of NVIDIA A100"),
                    HasSubstr("now profile of NVIDIA H100"), HasSubstr(": 16)"), Not(HasSubstr("compiler"))));
}

TEST_F(Resume, RecordsOfAnotherDeviceAreDoneAgainAndNotRelabelled) {
  ASSERT_EQ(run({"--problem", "same-rate"}).code, 0);
  const Json first = json();
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  const std::string gpu = StoreCopy(file("store.sqlite")).text_of("SELECT gpu FROM records");
  edit("UPDATE records SET gpu = 'NVIDIA A100', elapsed = 0 WHERE stage = 'variant'");
  const Ended ended = resume({"--problem", "same-rate"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("8 stale and done again (NVIDIA A100, now " + gpu + ": 8)"));
  EXPECT_EQ(json(), first);
  const StoreCopy copy(file("store.sqlite"));
  EXPECT_EQ(copy.text_of("SELECT COUNT(*) FROM records WHERE gpu = '" + gpu + "'"), std::to_string(rows.size()));
  EXPECT_EQ(copy.text_of("SELECT COUNT(*) FROM records WHERE stage = 'variant' AND elapsed > 0"), "8");
}

TEST_F(Resume, AStartThatIsNoTimeIsNotTakenOver) {
  ASSERT_EQ(run({"--budget", "1evals"}).code, 0);
  const std::string started = result().started;
  edit("UPDATE facts SET value = x'ff410a3c' WHERE name = 'started'");
  ASSERT_EQ(resume({"--budget", "1evals"}).code, 0);
  EXPECT_EQ(result().started.size(), started.size());
  EXPECT_EQ(result().started.substr(0, 2), "20");
}

TEST_F(Resume, RecordsThatCannotBeReadAreDoneAgain) {
  ASSERT_EQ(run({"--problem", "same-rate"}).code, 0);
  const Json first = json();
  edit("UPDATE records SET data = '{\"variant\": {}}' WHERE stage = 'variant'");
  edit("UPDATE records SET data = 'x' WHERE stage = 'proof'");
  const Ended ended = resume({"--problem", "same-rate"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("1 records taken over, 16 stale and done again (unreadable: 16)"));
  EXPECT_EQ(json(), first);
}

TEST_F(Resume, ACompileThatFailedIsNotTriedAgain) {
  ASSERT_EQ(run({"--problem", "same-rate", "--budget", "1evals"}).code, 0);
  const std::string id = ids_of(result()).front();
  edit(
      "UPDATE records SET cubin = '', data = json_set(data, '$.variant.outcome', 'compile_failed', "
      "'$.variant.reason', 'the compiler was killed at its time limit of 60 s', '$.variant.cubin_sha256', '') "
      "WHERE stage = 'variant'");
  const Ended ended = resume({"--problem", "same-rate", "--budget", "2evals", "--verbose"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("compile_failed, the compiler was killed at its time limit of 60 s (from the store)"));
  const VariantRecord blamed = result().problems[0].classes[0].variants.front();
  EXPECT_EQ(blamed.id, id);
  EXPECT_EQ(blamed.outcome, Outcome::compile_failed);

  Json config = read_json(data_file("tiny.json"));
  config["compile"] = {{"seconds", 90}};
  const Ended longer =
      run_to_end({"--config", folder_.write("tiny.json", config.dump()), "--device", "offline", "--out", folder_.path(),
                  "--problem", "same-rate", "--budget", "2evals", "--resume"});
  EXPECT_THAT(longer.err, HasSubstr("limits of a compile changed: 1"));
  EXPECT_NE(result().problems[0].classes[0].variants.front().outcome, Outcome::compile_failed);
}

TEST_F(Resume, ASecondRunIntoTheSameFolderIsRefusedAtOnce) {
  TemporaryFolder cache;
  ProgramOptions cold;
  cold.cache = cache.path();
  ChildProgram first(
      {"--config", data_file("tiny.json"), "--device", "offline", "--out", folder_.path(), "--jobs", "1"}, cold);
  ASSERT_TRUE(eventually(100, [&] { return first.err().find("valid configurations") != std::string::npos; }));
  kill(first.pid(), SIGSTOP);
  for (const bool resumed : {false, true}) {
    const Ended second = resumed ? resume() : run();
    EXPECT_EQ(second.code, 3);
    EXPECT_THAT(second.err, HasSubstr("in use by another tuner (process " + std::to_string(first.pid()) + ")"));
    EXPECT_EQ(lines_of(second.err).size(), 1u) << second.err;
  }
  kill(first.pid(), SIGCONT);
  EXPECT_EQ(first.wait(200).code, 0);
  EXPECT_EQ(result().problems.size(), 3u);
}

TEST_F(Resume, AStoreThatIsUnfitIsRefusedInOneLineAndLeftAlone) {
  ASSERT_EQ(run({"--budget", "2evals"}).code, 0);
  const std::string whole = TemporaryFolder::content_of(file("store.sqlite"));
  const std::string table = TemporaryFolder::content_of(file("result.json"));
  std::string newer = whole;
  newer[63] = 2;
  for (const auto& [content, words] :
       {std::pair(whole.substr(0, whole.size() / 2), "damaged"), std::pair(std::string(3000, 'x'), "not a store"),
        std::pair(database_image("CREATE TABLE a (b)"), "another program"), std::pair(newer, "format 2")}) {
    folder_.write("tiny/store.sqlite", content);
    for (const bool resumed : {false, true}) {
      const Ended ended = resumed ? resume() : run();
      EXPECT_EQ(ended.code, 2) << words;
      EXPECT_THAT(ended.err, HasSubstr(words));
      EXPECT_EQ(lines_of(ended.err).size(), 1u) << ended.err;
      EXPECT_EQ(TemporaryFolder::content_of(file("store.sqlite")) == content, true) << words;
    }
  }
  EXPECT_EQ(TemporaryFolder::content_of(file("result.json")), table);
  folder_.write("tiny/store.sqlite", whole);
  EXPECT_EQ(resume({"--budget", "2evals"}).code, 0);
}

TEST_F(Resume, WithoutSpaceTheRunEndsWithWhatItHasAndGoesOnLater) {
  ASSERT_EQ(run().code, 0);  // so that the cache holds all
  const Json undisturbed = json();
  fs::remove_all(folder_.path() / "tiny");
  ProgramOptions options;
  options.program = "/bin/bash";  // its ulimit counts in KiB
  const std::string tuner = std::string("ulimit -f 45; exec ") + TUNER_PROGRAM + " --config " +
                            data_file("tiny.json").string() + " --device offline --out " + folder_.path().string();
  const Ended full = run_to_end({"-c", tuner}, options);
  EXPECT_EQ(full.code, 3) << full.err;
  EXPECT_THAT(full.err, HasSubstr("store.sqlite: cannot be read or written"));
  EXPECT_THAT(full.err, HasSubstr("--resume"));
  const auto rows = StoreCopy(file("store.sqlite")).rows();
  EXPECT_GT(rows.size(), 0u);
  const Ended later = resume();
  EXPECT_EQ(later.code, 0) << later.err;
  EXPECT_THAT(later.err, HasSubstr(std::to_string(rows.size()) + " records taken over, 0 stale"));
  EXPECT_EQ(json(), undisturbed);
}

}  // namespace
}  // namespace tuner
