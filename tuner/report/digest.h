// What a reader asks first about one problem and class, drawn from its record: every report prints these.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/result.h"

namespace tuner {

/// Our best variant against a vendor. `interleaved` is false where the two were not timed in the same rounds: then the
/// interval holds for the worst corners of both medians' intervals.
struct VendorRatio {
  std::string baseline;
  Interval ratio;  // vendor's time / ours: above 1 we are faster
  bool interleaved = true;
};

struct OutcomeCount {
  Outcome outcome;
  std::size_t count = 0;
  std::vector<std::pair<std::string, std::size_t>> reasons;  // most frequent first
};

struct Digest {
  const ClassRecord* record = nullptr;
  const VariantRecord* ours = nullptr;                      // fastest right variant; nullptr if there is none
  const TimeRecord* time = nullptr;                         // of ours, in the regime that this is about
  const BaselineRecord* vendor = nullptr;                   // the route that is best, where `best` names one
  std::optional<double> share_of_limit;                     // lower bound / median, at most 1 for a true time
  std::vector<VendorRatio> ratios;                          // one for each baseline that ran
  std::optional<VendorRatio> default_tf32;                  // fp32 only: PyTorch's default runs cuDNN in TF32
  std::vector<std::pair<std::string, std::string>> absent;  // baselines without a time, and why
  std::vector<OutcomeCount> outcomes;                       // in the enumeration's order, none of count 0
  std::size_t compiled = 0;                                 // variants with a cubin
  std::size_t proven = 0;                                   // right on the CPU, without a GPU
};

/// Of the times in one of regimes_of(record); by default the first.
Digest digest(const ProblemRecord& problem, const ClassRecord& record, const std::string& regime = {});

/// Regimes that our best variant was timed in, the first one first; one empty name where there is no such variant.
std::vector<std::string> regimes_of(const ClassRecord& record);
/// A variant's or a baseline's times in a regime (empty: the first); nullptr if there are none.
const TimeRecord* time_in(const VariantRecord& record, const std::string& regime);
const TimeRecord* time_in(const BaselineRecord& record, const std::string& regime);

/// The problems' `record` of `accuracy`, or nullptr.
const ClassRecord* find_class(const ProblemRecord& problem, Accuracy accuracy);
/// The fastest variant that is right and was timed; `best` where it names one.
const VariantRecord* fastest(const ClassRecord& record);
/// numerator / denominator of two medians, with the widest interval their own allow.
Interval worst_case_ratio(const Interval& numerator, const Interval& denominator);

/// Where too few samples bound an interval.
inline constexpr const char* kUnbounded = "[?]";
/// The column against cuDNN's best route of class tf32.
inline constexpr const char* kDefaultTf32 = "vs cudnn in TF32";

/// "8.812", "2090": four digits, and whole numbers above them.
std::string four_digits(double value);
/// "8.812 [8.801, 8.823]", "1.736x [1.730, 1.742]".
std::string with_interval(const Interval& interval);
std::string as_factor(const Interval& ratio);
/// "1 variant", "2 variants", "12,345 variants".
std::string counted(std::uint64_t count, const std::string& noun, const std::string& plural = "s");

}  // namespace tuner
