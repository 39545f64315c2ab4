// What becomes of a compile when the compiler hangs, crashes or eats memory: with a library in NVRTC's place that does
// so.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "jit_fixture.h"
#include "tuner/jit/process.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kStub = R"(
#include <cstddef>
#include <cstdlib>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
struct Program { std::string source; };
extern "C" {
const char* nvrtcGetErrorString(int) { return "STUB_ERROR"; }
int nvrtcVersion(int* major, int* minor) { *major = 12; *minor = 4; return 0; }
int nvrtcGetNumSupportedArchs(int* count) { *count = 3; return 0; }
int nvrtcGetSupportedArchs(int* archs) { archs[0] = 50; archs[1] = 80; archs[2] = 86; return 0; }
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*, const char* const*) {
  *program = new Program{source};
  return 0;
}
int nvrtcDestroyProgram(Program**) { return 0; }
int nvrtcAddNameExpression(Program*, const char*) { return 0; }
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  const std::string& source = program->source;
  if (source.rfind("hang ", 0) == 0) {
    std::ofstream(source.substr(5)) << getpid() << std::endl;
    for (;;) sleep(1);
  }
  if (source == "stop") raise(SIGSTOP);
  if (source == "stop guard") {
    kill(getppid(), SIGSTOP);
    for (;;) sleep(1);
  }
  if (source == "spin") for (volatile int i = 0;; ++i) {}
  if (source == "crash") abort();
  if (source == "killed") raise(SIGKILL);
  if (source.rfind("killed once ", 0) == 0 && access(source.c_str() + 12, F_OK) != 0) {
    std::ofstream(source.substr(12)) << "yes";
    raise(SIGKILL);
  }
  if (source == "exit") _exit(5);
  if (source == "allocate") for (;;) { void* p = malloc(1 << 24); memset(p, 1, 1 << 24); }
  if (source == "throw") for (;;) memset(new char[1 << 24], 1, 1 << 24);
  return 0;
}
int nvrtcGetLoweredName(Program*, const char* name, const char** lowered) { *lowered = name; return 0; }
int nvrtcGetCUBINSize(Program* program, size_t* size) { *size = program->source.size(); return 0; }
int nvrtcGetCUBIN(Program* program, char* target) {
  memcpy(target, program->source.data(), program->source.size());
  return 0;
}
int nvrtcGetPTXSize(Program*, size_t* size) { *size = 0; return 0; }
int nvrtcGetPTX(Program*, char*) { return 0; }
int nvrtcGetProgramLogSize(Program*, size_t* size) { *size = 1; return 0; }
int nvrtcGetProgramLog(Program*, char* target) { *target = 0; return 0; }
}
)";

class StubNvrtc : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    testing::write_text(folder_->path() / "stub.cpp", kStub);
    const std::string command = "c++ -O0 -shared -fPIC -o " + library() + " " + (folder_->path() / "stub.cpp").string();
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() { delete std::exchange(folder_, nullptr); }
  static std::string library() { return folder_->path() / "libstub.so"; }

  CompilerOptions options() const {
    CompilerOptions options = testing::nvrtc_options(cache_.path(), "sm_86");
    options.nvrtc = {library()};
    options.limits = {2, std::size_t{512} << 20};
    return options;
  }
  /// Compiles `source` between two that work, which must not notice.
  Failure failure_of(const std::string& source, double seconds) const {
    CompilerOptions limited = options();
    limited.limits.seconds = seconds;
    const auto compiler = make_nvrtc_compiler(limited);
    EXPECT_TRUE(compiler->compile({"before", {}, {}}).get());
    const auto result = compiler->compile({source, {}, {}}).get();
    EXPECT_TRUE(compiler->compile({"after", {}, {}}).get());
    EXPECT_FALSE(result);
    return result ? Failure{} : result.failure();
  }

  static inline TemporaryFolder* folder_ = nullptr;
  TemporaryFolder cache_;
};

