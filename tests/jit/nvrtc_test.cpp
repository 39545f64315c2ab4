#include <gmock/gmock.h>

#include <set>

#include "jit_fixture.h"
#include "tuner/core/hash.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

Expected<CompiledUnit> compile_fresh(const CompileUnit& unit) {
  const TemporaryFolder cache;
  return make_nvrtc_compiler(testing::nvrtc_options(cache.path()))->compile(unit).get();
}

class NvrtcOfArch : public ::testing::TestWithParam<const char*> {};

TEST_P(NvrtcOfArch, CompilesAndThenFindsItInTheCache) {
  const TemporaryFolder cache;
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path(), GetParam()));
  EXPECT_THAT(compiler->identity(), HasSubstr("NVRTC 1"));
  const auto cold = compiler->compile(testing::small_unit()).get();
  ASSERT_TRUE(cold) << cold.failure().reason << cold.failure().log;
  EXPECT_FALSE(cold->from_cache);
  EXPECT_GT(cold->compile_ms, 0);
  EXPECT_GT(cold->registers, 0);
  EXPECT_EQ(cold->spill_bytes, 0);
  EXPECT_EQ(cold->static_shared_bytes, 256);
  EXPECT_EQ(cold->barriers, 1);
  EXPECT_THAT(cold->log, HasSubstr(GetParam()));
  EXPECT_EQ(read_file(cold->file).substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(sha256(read_file(cold->file)), cold->sha256);
  ASSERT_EQ(cold->symbols.size(), 2u);
  EXPECT_EQ(cold->symbols[0].first, "reverse<32>");
  EXPECT_EQ(cold->symbols[0].second, "_Z7reverseILi32EEvPf");
  EXPECT_EQ(cold->symbols[1].second, "_Z7reverseILi64EEvPf");

  const auto warm = compiler->compile(testing::small_unit()).get();
  ASSERT_TRUE(warm);
  EXPECT_TRUE(warm->from_cache);
  EXPECT_EQ(warm->compile_ms, 0);
  EXPECT_EQ(warm->sha256, cold->sha256);
  EXPECT_EQ(warm->registers, cold->registers);
  EXPECT_EQ(warm->symbols, cold->symbols);
}

INSTANTIATE_TEST_SUITE_P(Archs, NvrtcOfArch,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"),
                         [](const auto& arch) { return std::string(arch.param); });

TEST(Nvrtc, NamesTheFirstErrorWithItsLine) {
  CompileUnit unit = testing::small_unit();
  unit.source += "__global__ void broken() { undeclared_thing = 1; }\n";
  const auto result = compile_fresh(unit);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().outcome, Outcome::compile_failed);
  EXPECT_THAT(result.failure().reason, HasSubstr("unit.cu(7): error"));
  EXPECT_THAT(result.failure().reason, HasSubstr("undeclared_thing"));
  EXPECT_THAT(result.failure().log, HasSubstr("unit.cu(7)"));
}

TEST(Nvrtc, RefusesAKernelNameThatTheSourceLacks) {
  CompileUnit unit = testing::small_unit();
  unit.kernels.push_back("missing<3>");
  const auto result = compile_fresh(unit);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.failure().reason + result.failure().log, HasSubstr("missing"));
}

TEST(Nvrtc, ReportsSpills) {
  CompileUnit unit;
  unit.source =
      "__global__ void greedy(float* p) {\n"
      "  float kept[120];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 120; ++i) kept[i] = p[i * 32 + threadIdx.x];\n"
      "  __syncthreads();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 120; ++i) p[i * 32 + threadIdx.x] = kept[119 - i] * kept[(i * 7) % 120];\n"
      "}\n";
  unit.kernels = {"greedy"};
  unit.options = {"--maxrregcount=32"};
  const auto result = compile_fresh(unit);
  ASSERT_TRUE(result) << result.failure().log;
  EXPECT_GT(result->spill_bytes, 0);
  EXPECT_LE(result->registers, 32);
}

TEST(Nvrtc, UsesHeadersThatTheProgramCarries) {
  CompileUnit unit = testing::small_unit("#include \"kernels/common/geometry.h\"\n");
  unit.source += "static_assert(ct1d::ceil_div(7, 2) == 4, \"\");\n";
  const auto result = compile_fresh(unit);
  EXPECT_TRUE(result) << result.failure().log;
}

TEST(Nvrtc, NamesAHeaderThatIsNotCarriedThoughTheSystemHasIt) {
  const auto result = compile_fresh(testing::small_unit("#include <stdio.h>\n"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.failure().reason, HasSubstr("stdio.h"));
}

/// Runs in a folder where headers lie in wait.
class NvrtcBesideDecoys : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() / "kernels/common");
    testing::write_text(folder_.path() / "cuda_fp16.h", "#error decoy was read\n");
    testing::write_text(folder_.path() / "kernels/common/geometry.h", "#error decoy was read\n");
    std::filesystem::current_path(folder_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  const std::filesystem::path before_ = std::filesystem::current_path();
  TemporaryFolder folder_;
};

