#include "tuner/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tuner/report/digest.h"
#include "tuner/report/legend.h"

namespace tuner {
namespace {

constexpr std::size_t kShortlistShown = 5;
constexpr std::size_t kRefusalsShown = 3;
constexpr std::size_t kReasonLength = 200;

Cell ours(std::string text, Tone tone = Tone::plain) { return {std::move(text), tone, false}; }
Cell name_of(const ClassRecord& record) { return ours(std::string(to_string(record.accuracy))); }
std::string tunables_of(const VariantRecord& v) { return v.variant.family + ' ' + to_string(v.variant.tunables); }

/// A reason's beginning: some hold a compiler's whole complaint.
Cell reason(const std::string& text) {
  if (text.size() <= kReasonLength) return foreign(text);
  std::size_t end = kReasonLength;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
  return foreign(text.substr(0, end) + "...");
}

Tone tone_of(const Interval& ratio) { return ratio.low > 1 ? Tone::good : ratio.high < 1 ? Tone::bad : Tone::plain; }

Cell ratio_cell(const std::optional<VendorRatio>& ratio) {
  if (!ratio) return ours("-");
  return ours((ratio->interleaved ? "" : "~") + as_factor(ratio->ratio), tone_of(ratio->ratio));
}

template <class Visit>
void for_each_class(const RunResult& result, const Visit& visit) {
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes) visit(problem, record);
}

Line machine(const RunResult& result) {
  const Environment& e = result.environment;
  if (!result.measured) return {ours("target "), foreign(e.device.arch), ours(", profile of "), foreign(e.device.name)};
  Line line{foreign(e.device.name), ours(fmt::format(", {} SMs, driver ", e.device.sm_count)), foreign(e.driver)};
  for (const auto& [what, version] : {std::pair{"CUDA", e.cuda}, {"cuDNN", e.cudnn}, {"cuBLAS", e.cublas}})
    if (!version.empty()) line.insert(line.end(), {ours(fmt::format(", {} ", what)), foreign(version)});
  if (e.power_limit_w > 0) line.push_back(ours(fmt::format(", {:.0f} W", e.power_limit_w)));
  if (!e.mig.empty()) line.insert(line.end(), {ours(", MIG "), foreign(e.mig)});
  std::set<std::string> states;
  for_each_class(result, [&](const ProblemRecord&, const ClassRecord& record) {
    const VariantRecord* best = fastest(record);
    for (const std::string& regime : regimes_of(record))
      if (best) states.insert(fmt::format("L2 {}, {}", best->time->l2, regime));
  });
  for (const std::string& state : states) line.insert(line.end(), {ours("; "), foreign(state)});
  return line;
}

/// Baselines that some class has, in the file's order.
std::vector<std::string> baseline_columns(const RunResult& result) {
  std::vector<std::string> names;
  for_each_class(result, [&](const ProblemRecord&, const ClassRecord& record) {
    for (const BaselineRecord& baseline : record.baselines)
      if (std::find(names.begin(), names.end(), baseline.name) == names.end()) names.push_back(baseline.name);
  });
  return names;
}

std::string clock_of(const TimeRecord* time) {
  return time && time->clock_mhz.median > 0 ? fmt::format("{:.0f}", time->clock_mhz.median) : "-";
}

Grid measured_grid(const RunResult& result) {
  const std::vector<std::string> baselines = baseline_columns(result);
  bool with_default = false;
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    with_default = with_default || digest(problem, record).default_tf32;
  });
  Grid grid;
  bool several = false;
  for_each_class(result, [&](const ProblemRecord&, const ClassRecord& record) {
    several = several || regimes_of(record).size() > 1;
  });
  grid.header = {ours("problem"), ours("class")};
  if (several) grid.header.insert(grid.header.end(), {ours("regime"), ours("SM MHz")});
  grid.header.insert(grid.header.end(), {ours("median ms [95 %]"), ours("of limit")});
  for (const std::string& name : baselines) grid.header.push_back(foreign("vs " + name));
  if (with_default) grid.header.push_back(ours(kDefaultTf32));
  grid.header.push_back(ours("best of ours"));
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    for (const std::string& regime : regimes_of(record)) {
      const Digest d = digest(problem, record, regime);
      std::vector<Cell> row{foreign(problem.name), name_of(record)};
      if (several) row.insert(row.end(), {foreign(regime.empty() ? "-" : regime), ours(clock_of(d.time))});
      row.insert(row.end(), {ours(d.time ? with_interval(d.time->ms) : "-"),
                             ours(d.share_of_limit ? fmt::format("{:.0f} %", 100 * *d.share_of_limit) : "-")});
      for (const std::string& name : baselines) {
        const auto found = std::find_if(d.ratios.begin(), d.ratios.end(),
                                        [&](const VendorRatio& ratio) { return ratio.baseline == name; });
        row.push_back(ratio_cell(found == d.ratios.end() ? std::nullopt : std::optional(*found)));
      }
      if (with_default) row.push_back(ratio_cell(d.default_tf32));
      row.push_back(d.ours ? foreign(tunables_of(*d.ours)) : ours("nothing valid", Tone::bad));
      grid.rows.push_back(std::move(row));
    }
  });
  return grid;
}

