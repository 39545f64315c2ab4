// Gating one result against another, by the intervals of the times, or by compile facts where nothing was timed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/result.h"

namespace tuner {

struct CompareOptions {
  double fail_slower_percent = 3;  // a slowdown of more than this, certain to be one, is a regression
  bool allow_different = false;    // compare across GPUs, drivers, regimes, or with problems or classes missing
};

enum class Verdict { faster, same, slower, cannot_tell };
std::string_view to_string(Verdict verdict);

/// One problem and class in both results. Times are those of our best variant.
struct ClassComparison {
  std::string problem;
  Accuracy accuracy = Accuracy::fp32;
  std::string regime;                     // of the times; empty: the first regime, or nothing was timed
  std::string base_variant, now_variant;  // ids; empty where there is none
  std::optional<Interval> base_ms, now_ms;
  std::optional<Interval> slowdown;  // now / base; the interval holds for the worst corners of both
  Verdict verdict = Verdict::cannot_tell;
  std::vector<std::string> regressions;  // each in words, with numbers
  std::vector<std::string> notes;
};

struct Comparison {
  bool timed = false;        // false: compile facts and correctness were compared
  std::string_view untimed;  // which of the two was not: "either", "the base", "the new one"
  CompareOptions options;
  std::vector<std::string> notes;  // about the two as wholes
  std::vector<ClassComparison> classes;

  bool regressed() const;
};

/// The verdict on a slowdown interval: faster below 1, slower above 1, same when it holds 1 and stays within the
/// threshold on both sides, else cannot_tell.
Verdict judge(const Interval& slowdown, double threshold_percent);

/// Throws UsageError naming every difference (GPU, power limit, driver branch, L2 state, regime, a class or problem
/// that only `base` has) unless allowed, and when the two have nothing in common.
Comparison compare(const RunResult& base, const RunResult& now, const CompareOptions& options);

/// For a terminal: a line for each problem and class, then what regressed, then one line that sums it up.
std::string to_text(const Comparison& comparison, bool color);

}  // namespace tuner
