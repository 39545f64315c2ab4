// Timing Runnables on a CUDA device with events (docs/MEASURING.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/core/statistics.h"
#include "tuner/device/device.h"

namespace tuner {

class Probe;  // probe.h

enum class L2 { cold, warm };
enum class Regime { burst, sustained };
std::string_view to_string(L2 l2);
std::string_view to_string(Regime regime);
/// Of a name that was checked where it was read.
L2 l2_named(std::string_view name);
Regime regime_named(std::string_view name);

struct MeasureOptions {
  L2 l2 = L2::cold;
  Regime regime = Regime::burst;
  double half_width = 0.005;  // stop when the 95 % interval of the median is this narrow, relative
  int max_samples = 200;
  double max_seconds = 2.0;
  double cut_factor = 2.0;  // give up once certain to be this many times slower than `best_ms`
  std::optional<double> best_ms;
  double settle_seconds = 0.5;  // most that is idled before the first sample, so that the clock recovers
  bool rest = true;             // burst: pause between blocks; false: only where the clock fell
  double expected_mhz = 0;      // SM clock that the regime had before on this device; 0: unknown
  int energy_windows = 0;       // windows of sustained load over which the energy of a launch is taken; 0: not at all
};

/// Energy of a launch, millijoules, one sample a window.
struct Energy {
  Interval mj;
  std::vector<double> samples;
};

struct Timing {
  Interval ms;
  std::vector<double> samples;  // ms, in order
  L2 l2 = L2::cold;
  Regime regime = Regime::burst;
  bool cut = false;              // ended early by cut_factor
  Interval clock_mhz = {};       // SM clock over the samples: median, slowest, fastest; zeros where unknown
  int dropped = 0;               // samples at a fallen clock, for which others were taken
  std::uint64_t throttling = 0;  // what held clocks down meanwhile: throttling_in_words (device/nvml.h)
  std::optional<Energy> energy = {};
  std::optional<Failure> failure = {};  // of a run-off's entrant that is implausible; then nothing else stands here
  double idle_seconds = 0;              // spent on pauses
};

/// Fastest time that the device's theoretical limits allow for this work, ms. With cold L2 bytes count too.
double lower_bound_ms(const Work& work, const DeviceFacts& device, L2 l2);

/// The stage's own kernels, to be compiled like any other unit and loaded as a Probe.
CompileUnit measure_unit();

/// Times a bound Runnable. Outcome::implausible when the median is below lower_bound_ms, when the device still works
/// after the timed stream is done, or when L2 was set aside for lines that survive a flush. Without a probe clocks are
/// unknown and short launches may wait for the host.
Expected<Timing> measure(Device& device, Runnable& runnable, const MeasureOptions& options, Probe* probe = nullptr);

/// Two launches of a bound Runnable, before it is proved: its timing, cut, where it is certainly slower than
/// options.best_ms; nothing otherwise.
Expected<std::optional<Timing>> look(Device& device, Runnable& runnable, const MeasureOptions& options,
                                     Probe* probe = nullptr);

/// Times bound Runnables in interleaved rounds, at most `most_rounds`, until medians and ratios to the fastest are
/// known to options.half_width; samples[i][r] belongs to runnables[i], round r (ms). Under sustained load a round gives
/// each a block of its own, long enough that its own clock settles. Energy is taken afterwards, one after another. An
/// entrant that is implausible has a failure in place of times and keeps no other from being timed.
Expected<std::vector<Timing>> measure_interleaved(Device& device, std::span<Runnable* const> runnables,
                                                  const MeasureOptions& options, int most_rounds,
                                                  Probe* probe = nullptr);

/// Median time of the once-per-weights step, ms; 0 where the Runnable has none.
Expected<double> measure_prepare(Device& device, Runnable& runnable);

}  // namespace tuner
