#include "tuner/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "tests/report/samples.h"
#include "tuner/report/escape.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::TempDir;

/// What python3's own parser reads in `xml`, printed by `program`, which finds the root element as `root`.
std::string parsed_by_python(const std::string& xml, const std::string& program) {
  const std::filesystem::path file =
      std::filesystem::path(TempDir()) / ("tuner_report_test_" + std::to_string(getpid()) + ".xml");
  std::ofstream(file) << xml;
  const std::string command = "python3 -c \"import sys, xml.etree.ElementTree as t; root = t.parse('" + file.string() +
                              "').getroot(); " + program + "\" 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "python3 could not be started";
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << output << xml;
  std::filesystem::remove(file);
  return output;
}

TEST(ReportTable, SeveralProblemsAreSummedUpByClass) {
  RunResult result = samples::measured();
  EXPECT_THAT(report_table({result}, false), testing::Not(HasSubstr("geometric mean"))) << "of one there is none";
  ProblemRecord slower = result.problems.front();
  slower.name = "slower";
  slower.classes.pop_back();
  for (auto& ratio : slower.classes.front().ratios)
    std::tie(ratio.ratio, ratio.low, ratio.high) = std::tuple(0.5, 0.49, 0.51);
  result.problems.push_back(slower);
  // sqrt(1.136 * 0.5): the fastest vendor route of each
  EXPECT_THAT(
      report_table({result}, false),
      HasSubstr("fp32: 0.75 times as fast as the best vendor route in geometric mean of 2 problems, faster on 1; "
                "worst 0.50 times, slower"));
}

TEST(ReportTable, MeasuredRunShowsTimesRatiosTiesAndFailures) {
  EXPECT_EQ(report_table({samples::measured()}, false), R"(seed-h200
  NVIDIA H200, 132 SMs, driver 580.95.05, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0, 700 W; L2 cold, burst
  tuner 0.1.0, 2026-11-30T12:00:00Z

problem  class  median ms [95 %]      of limit  vs cudnn               vs cublas_shift_add    vs cudnn in TF32        best of ours
seed     fp32   8.800 [8.790, 8.810]  70 %      1.136x [1.134, 1.139]  1.318x [1.307, 1.329]  ~0.481x [0.479, 0.482]  tiled T=128 OC_TILE=64 block=32x8
seed     tf32   8.800 [8.790, 8.810]  70 %      0.481x [0.480, 0.482]  -                      -                       tiled T=128 OC_TILE=64 block=32x8

seed fp32, B64 128->128 K3 s1 L65536
  best of ours: tiled-0000000002, its largest errors 0.4 of the bound on an element and 0.5 of that on a row
  cannot be told from the best: tiled-0000000003
  cudnn: forward, flipped kernel, 10.00 [9.980, 10.02] ms
  cublas_shift_add: strided-batched GEMM a tap, 11.60 [11.50, 11.70] ms
  tried 6 of 12,345 valid configurations: 3 ok, 2 compile_failed, 1 wrong_result
    2 compile_failed: ptxas: out of registers
    1 wrong_result: element bound exceeded 30 times
seed tf32, B64 128->128 K3 s1 L65536
  best of ours: tiled-0000000002, its largest errors 0.4 of the bound on an element and 0.5 of that on a row
  nothing of ours is faster than cudnn: backward-data
  cudnn: backward-data, 4.230 [4.220, 4.240] ms
  cublas_shift_add: wrong_result: row 0, 3 exceeds the bound
  tried 1 of 1 valid configuration: 1 ok
Ratios are the vendor's time over ours: above 1 we are faster. ~: of medians in one run, not of interleaved rounds.
of limit: the time that operations and bytes need at the device's theoretical peaks, as a part of our median.
vs cudnn in TF32: cuDNN's best route of class tf32, which is PyTorch's default for convolutions; PyTorch was not run.
Reproduce: tuner --config configs/h200.json
)");
}

TEST(ReportTable, OfflineRunShowsTheShortlistAndNoTime) {
  EXPECT_EQ(report_table({samples::offline()}, false), R"(seed-h200
  target sm_90a, profile of NVIDIA H200
  tuner 0.1.0, 2026-11-30T12:00:00Z
  warning: the config expects NVIDIA H100
No GPU: nothing was timed. Compiled 2 for sm_90a, 1 proven on the CPU.

problem  class  #  lower bound ms  registers  spills  shared   occupancy  on the CPU  variant
seed     fp32   1  6.200           96         0       50.0 KB  50 %       proven      tiled T=128 OC_TILE=64 block=32x8

seed fp32, B64 128->128 K3 s1 L65536
  cudnn: not run: no CUDA device
  cublas_shift_add: not run: no CUDA device
  tried 3 of 12,345 valid configurations: 1 ok, 1 compile_failed, 1 unproven
    1 compile_failed: ptxas: out of registers
    1 unproven: compiled; not on the shortlist
#: the order of a model that no time calibrates: the lower bound, made longer for operands, latency, idle SMs and spills.
Measured results are recorded in the repository: tuner report results/h200/seed/result.json
Reproduce: tuner --config configs/h200.json
)");
}

