// Finalists and vendor routes against each other on a worker's bench, in interleaved rounds.
#pragma once

#include <optional>

#include "tuner/core/json.h"
#include "tuner/worker/workbench.h"

namespace tuner {

/// `kernels` as in vendor_routes.h.
Json answer_run_off(Workbench& bench, const std::optional<CompiledUnit>& kernels, const Json& request);

}  // namespace tuner
