#include "tuner/jit/host_blame.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cerrno>

namespace tuner {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kSources{"unit.cpp", "kernels/common/geometry.h", "kernels/tiled/kernel.cuh"};

Failure blame_of(const std::string& log, ProcessEnd end = {ProcessEnd::Kind::exited, 1, 0, 0, {}, {}}) {
  return blame("c++", end, CompileLimits{}, log, kSources);
}

TEST(HostBlame, FallsOnTheSourceThatAnErrorNames) {
  for (const std::string line : {"unit.cpp:3:5: error: 'undeclared_thing' is not a member of 'ct1d'",
                                 "kernels/common/geometry.h:12:15: error: static assertion failed: T is odd",
                                 "kernels/tiled/../common/geometry.h:1:1: error: expected unqualified-id",
                                 "unit.cpp:1:10: fatal error: kernels/nobody.h: No such file or directory",
                                 "unit.cpp:4: Error: no such instruction: `mov.b32 %eax'",
                                 "unit.cpp:8:3: sorry, unimplemented: non-trivial designated initializers"}) {
    const Failure failure = blame_of("In file included from unit.cpp:1:\n" + line + "\n    1 | code\n");
    EXPECT_EQ(failure.outcome, Outcome::compile_failed) << line;
    EXPECT_EQ(failure.reason, line);
  }
  // Whatever else went wrong, the source is wrong.
  EXPECT_EQ(
      blame_of("unit.cpp:3:5: error: no\nunit.cpp:9: fatal error: error writing to x.s: No space left on device\n")
          .outcome,
      Outcome::compile_failed);
}

TEST(HostBlame, FallsOnTheMachineForWhatNoSourceDoes) {
  for (const std::string line :
       {"unit.cpp:812:1: fatal error: error writing to /tmp/cc1.s: No space left on device",
        "unit.cpp:812: Fatal error: can't write 12 bytes to section .text of /tmp/cc1.o: 'No space left on device'",
        "kernels/tiled/kernel.cuh:2:10: fatal error: kernels/common/geometry.h: Too many open files",
        "cc1plus: fatal error: can't open '/tmp/cc1.s' for writing: Permission denied",
        "/usr/bin/ld: final link failed: No space left on device",
        "c++: fatal error: cannot execute 'cc1plus': execvp: Resource temporarily unavailable",
        "collect2: fatal error: ld terminated with signal 9 [Killed]", "collect2: error: ld returned 1 exit status",
        "c++: fatal error: Killed signal terminated program cc1plus",
        "/usr/include/c++/12/cmath:45:10: fatal error: math.h: No such file or directory", "error: out of luck",
        "clang: error: linker command failed with exit code 1 (use -v to see invocation)"}) {
    const Failure failure = blame_of("unit.cpp:3:5: warning: unused variable 'error: '\n" + line + "\n");
    EXPECT_EQ(failure.outcome, Outcome::unproven) << line;
    EXPECT_EQ(failure.reason, "c++ ended with exit code 1: " + line);
  }
  EXPECT_THAT(blame_of("/usr/bin/ld: final link failed: No space left on device\n"
                       "collect2: error: ld returned 1 exit status\n")
                  .reason,
              HasSubstr("No space left on device"))
      << "the cause, not what follows from it";
  EXPECT_EQ(blame_of("").outcome, Outcome::unproven);
  const Failure none = blame_of("", {ProcessEnd::Kind::not_started, EMFILE, 0, 0, {}, {}});
  EXPECT_EQ(none.outcome, Outcome::unproven);
  EXPECT_THAT(none.reason, HasSubstr("Too many open files"));
  for (const int signal : {SIGKILL, SIGTERM, SIGHUP})
    EXPECT_EQ(blame_of("", {ProcessEnd::Kind::signalled, signal, 0, 0, {}, {}}).outcome, Outcome::unproven);
  EXPECT_EQ(blame_of("", {ProcessEnd::Kind::cancelled, 0, 0, 0, {}, {}}).outcome, Outcome::unproven);
}

TEST(HostBlame, FallsOnTheCompilerThatDiesOrMeetsALimit) {
  for (const std::string line : {"unit.cpp:3:5: internal compiler error: in tsubst_copy, at cp/pt.cc:1234",
                                 "c++: internal compiler error: Segmentation fault signal terminated program cc1plus",
                                 "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
                                 "virtual memory exhausted: Cannot allocate memory",
                                 "c++: fatal error: CPU time limit exceeded signal terminated program cc1plus"}) {
    const Failure failure = blame_of(line + "\ncompilation terminated.\n");
    EXPECT_EQ(failure.outcome, Outcome::crashed) << line;
    EXPECT_THAT(failure.reason, HasSubstr(line));
  }
  EXPECT_EQ(blame_of("", {ProcessEnd::Kind::timed_out, 0, 60, 0, {}, {}}).outcome, Outcome::crashed);
  EXPECT_EQ(blame_of("", {ProcessEnd::Kind::signalled, SIGSEGV, 0, 0, {}, {}}).outcome, Outcome::crashed);
}

}  // namespace
}  // namespace tuner
