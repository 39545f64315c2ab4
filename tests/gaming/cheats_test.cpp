// Every cheat of the `cheat` family by Host execution, through the verifier and through a worker: caught, and named.
#include "tests/gaming/cheats.h"

#include <gmock/gmock.h>

#include "tests/core/temporary_folder.h"
#include "tuner/device/host_device.h"
#include "tuner/jit/jit.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace tuner::testing;

const char* const kTooWide = "y\\[b .* where fp32 allows|row \\(b .* where fp32 allows";

/// What is to be found, as part of a reason. Nothing: it is right.
std::string found_in(const std::string& name) {
  if (name == "honest" || name == "nondeterministic_openly") return "";
  if (name == "mutated_input") return "changed its inputs";
  if (name == "cached" || name == "fingerprint_cached") return "kept instead of computed";
  if (name == "nondeterministic") return "declared deterministic, but two launches on the same inputs gave other bits";
  if (name == "writes_past_the_end") return "wrote outside y: 4 bytes|buffer-overflow|use-after-poison";
  for (const char* const unwritten :
       {"stale_output", "half_written", "every_second_output", "late_skip", "nan_wildcard"})
    if (name == unwritten) return "is nan .never written";
  if (name == "accumulates") return "computed from nan";
  return kTooWide;
}

bool is_late(const std::string& name) { return name.rfind("late_", 0) == 0; }

/// Compiled once a process and kind.
const CompiledUnit& compiled(bool address_sanitizer) {
  static const TemporaryFolder folder;
  const auto make = [](bool sanitizer) {
    CompilerOptions options;
    options.cache = folder.path();
    options.address_sanitizer = sanitizer;
    auto unit = make_host_compiler(options)->compile(unit_of_all(context_of(kAllDifferent, Accuracy::fp32))).get();
    if (!unit) throw std::runtime_error(unit.failure().reason + "\n" + unit.failure().log);
    return *unit;
  };
  static const CompiledUnit plain = make(false);
  if (!address_sanitizer) return plain;
  static const CompiledUnit sanitized = make(true);
  return sanitized;
}

/// Proves a cheat in this process. `launches`: what timing makes of them; 0: not timed.
class Bench {
 public:
  explicit Bench(const Problem& problem) : problem_(problem), device_(make_host_device({1, 2})) {}

  Expected<Proof> prove(Verifier& verifier, const std::string& name, Accuracy accuracy, int launches) {
    const Program program = cheat_family().build(context_of(problem_, accuracy), cheat(name).tunables);
    auto runnable = make_runnable(*device_, problem_, program, compiled(false), name);
    if (!runnable) return runnable.failure();
    const auto timing = [&]() -> std::optional<Failure> {
      for (int i = 0; i < launches; ++i)
        if (const auto launched = (*runnable)->launch(); !launched) return launched.failure();
      return std::nullopt;
    };
    auto proof = launches > 0 ? tuner::prove(verifier, **runnable, timing) : tuner::prove(verifier, **runnable);
    if (proof && program.deterministic && !proof->repeatable)
      return Failure{Outcome::wrong_result, found_in("nondeterministic"), {}};
    return proof;
  }
  Expected<Proof> prove(const Inputs& inputs, const std::string& name, Accuracy accuracy = Accuracy::fp32) {
    auto verifier = make_verifier(*device_, problem_, accuracy, inputs);
    return verifier ? prove(**verifier, name, accuracy, 30) : verifier.failure();
  }
  Expected<Proof> prove(Values values, const std::string& name, Accuracy accuracy = Accuracy::fp32) {
    auto verifier = make_verifier(*device_, problem_, accuracy, values, 5);
    return verifier ? prove(**verifier, name, accuracy, 30) : verifier.failure();
  }

 private:
  Problem problem_;
  std::unique_ptr<Device> device_;
};

std::string reason_of(const Expected<Proof>& proof) { return proof ? "passed" : proof.failure().reason; }

class Cheats : public ::testing::TestWithParam<std::string> {};

/// Rounding operands is no error where they are few bits long.
bool hides_in(Values values, const std::string& name) {
  return (name == "tf32_as_fp32" || name == "fp16_as_fp32") &&
         (values == Values::integers || values == Values::index_coded);
}

