#include <fmt/format.h>

#include "tuner/report/digest.h"
#include "tuner/report/escape.h"
#include "tuner/report/report.h"

namespace tuner {
namespace {

struct Fault {
  std::string type, message;
};

std::size_t count_of(const Digest& d, Outcome outcome) {
  for (const OutcomeCount& entry : d.outcomes)
    if (entry.outcome == outcome) return entry.count;
  return 0;
}

std::vector<Fault> faults_of(const RunResult& result, const ProblemRecord& problem, const Digest& d,
                             const JunitOptions& options) {
  std::vector<Fault> faults;
  const bool empty = problem.problem.batch == 0;  // an empty result needs no variant
  if (!empty && result.measured && !d.ours) faults.push_back({"nothing_valid", "no variant gave a right result"});
  if (!empty && !result.measured && d.compiled == 0) faults.push_back({"nothing_valid", "no variant compiled"});
  if (options.fail_if_wrong && count_of(d, Outcome::wrong_result) > 0)
    faults.push_back({"wrong_result", counted(count_of(d, Outcome::wrong_result), "variant") + " gave a wrong result"});
  if (options.fail_if_slower)
    for (const VendorRatio& ratio : d.ratios)
      if (ratio.ratio.high < 1)
        faults.push_back({"slower", fmt::format("slower than {}: {}", ratio.baseline, as_factor(ratio.ratio))});
  return faults;
}

std::string property(std::string_view name, std::string_view value) {
  return fmt::format("        <property name=\"{}\" value=\"{}\"/>\n", xml_text(name), xml_text(value));
}

std::string properties_of(const RunResult& result, const Digest& d) {
  std::string out;
  if (d.ours) {
    out += property("best_of_ours", d.ours->id);
    out += property("tunables", d.ours->variant.family + ' ' + to_string(d.ours->variant.tunables));
    out += property("median_ms", with_interval(d.ours->time->ms));
  }
  if (d.share_of_limit) out += property("share_of_limit", fmt::format("{:.3f}", *d.share_of_limit));
  for (const VendorRatio& ratio : d.ratios) out += property("ratio_to_" + ratio.baseline, as_factor(ratio.ratio));
  for (const auto& [name, why] : d.absent) out += property(name, why);
  for (const OutcomeCount& entry : d.outcomes) out += property(to_string(entry.outcome), std::to_string(entry.count));
  if (!result.measured) out += property("proven_on_the_cpu", std::to_string(d.proven));
  return out;
}

}  // namespace

std::string report_junit(const std::vector<RunResult>& results, const JunitOptions& options) {
  std::string suites;
  for (const RunResult& result : results) {
    std::string cases;
    std::size_t tests = 0, failures = 0;
    for (const ProblemRecord& problem : result.problems)
      for (const ClassRecord& record : problem.classes) {
        const Digest d = digest(problem, record);
        const std::vector<Fault> faults = faults_of(result, problem, d, options);
        ++tests;
        failures += !faults.empty();
        cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n      <properties>\n{}      </properties>\n",
                             xml_text(problem.name), to_string(record.accuracy), properties_of(result, d));
        if (!faults.empty()) {  // JUnit's readers expect one failure a case
          std::string message;
          for (const Fault& fault : faults) message += (message.empty() ? "" : "; ") + fault.message;
          cases += fmt::format("      <failure type=\"{}\" message=\"{}\"/>\n", faults.front().type, xml_text(message));
        }
        cases += "    </testcase>\n";
      }
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}  </testsuite>\n",
                          xml_text(result.name), tests, failures, cases);
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tuner\">\n" + suites + "</testsuites>\n";
}

}  // namespace tuner
