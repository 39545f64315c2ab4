#include "tuner/jit/process.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <thread>

#include "jit_fixture.h"
#include "tuner/jit/wire.h"

namespace tuner {
namespace {

const CompileLimits kGenerous{20, std::size_t{1} << 30};

TEST(RunLimited, GivesReplyErrorsAndExitCode) {
  const ProcessEnd end = run_limited(kGenerous, -1, [](int reply) {
    write_all(reply, std::string(300000, 'r'));
    write_all(STDERR_FILENO, "complaint");
    ::_exit(3);
  });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::exited);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.reply, std::string(300000, 'r'));
  EXPECT_EQ(end.errors, "complaint");
  EXPECT_FALSE(end.success());
}

TEST(RunLimited, NamesTheSignal) {
  const ProcessEnd end = run_limited(kGenerous, -1, [](int) { ::raise(SIGABRT); });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::signalled);
  EXPECT_NE(describe(end, kGenerous).find("signal 6 (Aborted)"), std::string::npos) << describe(end, kGenerous);
}

TEST(RunLimited, KillsWhatSleepsPastItsTime) {
  const CompileLimits limits{0.2, std::size_t{1} << 30};
  ProcessEnd end;
  const double seconds = testing::seconds_of([&] { end = run_limited(limits, -1, [](int) { ::sleep(100); }); });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::timed_out);
  EXPECT_EQ(describe(end, limits), "was killed at its time limit of 0.2 s");
  EXPECT_LT(seconds, 20);
}

TEST(RunLimited, KillsWhatClosedItsStreamsAndStaysAlive) {
  const ProcessEnd end = run_limited({0.2, std::size_t{1} << 30}, -1, [](int reply) {
    for (int fd : {reply, 1, 2}) ::close(fd);
    ::sleep(100);
  });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::timed_out);
}

TEST(RunLimited, KillsGrandchildrenToo) {
  const testing::TemporaryFolder folder;
  const std::string mark = folder.path() / "mark";
  // The shell's child inherits the streams and would write the mark after a second.
  const ProcessEnd end =
      run_program({0.2, std::size_t{1} << 30}, -1, {"sh", "-c", "(sleep 1; echo > " + mark + ") & wait"});
  EXPECT_EQ(end.kind, ProcessEnd::Kind::timed_out);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(RunLimited, IsCancelled) {
  const Descriptor cancel(::eventfd(1, EFD_CLOEXEC));
  const ProcessEnd end = run_limited(kGenerous, cancel.get(), [](int) { ::sleep(100); });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::cancelled);
}

TEST(RunLimited, RefusesMemoryBeyondTheLimit) {
  if (memory_limit_is_impossible()) GTEST_SKIP() << "this build's instrumentation reserves too much address space";
  const CompileLimits limits{20, std::size_t{256} << 20};
  const ProcessEnd end = run_limited(limits, -1, [](int) {
    for (int i = 0; i < 64; ++i) {
      const std::size_t size = std::size_t{16} << 20;
      auto* block = static_cast<volatile char*>(std::malloc(size));
      for (std::size_t at = 0; at < size; at += 4096) block[at] = 1;  // a null block ends it
    }
  });
  EXPECT_EQ(end.kind, ProcessEnd::Kind::signalled);
  EXPECT_NE(describe(end, limits).find("near its memory limit of 256 MiB"), std::string::npos) << describe(end, limits);
}

TEST(RunProgram, ThatDoesNotExistFails) {
  EXPECT_FALSE(run_program(kGenerous, -1, {"no-such-program-of-tuner"}).success());
}

TEST(Messages, ComeBackWholeOrNotAtAll) {
  const Fields fields{"one", "", std::string("\0two", 4)};
  const std::string text = encode(fields);
  EXPECT_EQ(decode(text), fields);
  for (std::size_t length = 0; length < text.size(); ++length) EXPECT_FALSE(decode(text.substr(0, length)));
  EXPECT_FALSE(decode(text + "x"));
  EXPECT_EQ(decode(encode({})), Fields{});
}

}  // namespace
}  // namespace tuner
