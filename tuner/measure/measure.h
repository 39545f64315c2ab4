// Timing Runnables on a CUDA device with events (docs/MEASURING.md).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/core/statistics.h"
#include "tuner/device/device.h"

namespace tuner {

enum class L2 { cold, warm };
enum class Regime { burst, sustained };
std::string_view to_string(L2 l2);
std::string_view to_string(Regime regime);

struct MeasureOptions {
  L2 l2 = L2::cold;
  Regime regime = Regime::burst;
  double half_width = 0.005;  // stop when the 95 % interval of the median is this narrow, relative
  int max_samples = 200;
  double max_seconds = 2.0;
  double cut_factor = 2.0;  // give up once certain to be this many times slower than `best_ms`
  std::optional<double> best_ms;
  double settle_seconds = 0.5;  // most that is idled before the first sample, so that the clock recovers
};

struct Timing {
  Interval ms;
  std::vector<double> samples;  // ms, in order
  L2 l2 = L2::cold;
  Regime regime = Regime::burst;
  bool cut = false;  // ended early by cut_factor
};

/// Fastest time that the device's theoretical limits allow for this work, ms. With cold L2 bytes count too.
double lower_bound_ms(const Work& work, const DeviceFacts& device, L2 l2);

/// Times a bound Runnable. Outcome::implausible when the median is below lower_bound_ms.
Expected<Timing> measure(Device& device, Runnable& runnable, const MeasureOptions& options);

/// Times bound Runnables in interleaved rounds; samples[i][r] belongs to runnables[i], round r (ms).
Expected<std::vector<Timing>> measure_interleaved(Device& device, std::span<Runnable* const> runnables,
                                                  const MeasureOptions& options, int rounds);

/// Median time of the once-per-weights step, ms; 0 where the Runnable has none.
Expected<double> measure_prepare(Device& device, Runnable& runnable);

}  // namespace tuner