/// Of several problems, per class in the first regime: the geometric mean and the worst of the fastest vendor route's
/// time over ours.
std::vector<Line> portfolio(const RunResult& result) {
  struct Sum {
    double logarithms = 0;
    std::size_t count = 0, faster = 0;
    double worst = std::numeric_limits<double>::infinity();
    std::string worst_name;
  };
  std::map<Accuracy, Sum> sums;
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    const Digest d = digest(problem, record);
    if (d.ratios.empty()) return;
    const auto least = std::min_element(d.ratios.begin(), d.ratios.end(),
                                        [](const auto& a, const auto& b) { return a.ratio.median < b.ratio.median; });
    const double ratio = least->ratio.median;
    Sum& sum = sums[record.accuracy];
    sum.logarithms += std::log(ratio);
    ++sum.count;
    sum.faster += ratio > 1 ? 1 : 0;
    if (ratio >= sum.worst) return;
    sum.worst = ratio;
    sum.worst_name = problem.name;
  });
  std::vector<Line> lines;
  for (const auto& [accuracy, sum] : sums) {
    if (sum.count < 2) continue;
    lines.push_back(
        {ours(fmt::format(
             "{}: {:.2f} times as fast as the best vendor route in geometric mean of {} problems, faster on "
             "{}; worst {:.2f} times, ",
             to_string(accuracy), std::exp(sum.logarithms / static_cast<double>(sum.count)), sum.count, sum.faster,
             sum.worst)),
         foreign(sum.worst_name)});
  }
  return lines;
}

Grid shortlist_grid(const RunResult& result) {
  Grid grid;
  grid.header = {ours("problem"), ours("class"),  ours("#"),         ours("lower bound ms"), ours("registers"),
                 ours("spills"),  ours("shared"), ours("occupancy"), ours("on the CPU"),     ours("variant")};
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    for (std::size_t i = 0; i < std::min(kShortlistShown, record.shortlist.size()); ++i) {
      const VariantRecord* v = find_variant(record, record.shortlist[i]);
      if (!v) continue;
      const bool proven = v->outcome == Outcome::ok;
      grid.rows.push_back(
          {foreign(problem.name), name_of(record), ours(std::to_string(i + 1)), ours(four_digits(v->lower_bound_ms)),
           ours(std::to_string(v->registers)), ours(std::to_string(v->spill_bytes)),
           ours(fmt::format("{:.1f} KB", v->shared_bytes / 1024.0)), ours(fmt::format("{:.0f} %", 100 * v->occupancy)),
           ours(proven ? "proven" : std::string(to_string(v->outcome)), proven ? Tone::good : Tone::bad),
           foreign(tunables_of(*v))});
    }
  });
  return grid;
}

