// One problem and class from search to run-off, against a worker that owns no GPU and a compiler that compiles nothing:
// what follows from what they say.
#include "tuner/commands/class_run.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/core/temporary_folder.h"
#include "tuner/core/hash.h"
#include "tuner/core/record_json.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What the variant with this IC_TILE does on the GPU.
struct Script {
  std::map<std::int64_t, double> ms;
  std::set<std::int64_t> fails_in_the_run_off;
  std::vector<std::string> log;  // "1", "8 cut", "race 1 8"
};

std::int64_t tile_of(const Variant& variant) {
  for (const auto& [name, value] : variant.tunables)
    if (name == "IC_TILE") return std::get<std::int64_t>(value);
  return 0;
}

TimeRecord time_of(double ms, bool interleaved) {
  TimeRecord time{{ms, ms, ms}, std::vector<double>(40, ms)};
  time.interleaved = interleaved;
  return time;
}

class ScriptedWorker : public Worker {
 public:
  explicit ScriptedWorker(Script& script) : script_(script) {}
  Environment environment() override { return {}; }
  void support(const CompiledUnit&, const CompiledUnit&, const CompiledUnit&) override {}
  Expected<double> load(const BuildContext&, Values values, std::uint64_t) override {
    values_ = values;
    return 1e-7;
  }
  Expected<double> load(const BuildContext&, const Inputs&) override { return 1e-7; }

  Evaluation evaluate(const Variant& variant, const CompiledUnit&, const MeasureOptions* measure) override {
    Evaluation evaluation;
    evaluation.outcome = Outcome::ok;
    evaluation.errors = Errors{0.1, 0.1};
    if (!measure) return evaluation;
    const double ms = script_.ms.at(tile_of(variant));
    const bool cut = measure->best_ms && ms > measure->cut_factor * *measure->best_ms;
    if (cut) evaluation.outcome = Outcome::cut;
    evaluation.time = time_of(ms, false);
    if (searching(*measure)) {
      EXPECT_EQ(values_, Values::normal) << "on other inputs than the search's";
      script_.log.push_back(std::to_string(tile_of(variant)) + (cut ? " cut" : ""));
    }
    return evaluation;
  }

  std::vector<BaselineRecord> baseline(const std::string&, const CudnnOptions&, const MeasureOptions&,
                                       std::optional<double>) override {
    return {};
  }

  Expected<RunOffTimes> run_off(const std::vector<Contestant>& contestants, const CudnnOptions&,
                                const std::vector<MeasureOptions>&, int) override {
    RunOffTimes times;
    std::string names = "race";
    for (const Contestant& contestant : contestants) {
      const std::int64_t tile = tile_of(contestant.variant->first);
      names += " " + std::to_string(tile);
      times.entries.push_back({{time_of(script_.ms.at(tile), true)}, std::nullopt});
      if (script_.fails_in_the_run_off.count(tile) > 0)
        times.entries.back() = {{}, Failure{Outcome::crashed, "a sticky error", {}}};
    }
    script_.log.push_back(names);
    return times;
  }

 private:
  static bool searching(const MeasureOptions& options) { return options.settle_seconds == 0; }

  Script& script_;
  Values values_ = Values::normal;
};

/// Whose machine code is its source, and of which there is another edition where it is told so.
class PaperCompiler : public Compiler {
 public:
  explicit PaperCompiler(const std::string& edition) : edition_(edition) {}
  std::string identity() const override { return "paper"; }
  std::string key(const CompileUnit& unit) const override { return sha256(unit.source + unit.kernels.front()); }
  std::future<Expected<CompiledUnit>> compile(const CompileUnit& unit) override {
    CompiledUnit compiled;
    compiled.sha256 = sha256(key(unit) + edition_);
    compiled.registers = 32;
    std::promise<Expected<CompiledUnit>> promise;
    promise.set_value(compiled);
    return promise.get_future();
  }

 private:
  const std::string& edition_;
};