TEST(ReportTable, MostFrequentRefusalsComeFirstAndTheRestIsCounted) {
  RunResult result = samples::offline();
  result.problems[0].classes[0].rejections = {{"direct: a", 1}, {"direct: b", 1500}, {"tiled: c", 20}, {"tiled: d", 3}};
  const std::string table = report_table({result}, false);
  EXPECT_NE(table.find("    1,500 combinations refused unbuilt: direct: b\n"
                       "    20 combinations refused unbuilt: tiled: c\n"
                       "    3 combinations refused unbuilt: tiled: d\n"
                       "    and 1 more reason\n"),
            std::string::npos)
      << table;
}

TEST(ReportTable, WhereNoConfigurationIsValidAllReasonsAreShown) {
  RunResult result = samples::offline();
  ClassRecord& record = result.problems[0].classes[0];
  record.rejections = {{"direct: a", 1}, {"direct: b", 1500}, {"tiled: c", 20}, {"tiled: d", 3}};
  record.variants.clear();
  record.shortlist.clear();
  record.space_size = 0;
  const std::string table = report_table({result}, false);
  EXPECT_THAT(table, HasSubstr("  tried 0 of 0 valid configurations\n"
                               "  no configuration is valid; all reasons:\n"
                               "    1,500 combinations refused unbuilt: direct: b\n"
                               "    20 combinations refused unbuilt: tiled: c\n"
                               "    3 combinations refused unbuilt: tiled: d\n"
                               "    1 combination refused unbuilt: direct: a\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("more reason")));
}

TEST(ReportTable, FourDigitsAreShownAndUnboundedIntervalsExplained) {
  RunResult result = samples::in_two_regimes();
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(report_table({result}, false), testing::Not(HasSubstr("[?]")));
  result.problems[0].classes[0].variants[1].time->energy = EnergyRecord{{2090.415, -inf, inf}, {2090.415}};
  const std::string table = report_table({result}, false);
  EXPECT_THAT(table, HasSubstr("energy of a launch under load: 2090 [?] mJ"));
  EXPECT_THAT(table, HasSubstr("\n[?]: too few samples for an interval.\n"));
  for (const auto& [energy, text] : {std::pair(999.94, "999.9 [?]"), std::pair(999.96, "1000 [?]"),
                                     std::pair(12345.6, "12346 [?]"), std::pair(7.0, "7.000 [?]")}) {
    result.problems[0].classes[0].variants[1].time->energy = EnergyRecord{{energy, -inf, inf}, {energy}};
    EXPECT_THAT(report_table({result}, false), HasSubstr(text));
  }
}

TEST(ReportTable, NothingValidIsSaidInTheRow) {
  RunResult result = samples::measured();
  for (VariantRecord& variant : result.problems[0].classes[1].variants) variant.outcome = Outcome::wrong_result;
  const std::string table = report_table({result}, false);
  EXPECT_NE(table.find("seed     tf32   -                     -         -"), std::string::npos) << table;
  EXPECT_NE(table.find("nothing valid\n"), std::string::npos) << table;
}

TEST(ReportTable, InterruptedRunSaysSo) {
  RunResult result = samples::measured();
  result.interrupted = true;
  EXPECT_NE(report_table({result}, false).find("\nInterrupted: what was found out until then.\n"), std::string::npos);
}

TEST(ReportTable, EachRegimeHasALineWithItsClockAndItsRatios) {
  const std::string table = report_table({samples::in_two_regimes()}, false);
  for (const char* words : {
           "700 W, MIG off; L2 cold, burst; L2 cold, sustained",
           "problem  class  regime     SM MHz  median ms [95 %]",
           "seed     fp32   burst      1980    8.800 [8.790, 8.810]  70 %      1.136x [1.134, 1.139]",
           "seed     fp32   sustained  1605    9.900 [9.800, 10.00]  63 %      1.414x [1.400, 1.430]",
           "during the run-off: clocks held down by the software power cap, 2 other processes, power limit 700 W, MIG "
           "off",
           "a copy of x in the same rounds, burst: 1.100 [1.090, 1.110] ms; best of ours takes 8.00 times that",
           "a copy of x in the same rounds, sustained: 1.200 [1.190, 1.210] ms; best of ours takes 8.25 times that",
           "measured again on fresh inputs: tiled-0000000002, 9.500 [9.400, 9.600] ms",
           "energy of a launch under load: 4200 [4100, 4300] mJ",
           "warning: measured again, tiled-0000000002 took longer",
           "search: 60.0 s, 1.20 times the 50.0 s of max(compile CPU 231.0 s / 16, GPU work)",
       })
    EXPECT_THAT(table, HasSubstr(words));
  EXPECT_THAT(report_markdown({samples::in_two_regimes()}), HasSubstr("| <code>sustained</code> | 1605 |"));
}

TEST(ReportTable, WhereNvmlIsMissingTheTableSaysWhy) {
  RunResult result = samples::in_two_regimes();
  result.problems[0].classes[0].conditions = Conditions{0, "", 0, {}, "not available: libnvidia-ml.so.1 was not found"};
  EXPECT_THAT(report_table({result}, false), HasSubstr("not available: libnvidia-ml.so.1 was not found"));
}

TEST(ReportTable, ColorMarksFasterGreenAndSlowerRedAndChangesNoText) {
  std::string colored = report_table({samples::measured()}, true);
  EXPECT_NE(colored.find("\x1b[32m1.136x [1.134, 1.139]\x1b[0m"), std::string::npos);
  EXPECT_NE(colored.find("\x1b[31m0.481x [0.480, 0.482]\x1b[0m"), std::string::npos);
  for (std::size_t at = colored.find('\x1b'); at != std::string::npos; at = colored.find('\x1b'))
    colored.erase(at, colored.find('m', at) - at + 1);
  EXPECT_EQ(colored, report_table({samples::measured()}, false));
}

TEST(ReportTable, HostileTextCannotDriveTheTerminal) {
  const std::string table = report_table({samples::hostile()}, false);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_EQ(table.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(table.find('\xff'), std::string::npos);
  EXPECT_NE(table.find("\\x1b[31m "), std::string::npos);
}

TEST(ReportTable, LongReasonIsCutBetweenCharacters) {
  RunResult result = samples::offline();
  std::string reason = "x";
  for (int i = 0; i < 200; ++i) reason += "\xc3\xa9";
  result.problems[0].classes[0].variants[2].reason = reason;
  const std::string table = report_table({result}, false);
  EXPECT_NE(table.find("\xc3\xa9...\n"), std::string::npos) << table;
  EXPECT_EQ(table.find("\\xc3"), std::string::npos) << table;
}

TEST(ReportMarkdown, MeasuredRunIsATableWithDetailsFolded) {
  EXPECT_EQ(report_markdown({samples::measured()}), R"(## <code>seed-h200</code>

- <code>NVIDIA H200</code>, 132 SMs, driver <code>580.95.05</code>, CUDA <code>13.0</code>, cuDNN <code>9.19.0</code>, cuBLAS <code>13.1.0</code>, 700 W; <code>L2 cold, burst</code>
- tuner <code>0.1.0</code>, <code>2026-11-30T12&#58;00&#58;00Z</code>

| problem | class | median ms [95 %] | of limit | <code>vs cudnn</code> | <code>vs cublas_shift_add</code> | vs cudnn in TF32 | best of ours |
| --- | --- | --- | --- | --- | --- | --- | --- |
| <code>seed</code> | fp32 | 8.800 [8.790, 8.810] | 70 % | **1.136x [1.134, 1.139]** | **1.318x [1.307, 1.329]** | ~0.481x [0.479, 0.482] | <code>tiled T=128 OC_TILE=64 block=32x8</code> |
| <code>seed</code> | tf32 | 8.800 [8.790, 8.810] | 70 % | 0.481x [0.480, 0.482] | - | - | <code>tiled T=128 OC_TILE=64 block=32x8</code> |

<details><summary>Outcomes and ties</summary>

<code>seed</code> fp32, B64 128->128 K3 s1 L65536

- best of ours: <code>tiled-0000000002</code>, its largest errors 0.4 of the bound on an element and 0.5 of that on a row
- cannot be told from the best: <code>tiled-0000000003</code>
- <code>cudnn&#58; forward, flipped kernel</code>, 10.00 [9.980, 10.02] ms
- <code>cublas_shift_add&#58; strided-batched GEMM a tap</code>, 11.60 [11.50, 11.70] ms
- tried 6 of 12,345 valid configurations: 3 ok, 2 compile\_failed, 1 wrong\_result
- 2 compile\_failed: <code>ptxas&#58; out of registers</code>
- 1 wrong\_result: <code>element bound exceeded 30 times</code>

<code>seed</code> tf32, B64 128->128 K3 s1 L65536

- best of ours: <code>tiled-0000000002</code>, its largest errors 0.4 of the bound on an element and 0.5 of that on a row
- nothing of ours is faster than <code>cudnn&#58; backward-data</code>
- <code>cudnn&#58; backward-data</code>, 4.230 [4.220, 4.240] ms
- <code>cublas_shift_add</code>: <code>wrong_result&#58; row 0, 3 exceeds the bound</code>
- tried 1 of 1 valid configuration: 1 ok

</details>

Ratios are the vendor's time over ours: above 1 we are faster. \~: of medians in one run, not of interleaved rounds.

of limit: the time that operations and bytes need at the device's theoretical peaks, as a part of our median.

vs cudnn in TF32: cuDNN's best route of class tf32, which is PyTorch's default for convolutions; PyTorch was not run.

Reproduce: <code>tuner --config configs&#47;h200.json</code>

)");
}

TEST(ReportMarkdown, HostileTextStaysTextAndKeepsTheTable) {
  const std::string markdown = report_markdown({samples::hostile()});
  for (const char* markup : {"<script", "</code>|", "`", "@user", "\x1b", "&&", "'&"})
    EXPECT_EQ(markdown.find(markup), std::string::npos) << markup;
  const std::size_t header = markdown.find("| problem");
  ASSERT_NE(header, std::string::npos);
  const auto bars = [&](std::size_t at) {
    return std::count(markdown.begin() + static_cast<std::ptrdiff_t>(at),
                      markdown.begin() + static_cast<std::ptrdiff_t>(markdown.find('\n', at)), '|');
  };
  std::size_t row = header;
  for (int i = 0; i < 4; ++i, row = markdown.find('\n', row) + 1) EXPECT_EQ(bars(row), bars(header)) << i;
}

TEST(ReportJunit, ACaseForEachProblemAndClassAndNoFailureByDefault) {
  const std::string xml = report_junit({samples::measured(), samples::offline()});
  EXPECT_EQ(
      parsed_by_python(xml,
                       "print([(s.get('name'), s.get('tests'), s.get('failures'), [(c.get('classname'), "
                       "c.get('name')) for c in s.iter('testcase')]) for s in root])"),
      "[('seed-h200', '2', '0', [('seed', 'fp32'), ('seed', 'tf32')]), ('seed-h200', '1', '0', [('seed', 'fp32')])]\n");
}

TEST(ReportJunit, OptionsMakeSlowerAndWrongFail) {
  const std::string print =
      "print([(c.get('name'), f.get('type'), f.get('message')) for c in root.iter('testcase') for f in "
      "c.iter('failure')])";
  JunitOptions options;
  options.fail_if_slower = true;
  EXPECT_EQ(parsed_by_python(report_junit({samples::measured()}, options), print),
            "[('tf32', 'slower', 'slower than cudnn: 0.481x [0.480, 0.482]')]\n");
  options = {};
  options.fail_if_wrong = true;
  EXPECT_EQ(parsed_by_python(report_junit({samples::measured()}, options), print),
            "[('fp32', 'wrong_result', '1 variant gave a wrong result')]\n");
}

TEST(ReportJunit, NothingValidFailsExceptForAnEmptyBatch) {
  RunResult result = samples::measured();
  result.problems[0].classes.pop_back();
  result.problems[0].classes[0].variants.clear();
  EXPECT_NE(report_junit({result}).find("<failure type=\"nothing_valid\""), std::string::npos);
  result.problems[0].problem.batch = 0;
  EXPECT_EQ(report_junit({result}).find("<failure"), std::string::npos);
}

TEST(ReportJunit, HostileTextIsWellFormedAndReadsBackAsPrintable) {
  const std::string xml = report_junit({samples::hostile()}, {true, true});
  EXPECT_EQ(parsed_by_python(xml, "sys.stdout.buffer.write(root[0].get('name').encode())"),
            printable(samples::kHostile));
}

TEST(Escape, PrintableKeepsUtf8AndShowsWhatIsNot) {
  EXPECT_EQ(printable("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");                // C1: a terminal's CSI
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut short
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xef\xbf\xbf"), "\\u{ffff}");  // XML forbids it
}

TEST(Escape, MarkdownCodeHoldsNoMarkup) {
  EXPECT_EQ(markdown_code("OC_TILE=16"), "<code>OC_TILE=16</code>");
  EXPECT_EQ(markdown_code("_a_ *b* www.x"), "<code>&#95;a&#95; &#42;b&#42; www&#46;x</code>");
}

}  // namespace
}  // namespace tuner
