// Whose fault it is that the system's C++ compiler made no object: the source's, its own or its limit's, the machine's.
#pragma once

#include <string>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/jit/process.h"

namespace tuner {

/// `end` is one without success, `log` what was printed, `sources` the files that were to be compiled, by the names
/// that reports give them. The outcome is
///   compile_failed  an error is reported at a line of one of `sources`;
///   crashed         the compiler met a limit, ran out of memory or died of a fault of its own;
///   unproven        anything else, for which no source is to blame: a full disk, a linker that was killed, no process
///                   to be had, an order to stop.
/// The reason is the line of the log that says most, or how the process ended.
Failure blame(const std::string& compiler, const ProcessEnd& end, const CompileLimits& limits, const std::string& log,
              const std::vector<std::string>& sources);

/// A program without success did not come to its own answer: a signal, a limit or the system's refusal came first.
bool disturbed(const ProcessEnd& end);

}  // namespace tuner
