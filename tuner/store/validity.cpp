#include "tuner/store/validity.h"

#include <fmt/format.h>

namespace tuner {

std::optional<std::string> stale(const Validity& record, const Validity& now, Holds holds, std::string_view unit) {
  if (record.gpu != now.gpu) return fmt::format("{}, now {}", record.gpu, now.gpu);
  if (record.unit != now.unit) return fmt::format("{} changed", unit);
  if (holds == Holds::compile) return std::nullopt;

  if (!record.cubin.empty() && !now.cubin.empty() && record.cubin != now.cubin) return "other machine code";
  if (record.seed != now.seed) return fmt::format("seed {}, now {}", record.seed, now.seed);
  if (record.protocol != now.protocol) return fmt::format("protocol {}, now {}", record.protocol, now.protocol);
  if (holds == Holds::proof) return std::nullopt;

  if (record.sm_count != now.sm_count) return fmt::format("{} SMs, now {}", record.sm_count, now.sm_count);
  if (record.driver_branch != now.driver_branch)
    return fmt::format("driver branch {}, now {}", record.driver_branch, now.driver_branch);
  if (holds == Holds::run) return std::nullopt;

  if (record.power_limit_w != now.power_limit_w)
    return fmt::format("power limit {:g} W, now {:g} W", record.power_limit_w, now.power_limit_w);
  if (record.settings != now.settings) return "settings of the measurement changed";
  return std::nullopt;
}

}  // namespace tuner
