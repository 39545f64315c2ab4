// What the routes of all baselines share.
#pragma once

#include <memory>
#include <string>

#include "baselines/baseline.h"

namespace tuner {

/// A route that exists but must not run, because of an option or the class: its bind says why.
std::unique_ptr<Runnable> make_refused(std::string name, Failure failure);
/// For an empty batch: y has no element, nothing is launched.
BaselineRoute empty_batch_route(std::string_view baseline);
/// The arithmetic that a library cannot avoid unless it transforms (Winograd, FFT), on the pipe that the class uses.
Work vendor_work(const Problem& problem, Accuracy accuracy, bool transforms);

}  // namespace tuner
