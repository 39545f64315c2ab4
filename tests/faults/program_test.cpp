// Whole runs of a program that has the `fault` family: every fault costs its variant, all else is done, exit code 0.
#include "tests/commands/program.h"

#include <map>

#include "tests/device/gpu.h"
#include "tests/faults/faults.h"
#include "tuner/core/json.h"
#include "tuner/core/result.h"

namespace tuner::faults {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

Ended run_faults(const fs::path& out, const std::vector<std::string>& more) {
  ProgramOptions options;
  options.program = TUNER_WITH_FAULTS;
  std::vector<std::string> arguments{"--config", data_file("faults.json"), "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_to_end(arguments, options);
}

std::vector<VariantRecord> variants_in(const fs::path& result) {
  return read_result(result).problems.at(0).classes.at(0).variants;
}

std::string fault_of(const VariantRecord& variant) { return to_string(variant.variant.tunables.at(0).second); }

/// Resumes a finished run: blame and numbers come from the store, nothing runs again, and the result is the same.
void expect_nothing_is_tried_again(const fs::path& out, std::vector<std::string> more) {
  const auto variants_of = [&] {
    Json result = read_json(out / "faults/result.json");
    return result["problems"][0]["classes"][0]["variants"];
  };
  const Json before = variants_of();
  more.push_back("--resume");
  const Ended resumed = run_faults(out, more);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, AllOf(HasSubstr(" 0 stale"), Not(HasSubstr("proving")), Not(HasSubstr("run-off of"))));
  EXPECT_EQ(variants_of(), before);
}

/// Outcomes by fault; every variant that is not right says why.
std::multimap<std::string, Outcome> outcomes(const std::vector<VariantRecord>& variants) {
  std::multimap<std::string, Outcome> found;
  for (const VariantRecord& variant : variants) {
    found.emplace(fault_of(variant), variant.outcome);
    if (variant.outcome != Outcome::ok) {
      EXPECT_FALSE(variant.reason.empty()) << variant.id;
    }
  }
  return found;
}

void expect_refused_by_compiler_or_resources(const std::multimap<std::string, Outcome>& found) {
  for (const char* fault : {"compiler_memory", "compiler_hang", "syntax_error"})
    EXPECT_EQ(found.find(fault)->second, Outcome::compile_failed) << fault;
  for (const char* fault : {"too_much_shared", "too_many_threads"})
    EXPECT_EQ(found.find(fault)->second, Outcome::rejected) << fault;
}

TEST(FaultyProgram, OfflineEveryFaultCostsItsVariantAlone) {
  const TemporaryFolder folder;
  const Ended ended = run_faults(folder.path(), {"--device", "offline"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto variants = variants_in(folder.path() / "faults/result.json");
  const auto found = outcomes(variants);
  EXPECT_EQ(found.size(), 19u);  // 3 blocks x 2 of "none", and 13 faults
  expect_refused_by_compiler_or_resources(found);
  const std::map<std::string, Outcome> expected{{"none", Outcome::ok},
                                                {"illegal_address", Outcome::crashed},
                                                {"trap", Outcome::crashed},
                                                {"device_assert", Outcome::crashed},
                                                {"shared_out_of_bounds", Outcome::crashed},
                                                {"infinite_loop", Outcome::timed_out},
                                                {"out_of_memory", Outcome::launch_failed}};
  int proven = 0;
  for (const auto& [fault, outcome] : found) {
    EXPECT_THAT(outcome, AnyOf(expected.count(fault) ? expected.at(fault) : outcome, Outcome::unproven)) << fault;
    proven += outcome == Outcome::ok ? 1 : 0;
  }
  EXPECT_GE(proven, 1);
  expect_nothing_is_tried_again(folder.path(), {"--device", "offline"});
  EXPECT_THAT(ended.out, HasSubstr("on the CPU"));

  // Blame is kept: nothing that was found is done again.
  const Ended resumed = run_faults(folder.path(), {"--device", "offline", "--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(" records taken over, 0 stale"));
  EXPECT_THAT(resumed.err, Not(HasSubstr("proving a shortlist")));
  const auto again = variants_in(folder.path() / "faults/result.json");
  ASSERT_EQ(again.size(), variants.size());
  for (std::size_t i = 0; i < variants.size(); ++i) {
    EXPECT_EQ(again[i].id, variants[i].id);
    EXPECT_EQ(again[i].outcome, variants[i].outcome) << again[i].reason;
    EXPECT_EQ(again[i].reason, variants[i].reason);
  }
}

TEST(FaultyProgram, IsNotWhatIsShipped) {
  EXPECT_THAT(run_to_end({"list", "families"}).out, Not(HasSubstr("fault")));
  EXPECT_EQ(run_to_end({"--config", data_file("faults.json"), "--device", "offline"}).code, 2);
}

class FaultyProgramGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no CUDA GPU";
  }
  TemporaryFolder folder_;
};

TEST_F(FaultyProgramGpu, EveryFaultCostsItsVariantAlone) {
  const Ended ended = run_faults(folder_.path(), {"--device", "cuda", "--diagnose", "--verbose"});
  std::fputs((ended.err + ended.out).c_str(), stdout);
  ASSERT_EQ(ended.code, 0);
  const auto variants = variants_in(folder_.path() / "faults/result.json");
  const auto found = outcomes(variants);
  EXPECT_EQ(found.size(), 19u);
  expect_refused_by_compiler_or_resources(found);
  const std::map<std::string, Outcome> expected{{"illegal_address", Outcome::crashed},
                                                {"misaligned_address", Outcome::crashed},
                                                {"shared_out_of_bounds", Outcome::crashed},
                                                {"infinite_loop", Outcome::timed_out},
                                                {"trap", Outcome::crashed},
                                                {"device_assert", Outcome::crashed},
                                                {"late", Outcome::crashed},
                                                {"out_of_memory", Outcome::launch_failed}};
  for (const auto& [fault, outcome] : expected) EXPECT_EQ(found.find(fault)->second, outcome) << fault;
  for (auto [at, end] = found.equal_range("none"); at != end; ++at)
    EXPECT_THAT(at->second, AnyOf(Outcome::ok, Outcome::cut));
  for (const VariantRecord& variant : variants) {
    if (variant.outcome != Outcome::crashed && variant.outcome != Outcome::timed_out) continue;
    EXPECT_THAT(variant.reason, AllOf(HasSubstr("alone"), HasSubstr("compute-sanitizer: "))) << variant.id;
  }
  const ClassRecord record = read_result(folder_.path() / "faults/result.json").problems.at(0).classes.at(0);
  EXPECT_FALSE(record.best.empty());
  expect_nothing_is_tried_again(folder_.path(), {"--device", "cuda", "--diagnose"});
}

TEST_F(FaultyProgramGpu, WorkersThatAreKilledAndStoppedCostNobodyAnything) {
  const fs::path config = folder_.write("signals.json", R"({
    "name": "signals",
    "problems": [{"name": "p", "batch": 4, "in_channels": 64, "out_channels": 64, "kernel_size": 3, "length": 4096}],
    "families": {"fault": {"fault": ["none"]}, "direct": {"T": [32, 64, 128, 256], "OC_TILE": [4, 8, 16, 32], "IC_TILE": [16, 32, 64]}},
    "search": {"strategy": "random"}, "baselines": []
  })");
  ProgramOptions options;
  options.program = TUNER_WITH_FAULTS;
  ChildProgram program({"--config", config, "--device", "cuda", "--out", folder_.path()}, options);
  std::atomic<bool> over = false;
  int lost = 0;
  std::thread saboteur([&] {
    // Each worker once it has worked for a second, so that none is lost while it is being taught.
    for (const int signal : {SIGKILL, SIGSTOP, SIGKILL}) {
      std::vector<pid_t> workers;
      const auto busy = [&] {
        workers = helpers_of(program.pid(), "__worker");
        return over || (workers.size() == 1 && facts_of(workers[0]) && facts_of(workers[0])->cpu_seconds > 1);
      };
      if (!eventually(120, busy) || over) return;
      kill(workers[0], signal);
      ++lost;
      eventually(30, [&] { return over || !is_helper(workers[0], "__worker"); });
    }
  });
  const Ended ended = program.wait(400);
  over = true;
  saboteur.join();
  std::printf("workers killed or stopped: %d\n", lost);
  EXPECT_GE(lost, 1);
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const VariantRecord& variant : variants_in(folder_.path() / "signals/result.json"))
    EXPECT_THAT(variant.outcome, AnyOf(Outcome::ok, Outcome::cut, Outcome::rejected)) << variant.reason;
}

}  // namespace
}  // namespace tuner::faults
