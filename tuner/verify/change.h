// Another content of x, a few elements of it changed, and what is right then: whatever an earlier launch left in y is
// wrong for it, and so is what a kernel keeps between launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/core/problem.h"
#include "tuner/verify/reference.cuh"

namespace tuner {

using Wanted = std::vector<ct1d::check::Wanted>;  // of some outputs

struct Change {
  std::vector<std::int64_t> places;   // of x
  std::vector<float> values;          // there while changed
  std::vector<float> first;           // there otherwise
  std::vector<std::int64_t> outputs;  // of y that these places reach, ascending
  /// Of the content that x does not hold now:
  Wanted wanted;                  // of `outputs`
  std::vector<std::size_t> rows;  // that hold them
  std::vector<double> row_norms;  // 0 while changed: their elements alone are judged
  std::int64_t nans = 0;          // in the reference
};

/// An element of x with a product in an output of y drawn from `bits`. Nothing where no tap meets x there, or where it
/// is the first or last of x, which a fingerprint would look at.
std::optional<std::int64_t> drawn_place(const Problem& problem, ct1d::check::uint64 bits);
/// Outputs with a product of this element of x, ascending.
std::vector<std::int64_t> outputs_reached(const Problem& problem, std::int64_t place);
/// Whether some output that is right by `before` is clearly wrong by `after`.
bool shows(const Wanted& before, const Wanted& after, const ct1d::check::Format& format);

}  // namespace tuner
