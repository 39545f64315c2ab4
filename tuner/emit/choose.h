// Which variants a header holds. Internal to the stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/core/result.h"
#include "tuner/family/family.h"

namespace tuner {

/// One row of the header's table: what was tuned, and the kernels for it.
struct Chosen {
  BuildContext context;
  std::string problem_name;
  Variant variant;
  Program program;
  std::optional<double> median_ms;  // nothing where unmeasured
  std::string note;                 // a faster vendor route, if there is one
};

/// One for each (GPU, problem, class): our fastest valid variant, or the first of the shortlist where nothing was
/// timed. Problems that differ by bias alone are one; among several results the fastest counts. Order: GPU, then as
/// found. Throws UsageError for a family that this program lacks or tunables that it does not have.
std::vector<Chosen> choose(const std::vector<RunResult>& results);

/// A configuration for any problem of a class: its kernels take all of the geometry at run time. From the families of
/// `chosen`, in order of use, then from the others. Nothing if no family serves every problem in that class.
std::optional<Chosen> choose_general(Accuracy accuracy, const std::vector<Chosen>& chosen);

}  // namespace tuner
