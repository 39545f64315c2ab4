#include <fmt/format.h>

#include "tuner/report/compare.h"
#include "tuner/report/digest.h"
#include "tuner/report/escape.h"
#include "tuner/report/grid.h"

namespace tuner {
namespace {

Tone tone_of(const ClassComparison& c) {
  return !c.regressions.empty() ? Tone::bad : c.verdict == Verdict::faster ? Tone::good : Tone::plain;
}

Grid timed_grid(const Comparison& comparison) {
  Grid grid;
  for (const char* title : {"problem", "class", "base ms [95 %]", "new ms [95 %]", "new / base", "verdict"})
    grid.header.push_back({title});
  for (const ClassComparison& c : comparison.classes)
    grid.rows.push_back({foreign(c.problem),
                         {std::string(to_string(c.accuracy)) + (c.regime.empty() ? "" : ", " + printable(c.regime))},
                         {c.base_ms ? with_interval(*c.base_ms) : "-"},
                         {c.now_ms ? with_interval(*c.now_ms) : "-"},
                         {c.slowdown ? as_factor(*c.slowdown) : "-"},
                         {std::string(to_string(c.verdict)), tone_of(c)}});
  return grid;
}

Grid facts_grid(const Comparison& comparison) {
  Grid grid;
  for (const char* title : {"problem", "class", "compile facts and correctness"}) grid.header.push_back({title});
  for (const ClassComparison& c : comparison.classes)
    grid.rows.push_back(
        {foreign(c.problem),
         {std::string(to_string(c.accuracy))},
         {c.verdict == Verdict::slower ? fmt::format("worse in {}", counted(c.regressions.size(), "point"))
          : c.verdict == Verdict::same ? "no worse"
                                       : "cannot tell: no variant in common",
          tone_of(c)}});
  return grid;
}

}  // namespace

std::string to_text(const Comparison& comparison, bool color) {
  std::string out = to_text(comparison.timed ? timed_grid(comparison) : facts_grid(comparison), color);
  if (!comparison.timed)
    out += fmt::format("Nothing was timed in {}: compile facts and correctness were compared.\n", comparison.untimed);
  for (const std::string& note : comparison.notes) out += "note: " + printable(note) + '\n';
  for (const ClassComparison& c : comparison.classes) {
    const std::string where = fmt::format("{} {}: ", printable(c.problem), to_string(c.accuracy));
    for (const std::string& note : c.notes) out += "note: " + where + printable(note) + '\n';
    for (const std::string& fault : c.regressions)
      out += toned("regression: ", Tone::bad, color) + where + printable(fault) + '\n';
  }
  std::size_t regressed = 0;
  for (const ClassComparison& c : comparison.classes) regressed += !c.regressions.empty();
  out += fmt::format("{} of {} regressed (threshold {:g} %)\n", regressed,
                     counted(comparison.classes.size(), "comparison"), comparison.options.fail_slower_percent);
  return out;
}

}  // namespace tuner