TEST_P(Cheats, AreCaughtOnEveryKindOfDataAndTheHonestPasses) {
  for (const Problem& problem : {kAllDifferent, kAllEqual})
    for (const Values values : {Values::normal, Values::positive, Values::large_mean, Values::spike,
                                Values::wide_channels, Values::integers, Values::index_coded}) {
      if (hides_in(values, GetParam())) continue;
      const auto proof = Bench(problem).prove(values, GetParam());
      const std::string what = summary(problem) + " " + std::string(to_string(values));
      if (found_in(GetParam()).empty()) {
        EXPECT_TRUE(proof) << what << ": " << reason_of(proof);
        continue;
      }
      ASSERT_FALSE(proof) << what;
      EXPECT_EQ(proof.failure().outcome, Outcome::wrong_result) << what;
      EXPECT_THAT(proof.failure().reason, ContainsRegex(found_in(GetParam()))) << what;
      if (is_late(GetParam())) {
        EXPECT_THAT(proof.failure().reason, HasSubstr("after timing: ")) << what;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Cheats, ::testing::ValuesIn(cheats()), [](const auto& name) { return name.param; });

/// The coordinator's way: a worker process under the address sanitizer.
class WorkerCatches : public ::testing::Test {
 protected:
  static Worker& worker() {
    static const std::unique_ptr<Worker> started = [] {
      WorkerOptions options;
      options.device = "host:1";
      options.program = TUNER_WITH_FAULTS;
      CompilerOptions compiler;
      const TemporaryFolder folder;
      compiler.cache = folder.path();
      options.preload = make_host_compiler(compiler)->preload();
      return start_worker(options);
    }();
    return *started;
  }
  static Evaluation evaluate(const std::string& name) {
    return worker().evaluate(cheat(name), compiled(true), nullptr);
  }
};

TEST_F(WorkerCatches, EveryCheatThatNeedsNoTimingToShow) {
  ASSERT_TRUE(worker().load(context_of(kAllDifferent, Accuracy::fp32), Values::normal, 1));
  for (const std::string& name : cheats()) {
    if (is_late(name)) continue;
    const Evaluation evaluation = evaluate(name);
    if (found_in(name).empty()) {
      EXPECT_EQ(evaluation.outcome, Outcome::ok) << name << ": " << evaluation.reason;
      EXPECT_TRUE(evaluation.errors) << name;
      continue;
    }
    // The sanitizer ends the worker at a write that is not the kernel's.
    const auto wrong = name == "writes_past_the_end" ? Outcome::crashed : Outcome::wrong_result;
    EXPECT_EQ(evaluation.outcome, wrong) << name << ": " << evaluation.reason;
    // The worker's own patches overflow fp16 before normal data are judged.
    const std::string found = name == "fp16_as_fp32" ? "patches: y\\[b .* is nan " : found_in(name);
    EXPECT_THAT(evaluation.reason, ContainsRegex(found)) << name;
  }
}

TEST_F(WorkerCatches, G04ZerosForValuesThatAnAbsoluteToleranceTakesForZero) {
  const BuildContext context = context_of(kAllDifferent, Accuracy::fp32);
  Inputs small = make_inputs(context.problem, Element::f32, Values::normal, 1);
  for (std::vector<float>* tensor : {&small.w, &small.bias})
    for (float& value : *tensor) value *= 1e-6f;
  ASSERT_TRUE(worker().load(context, small));
  EXPECT_EQ(evaluate("honest").outcome, Outcome::ok);
  EXPECT_EQ(evaluate("small_zeros").outcome, Outcome::wrong_result);
  EXPECT_EQ(Bench(context.problem).prove(small, "small_zeros").failure().outcome, Outcome::wrong_result);
}

TEST(Cheats, G12RoundedOperandsPassInTheirOwnClassAlone) {
  Problem problem{1, 128, 4, 3, 1, 0, 0, 1, 1, false, 64};
  Inputs inputs = make_inputs(problem, Element::f32, Values::normal, 1);
  for (const bool fine : {false, true}) {  // the second time x = 1 + 2^-12, which TF32 and fp16 take for 1
    if (fine) std::fill(inputs.x.begin(), inputs.x.end(), 1 + 0x1p-12f);
    for (const char* const name : {"tf32_as_fp32", "fp16_as_fp32"})
      EXPECT_FALSE(Bench(problem).prove(inputs, name)) << name;
    EXPECT_TRUE(Bench(problem).prove(inputs, "honest"));
    const auto tf32 = Bench(problem).prove(inputs, "tf32_as_fp32", Accuracy::tf32);
    EXPECT_TRUE(tf32) << reason_of(tf32);
  }
}

// What all-ones data hides, the worker's own coded data shows.
TEST_F(WorkerCatches, H47AWrongIndexThatAllOnesHide) {
  const BuildContext context = context_of(kAllDifferent, Accuracy::fp32);
  const auto ones = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), 1.0f); };
  const Inputs inputs{ones(context.problem.x_count()), ones(context.problem.w_count()), ones(6)};
  const auto device = make_host_device({1, 2});
  auto verifier = make_verifier(*device, context.problem, Accuracy::fp32, inputs);
  ASSERT_TRUE(verifier);
  const Program program = cheat_family().build(context, cheat("reads_neighbour").tunables);
  auto runnable = make_runnable(*device, context.problem, program, compiled(false), "reads_neighbour");
  ASSERT_TRUE(runnable);
  EXPECT_TRUE((*verifier)->verify(**runnable)) << "ones were meant to hide it";
  EXPECT_FALSE(prove(**verifier, **runnable)) << "inputs that change were meant to show it";
  ASSERT_TRUE(worker().load(context, inputs));
  EXPECT_EQ(evaluate("honest").outcome, Outcome::ok);
  const Evaluation evaluation = evaluate("reads_neighbour");
  EXPECT_EQ(evaluation.outcome, Outcome::wrong_result);
  EXPECT_THAT(evaluation.reason, StartsWith("on B2 ")) << "the coded data";
}

}  // namespace
}  // namespace tuner