/// The id that a hanging compile wrote, as soon as it has.
pid_t process_in(const std::filesystem::path& file) {
  for (int i = 0; i < 1000; ++i) {
    std::ifstream text(file);
    pid_t process = 0;
    if (text >> process) return process;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

bool gone(pid_t process) {
  for (int i = 0; i < 500; ++i) {
    // A zombie that nobody has waited for yet is dead as well.
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string id, name, state;
    if (!(stat >> id >> name >> state) || state == "Z" || state == "X") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(StubNvrtc, ThatHangsIsKilledAtItsTimeLimit) {
  const std::filesystem::path mark = cache_.path() / "mark";
  const Failure failure = failure_of("hang " + mark.string(), 2);
  EXPECT_EQ(failure.outcome, Outcome::compile_failed);
  EXPECT_EQ(failure.reason,
            "the compiler was killed at its time limit of 2 s; twice, the second time with no other compile");
  EXPECT_TRUE(gone(process_in(mark)));
}

TEST_F(StubNvrtc, ThatSpinsIsKilledToo) { EXPECT_THAT(failure_of("spin", 2).reason, HasSubstr("time limit of 2 s")); }

TEST_F(StubNvrtc, ThatIsStoppedIsKilledAtItsTimeLimit) {
  EXPECT_THAT(failure_of("stop", 2).reason, HasSubstr("time limit of 2 s"));
}

TEST_F(StubNvrtc, WhoseGuardIsStoppedIsKilledToo) {
  const Failure failure = failure_of("stop guard", 1);
  EXPECT_EQ(failure.outcome, Outcome::compile_failed);
  EXPECT_THAT(failure.reason, HasSubstr("gave no answer at its time limit of 1 s (was it stopped?) and was killed"));
}

TEST_F(StubNvrtc, ThatCrashesLeavesItsSignal) {
  const Failure failure = failure_of("crash", 100);
  EXPECT_EQ(failure.outcome, Outcome::compile_failed);
  EXPECT_THAT(failure.reason, HasSubstr("signal 6 (Aborted)"));
}

TEST_F(StubNvrtc, ThatIsKilledFromOutsideIsNobodysFault) {
  const Failure failure = failure_of("killed", 100);
  EXPECT_EQ(failure.outcome, Outcome::unproven);
  EXPECT_THAT(failure.reason, HasSubstr("ended from outside"));
  const std::filesystem::path mark = cache_.path() / "mark";
  const auto result = make_nvrtc_compiler(options())->compile({"killed once " + mark.string(), {}, {}}).get();
  EXPECT_TRUE(std::filesystem::exists(mark));
  EXPECT_TRUE(result) << result.failure().reason;
}

TEST_F(StubNvrtc, ThatExitsLeavesItsCode) { EXPECT_THAT(failure_of("exit", 100).reason, HasSubstr("exit code 5")); }

TEST_F(StubNvrtc, ThatEatsMemoryIsStoppedAndSaidSo) {
  if (memory_limit_is_impossible()) GTEST_SKIP() << "this build's instrumentation reserves too much address space";
  EXPECT_THAT(failure_of("allocate", 100).reason, HasSubstr("memory limit of 512 MiB"));
  EXPECT_THAT(failure_of("throw", 100).reason, HasSubstr("memory limit"));
}

TEST_F(StubNvrtc, ThatHangsDoesNotHoldUpOtherJobs) {
  CompilerOptions two = options();
  two.jobs = 2;
  two.limits.seconds = 600;
  const std::filesystem::path mark = cache_.path() / "mark";
  std::future<Expected<CompiledUnit>> hanging;
  pid_t process = 0;
  const double seconds = testing::seconds_of([&] {
    const auto compiler = make_nvrtc_compiler(two);
    hanging = compiler->compile({"hang " + mark.string(), {}, {}});
    process = process_in(mark);
    EXPECT_NE(process, 0);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(compiler->compile({"fine " + std::to_string(i), {}, {}}).get());
  });
  // Destroying the compiler ended the one that hung, and kept its promise.
  EXPECT_LT(seconds, 300);
  ASSERT_FALSE(hanging.get());
  EXPECT_TRUE(gone(process));
}

TEST_F(StubNvrtc, DiesWithItsCoordinator) {
  const std::filesystem::path mark = cache_.path() / "mark";
  CompilerOptions patient = options();
  patient.limits.seconds = 600;
  const pid_t coordinator = testing::start_process([&] {
    return make_nvrtc_compiler(patient)->compile({"hang " + mark.string(), {}, {}}).get() ? 0 : 1;
  });
  const pid_t compiling = process_in(mark);
  ASSERT_NE(compiling, 0);
  ::kill(coordinator, SIGKILL);
  EXPECT_EQ(testing::end_of(coordinator), -SIGKILL);
  EXPECT_TRUE(gone(compiling));
}

TEST_F(StubNvrtc, ThatIsOlderThanTheGpuIsRefusedWithBothLists) {
  for (const char* arch : {"sm_89", "sm_21"}) {
    CompilerOptions newer = options();
    newer.arch = arch;
    try {
      make_nvrtc_compiler(newer);
      FAIL() << "no exception";
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(arch));
      EXPECT_THAT(error.what(), HasSubstr("sm_50, sm_80, sm_86"));
      EXPECT_THAT(error.what(), HasSubstr("12.4"));
    }
  }
}

// H17
TEST_F(StubNvrtc, OfAnotherBuildDoesNotShareItsCubins) {
  const CompileUnit unit{"same source", {}, {}};
  ASSERT_TRUE(make_nvrtc_compiler(options())->compile(unit).get());
  EXPECT_TRUE(make_nvrtc_compiler(options())->compile(unit).get()->from_cache);
  const std::filesystem::path other = cache_.path() / "libother.so";
  std::filesystem::copy_file(library(), other);
  std::ofstream(other, std::ios::app) << "patched";
  CompilerOptions patched = options();
  patched.nvrtc = {other};
  EXPECT_FALSE(make_nvrtc_compiler(patched)->compile(unit).get()->from_cache);
}

/// Of the zygote whose guard watches the compile `process`.
pid_t zygote_of(pid_t process) {
  const auto parent_of = [](pid_t child) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string word; status >> word;)
      if (word == "PPid:") {
        pid_t parent = 0;
        status >> parent;
        return parent;
      }
    return pid_t{0};
  };
  return parent_of(parent_of(process));
}

TEST_F(StubNvrtc, IsStartedAgainWhenItsProcessDies) {
  CompilerOptions patient = options();
  patient.limits.seconds = 600;
  const std::filesystem::path mark = cache_.path() / "mark";
  const auto compiler = make_nvrtc_compiler(patient);
  auto hanging = compiler->compile({"hang " + mark.string(), {}, {}});
  const pid_t first = process_in(mark);
  ASSERT_NE(first, 0);
  const pid_t zygote = zygote_of(first);
  ASSERT_GT(zygote, 1);
  std::filesystem::remove(mark);
  ::kill(zygote, SIGKILL);
  const pid_t second = process_in(mark);  // the request was repeated in a fresh zygote's child
  ASSERT_NE(second, 0);
  EXPECT_NE(second, first);
  EXPECT_TRUE(gone(first));
}

TEST_F(StubNvrtc, IsStartedAgainWhenItsProcessIsStopped) {
  CompilerOptions limited = options();
  limited.jobs = 2;
  const std::filesystem::path mark = cache_.path() / "mark";
  const auto compiler = make_nvrtc_compiler(limited);
  auto hanging = compiler->compile({"hang " + mark.string(), {}, {}});
  const pid_t first = process_in(mark);
  ASSERT_NE(first, 0);
  const pid_t zygote = zygote_of(first);
  ASSERT_GT(zygote, 1);
  ::kill(zygote, SIGSTOP);
  const auto fine = compiler->compile({"fine", {}, {}}).get();  // its own repetition, in a fresh zygote
  EXPECT_TRUE(fine) << fine.failure().reason;
  EXPECT_FALSE(hanging.get());
  EXPECT_TRUE(gone(zygote));
}

}  // namespace
}  // namespace tuner
