// What of a stored run stands for work of this one: functions of values.
#pragma once

#include <string>
#include <string_view>

#include "tuner/commands/class_records.h"
#include "tuner/core/config.h"
#include "tuner/core/result.h"

namespace tuner {

/// What a baseline's records are of, beside the GPU: the libraries, the config's options, the helper kernels (key of
/// their unit) and the sources that list and walk the routes (baseline_sources()).
std::string baseline_key(const std::string& name, const Environment& environment, const CudnnOptions& options,
                         const std::string& kernels, std::string_view sources);

/// Whether what was measured of one that was cut is too slow for a fastest of `best` ms, too.
bool too_slow(const VariantRecord& cut, double best, double cut_factor);

/// Whether a search whose fastest so far takes `best` ms may tell a stored record as it is. One that was cut holds
/// while the best is as fast as it was then, or its times are still too slow.
bool holds_against(const ClassRecords::Searched& stored, double best, double cut_factor);

/// The class as a run-off left it, without the variants and routes that it did not touch.
ClassRecord finals_of(const ClassRecord& before, const ClassRecord& after);
/// `before` as it would be after the run-off that left `finals`.
ClassRecord with_finals(const ClassRecord& before, ClassRecord finals);

}  // namespace tuner
