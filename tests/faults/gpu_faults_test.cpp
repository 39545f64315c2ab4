// Faults on a GPU, through the worker: what each comes to and what it costs. Prints the table of docs/MEASURING.md.
#include <fmt/format.h>

#include <chrono>

#include "baselines/baseline.h"
#include "tests/device/gpu.h"
#include "tests/faults/faults.h"

namespace tuner::faults {
namespace {

using ::testing::HasSubstr;

class FaultsGpu : public tuner::testing::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    CompilerOptions options;
    options.arch = device_->environment().device.arch;
    options.cache = folder_;
    options.program = TUNER_WITH_FAULTS;
    options.limits = {6, std::size_t{1} << 30};
    context_.device = device_->environment().device;
    device_.reset();  // the worker's from here on
    compiler_ = make_nvrtc_compiler(options);
    WorkerOptions worker;
    worker.program = TUNER_WITH_FAULTS;
    worker.device = "cuda:0";
    worker_ = start_worker(worker);
    worker_->support(compile_or_throw(verify_unit()), compile_or_throw(baseline_unit()),
                     compile_or_throw(measure_unit()));
    const auto loaded = worker_->load(context_, Values::normal, 1);
    ASSERT_TRUE(loaded) << loaded.failure().reason;
    measure_.settle_seconds = 0.02;
    measure_.max_seconds = 0.5;
    measure_.half_width = 1e-9;  // 200 samples: beyond the fatal launch
    best();
  }

  CompiledUnit compile_or_throw(const CompileUnit& unit) {
    auto compiled = compiler_->compile(unit).get();
    if (!compiled) throw std::runtime_error(compiled.failure().reason);
    return *compiled;
  }
  Expected<CompiledUnit> compile(const Variant& variant) {
    return compiler_->compile(find_family("fault")->build(context_, variant.tunables).unit).get();
  }
  Evaluation evaluate(const Variant& variant) {
    const auto unit = compile(variant);
    return unit ? worker_->evaluate(variant, *unit, &measure_) : failed_evaluation(unit.failure());
  }
  /// The right variant is right, at the first attempt; its time is the best from now on.
  void best() {
    const Evaluation right = evaluate(variant_of("none"));
    ASSERT_EQ(right.outcome, Outcome::ok) << right.reason;
    EXPECT_EQ(right.attempts, 1) << right.reason;
    measure_.best_ms = right.time->ms.median;
  }

  BuildContext context_{{4, 64, 64, 3, 1, 0, 0, 1, 1, true, 4096}, Accuracy::fp32, {}};
  MeasureOptions measure_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(FaultsGpu, EachCostsItsVariantAndSeconds) {
  const struct {
    const char* fault;
    Outcome outcome;
    const char* reason;
  } expected[] = {
      {"illegal_address", Outcome::crashed, ""},
      {"misaligned_address", Outcome::crashed, "misaligned"},
      {"shared_out_of_bounds", Outcome::crashed, ""},
      {"infinite_loop", Outcome::timed_out, "a kernel that does not end"},
      {"trap", Outcome::crashed, ""},
      {"device_assert", Outcome::crashed, "Assertion `launched_by_mistake` failed"},
      {"late", Outcome::crashed, ""},
      {"out_of_memory", Outcome::launch_failed, "too little memory"},
      {"too_much_shared", Outcome::launch_failed, "shared memory"},
      {"too_many_threads", Outcome::launch_failed, "block 2048x1x1"},
      {"compiler_memory", Outcome::compile_failed, "memory"},
      {"compiler_hang", Outcome::compile_failed, "time limit"},
      {"syntax_error", Outcome::compile_failed, "static assertion"},
  };
  fmt::print("| fault | outcome | workers lost | seconds | reason |\n| --- | --- | --- | --- | --- |\n");
  for (const auto& [fault, outcome, reason] : expected) {
    const auto start = std::chrono::steady_clock::now();
    const Evaluation evaluation = evaluate(variant_of(fault));
    best();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool lost = evaluation.outcome == Outcome::crashed || evaluation.outcome == Outcome::timed_out;
    fmt::print("| {} | {} | {} | {:.1f} | {} |\n", fault, to_string(evaluation.outcome), lost ? evaluation.attempts : 0,
               seconds.count(), evaluation.reason);
    EXPECT_EQ(evaluation.outcome, outcome) << fault << ": " << evaluation.reason;
    EXPECT_THAT(evaluation.reason, HasSubstr(reason)) << fault;
    EXPECT_EQ(evaluation.attempts, lost ? 2 : 1) << fault;
    if (lost) {
      EXPECT_THAT(evaluation.reason, HasSubstr("alone in a fresh worker")) << fault;
    }
  }
}

TEST_F(FaultsGpu, AWorkerThatSomebodyKillsOrStopsIsReplacedAndNobodyIsBlamed) {
  measure_.max_seconds = 4;
  measure_.max_samples = 1'000'000;
  for (const auto& [signal, what] : {std::pair(SIGKILL, "signal 9 (Killed)"), {SIGSTOP, "stopped by a signal"}}) {
    const auto start = std::chrono::steady_clock::now();
    const Saboteur saboteur(0.5, [signal = signal](pid_t worker) { kill(worker, signal); });
    const Evaluation evaluation = evaluate(variant_of("none"));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(saboteur.acted());
    fmt::print("| {} | {} | {} | {:.1f} | {} |\n", signal == SIGKILL ? "worker killed" : "worker stopped",
               to_string(evaluation.outcome), evaluation.attempts - 1, seconds.count(), evaluation.reason);
    EXPECT_EQ(evaluation.outcome, Outcome::ok) << evaluation.reason;
    EXPECT_EQ(evaluation.attempts, 2);
    EXPECT_THAT(evaluation.reason, HasSubstr(what));
  }
}

TEST_F(FaultsGpu, TheRunOffFindsWhoFailsOnlyAtItsFiftiethLaunch) {
  std::vector<Worker::Contestant> contestants;
  for (const Variant& variant : {variant_of("none"), variant_of("late"), variant_of("none", 2)}) {
    const auto unit = compile(variant);
    ASSERT_TRUE(unit) << unit.failure().reason;
    contestants.push_back({std::pair(variant, *unit), {}, {}, {}, {}, *measure_.best_ms});
  }
  const auto start = std::chrono::steady_clock::now();
  const auto entries = worker_->run_off(contestants, {}, {measure_}, 80);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(entries) << entries.failure().reason;
  ASSERT_EQ(entries->entries.size(), 3u);
  for (const std::size_t right : {0, 2}) {
    EXPECT_FALSE(entries->entries[right].failure) << entries->entries[right].failure->reason;
    EXPECT_EQ(entries->entries[right].times.size(), 1u);
  }
  const auto& blamed = entries->entries[1].failure;
  ASSERT_TRUE(blamed);
  EXPECT_EQ(blamed->outcome, Outcome::crashed);
  EXPECT_THAT(blamed->reason, HasSubstr("alone under as many launches"));
  fmt::print("| late, in a run-off of 3 | {} | 2 | {:.1f} | {} |\n", to_string(blamed->outcome), seconds.count(),
             blamed->reason);
  best();
}

}  // namespace
}  // namespace tuner::faults
