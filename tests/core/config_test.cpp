#include "tuner/core/config.h"

#include <gmock/gmock.h>

#include "tests/core/samples.h"
#include "tests/core/temporary_folder.h"
#include "tuner/commands/vocabulary.h"
#include "tuner/core/device_facts.h"
#include "tuner/core/failure.h"
#include "tuner/core/hash.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

const std::filesystem::path kConfigs = TUNER_SOURCE_DIR "/configs";

Config read_text(const TemporaryFolder& folder, const std::string& text) {
  return read_config(folder.write("f.json", text), test_vocabulary());
}

TEST(Config, EveryFaultIsOneLineWithFilePathAndWhatIsAllowed) {
  const TemporaryFolder folder;
  const std::vector<BadConfig> table = bad_configs();
  EXPECT_GE(table.size(), 40u);
  for (const BadConfig& bad : table) {
    EXPECT_THAT([&] { read_text(folder, bad.text); },
                ThrowsMessage<UsageError>(AllOf(StartsWith((folder.path() / "f.json").string() + ": "),
                                                HasSubstr(bad.place), HasSubstr(bad.words), Not(HasSubstr("\n")))))
        << bad.text.substr(0, 300);
  }
}

TEST(Config, DefaultsAreThoseOfTheContract) {
  const TemporaryFolder folder;
  const Config config = read_config(folder.write("my run.json", good_configs()[0]), test_vocabulary());
  EXPECT_EQ(config.name, "my run");
  ASSERT_EQ(config.problems.size(), 1u);
  EXPECT_EQ(config.problems[0].name, "B1-4to4-K3-s1-L8");
  EXPECT_EQ(config.problems[0].problem, (Problem{1, 4, 4, 3, 1, 0, 0, 1, 1, false, 8}));
  EXPECT_THAT(config.classes, ElementsAre(Accuracy::fp32));
  EXPECT_FALSE(config.families.has_value());
  EXPECT_EQ(config.search.strategy, "auto");
  EXPECT_EQ(config.search.budget_seconds, std::nullopt);
  EXPECT_EQ(config.measure.half_width, 0.005);
  EXPECT_THAT(config.baselines, ElementsAre("cudnn", "cublas_shift_add"));
  EXPECT_EQ(config.cudnn.workspace_mib, 16384);
  EXPECT_EQ(config.out, "results/local");
  EXPECT_EQ(config.text, good_configs()[0]);
}

TEST(Config, EveryKeyArrivesWhereItBelongs) {
  const TemporaryFolder folder;
  const Config config = read_text(folder, good_configs().back());
  EXPECT_EQ(config.name, "all keys");
  EXPECT_EQ(config.device_expect, "NVIDIA H100");
  EXPECT_EQ(config.device_target, "sm_120a");
  EXPECT_EQ(config.device_profile, "rtx5090");
  EXPECT_THAT(config.classes, ElementsAre(Accuracy::bf16, Accuracy::fp16));
  ASSERT_EQ(config.families->size(), 2u);
  EXPECT_EQ(config.families->at(0).name, "direct");
  EXPECT_THAT(config.families->at(0).values[0].second, ElementsAre(Value{std::int64_t{64}}, Value{std::int64_t{128}}));
  EXPECT_THAT(config.families->at(0).values[1].second, ElementsAre(Value{Block{32, 8}}));
  EXPECT_THAT(config.families->at(1).values[0].second, ElementsAre(Value{std::string("plain")}));
  EXPECT_THAT(config.restrict_, ElementsAre("T >= OC_TILE"));
  EXPECT_EQ(config.search.strategy, "random");
  EXPECT_EQ(config.search.seed, 7u);
  EXPECT_EQ(config.search.budget_seconds, 0.5);
  EXPECT_EQ(config.search.budget_evaluations, 3);
  EXPECT_EQ(config.measure.l2, "warm");
  EXPECT_THAT(config.measure.regime, ElementsAre("burst", "sustained"));
  EXPECT_EQ(config.measure.max_samples, 50);
  EXPECT_EQ(config.measure.max_seconds, 1);
  EXPECT_EQ(config.measure.cut_factor, 1);
  EXPECT_THAT(config.baselines, ElementsAre("cublas_shift_add"));
  EXPECT_EQ(config.cudnn.workspace_mib, 0);
  EXPECT_TRUE(config.cudnn.deterministic);
  EXPECT_EQ(config.compile.seconds, 0.5);
  EXPECT_EQ(config.compile.memory_mib, 64);
  EXPECT_EQ(config.jobs, 3);
  EXPECT_EQ(config.out, "/tmp/x");
}

TEST(Config, GroupsAndDilationAreNotSwapped) {
  const TemporaryFolder folder;
  const std::string sizes = R"("in_channels": 6, "out_channels": 6, "kernel_size": 3, "length": 8, )";
  const Problem a = read_text(folder, config_of_problem(sizes + R"("groups": 2, "dilation": 3)")).problems[0].problem;
  const Problem b = read_text(folder, config_of_problem(sizes + R"("groups": 3, "dilation": 2)")).problems[0].problem;
  EXPECT_EQ(a.length_out(), 14);
  EXPECT_EQ(b.length_out(), 12);
  EXPECT_EQ(a.groups, 2);
}

