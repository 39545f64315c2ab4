// One line out of what sanitizers and the driver print.
#include "tuner/worker/sanitizer_report.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

constexpr const char* kMemcheck = R"(========= COMPUTE-SANITIZER
some line of the program
========= Invalid __global__ write of size 4 bytes
=========     at void ct1d::fault::kernel<(int)1, (int)128, (int)1, (int)1, float>(ct1d::RunArguments)+0xa0
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x8 is out of bounds
=========     and is 34,359,738,360 bytes before the nearest allocation at 0x800000000 of size 16 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame:  [0x331800] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at somewhere else
========= ERROR SUMMARY: 2 errors
)";

TEST(SanitizerReport, JoinsTheFirstFindingOfMemcheck) {
  EXPECT_EQ(memcheck_finding(kMemcheck),
            "Invalid __global__ write of size 4 bytes at void ct1d::fault::kernel<(int)1, (int)128, (int)1, (int)1, "
            "float>(ct1d::RunArguments)+0xa0, by thread (0,0,0) in block (0,0,0), Address 0x8 is out of bounds");
}

TEST(SanitizerReport, TakesAFindingOfOneLine) {
  EXPECT_EQ(
      memcheck_finding("========= COMPUTE-SANITIZER\n========= Program hit cudaErrorLaunchFailure (error 719) due "
                       "to \"unspecified launch failure\" on CUDA API call to cudaDeviceSynchronize.\n"
                       "=========     Saved host backtrace up to driver entry point at error\n"),
      "Program hit cudaErrorLaunchFailure (error 719) due to \"unspecified launch failure\" on CUDA API call to "
      "cudaDeviceSynchronize.");
}

TEST(SanitizerReport, FindsNothingWhereNothingIsReported) {
  EXPECT_EQ(memcheck_finding(""), "");
  EXPECT_EQ(memcheck_finding("Invalid but not a line of the tool's\n"), "");
  EXPECT_EQ(memcheck_finding("========= COMPUTE-SANITIZER\n=========\n========= ERROR SUMMARY: 0 errors\n"), "");
}

TEST(SanitizerReport, FindsTheAssertionAndTheSummary) {
  EXPECT_EQ(assertion_line("warning\nkernel.cuh:37: kernel: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.\n"),
            "kernel.cuh:37: kernel: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.");
  EXPECT_EQ(assertion_line("an Assertion of mine"), "");
  EXPECT_EQ(address_sanitizer_summary("==1==ERROR\nSUMMARY: AddressSanitizer: SEGV a.cuh:3 in k\nAborted\n"),
            "AddressSanitizer: SEGV a.cuh:3 in k");
  EXPECT_EQ(address_sanitizer_summary("nothing"), "");
}

}  // namespace
}  // namespace tuner
