// Every family's default configuration compiles without spills for every architecture that the project names.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "baselines/baseline.h"
#include "jit_fixture.h"
#include "tuner/core/config.h"
#include "tuner/family/family.h"
#include "tuner/jit/ptxas_report.h"
#include "tuner/measure/measure.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using testing::TemporaryFolder;

DeviceFacts facts_of(const std::string& arch, int major, int minor, int shared_kib) {
  DeviceFacts facts;
  facts.name = arch;
  facts.arch = arch;
  facts.compute_major = major;
  facts.compute_minor = minor;
  facts.sm_count = 132;
  facts.shared_per_block_optin = shared_kib * 1024;
  facts.shared_per_sm = (shared_kib + 1) * 1024;
  facts.l2_bytes = std::int64_t{50} << 20;
  facts.memory_bytes = std::int64_t{80} << 30;
  return facts;
}

const std::vector<DeviceFacts>& devices() {
  static const std::vector<DeviceFacts> all{facts_of("sm_80", 8, 0, 163),    facts_of("sm_86", 8, 6, 99),
                                            facts_of("sm_89", 8, 9, 99),     facts_of("sm_90a", 9, 0, 227),
                                            facts_of("sm_100a", 10, 0, 227), facts_of("sm_120a", 12, 0, 99)};
  return all;
}

const Problem kSeed{.batch = 64, .in_channels = 128, .out_channels = 128, .kernel_size = 3, .length = 65536};
const Problem kSmall{.batch = 2,
                     .in_channels = 6,
                     .out_channels = 9,
                     .kernel_size = 5,
                     .stride = 2,
                     .dilation = 3,
                     .groups = 3,
                     .length = 17};

const Problem kUpsample{.batch = 16,
                        .in_channels = 512,
                        .out_channels = 256,
                        .kernel_size = 16,
                        .stride = 8,
                        .padding = 4,
                        .bias = true,
                        .length = 1000};

class FamilyOnArch : public ::testing::TestWithParam<DeviceFacts> {};

TEST_P(FamilyOnArch, CompilesAtItsDefaultWithoutSpills) {
  ASSERT_FALSE(families().empty());
  const TemporaryFolder cache;
  CompilerOptions options = testing::nvrtc_options(cache.path(), GetParam().arch);
  options.jobs = 2;
  const auto compiler = make_nvrtc_compiler(options);
  for (const Family* family : families())
    for (const Problem& problem : {kSeed, kSmall, kUpsample})
      for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16}) {
        const BuildContext context{problem, accuracy, GetParam()};
        if (family->refuses(context)) continue;
        const Program program = family->build(context, family->default_configuration(context));
        const auto unit = compiler->compile(program.unit).get();
        const std::string what =
            std::string(family->name()) + ", " + summary(problem) + ", " + std::string(to_string(accuracy));
        ASSERT_TRUE(unit) << what << ": " << unit.failure().reason << "\n" << unit.failure().log;
        std::vector<std::string> run;  // what packs weights once may spill
        for (const Launch& launch : program.run) run.push_back(*unit->symbol(launch.kernel));
        EXPECT_EQ(parse_ptxas_report(unit->log, run).spill_bytes, 0) << what << "\n" << unit->log;
        if (!unit->from_cache)
          std::printf("%-60s %4d registers %6.0f ms\n", what.c_str(), unit->registers, unit->compile_ms);
      }
}

/// What a GPU's worker launches beside the kernels.
TEST_P(FamilyOnArch, SupportUnitsCompileToo) {
  const TemporaryFolder cache;
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path(), GetParam().arch));
  for (const CompileUnit& unit : {verify_unit(), baseline_unit(), measure_unit()}) {
    const auto compiled = compiler->compile(unit).get();
    ASSERT_TRUE(compiled) << compiled.failure().reason << "\n" << compiled.failure().log;
    for (const std::string& kernel : unit.kernels) EXPECT_NE(compiled->symbol(kernel), nullptr) << kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, FamilyOnArch, ::testing::ValuesIn(devices()),
                         [](const auto& device) { return device.param.arch; });

/// `from` with some of its values changed.
Configuration changed(Configuration from, const std::map<std::string, std::int64_t>& changes) {
  for (auto& [key, value] : from)
    if (const auto change = changes.find(key); change != changes.end()) value = change->second;
  return from;
}

/// A producer warp of `wgmma_shared` that has all of 32 channels in its registers.
TEST(Family, StagesOf32ChannelsCompileWithoutSpills) {
  const TemporaryFolder cache;
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
  const Family* family = find_family("wgmma_shared");
  ASSERT_NE(family, nullptr);
  const std::map<std::string, std::int64_t> ways[] = {
      {{"channels", 32}}, {{"channels", 32}, {"producers", 4}, {"stages", 4}, {"consumer_registers", 168}}};
  for (const Accuracy accuracy : {Accuracy::tf32, Accuracy::fp16})
    for (const auto& way : ways) {
      if (accuracy == Accuracy::tf32 && way.size() == 1) continue;  // eight producers have no stage of every tile
      const BuildContext context{kSeed, accuracy, devices()[3]};
      const Configuration configuration = changed(family->default_configuration(context), way);
      for (const Constraint& c : family->constraints(context)) EXPECT_TRUE(c.holds(configuration)) << c.reason;
      const auto unit = compiler->compile(family->build(context, configuration).unit).get();
      ASSERT_TRUE(unit) << unit.failure().reason << "\n" << unit.failure().log;
      EXPECT_EQ(unit->spill_bytes, 0) << to_string(configuration) << "\n" << unit->log;
    }
}

int count_of(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// All of a tile's stores are marked; not those of the exact path (16 or 32) and of packing.
TEST(Family, StreamingMarksTheStoresOfTiles) {
  const TemporaryFolder cache;
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
  for (const char* name : {"wgmma", "wgmma_shared"})
    for (const Accuracy accuracy : {Accuracy::tf32, Accuracy::fp16}) {
      const Family* family = find_family(name);
      ASSERT_NE(family, nullptr);
      const BuildContext context{kSeed, accuracy, devices()[3]};
      const Configuration usual = family->default_configuration(context);
      const auto stores_of = [&](std::int64_t streaming) {
        const auto ptx = compiler->ptx(family->build(context, changed(usual, {{"streaming", streaming}})).unit);
        EXPECT_TRUE(ptx) << ptx.failure().reason;
        return std::pair(count_of(*ptx, "st.global."), count_of(*ptx, "st.global.cs."));
      };
      const auto [plain, none] = stores_of(0);
      const auto [all, marked] = stores_of(1);
      EXPECT_EQ(none, 0) << name;
      EXPECT_EQ(all, plain) << name;
      EXPECT_GT(marked, 100) << name;
      EXPECT_LT(all - marked, 50) << name;
    }
}

TEST(Family, CompilesToOneCubinInTwentyFreshProcesses) {
  const BuildContext context{kSmall, Accuracy::fp32, devices()[3]};
  const Family* tiled = find_family("tiled");
  ASSERT_NE(tiled, nullptr);
  const Program program = tiled->build(context, tiled->default_configuration(context));
  std::set<std::string> hashes;
  for (int i = 0; i < 20; ++i) {
    const TemporaryFolder cache;
    const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
    if (!compiler->warnings().empty()) GTEST_SKIP() << compiler->warnings()[0];
    const auto unit = compiler->compile(program.unit).get();
    ASSERT_TRUE(unit) << unit.failure().reason;
    hashes.insert(unit->sha256);
  }
  EXPECT_EQ(hashes.size(), 1u);
}

}  // namespace
}  // namespace tuner
