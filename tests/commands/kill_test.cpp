// A run that is killed 200 times, its whole process tree with SIGKILL, at random moments from its start to its last
// file, and resumed each time.
#include <gmock/gmock.h>

#include <cstdio>
#include <set>

#include "tests/commands/processes.h"
#include "tests/commands/program.h"
#include "tests/commands/store_rows.h"
#include "tuner/core/json.h"
#include "tuner/core/random.h"

namespace tuner {
namespace {

constexpr int kKills = 200;
constexpr int kProblems = 48;
constexpr int kLastKills = 10;  // of them, when everything is stored

/// Many small problems with four variants each, which differ in no unit from problem to problem: few compiles, many
/// records.
std::string config() {
  Json config = read_json(data_file("tiny.json"));
  config["name"] = "killed";
  config["problems"] = Json::array();
  for (int i = 0; i < kProblems; ++i)
    config["problems"].push_back({{"name", "p" + std::to_string(i)},
                                  {"in_channels", 8},
                                  {"out_channels", 1 + i},
                                  {"kernel_size", 3},
                                  {"length", 40}});
  config["families"] = {
      {"direct",
       {{"T", {64}}, {"OC_TILE", {8, 16}}, {"IC_TILE", {16}}, {"block", {{32, 4}, {16, 8}}}, {"specialise", {0}}}}};
  config["search"] = {{"strategy", "random"}};
  return config.dump();
}

/// What must be equal: all but times of day and durations.
Json without_times(Json result) {
  for (const char* key : {"started", "search_seconds"}) result.erase(key);
  if (!result.contains("problems")) return result;
  for (Json& problem : result["problems"])
    for (Json& record : problem["classes"])
      if (record.contains("variants"))
        for (Json& variant : record["variants"]) variant.erase("compile_ms");
  return result;
}

class KilledRun : public testing::Test {
 protected:
  KilledRun() {
    folder_.write("killed.json", config());
    options_.folder = folder_.path();
    options_.cache = folder_.path() / "cache";
  }
  fs::path store() const { return folder_.path() / "results/killed/store.sqlite"; }
  std::vector<std::string> arguments(bool resume) const {
    std::vector<std::string> words{"--config", "killed.json", "--device", "offline", "--out", "results", "--verbose"};
    if (resume) words.push_back("--resume");
    return words;
  }
  Json file(const char* name) const { return read_json(folder_.path() / "results/killed" / name); }

  /// The kernels are to be compiled again, so that compilers are at work when the end comes.
  void forget_compiles() const { fs::remove_all(folder_.path() / "cache/tuner/cubins/keys"); }