TEST(Config, WorkloadsAreFoundBesideTheConfigAndCountInItsHash) {
  const TemporaryFolder folder;
  const std::string workload = R"({"what": "x", "workloads": [{"name": "a/b *", "source": "s", "note": 5,
    "length_out": 10, "problem": )" +
                               kProblem + "}]}";
  folder.write("lists/w.json", workload);
  const std::string text = config_with(R"("workloads": ["lists/w.json"])");
  const Config config = read_text(folder, text);
  ASSERT_EQ(config.problems.size(), 2u);
  EXPECT_EQ(config.problems[1].name, "a/b *");
  EXPECT_NE(config.hash, sha256(text));
  folder.write("lists/w.json", workload + "\n");
  EXPECT_NE(read_text(folder, text).hash, config.hash);
}

TEST(Config, FaultsOfWorkloadsNameTheirFile) {
  const TemporaryFolder folder;
  struct Row {
    std::string text, words;
  };
  for (const auto& [text, words] : {
           Row{"{", "w.json: line 1, column 2: not JSON"},
           Row{"{}", "w.json: $: {} lacks the key 'workloads'"},
           Row{R"({"workloads": []})", "w.json: $.workloads: [] is not allowed"},
           Row{R"({"workloads": [{"name": "a"}]})", "w.json: $.workloads[0]:"},
           Row{R"({"workloads": [{"problem": )" + kProblem + "}]}", "w.json: $.workloads[0]:"},
           Row{R"({"workloads": [{"name": "a", "length_out": 9, "problem": )" + kProblem + "}]}",
               "w.json: $.workloads[0].length_out: 9 is not allowed: expected 10"},
           Row{R"({"workloads": [{"name": "a", "problem": {"in_channels": 1}}]})", "w.json: $.workloads[0].problem:"},
           Row{R"({"workload": []})", "w.json: $.workload: unknown key"},
       }) {
    folder.write("w.json", text);
    EXPECT_THAT([&] { read_text(folder, R"({"workloads": ["w.json"]})"); },
                ThrowsMessage<UsageError>(AllOf(HasSubstr(words), Not(HasSubstr("\n")))))
        << text;
  }
}

TEST(Config, AMissingOrHugeFileIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_config(folder.path() / "none.json", test_vocabulary()); },
              ThrowsMessage<UsageError>(HasSubstr("none.json: No such file")));
  EXPECT_THAT([&] { read_config(folder.path(), test_vocabulary()); },
              ThrowsMessage<UsageError>(HasSubstr("Is a directory")));
  EXPECT_THAT([&] { read_text(folder, std::string(std::size_t{100} << 20, ' ')); },
              ThrowsMessage<UsageError>(HasSubstr("limit")));
}

TEST(Config, EveryShippedConfigIsRead) {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    SCOPED_TRACE(entry.path().string());
    const Config config = read_config(entry.path(), vocabulary());
    EXPECT_FALSE(config.problems.empty());
    EXPECT_EQ(read_profile(config.device_profile).arch, config.device_target);
    ++read;
  }
  EXPECT_GE(read, 4);
}

TEST(Config, TheAudioWorkloadsAreRead) {
  const TemporaryFolder folder;
  const Config config =
      read_text(folder, R"({"workloads": [")" + (kConfigs / "workloads/audio.json").string() + "\"]}");
  EXPECT_EQ(config.problems.size(), 67u);
}

TEST(Profile, EveryShippedOneIsEmbeddedAndPlausible) {
  EXPECT_THAT(profile_names(), testing::IsSupersetOf({"a100", "b200", "h100", "h200", "l40s", "rtx4090", "rtx5090"}));
  for (const std::string& name : profile_names()) {
    SCOPED_TRACE(name);
    const DeviceFacts facts = read_profile(name);
    EXPECT_EQ(facts.arch.substr(0, 5 + (facts.compute_major >= 10 ? 1 : 0)),
              "sm_" + std::to_string(facts.compute_major) + std::to_string(facts.compute_minor));
    EXPECT_NEAR(
        facts.fp32_tflops,
        facts.sm_count * facts.sm_clock_mhz * (facts.compute_major == 8 && facts.compute_minor == 0 ? 128 : 256) * 1e-6,
        0.06);
    EXPECT_LE(facts.shared_per_block_optin, facts.shared_per_sm);
    EXPECT_GE(facts.shared_per_block_optin, 99 * 1024);
    EXPECT_FALSE(facts.measured);
    const DeviceFacts from_path = read_profile((kConfigs / "devices" / (name + ".json")).string());
    EXPECT_EQ(from_path.name, facts.name);
  }
}

TEST(Profile, RefusesUnknownNamesAndIncompleteFiles) {
  EXPECT_THAT([] { read_profile("h300"); }, ThrowsMessage<UsageError>(HasSubstr("'h200'")));
  const TemporaryFolder folder;
  const auto path = folder.write("p.json", R"({"name": "x", "arch": "sm_90a"})").string();
  EXPECT_THAT([&] { read_profile(path); }, ThrowsMessage<UsageError>(HasSubstr("p.json: $: ")));
  std::string text = TemporaryFolder::content_of(kConfigs / "devices/h200.json");
  text.replace(text.find("\"sm_90a\""), 8, "\"hopper\"");
  const auto wrong = folder.write("q.json", text).string();
  EXPECT_THAT([&] { read_profile(wrong); }, ThrowsMessage<UsageError>(HasSubstr("q.json: $.arch: \"hopper\"")));
}

}  // namespace
}  // namespace tuner
