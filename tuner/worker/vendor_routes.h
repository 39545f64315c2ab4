// A baseline's routes on a worker's bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "baselines/baseline.h"
#include "tuner/core/json.h"
#include "tuner/worker/workbench.h"

namespace tuner {

/// What a request says of the baselines that it is about.
BaselineOptions baseline_options(const Json& request);

/// `kernels` is baseline_unit() compiled for the device; nothing: there is no GPU.
Expected<std::vector<BaselineRoute>> routes_of(Workbench& bench, const std::optional<CompiledUnit>& kernels,
                                               const std::string& name, const BaselineOptions& options);

/// Proves and times every route. Before each a sign of life names it and brings the records of the one before; the last
/// ones are the reply. The request's `skip`: routes that an earlier worker is done with; `first_seconds`: limit of the
/// first after them (limits.h).
Json answer_baseline(Workbench& bench, const std::optional<CompiledUnit>& kernels, const Json& request);

}  // namespace tuner
