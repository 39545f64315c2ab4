#include <gmock/gmock.h>

#include "jit_fixture.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

class HostCompiler : public ::testing::Test {
 protected:
  std::unique_ptr<Compiler> make(bool address_sanitizer = false) const {
    CompilerOptions options;
    options.cache = cache_.path();
    options.address_sanitizer = address_sanitizer;
    return make_host_compiler(options);
  }
  TemporaryFolder cache_;
};

CompileUnit run_kernel_unit(const std::string& body) {
  CompileUnit unit;
  unit.source =
      "#include \"kernels/common/geometry.h\"\n"
      "template <int N> __global__ void fill(const CT1D_GRID_CONSTANT ct1d::RunArguments a) {\n" +
      body + "}\n";
  unit.kernels = {"fill<3>", "fill<4>"};
  return unit;
}

TEST_F(HostCompiler, ExportsAnEntryAKernelAndCaches) {
  const auto compiler = make();
  ASSERT_TRUE(compiler) << "no C++ compiler on PATH";
  const CompileUnit unit = run_kernel_unit("  static_cast<float*>(a.y)[0] = N;\n");
  const auto cold = compiler->compile(unit).get();
  ASSERT_TRUE(cold) << cold.failure().reason << cold.failure().log;
  EXPECT_GT(cold->compile_ms, 0);
  EXPECT_EQ(cold->symbols[1], (std::pair<std::string, std::string>{"fill<4>", "fill<4>"}));
  EXPECT_EQ(read_file(cold->file).substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_THAT(read_file(cold->file), HasSubstr("fill<4>"));
  const auto warm = make()->compile(unit).get();
  ASSERT_TRUE(warm);
  EXPECT_TRUE(warm->from_cache);
  EXPECT_EQ(warm->sha256, cold->sha256);
  // Nothing is left of the folders that it worked in.
  EXPECT_TRUE(std::filesystem::is_empty(cache_.path() / "hosts" / "scratch"));
}

TEST_F(HostCompiler, GivesTheSameObjectFromAnyFolder) {
  const CompileUnit unit = run_kernel_unit("  static_cast<float*>(a.y)[0] = N;\n");
  const auto here = make(true)->compile(unit).get();
  const TemporaryFolder elsewhere;
  CompilerOptions options;
  options.cache = elsewhere.path();
  const auto there = make_host_compiler(options)->compile(unit).get();
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->sha256, there->sha256);
}

TEST_F(HostCompiler, NamesFilesByTheirPathsInTheRepository) {
  CompileUnit unit = run_kernel_unit("  ct1d::undeclared_thing();\n");
  const auto result = make()->compile(unit).get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().outcome, Outcome::compile_failed);
  EXPECT_THAT(result.failure().reason, HasSubstr("undeclared_thing"));
  EXPECT_THAT(result.failure().reason, Not(HasSubstr(cache_.path().string())));
  EXPECT_THAT(result.failure().log, Not(HasSubstr(cache_.path().string())));
}

TEST_F(HostCompiler, SeparatesWhatIsCompiledWithTheSanitizer) {
  const CompileUnit unit = run_kernel_unit("  static_cast<float*>(a.y)[0] = N;\n");
  const auto with = make(true);
  const auto plain = make(false)->compile(unit).get();
  const auto checked = with->compile(unit).get();
  ASSERT_TRUE(plain && checked);
  if (!with->warnings().empty()) GTEST_SKIP() << with->warnings()[0];
  EXPECT_FALSE(checked->from_cache);
  EXPECT_NE(plain->sha256, checked->sha256);
  EXPECT_THAT(read_file(checked->file), HasSubstr("__asan_"));
}

TEST_F(HostCompiler, IsKilledAtItsTimeLimit) {
  CompilerOptions options;
  options.cache = cache_.path();
  options.address_sanitizer = false;
  options.limits.seconds = 1;
  CompileUnit unit = run_kernel_unit("");
  // Ackermann's function in constexpr keeps the compiler busy.
  unit.source +=
      "constexpr unsigned long busy(unsigned long m, unsigned long n) {\n"
      "  unsigned long s = 0;\n"
      "  for (unsigned long i = 0; i < m; ++i) for (unsigned long j = 0; j < n; ++j) s += i ^ j;\n"
      "  return s;\n}\n"
      "template <int> struct Slow { static constexpr auto value = busy(60, 4000); };\n";
  for (int i = 0; i < 4000; ++i)
    unit.source += "constexpr auto v" + std::to_string(i) + " = busy(60, 4000 + " + std::to_string(i) + ");\n";
  const auto result = make_host_compiler(options)->compile(unit).get();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.failure().reason, HasSubstr("time limit of 1 s"));
}

/// A compiler that does `trouble` in place of linking or compiling a unit, `times` times.
class TroubledCompiler {
 public:
  TroubledCompiler(const std::string& trouble, int times) {
    testing::write_text(path(), "#!/bin/bash\nif [[ \"$*\" == *unit.cpp* && $(wc -l < " + log() + ") -lt " +
                                    std::to_string(times) + " ]]; then\n  echo tried >> " + log() + "\n  " + trouble +
                                    "\nfi\nexec c++ \"$@\"\n");
    testing::write_text(log(), "");
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  std::string path() const { return (folder_.path() / "compiler").string(); }
  std::string tried() const { return read_file(log()); }

 private:
  std::string log() const { return (folder_.path() / "log").string(); }
  TemporaryFolder folder_;
};

TEST_F(HostCompiler, TriesAgainWhatTheMachineDidNotLetItDoAndBlamesNoSource) {
  const CompileUnit unit = run_kernel_unit("  static_cast<float*>(a.y)[0] = N;\n");
  CompilerOptions options;
  options.cache = cache_.path();
  options.address_sanitizer = false;
  for (const std::string trouble :
       {"echo 'collect2: fatal error: ld terminated with signal 9 [Killed]'; exit 1",
        "echo '/usr/bin/ld: final link failed: No space left on device'; exit 1", "kill -9 $$", "exit 127"}) {
    const TroubledCompiler always(trouble, 1000), once(trouble, 1);
    const auto failed = make_host_compiler(options, always.path())->compile(unit).get();
    ASSERT_FALSE(failed) << trouble;
    EXPECT_EQ(failed.failure().outcome, Outcome::unproven) << trouble;
    EXPECT_THAT(failed.failure().reason, HasSubstr("; twice, the second time with no other compile"));
    EXPECT_EQ(always.tried(), "tried\ntried\n");
    const auto done = make_host_compiler(options, once.path())->compile(unit).get();
    ASSERT_TRUE(done) << trouble << ": " << done.failure().reason;
    EXPECT_EQ(once.tried(), "tried\n");
    std::filesystem::remove_all(cache_.path() / "hosts");
  }
}

TEST_F(HostCompiler, RemovesWhatAKilledProcessLeftYesterday) {
  const std::filesystem::path scratch = cache_.path() / "hosts" / "scratch";
  for (const char* name : {"old", "new"}) std::filesystem::create_directories(scratch / name / "kernels");
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(scratch / "old", now - std::chrono::hours(25));
  make();
  EXPECT_FALSE(std::filesystem::exists(scratch / "old"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "new"));
}

TEST_F(HostCompiler, IsNotThereUnderANameThatNobodyHas) {
  CompilerOptions options;
  options.cache = cache_.path();
  EXPECT_EQ(make_host_compiler(options, "no-such-compiler-of-tuner"), nullptr);
}

}  // namespace
}  // namespace tuner
