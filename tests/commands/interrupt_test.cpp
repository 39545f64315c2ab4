// Signals and deaths in the middle of a run: what is saved, and that no process stays behind.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "tests/commands/processes.h"
#include "tests/commands/program.h"
#include "tuner/core/json.h"
#include "tuner/core/result.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

using testing::HasSubstr;

/// A run of many small problems with one variant, which its worker proves one after the other; it is stopped while at
/// the second, so that a test may do to it and its helpers what it likes.
class FrozenRun {
 public:
  static constexpr std::size_t kProblems = 40;

  FrozenRun() {
    Json config = read_json(data_file("tiny.json"));
    config["problems"] = Json::array();
    for (std::size_t i = 0; i < kProblems; ++i)
      config["problems"].push_back({{"name", "p" + std::to_string(i)},
                                    {"in_channels", 8},
                                    {"out_channels", 8},
                                    {"kernel_size", 3},
                                    {"length", 64 + i}});
    config["families"]["direct"]["OC_TILE"] = {8};
    config["families"]["direct"]["IC_TILE"] = {16};
    config["families"]["direct"]["block"] = {{32, 4}};
    config["families"].erase("tiled");
    config["search"] = {{"strategy", "exhaustive"}};
    folder_.write("many.json", config.dump());
    program_.emplace(std::vector<std::string>{"--config", folder_.path() / "many.json", "--device", "offline", "--out",
                                              folder_.path()});
    EXPECT_TRUE(eventually(200, [&] { return program_->err().find("p1 fp32: proving") != std::string::npos; }));
    kill(program_->pid(), SIGSTOP);
    EXPECT_TRUE(eventually(20, [&] { return facts_of(program_->pid())->state == 'T'; }));
    helpers_ = helpers_of(program_->pid());
    const auto workers = helpers_of(program_->pid(), "__worker");
    EXPECT_EQ(workers.size(), 1u);
    EXPECT_EQ(helpers_.size(), 2u) << "a worker and a zygote";
    worker_ = workers.empty() ? 0 : workers[0];
  }

  pid_t worker() const { return worker_; }
  const std::vector<pid_t>& helpers() const { return helpers_; }
  void signal(int number) const { kill(program_->pid(), number); }
  Ended wait() { return program_->wait(60); }

  /// The one variant of each problem.
  std::vector<VariantRecord> variants() const {
    std::vector<VariantRecord> variants;
    for (const ProblemRecord& problem : read_result(folder_.path() / "tiny/result.json").problems)
      for (const ClassRecord& record : problem.classes)
        variants.insert(variants.end(), record.variants.begin(), record.variants.end());
    return variants;
  }

 private:
  TemporaryFolder folder_;
  std::optional<ChildProgram> program_;
  std::vector<pid_t> helpers_;
  pid_t worker_ = 0;
};

std::size_t count(const std::vector<VariantRecord>& variants, Outcome outcome) {
  return static_cast<std::size_t>(std::count_if(
      variants.begin(), variants.end(), [&](const VariantRecord& variant) { return variant.outcome == outcome; }));
}

bool all_gone(const std::vector<pid_t>& helpers, double seconds = 2) {
  return eventually(seconds, [&] { return still_living(helpers).empty(); });
}

class InterruptedRun : public testing::TestWithParam<int> {};

TEST_P(InterruptedRun, WhileCompilingTheRunSavesWhatItHas) {
  TemporaryFolder folder, cache;
  ProgramOptions options;
  options.cache = cache.path();  // nothing compiled yet: each variant takes its time
  ChildProgram program({"--config", data_file("tiny.json"), "--device", "offline", "--out", folder.path(), "--verbose",
                        "--jobs", "1", "--family", "direct"},
                       options);
  ASSERT_TRUE(eventually(200, [&] { return program.err().find("\n  direct-") != std::string::npos; }));
  const auto helpers = helpers_of(program.pid());
  EXPECT_THAT(helpers, testing::Not(testing::IsEmpty()));
  kill(program.pid(), GetParam());
  const Ended ended = program.wait(20);
  EXPECT_EQ(ended.code, 128 + GetParam()) << ended.err;
  EXPECT_TRUE(all_gone(helpers));

  EXPECT_EQ(read_json(folder.path() / "tiny/result.json")["interrupted"], true);
  const RunResult result = read_result(folder.path() / "tiny/result.json");
  EXPECT_TRUE(result.interrupted);
  ASSERT_FALSE(result.problems.empty());
  const auto& variants = result.problems[0].classes[0].variants;
  ASSERT_FALSE(variants.empty());
  EXPECT_LT(variants.size(), 4u) << "it went on";
  EXPECT_GT(variants[0].registers, 0);
  EXPECT_TRUE(fs::exists(folder.path() / "tiny/best.json"));
  EXPECT_THAT(ended.out, HasSubstr("Result: "));
  EXPECT_THAT(ended.err, HasSubstr("Interrupted"));
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptedRun, testing::Values(SIGINT, SIGTERM));

TEST(Supervision, AnInterruptDoesNotWaitForAWorkerThatIsSilent) {
  FrozenRun run;
  kill(run.worker(), SIGSTOP);
  run.signal(SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // by then it waits for an answer, if it gets none
  run.signal(SIGINT);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_TRUE(all_gone(run.helpers()));
  const auto variants = run.variants();
  ASSERT_FALSE(variants.empty());
  EXPECT_LE(variants.size(), 3u);
  EXPECT_EQ(variants.front().outcome, Outcome::ok);
  EXPECT_EQ(variants.back().outcome, Outcome::unproven);
  EXPECT_THAT(variants.back().reason, HasSubstr("interrupted"));
}

TEST(Supervision, HelpersDieWithAKilledRun) {
  FrozenRun run;
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait().code, -SIGKILL);
  EXPECT_TRUE(all_gone(run.helpers(), 1));
}

TEST(Supervision, AKilledWorkerCostsNoVariant) {
  FrozenRun run;
  kill(run.worker(), SIGKILL);
  run.signal(SIGCONT);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto variants = run.variants();
  EXPECT_EQ(variants.size(), FrozenRun::kProblems);
  EXPECT_EQ(count(variants, Outcome::ok), FrozenRun::kProblems) << "alone in a fresh worker each is right";
}

TEST(Supervision, AStoppedWorkerIsReplacedAndItsRequestRepeated) {
  WorkerOptions options;
  options.device = "host:1";
  options.program = TUNER_PROGRAM;
  const auto worker = start_worker(options);
  const auto first = helpers_of(getpid(), "__worker");
  ASSERT_EQ(first.size(), 1u);
  BuildContext context;
  context.problem = {1, 4, 4, 3, 1, 1, 0, 1, 1, false, 32};
  ASSERT_TRUE(worker->load(context, Values::normal, 1));
  kill(first[0], SIGSTOP);
  EXPECT_TRUE(worker->load(context, Values::normal, 1));
  EXPECT_TRUE(all_gone(first));
  EXPECT_NE(helpers_of(getpid(), "__worker"), first);
}

}  // namespace
}  // namespace tuner
