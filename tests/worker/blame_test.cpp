// Who is blamed when a worker is lost: the coordinator's side against a worker that behaves as it is told to
// (fake_worker.py).
#include <gmock/gmock.h>

#include "tests/core/temporary_folder.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Blame : public testing::Test {
 protected:
  WorkerOptions options() const {
    WorkerOptions options;
    options.program = TUNER_SOURCE_DIR "/tests/worker/fake_worker.py";
    options.device = folder_.path().string();
    options.timeout_seconds = 5;
    return options;
  }
  Worker& worker() {
    if (!worker_) {
      worker_ = start_worker(options());
      const auto loaded = worker_->load(context_, Values::normal, 1);
      EXPECT_TRUE(loaded);
    }
    return *worker_;
  }
  Evaluation evaluate(const std::string& family) { return worker().evaluate({family, {}}, {}, nullptr); }

  Expected<RunOffTimes> run_off(const std::vector<std::string>& families) {
    std::vector<Worker::Contestant> contestants;
    for (const std::string& family : families)
      contestants.push_back({std::pair(Variant{family, {}}, CompiledUnit{}), {}, {}, {}, {}, 1});
    return worker().run_off(contestants, {}, {MeasureOptions{}}, 40);
  }
  std::string log() const { return TemporaryFolder::content_of(folder_.path() / "log"); }

  TemporaryFolder folder_;
  BuildContext context_{{1, 2, 2, 1, 1, 0, 0, 1, 1, false, 8}, Accuracy::fp32, {}};
  std::unique_ptr<Worker> worker_;
};

TEST_F(Blame, DoesNotFallOnASignalThatMeetsAStartingWorker) {
  for (const std::string starts : {"9", "19", "9 15"}) {
    folder_.write("starts", starts);
    worker_.reset();
    EXPECT_EQ(evaluate("right").outcome, Outcome::ok) << starts;
    EXPECT_EQ(TemporaryFolder::content_of(folder_.path() / "starts"), "");
  }
}

TEST_F(Blame, AWorkerThatNeverStartsIsGivenUp) {
  for (const auto& [starts, left, reason] :
       {std::tuple("9 9 9 9", "9", "signal 9 (Killed)"), {"exit exit", "exit", "exit code 70"}}) {
    folder_.write("starts", starts);
    try {
      start_worker(options());
      ADD_FAILURE() << starts;
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot be used"), HasSubstr(reason)));
    }
    EXPECT_EQ(TemporaryFolder::content_of(folder_.path() / "starts"), left) << "what it says by itself is believed";
  }
}

TEST_F(Blame, FallsOnWhatCostsAWorkerTwice) {
  const std::string twice = "; twice, the second time alone in a fresh worker";
  for (const auto& [family, outcome, reason] :
       {std::tuple("dies", Outcome::crashed, "the worker ended by exit code 3"),
        {"killed", Outcome::crashed, "the worker ended by signal 9 (Killed)"},
        {"crashes", Outcome::crashed, "a sticky error"},
        {"hangs", Outcome::timed_out, "nothing ended"},
        {"stopped", Outcome::timed_out, "the worker was stopped by a signal and not continued"},
        {"silent", Outcome::timed_out, "no sign of life for 5 s"}}) {
    const Evaluation evaluation = evaluate(family);
    EXPECT_EQ(evaluation.outcome, outcome) << family;
    EXPECT_EQ(evaluation.reason, reason + twice);
    EXPECT_EQ(evaluation.attempts, 2);
    const Evaluation next = evaluate("right");
    EXPECT_EQ(next.outcome, Outcome::ok) << "after " << family << ": " << next.reason;
    EXPECT_EQ(next.attempts, 1);
  }
  EXPECT_EQ(evaluate("dies").log, "last words\n");
}

TEST_F(Blame, DoesNotFallOnWhatPassesAlone) {
  const Evaluation evaluation = evaluate("dies_once");
  EXPECT_EQ(evaluation.outcome, Outcome::ok);
  EXPECT_EQ(evaluation.attempts, 2);
  EXPECT_THAT(evaluation.reason, AllOf(HasSubstr("a worker ended first (the worker ended by exit code 3)"),
                                       HasSubstr("alone in a fresh one")));
}

TEST_F(Blame, OtherFailuresAreNotRepeated) {
  const Evaluation evaluation = evaluate("wrong");
  EXPECT_EQ(evaluation.outcome, Outcome::wrong_result);
  EXPECT_EQ(evaluation.attempts, 1);
  EXPECT_EQ(log(), "wrong 1\n");
}

TEST_F(Blame, AWorkerThatShowsSignsOfLifeIsWaitedFor) {
  const Evaluation evaluation = evaluate("lively");  // longer than the limit of silence
  EXPECT_EQ(evaluation.outcome, Outcome::ok) << evaluation.reason;
  EXPECT_EQ(evaluation.attempts, 1);
}