void add_winners(std::vector<Line>& lines, const Digest& d) {
  if (d.ours) {
    lines.push_back({ours("best of ours: "), foreign(d.ours->id)});
    if (d.ours->errors)
      lines.back().push_back(
          ours(fmt::format(", its largest errors {:.4g} of the bound on an element and {:.4g} of that "
                           "on a row",
                           d.ours->errors->element, d.ours->errors->row)));
    if (d.ours->prepare_ms > 0)
      lines.back().push_back(ours(fmt::format(", and {} ms once per weights", four_digits(d.ours->prepare_ms))));
  }
  if (d.vendor) lines.push_back({ours("nothing of ours is faster than "), foreign(d.record->best)});
  if (!d.record->tie.empty()) {
    Line line{ours("cannot be told from the best: ")};
    for (std::size_t i = 0; i < d.record->tie.size(); ++i)
      line.insert(line.end(), {ours(i ? ", " : ""), foreign(d.record->tie[i])});
    lines.push_back(std::move(line));
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// How the run-off's times came about, and what weakens them.
void add_conditions(std::vector<Line>& lines, const Digest& d) {
  if (const auto& c = d.record->conditions; c && !c->not_available.empty()) {
    lines.push_back({ours("during the run-off: throttling, other processes: "), foreign(c->not_available)});
  } else if (c) {
    lines.push_back({ours("during the run-off: clocks held down by "),
                     c->throttling.empty() ? ours("nothing") : foreign(joined(c->throttling)),
                     ours(fmt::format(", {}, power limit {:.0f} W, MIG ",
                                      counted(static_cast<std::uint64_t>(c->other_processes), "other process", "es"),
                                      c->power_limit_w)),
                     foreign(c->mig)});
  }
  if (d.record->conditions && d.ours)
    for (const TimeRecord& copy : d.record->conditions->copy)
      if (const TimeRecord* mine = time_in(*d.ours, copy.regime))
        lines.push_back({ours("a copy of x in the same rounds, "), foreign(copy.regime),
                         ours(fmt::format(": {} ms; best of ours takes {:.2f} times that", with_interval(copy.ms),
                                          mine->ms.median / copy.ms.median))});
  if (const auto& again = d.record->best_again)
    lines.push_back({ours("measured again on fresh inputs: "), foreign(again->id),
                     ours(fmt::format(", {} ms", with_interval(again->time.ms)))});
  for (const VariantRecord& variant : d.record->variants)
    if (&variant == d.ours && variant.time->energy)
      lines.push_back(
          {ours(fmt::format("energy of a launch under load: {} mJ", with_interval(variant.time->energy->mj)))});
  for (const std::string& warning : d.record->warnings)
    lines.push_back({ours("warning: ", Tone::bad), foreign(warning)});
}

/// Where the search's time went, against what no order of its work could go below.
void add_account(std::vector<Line>& lines, const Digest& d) {
  if (!d.record->search_account || d.record->search_account->bound() <= 0) return;
  const SearchAccount& a = *d.record->search_account;
  if (a.verify + a.measure <= 0) return;  // offline
  lines.push_back({ours(fmt::format(
      "search: {:.1f} s, {:.2f} times the {:.1f} s of max(compile CPU {:.1f} s / {}, GPU work); verify {:.1f}, measure "
      "{:.1f}, waiting for compiles {:.1f}, loading {:.1f}, pauses {:.1f}, store {:.1f}, rest {:.1f}",
      a.wall, a.wall / a.bound(), a.bound(), a.compile_cpu, a.jobs, a.verify, a.measure, a.compile_wait, a.load, a.idle,
      a.store, a.other))});
}

void add_baselines(std::vector<Line>& lines, const Digest& d) {
  for (const BaselineRecord& baseline : d.record->baselines) {
    if (!baseline.best_of_its_name || !baseline.time) continue;
    lines.push_back({foreign(baseline.name + ": " + baseline.route),
                     ours(fmt::format(", {} ms", with_interval(baseline.time->ms)))});
    if (!baseline.engine.empty()) lines.back().insert(lines.back().end(), {ours(", "), foreign(baseline.engine)});
  }
  for (const auto& [name, why] : d.absent) lines.push_back({foreign(name), ours(": "), reason(why)});
}

void add_outcomes(std::vector<Line>& lines, const Digest& d) {
  Line counts{ours(
      fmt::format("tried {} of {}", d.record->variants.size(), counted(d.record->space_size, "valid configuration")))};
  for (std::size_t i = 0; i < d.outcomes.size(); ++i)
    counts.push_back(
        ours(fmt::format("{}{} {}", i ? ", " : ": ", d.outcomes[i].count, to_string(d.outcomes[i].outcome))));
  lines.push_back(std::move(counts));
  for (const OutcomeCount& entry : d.outcomes)
    for (const auto& [why, count] : entry.reasons)
      lines.push_back({ours(fmt::format("  {} {}: ", count, to_string(entry.outcome))), reason(why)});
  std::vector<std::pair<std::string, std::uint64_t>> refusals(d.record->rejections.begin(), d.record->rejections.end());
  std::stable_sort(refusals.begin(), refusals.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const bool none = d.record->space_size == 0 && d.record->variants.empty() && !refusals.empty();
  if (none) lines.push_back({ours("no configuration is valid; all reasons:", Tone::bad)});
  const std::size_t shown = none ? refusals.size() : std::min(kRefusalsShown, refusals.size());
  for (std::size_t i = 0; i < shown; ++i)
    lines.push_back({ours(fmt::format("  {} refused unbuilt: ", counted(refusals[i].second, "combination"))),
                     reason(refusals[i].first)});
  if (refusals.size() > shown)
    lines.push_back({ours(fmt::format("  and {}", counted(refusals.size() - shown, "more reason")))});
}

std::vector<Line> details_of(const Digest& d) {
  std::vector<Line> lines;
  add_winners(lines, d);
  add_baselines(lines, d);
  add_conditions(lines, d);
  add_account(lines, d);
  add_outcomes(lines, d);
  return lines;
}

Line offline_verdict(const RunResult& result) {
  std::size_t compiled = 0, proven = 0;
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    const Digest d = digest(problem, record);
    compiled += d.compiled;
    proven += d.proven;
  });
  return {ours(fmt::format("No GPU: nothing was timed. Compiled {} for ", compiled)),
          foreign(result.environment.device.arch), ours(fmt::format(", {} proven on the CPU.", proven))};
}

}  // namespace