class RunClass : public testing::Test {
 protected:
  RunClass() {
    config_.problems = {{"p", {1, 32, 32, 3, 1, 0, 0, 1, 1, false, 64}}};
    config_.baselines.clear();
    config_.search.strategy = "exhaustive";
    config_.families = {{"direct",
                         {{"T", {std::int64_t{32}}},
                          {"OC_TILE", {std::int64_t{8}}},
                          {"IC_TILE", {std::int64_t{1}, std::int64_t{8}, std::int64_t{32}}},
                          {"block", {Block{32, 4}}},
                          {"specialise", {std::int64_t{1}}}}}};
  }

  /// In a process of its own, as far as the class can tell; over the same store.
  ClassRecord run() {
    script_.log.clear();
    Target target;
    target.environment.device = read_profile("h200");
    target.environment.device.measured = true;
    target.worker = std::make_unique<ScriptedWorker>(script_);
    target.nvrtc = std::make_unique<PaperCompiler>(edition_);
    Progress progress(Verbosity::quiet, false);
    Session session{config_, target, nullptr, progress, store_};
    return run_class(session, config_.problems.front(), Accuracy::fp32, {});
  }

  static const VariantRecord& with_tile(const ClassRecord& record, std::int64_t tile) {
    return *std::find_if(record.variants.begin(), record.variants.end(),
                         [&](const VariantRecord& variant) { return tile_of(variant.variant) == tile; });
  }
  static std::string text_of(ClassRecord record) {
    record.search_account.reset();
    return record_json(record, true).dump();
  }

  TemporaryFolder folder_;
  Store store_{folder_.path() / "store.sqlite"};
  Config config_;
  Script script_{{{1, 1.0}, {8, 3.0}, {32, 2.9}}, {}, {}};
  std::string edition_ = "first";
};

TEST_F(RunClass, CutsWhatIsTwiceAsSlow) {
  const ClassRecord record = run();
  EXPECT_THAT(script_.log, ElementsAre("1", "8 cut", "32 cut", "race 1"));
  EXPECT_EQ(record.best, with_tile(record, 1).id);
  EXPECT_EQ(text_of(run()), text_of(record));
  EXPECT_THAT(script_.log, IsEmpty());
}

TEST_F(RunClass, MeasuresAgainWhatWasCutAgainstAWinnerThatFailsInTheRunOff) {
  script_.fails_in_the_run_off = {1};
  const ClassRecord record = run();
  EXPECT_THAT(script_.log, ElementsAre("1", "8 cut", "32 cut", "race 1", "8", "32", "race 32 8"));
  EXPECT_EQ(record.best, with_tile(record, 32).id);
  EXPECT_EQ(with_tile(record, 8).outcome, Outcome::ok);
  EXPECT_EQ(with_tile(record, 1).outcome, Outcome::crashed);
  EXPECT_THAT(with_tile(record, 1).reason, HasSubstr("in the run-off: a sticky error"));
  EXPECT_FALSE(with_tile(record, 1).time);
  // A resumed run blames and measures nothing anew.
  EXPECT_EQ(text_of(run()), text_of(record));
  EXPECT_THAT(script_.log, IsEmpty());
}

TEST_F(RunClass, ASlowerFinalistThatFailsUndoesNoCut) {
  script_.ms = {{1, 1.0}, {8, 1.01}, {32, 2.9}};
  script_.fails_in_the_run_off = {8};
  const ClassRecord record = run();
  EXPECT_THAT(script_.log, ElementsAre("1", "8", "32 cut", "race 1 8"));
  EXPECT_EQ(record.best, with_tile(record, 1).id);
  EXPECT_EQ(text_of(run()), text_of(record));
  EXPECT_THAT(script_.log, IsEmpty());
}

// Where addresses cannot be fixed, compiling anew may give other machine code for the same sources.
TEST_F(RunClass, MeasuresAgainWhatWasCutAgainstMachineCodeThatIsNoMore) {
  script_.fails_in_the_run_off = {};
  run();
  config_.measure.max_samples = 100;  // another run-off, which needs the machine code
  edition_ = "second";
  script_.ms = {{1, 5.0}, {8, 3.0}, {32, 2.9}};
  const ClassRecord record = run();
  EXPECT_THAT(script_.log, ElementsAre("1", "8", "32", "race 32 8"));
  EXPECT_EQ(record.best, with_tile(record, 32).id);
}

}  // namespace
}  // namespace tuner
