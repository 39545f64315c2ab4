// Faults by Host execution, as far as they exist there: each costs its variant, and nothing else.
#include "tests/faults/faults.h"

namespace tuner::faults {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HostFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    CompilerOptions options;
    options.cache = test_cache();
    options.jobs = 2;
    options.limits = {30, std::size_t{1} << 30};
    compiler_ = make_host_compiler(options);
    ASSERT_TRUE(compiler_);
    start(5);
  }

  void start(double grace_seconds) {
    WorkerOptions worker;
    worker.program = TUNER_WITH_FAULTS;
    worker.device = "host:1";
    worker.preload = compiler_->preload();
    ASSERT_FALSE(worker.preload.empty()) << "the C++ compiler has no shared address sanitizer runtime";
    worker.grace_seconds = grace_seconds;
    worker_ = start_worker(worker);
    const auto loaded = worker_->load(context_, Values::normal, 1);
    ASSERT_TRUE(loaded) << loaded.failure().reason;
  }

  Evaluation evaluate(const Variant& variant) {
    const auto unit = compiler_->compile(find_family("fault")->build(context_, variant.tunables).unit).get();
    if (!unit) return failed_evaluation(unit.failure());
    return worker_->evaluate(variant, *unit, nullptr);
  }

  /// And that the next one is proven at once.
  Evaluation evaluate_fault(const std::string& fault) {
    const Evaluation evaluation = evaluate(variant_of(fault));
    const Evaluation next = evaluate(variant_of("none"));
    EXPECT_EQ(next.outcome, Outcome::ok) << "after " << fault << ": " << next.reason;
    EXPECT_EQ(next.attempts, 1) << "after " << fault << ": " << next.reason;
    return evaluation;
  }

  void expect_blamed(const std::string& fault, Outcome outcome, const std::string& reason) {
    const Evaluation evaluation = evaluate_fault(fault);
    EXPECT_EQ(evaluation.outcome, outcome) << fault << ": " << evaluation.reason;
    EXPECT_THAT(evaluation.reason,
                AllOf(HasSubstr(reason), HasSubstr("twice, the second time alone in a fresh worker")));
    EXPECT_EQ(evaluation.attempts, 2);
  }

  BuildContext context_{{2, 8, 8, 3, 1, 0, 0, 1, 1, true, 300}, Accuracy::fp32, read_profile("h200")};
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(HostFaults, AnIllegalAddressIsLocated) {
  expect_blamed("illegal_address", Outcome::crashed, "AddressSanitizer: SEGV tests/families/fault/kernel.cuh:");
}

TEST_F(HostFaults, AWritePastSharedMemoryIsLocated) {
  expect_blamed("shared_out_of_bounds", Outcome::crashed, "tests/families/fault/kernel.cuh:");
}

TEST_F(HostFaults, AnInfiniteLoopTimesOut) {
  expect_blamed("infinite_loop", Outcome::timed_out, "a kernel that does not end");
}

TEST_F(HostFaults, ATrapIsLocated) {
  expect_blamed("trap", Outcome::crashed, "the kernel executed __trap() in thread (0, 0, 0) at tests/families/fault/");
}

TEST_F(HostFaults, AnAssertionIsQuoted) {
  expect_blamed("device_assert", Outcome::crashed, "Assertion `launched_by_mistake' failed");
}

TEST_F(HostFaults, AKilledWorkerCostsTheVariantThatKillsIt) {
  expect_blamed("worker_killed", Outcome::crashed, "the worker ended by signal 9 (Killed)");
}

TEST_F(HostFaults, AStoppedWorkerCostsTheVariantThatStopsIt) {
  expect_blamed("worker_stopped", Outcome::timed_out, "the worker was stopped by a signal");
}

TEST_F(HostFaults, MemoryThatCannotBeHadIsNoCrash) {
  const Evaluation evaluation = evaluate_fault("out_of_memory");
  EXPECT_EQ(evaluation.outcome, Outcome::launch_failed);
  EXPECT_THAT(evaluation.reason, HasSubstr("too little memory for 0 bytes of packed weights and 70368744177664 bytes"));
  EXPECT_EQ(evaluation.attempts, 1);
}