TEST_F(Blame, ARunOffGoesOnWithoutThoseThatFailAlone) {
  const auto times = run_off({"right", "dies", "other", "stopped"});
  ASSERT_TRUE(times) << times.failure().reason;
  ASSERT_EQ(times->entries.size(), 4u);
  for (const std::size_t right : {0, 2}) {
    ASSERT_FALSE(times->entries[right].failure) << times->entries[right].failure->reason;
    EXPECT_EQ(times->entries[right].times.at(0).ms.median, 2);  // of a race of two
  }
  ASSERT_TRUE(times->entries[1].failure);
  EXPECT_EQ(times->entries[1].failure->outcome, Outcome::crashed);
  EXPECT_EQ(times->entries[1].failure->reason,
            "the worker ended by exit code 3; again alone under as many launches in a fresh worker");
  EXPECT_EQ(times->entries[1].failure->log, "last words\n");
  ASSERT_TRUE(times->entries[3].failure);
  EXPECT_EQ(times->entries[3].failure->outcome, Outcome::timed_out);
  EXPECT_EQ(times->conditions.power_limit_w, 2);  // of the race that counts
}

TEST_F(Blame, ARunOffInWhichAWorkerDiedByChanceIsRepeated) {
  const auto times = run_off({"right", "dies_once"});
  ASSERT_TRUE(times) << times.failure().reason;
  for (const auto& entry : times->entries) {
    ASSERT_FALSE(entry.failure) << entry.failure->reason;
    EXPECT_EQ(entry.times.at(0).ms.median, 2);
  }
}

TEST_F(Blame, NobodyIsBlamedForWhatFailsOnlyInCompany) {
  const auto times = run_off({"right", "unsociable"});
  ASSERT_FALSE(times);
  EXPECT_EQ(times.failure().outcome, Outcome::crashed);
  EXPECT_THAT(times.failure().reason, HasSubstr("nobody"));
  EXPECT_EQ(evaluate("right").outcome, Outcome::ok);
}

TEST_F(Blame, ARunOffOfNothingButCulpritsNamesThemAll) {
  const auto times = run_off({"dies", "killed"});
  ASSERT_TRUE(times) << times.failure().reason;
  for (const auto& entry : times->entries) EXPECT_TRUE(entry.failure);
}

TEST_F(Blame, ARouteOfALibraryThatCostsAWorkerCostsNoOtherRoute) {
  const auto records = worker().baseline("a dies b dies_once c stopped", {}, {}, {});
  std::vector<std::string> found;
  for (const BaselineRecord& record : records) found.push_back(record.route + ": " + record.status);
  EXPECT_THAT(found,
              testing::ElementsAre("a: ok", "dies: crashed", "b: ok", "dies_once: ok", "c: ok", "stopped: timed_out"));
  EXPECT_EQ(records.at(1).reason,
            "the worker ended by exit code 3; twice, the second time as the first of a fresh worker");
  EXPECT_EQ(log(), "a 1\ndies 1\ndies 1\nb 1\ndies_once 1\ndies_once 1\nc 1\nstopped 1\nstopped 1\n");
}

TEST_F(Blame, ARouteThatHangsIsWaitedForLessTheSecondTimeOnceAnotherCameToItsEnd) {
  worker().baseline("hangs a b hangs", {}, {}, {});
  EXPECT_EQ(TemporaryFolder::content_of(folder_.path() / "limits"), "0: 60 s\n0: 60 s\n1: 60 s\n3: 20 s\n4: 60 s\n");
}

TEST_F(Blame, AWorkerThatCannotBeReplacedIsAnErrorOfTheEnvironment) {
  ASSERT_TRUE(worker().load(context_, Values::normal, 13));  // which no second worker survives
  try {
    evaluate("dies");
    FAIL() << "a worker was replaced";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a fresh worker failed: exit code 3"));
  }
}

TEST_F(Blame, ComputeSanitizersFindingIsAttachedWhereItIsAskedFor) {
  const auto tool = folder_.write("compute-sanitizer", R"(#!/bin/sh
shift 4
echo "========= COMPUTE-SANITIZER"
echo "========= Invalid __global__ write of size 4 bytes"
echo "=========     at kernel+0x70"
echo "========= ERROR SUMMARY: 1 error"
exec "$@"
)");
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  WorkerOptions diagnosing = options();
  diagnosing.compute_sanitizer = tool.string();
  worker_ = start_worker(diagnosing);
  ASSERT_TRUE(worker_->load(context_, Values::normal, 1));
  EXPECT_THAT(evaluate("crashes").reason,
              HasSubstr("; compute-sanitizer: Invalid __global__ write of size 4 bytes at kernel+0x70"));
  EXPECT_EQ(evaluate("right").reason, "");
  EXPECT_EQ(log(), "crashes 1\ncrashes 1\ncrashes 1\nright 1\n");

  diagnosing.compute_sanitizer = "compute-sanitizer";  // looked for and not found
  worker_ = start_worker(diagnosing);
  ASSERT_TRUE(worker_->load(context_, Values::normal, 1));
  EXPECT_THAT(evaluate("crashes").reason, HasSubstr("; compute-sanitizer: not found"));
}

}  // namespace
}  // namespace tuner
