// What a record holds for: a measurement is of one machine code on one kind of GPU in one state, a proof is of machine
// code and inputs, a compile of sources and compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuner {

/// Raised when verifying or measuring changes such that older records no longer say the same.
inline constexpr std::int64_t kProtocol = 1;

struct Validity {
  /// Hash of what makes the code: sources, options, target, compiler. Of a vendor: library, options, list of routes.
  std::string unit;
  std::string cubin;  // SHA-256 of the machine code; empty where there is none, or not known yet
  std::string gpu;    // its name; without one, of the profile and its facts
  int sm_count = 0;
  double power_limit_w = 0;
  std::string driver_branch;
  std::string settings;    // of the measurement
  std::uint64_t seed = 0;  // of the inputs
  std::int64_t protocol = kProtocol;
};

/// How much of it a record depends on; each kind depends on what the ones before it do.
enum class Holds {
  compile,  // compile facts and refusals: unit, GPU
  proof,    // right or wrong: and machine code, inputs, protocol
  run,      // crashes, time-outs, refused launches: and number of SMs, driver branch
  time,     // a measurement: and power limit, settings
};

/// Why a record no longer holds, in a few words for people ("driver branch 570, now 580"); nothing if it does. `unit`
/// names what its unit is of. Another GPU comes first: it makes another unit, too. A machine code that is not known on
/// either side is not compared.
std::optional<std::string> stale(const Validity& record, const Validity& now, Holds holds,
                                 std::string_view unit = "unit");

}  // namespace tuner