TEST_F(HostFaults, ResourcesThatNoBlockHasAreTheLaunchsFailure) {
  const Evaluation shared = evaluate_fault("too_much_shared");
  EXPECT_EQ(shared.outcome, Outcome::launch_failed);
  EXPECT_THAT(shared.reason, HasSubstr("1048576 bytes of dynamic shared memory: at most"));
  const Evaluation threads = evaluate_fault("too_many_threads");
  EXPECT_EQ(threads.outcome, Outcome::launch_failed);
  EXPECT_THAT(threads.reason, HasSubstr("block of 2048 x 1 x 1 threads"));
}

TEST_F(HostFaults, ACodeThatIsNoCppIsTheCompilersToRefuse) {
  const Evaluation evaluation = evaluate_fault("syntax_error");
  EXPECT_EQ(evaluation.outcome, Outcome::compile_failed);
  EXPECT_THAT(evaluation.reason, AllOf(HasSubstr("error: static assertion failed"), Not(HasSubstr("twice"))));
}

TEST_F(HostFaults, AWorkerThatSomebodyKillsIsReplacedAndNobodyIsBlamed) {
  start(60);
  const Variant slow = variant_of("none", 400);
  ASSERT_TRUE(compiler_->compile(find_family("fault")->build(context_, slow.tunables).unit).get());
  for (const auto& [signal, what] : {std::pair(SIGKILL, "signal 9 (Killed)"), {SIGSTOP, "stopped by a signal"}}) {
    const Saboteur saboteur(0.1, [signal = signal](pid_t worker) { kill(worker, signal); });
    const Evaluation evaluation = evaluate(slow);
    ASSERT_TRUE(saboteur.acted());
    EXPECT_EQ(evaluation.outcome, Outcome::ok) << evaluation.reason;
    EXPECT_EQ(evaluation.attempts, 2);
    EXPECT_THAT(evaluation.reason, AllOf(HasSubstr("a worker ended first"), HasSubstr(what)));
  }
}

/// Compilers that do not live to refuse a unit.
class CompilerFaults : public ::testing::Test {
 protected:
  Failure failure_of(const std::string& fault, const CompileLimits& limits, bool host) {
    if (memory_is_unlimited()) return {};
    const BuildContext context{{2, 8, 8, 3, 1, 0, 0, 1, 1, true, 300}, Accuracy::fp32, read_profile("h200")};
    CompilerOptions options;
    options.arch = "sm_90a";
    options.cache = folder_.path();
    options.program = TUNER_WITH_FAULTS;
    options.limits = limits;
    const auto compiler = host ? make_host_compiler(options) : make_nvrtc_compiler(options);
    const auto unit = compiler->compile(find_family("fault")->build(context, variant_of(fault).tunables).unit).get();
    EXPECT_FALSE(unit) << fault << " compiled";
    const auto right = compiler->compile(find_family("fault")->build(context, variant_of("none").tunables).unit).get();
    EXPECT_TRUE(right) << "after " << fault << ": " << right.failure().reason;
    return unit ? Failure{} : unit.failure();
  }
  /// This build's instrumentation reserves so much address space that memory cannot be limited.
  static bool memory_is_unlimited() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
  }

  TemporaryFolder folder_;
};

TEST_F(CompilerFaults, OneThatNeverEndsIsKilledTwiceAndBlamedOnItsUnit) {
  if (memory_is_unlimited()) GTEST_SKIP() << "memory cannot be limited in this build";
  for (const bool host : {false, true}) {
    const Failure failure = failure_of("compiler_hang", {8, std::size_t{2} << 30}, host);
    EXPECT_EQ(failure.outcome, Outcome::compile_failed);
    EXPECT_THAT(failure.reason, AllOf(HasSubstr("was killed at its time limit of 8 s"), HasSubstr("twice")));
  }
}

TEST_F(CompilerFaults, OneThatTakesAllMemoryIsStoppedTwiceAndBlamedOnItsUnit) {
  if (memory_is_unlimited()) GTEST_SKIP() << "memory cannot be limited in this build";
  for (const bool host : {false, true}) {
    const Failure failure = failure_of("compiler_memory", {120, std::size_t{512} << 20}, host);
    EXPECT_EQ(failure.outcome, Outcome::compile_failed);
    EXPECT_THAT(failure.reason, AllOf(HasSubstr("memory"), HasSubstr("twice")));
  }
}

}  // namespace
}  // namespace tuner::faults
