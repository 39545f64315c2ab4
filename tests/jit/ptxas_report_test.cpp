#include "tuner/jit/ptxas_report.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(PtxasReport, TakesTheLargestOverTheKernels) {
  const PtxasReport report = parse_ptxas_report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kILi64EEvPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z1kILi64EEvPf\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem\n"
      "ptxas info    : Compile time = 2.194 ms\n"
      "ptxas info    : Compiling entry function '_Z1kILi32EEvPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z1kILi32EEvPf\n"
      "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 2 barriers, 128 bytes smem, 400 bytes cmem[0]\n");
  EXPECT_EQ(report.kernels, 2);
  EXPECT_EQ(report.registers, 40);
  EXPECT_EQ(report.spill_bytes, 32);
  EXPECT_EQ(report.static_shared_bytes, 256);
  EXPECT_EQ(report.barriers, 2);
}

TEST(PtxasReport, CountsSpillsOfTheNamedKernelsAlone) {
  const char* const log =
      "ptxas info    : Compiling entry function 'pack' for 'sm_90a'\n"
      "    8 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 72 registers\n"
      "ptxas info    : Compiling entry function 'run' for 'sm_90a'\n"
      "    0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 247 registers\n";
  EXPECT_EQ(parse_ptxas_report(log).spill_bytes, 24);
  EXPECT_EQ(parse_ptxas_report(log, {"run"}).spill_bytes, 4);
  EXPECT_EQ(parse_ptxas_report(log, {"run", "pack"}).spill_bytes, 24);
  EXPECT_EQ(parse_ptxas_report(log, {"ru"}).spill_bytes, 0);
  EXPECT_EQ(parse_ptxas_report(log, {"run"}).registers, 247);
}

TEST(PtxasReport, CountsSpillsOfFunctionsThatWereNotInlined) {
  const PtxasReport report = parse_ptxas_report(
      "unit.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n\n"
      "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Function properties for helper\n"
      "    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Function properties for k\n"
      "    16 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
      "ptxas info    : Used 255 registers, 16 bytes cumulative stack size, 388 bytes cmem[0]");
  EXPECT_EQ(report.kernels, 1);
  EXPECT_EQ(report.registers, 255);
  EXPECT_EQ(report.spill_bytes, 11);
  EXPECT_EQ(report.static_shared_bytes, 0);
  EXPECT_EQ(report.barriers, 0);
}

TEST(PtxasReport, KeepsTheFirstHarmfulRemarkAboutMatrixInstructions) {
  // as CUDA 13.0 says it
  const std::string injected =
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 106 by compiler to allow use of registers "
      "in "
      "GMMA in function 'serial'\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 73 by compiler to allow use of registers "
      "defined by GMMA in function 'serial'\n"
      "ptxas info    : Compiling entry function 'serial' for 'sm_90a'\n"
      "ptxas info    : Used 58 registers, used 0 barriers\n";
  EXPECT_EQ(
      parse_ptxas_report(injected).matrix_remark,
      "(C7517) warpgroup.wait is injected in around line 73 by compiler to allow use of registers defined by GMMA "
      "in function 'serial'")
      << "an arrive more does no harm, a wait does";
  const std::string ignored =
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at "
      "entry.\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'regs' for 'sm_90a'\n";
  EXPECT_EQ(parse_ptxas_report(ignored).matrix_remark,
            "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.");
  EXPECT_EQ(parse_ptxas_report("ptxas info    : (C7600) of another kind\nptxas info    : (C75\n(C7510) no ptxas\n")
                .matrix_remark,
            "");
}

TEST(PtxasReport, ObjectsToLostMatrixInstructionsAlwaysAndToSpillsWhereTheProgramDoes) {
  PtxasReport report;
  EXPECT_FALSE(objection_to(report, false));
  report.spill_bytes = 32;
  EXPECT_FALSE(objection_to(report, true));
  EXPECT_EQ(objection_to(report, false), "the compiler's report: 32 bytes of registers spilled");
  report.matrix_remark = "(C7510) serialized";
  EXPECT_EQ(objection_to(report, true), "the compiler's report: (C7510) serialized");
}

TEST(PtxasReport, OfNothingIsEmpty) {
  EXPECT_EQ(parse_ptxas_report("").kernels, 0);
  EXPECT_EQ(parse_ptxas_report("unit.cu(1): error: Used tea bags, not registers\n").registers, 0);
}

TEST(PtxasReport, WithoutTimesSaysTheSameAtEveryCompile) {
  EXPECT_EQ(without_compile_times("ptxas info    : Used 10 registers\nptxas info    : Compile time = 2.194 ms\n\nlast"),
            "ptxas info    : Used 10 registers\n\nlast");
  EXPECT_EQ(without_compile_times(""), "");
  EXPECT_EQ(without_compile_times("error: x\n"), "error: x\n");
}

}  // namespace
}  // namespace tuner