Section section_of(const RunResult& result) {
  Section section;
  section.heading = {foreign(result.name.empty() ? "result" : result.name)};
  section.facts.push_back(machine(result));
  Line origin{ours("tuner "), foreign(result.tool_version)};
  if (!result.started.empty()) origin.insert(origin.end(), {ours(", "), foreign(result.started)});
  section.facts.push_back(std::move(origin));
  if (result.measured && result.objective != "time")
    section.facts.push_back({ours("best is what takes the least "), foreign(result.objective)});
  for (const std::string& warning : result.environment.warnings)
    section.facts.push_back({ours("warning: ", Tone::bad), foreign(warning)});
  if (result.interrupted) section.verdicts.push_back({ours("Interrupted: what was found out until then.", Tone::bad)});
  if (!result.measured) section.verdicts.push_back(offline_verdict(result));
  section.grid = result.measured ? measured_grid(result) : shortlist_grid(result);
  for_each_class(result, [&](const ProblemRecord& problem, const ClassRecord& record) {
    Line title{foreign(problem.name),
               ours(fmt::format(" {}, {}", to_string(record.accuracy), summary(problem.problem)))};
    section.details.emplace_back(std::move(title), details_of(digest(problem, record)));
  });
  for (Line& line : portfolio(result)) section.closing.push_back(std::move(line));
  for (Line& line : legend_of(section, result)) section.closing.push_back(std::move(line));
  if (!result.measured)
    section.closing.push_back(
        {ours("Measured results are recorded in the repository: tuner report "
              "results/h200/seed/result.json")});
  if (!result.command.empty()) section.closing.push_back({ours("Reproduce: "), foreign(result.command)});
  return section;
}

}  // namespace tuner
