// The values that coordinator and worker exchange, to and from JSON. Both ends are one program: no compatibility is
// kept.
#pragma once

#include "tuner/core/json.h"
#include "tuner/worker/worker.h"

namespace tuner::messages {

Json from(const Problem& value);
Json from(const DeviceFacts& value);
Json from(const Environment& value);
Json from(const Variant& value);
Json from(const CompiledUnit& value);
Json from(const MeasureOptions& value);
Json from(const Interval& value);
Json from(const TimeRecord& value);
Json from(const Conditions& value);
Json from(const Spent& value);
Json from(const RunOffTimes& value);
Json from(const Evaluation& value);
Json from(const BaselineRecord& value);
Json from(const Failure& value);
Json from(const std::optional<Errors>& value);

Problem problem(const Json& json);
DeviceFacts device_facts(const Json& json);
Environment environment(const Json& json);
Variant variant(const Json& json);
CompiledUnit unit(const Json& json);
MeasureOptions measure_options(const Json& json);
Interval interval(const Json& json);
TimeRecord time_record(const Json& json);
Conditions conditions(const Json& json);
Spent spent(const Json& json);
RunOffTimes run_off_times(const Json& json);
Evaluation evaluation(const Json& json);
BaselineRecord baseline_record(const Json& json);
Failure failure(const Json& json);
std::optional<Errors> errors(const Json& json);

}  // namespace tuner::messages