TEST_F(NvrtcBesideDecoys, ReadsNothingFromTheWorkingDirectory) {
  for (const char* include : {"#include \"cuda_fp16.h\"\n", "#include <cuda_fp16.h>\n"}) {
    const auto result = compile_fresh(testing::small_unit(include));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.failure().log, Not(HasSubstr("decoy")));
    EXPECT_THAT(result.failure().reason, HasSubstr("cuda_fp16.h"));
  }
  const auto carried = compile_fresh(testing::small_unit("#include \"kernels/common/geometry.h\"\n"));
  EXPECT_TRUE(carried) << carried.failure().log;
}

TEST(Nvrtc, GivesPtx) {
  const TemporaryFolder cache;
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
  const auto ptx = compiler->ptx(testing::small_unit());
  ASSERT_TRUE(ptx) << ptx.failure().reason;
  EXPECT_THAT(*ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(*ptx, HasSubstr("_Z7reverseILi32EEvPf"));
}

TEST(Nvrtc, RefusesAnArchThatItDoesNotKnowAndSaysWhichItDoes) {
  const TemporaryFolder cache;
  try {
    make_nvrtc_compiler(testing::nvrtc_options(cache.path(), "sm_21"));
    FAIL() << "no exception";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sm_21"));
    EXPECT_THAT(error.what(), HasSubstr("sm_90"));
  }
}

TEST(Nvrtc, SaysWhatItLookedForWhereThereIsNoLibrary) {
  const TemporaryFolder cache;
  CompilerOptions options = testing::nvrtc_options(cache.path());
  options.nvrtc = {"/nowhere/libnvrtc.so.13", "libnvrtc_that_nobody_has.so"};
  try {
    make_nvrtc_compiler(options);
    FAIL() << "no exception";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/libnvrtc.so.13"));
    EXPECT_THAT(error.what(), HasSubstr("libnvrtc_that_nobody_has.so"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

TEST(Nvrtc, SaysThatTheProgramCannotBeTheZygote) {
  const TemporaryFolder cache;
  CompilerOptions options = testing::nvrtc_options(cache.path());
  options.program = "/bin/true";
  EXPECT_THROW(make_nvrtc_compiler(options), EnvironmentError);
}

TEST(Nvrtc, GivesOneCubinInTwentyFreshProcesses) {
  std::set<std::string> hashes;
  for (int i = 0; i < 20; ++i) {
    const TemporaryFolder cache;
    const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
    if (!compiler->warnings().empty()) GTEST_SKIP() << compiler->warnings()[0];
    const auto result = compiler->compile(testing::small_unit("#include \"kernels/common/geometry.h\"\n")).get();
    ASSERT_TRUE(result) << result.failure().reason;
    hashes.insert(result->sha256);
  }
  EXPECT_EQ(hashes.size(), 1u);
}

// H25
TEST(Nvrtc, FindsWhatAnotherProcessCompiled) {
  const TemporaryFolder cache;
  const auto compile = [&](bool expect_hit) {
    const auto result = make_nvrtc_compiler(testing::nvrtc_options(cache.path()))->compile(testing::small_unit()).get();
    return result && result->from_cache == expect_hit ? 0 : 1;
  };
  EXPECT_EQ(testing::run_processes(1, [&](int) { return compile(false); }), std::vector<int>{0});
  EXPECT_EQ(testing::run_processes(1, [&](int) { return compile(true); }), std::vector<int>{0});
}

TEST(Nvrtc, ServesSixteenProcessesOnOneColdCache) {
  const TemporaryFolder cache;
  const auto unit_numbered = [](int number) {
    return testing::small_unit("constexpr int number = " + std::to_string(number) + ";\n");
  };
  const auto ends = testing::run_processes(16, [&](int process) {
    const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
    for (int i = 0; i < 8; ++i)
      if (!compiler->compile(unit_numbered((i + process) % 8)).get()) return 1;
    return 0;
  });
  EXPECT_EQ(ends, std::vector<int>(16, 0));
  const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path()));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(compiler->compile(unit_numbered(i)).get()->from_cache);
}

TEST(Nvrtc, CompilesEqualUnitsUnderWayOnce) {
  const TemporaryFolder cache;
  CompilerOptions options = testing::nvrtc_options(cache.path());
  options.jobs = 4;
  const auto compiler = make_nvrtc_compiler(options);
  std::vector<std::future<Expected<CompiledUnit>>> futures;
  for (int i = 0; i < 12; ++i) futures.push_back(compiler->compile(testing::small_unit()));
  std::set<double> compile_times;
  for (auto& future : futures) {
    const auto result = future.get();
    ASSERT_TRUE(result);
    if (!result->from_cache) compile_times.insert(result->compile_ms);
  }
  EXPECT_EQ(compile_times.size(), 1u);
}

}  // namespace
}  // namespace tuner