  TemporaryFolder folder_;
  ProgramOptions options_;
};

/// Ids of the variants that a process said it had evaluated, by what it said of their problem before.
std::set<std::string> reported(const std::string& err) {
  std::set<std::string> ids;
  std::string problem;
  const std::string whole = err.substr(0, err.rfind('\n') + 1);  // the last line may have been cut
  for (const std::string& line : lines_of(whole)) {
    if (line.find(" valid configurations") != std::string::npos) problem = line.substr(0, line.find(' '));
    if (line.rfind("  direct-", 0) == 0 && line.find("(from the store)") == std::string::npos)
      ids.insert(problem + " " + line.substr(2, line.find(' ', 2) - 2));
  }
  return ids;
}

/// The same of records that were not there before.
std::set<std::string> added(const std::map<std::string, std::string>& before,
                            const std::map<std::string, std::string>& now) {
  std::set<std::string> ids;
  for (const auto& [key, row] : now) {
    if (before.count(key) != 0 || key.find("|variant|") == std::string::npos) continue;
    const Json problem = Json::parse(key.substr(0, key.find('|')));
    ids.insert("p" + std::to_string(problem["out_channels"].get<int>() - 1) + " " + key.substr(key.rfind('|') + 1));
  }
  return ids;
}

/// Where a process was, by the last thing that it said.
std::string phase_of(const std::string& err) {
  if (err.find(" valid configurations") == std::string::npos) return "start";
  const auto lines = lines_of(err);
  if (lines.back().find("proving a shortlist") != std::string::npos) return "proofs";
  if (lines.back().find("records taken over") != std::string::npos) return "end";
  return "search";
}

/// The coordinator first: it must not live to see what becomes of its children.
void kill_tree(pid_t root) {
  auto tree = helpers_of(root, "");
  kill(root, SIGKILL);
  for (const pid_t process : tree) kill(process, SIGKILL);
}

/// Whether the zygote has a child at work.
bool compiles(pid_t root) {
  for (const pid_t zygote : helpers_of(root, "__zygote"))
    if (!helpers_of(zygote, "__zygote").empty()) return true;
  return false;
}

/// When the next end comes: at random, but so that the ends are spread over all of the run.
class Fate {
 public:
  /// `progress`: the part of all records that is stored; `wanted`: that is to be. Every eighth end comes before the
  /// search begins, however fast the machine brings records.
  void befall(const ChildProgram& program, double progress, double wanted) {
    const auto start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const bool finished = progress >= 1;  // what is left is to take all over and to write the files
    const bool early = ++ends_ % 8 == 0 || progress > wanted || finished;
    const double longest = finished ? random_.uniform() * (start_ + 0.2)
                           : early  ? random_.uniform() * start_
                                    : start_ + random_.uniform() * patience_;
    const std::size_t news = 1 + random_.below(wanted - progress > 0.03 ? 20 : 5);
    bool begun = false;
    while (seconds() < longest) {
      const std::string err = program.err();
      if (!begun && err.find(" valid configurations") != std::string::npos) {
        begun = true;
        start_ = seconds();
      }
      if (!early && lines_of(err).size() - from_the_store(err) >= news + 2) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const bool proving = phase_of(program.err()) == "proofs";
    std::this_thread::sleep_for(std::chrono::duration<double>(random_.uniform() * (proving ? 0.25 : 0.004)));
  }
  /// A life that was to bring something and did not is followed by a longer one.
  void learn(bool brought) { patience_ = std::clamp(patience_ * (brought ? 0.8 : 1.3), 0.2, 30.0); }

 private:
  using Clock = std::chrono::steady_clock;

  /// Lines about what was done by earlier processes.
  static std::size_t from_the_store(const std::string& err) {
    std::size_t count = 0, unproven = 0;
    for (const std::string& line : lines_of(err)) {
      if (line.find("(from the store)") != std::string::npos) ++count;
      if (line.find(" valid configurations") != std::string::npos || line.find("/s, took ") != std::string::npos)
        ++unproven;
    }
    return count + unproven;
  }

  Random random_{20};
  int ends_ = 0;
  double start_ = 0.2;  // seconds until a process begins to search
  double patience_ = 0.5;
};

TEST_F(KilledRun, LosesNothingIn200KillsAndEndsAsAnUndisturbedOne) {
  const Ended undisturbed = run_to_end(arguments(false), options_);
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const Json result = without_times(file("result.json")), best = without_times(file("best.json"));
  const auto all = StoreCopy(store()).rows();
  ASSERT_EQ(all.size(), 8u * kProblems) << "four variants and four proofs of each";
  fs::remove_all(folder_.path() / "results");
  forget_compiles();

  Fate fate;
  std::map<std::string, std::string> rows;
  std::map<std::string, int> phases;
  int kills = 0, ended_before = 0;
  while (kills < kKills) {
    ChildProgram program(arguments(true), options_);
    fate.befall(program, static_cast<double>(rows.size()) / static_cast<double>(all.size()),
                std::min(1.0, static_cast<double>(kills) / (kKills - kLastKills)));
    const bool compiling = compiles(program.pid());
    kill_tree(program.pid());
    const Ended ended = program.wait(20);
    ASSERT_TRUE(ended.code == -SIGKILL || ended.code == 0) << ended.code << ": " << ended.err;
    ended.code == 0 ? ++ended_before : ++kills;
    ++phases[ended.code == 0 ? "ended before" : compiling ? "compiling" : phase_of(ended.err)];

    for (const char* name : {"result.json", "best.json"}) {  // a whole one or none
      if (!fs::exists(folder_.path() / "results/killed" / name)) continue;
      EXPECT_NO_THROW(file(name)) << name;
    }
    if (!fs::exists(store())) continue;
    const StoreCopy copy(store());
    ASSERT_EQ(copy.text_of("PRAGMA integrity_check"), "ok") << "after kill " << kills;
    const auto now = copy.rows();
    for (const auto& [key, row] : rows) {
      ASSERT_EQ(now.count(key), 1u) << key << " was lost by kill " << kills;
      ASSERT_EQ(now.at(key), row) << key << " was found out twice";
    }
    const auto said = reported(ended.err), stored = added(rows, now);
    for (const std::string& id : said) ASSERT_EQ(stored.count(id), 1u) << id << " was reported and lost";
    ASSERT_LE(stored.size(), said.size() + 1) << "more than the one in flight was stored and not reported";
    fate.learn(now.size() > rows.size());
    rows = now;
  }
  for (const auto& [phase, count] : phases) std::printf("%s: %d\n", phase.c_str(), count);
  EXPECT_LE(ended_before, kKills / 10);
  for (const char* phase : {"start", "search", "proofs"}) EXPECT_GE(phases[phase], 10) << phase;
  EXPECT_GE(phases["compiling"], 1);

  const Ended last = run_to_end(arguments(true), options_);
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_THAT(last.err, testing::HasSubstr(" 0 stale"));
  EXPECT_EQ(without_times(file("result.json")), result);
  EXPECT_EQ(without_times(file("best.json")), best);
  const auto in_the_end = StoreCopy(store()).rows();
  EXPECT_EQ(in_the_end.size(), all.size());
  for (const auto& [key, row] : all) EXPECT_EQ(in_the_end.count(key), 1u) << key;
}

}  // namespace
}  // namespace tuner
