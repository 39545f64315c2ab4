// The reference on the CPU: a (b, oc) row at a time, by phases, in blocks that stay in cache and vectorise. The order
// of additions of each element is that of reference.cuh's sum_outputs, so that the bits are the same.
#include "tuner/verify/reference.cuh"

#include <algorithm>
#include <cmath>

#include "tuner/verify/inputs.h"
#include "tuner/verify/parallel.h"
#include "tuner/verify/rows.h"

namespace tuner {
namespace {

namespace check = ct1d::check;
using ct1d::int64;

constexpr int64 kBlock = 256;

/// Sums of up to kBlock outputs of one phase.
struct Block {
  double y[kBlock];
  double s[kBlock];
  double squares[kBlock];
  double rounded[kBlock];
  float plain[kBlock];
};

/// Adds w * x[from + q] for q in [begin, end).
void add_tap(Block& sums, const float* x, float w, int64 begin, int64 end, bool tf32) {
  const double wide = w;
  for (int64 q = begin; q < end; ++q) {
    const double product = static_cast<double>(x[q]) * wide;
    sums.y[q] += product;
    sums.s[q] += std::abs(product);
    sums.squares[q] += product * product;
    sums.plain[q] = check::add(sums.plain[q], check::multiply(x[q], w));
  }
  if (!tf32) return;
  const double rounded = check::round_to_tf32(w);
  for (int64 q = begin; q < end; ++q) sums.rounded[q] += static_cast<double>(check::round_to_tf32(x[q])) * rounded;
}

class RowReference {
 public:
  RowReference(const Problem& problem, Accuracy accuracy, const Inputs& inputs)
      : g_(problem.geometry()), accuracy_(static_cast<check::Class>(accuracy)), inputs_(inputs) {}

  /// One row of y and its bounds.
  check::RowSums compute(int64 b, int64 oc, double* y, double* bound) const {
    check::RowSums row;
    for (int64 first = 0; first < std::min(g_.stride, g_.length_out); ++first) {
      const ct1d::Phase phase = ct1d::phase_of(g_, (first + g_.padding) % g_.stride);
      const int64 count = ct1d::ceil_div(g_.length_out - first, g_.stride);
      for (int64 q = 0; q < count; q += kBlock)
        compute_block(b, oc, first + q * g_.stride, std::min(kBlock, count - q), phase, y, bound, row);
    }
    return row;
  }

 private:
  /// Outputs t, t + stride, ... of one phase.
  void compute_block(int64 b, int64 oc, int64 t, int64 count, const ct1d::Phase& phase, double* y, double* bound,
                     check::RowSums& row) const {
    Block sums{};
    const bool tf32 = accuracy_ == check::Class::tf32;
    const int64 out_per_group = g_.out_per_group();
    const int64 first_in = oc / out_per_group * g_.in_per_group();
    const int64 base = phase.taps > 0 ? (t + g_.padding - phase.first_tap * g_.dilation) / g_.stride : 0;
    for (int64 ic = first_in; ic < first_in + g_.in_per_group(); ++ic) {
      const float* x = inputs_.x.data() + (b * g_.in_channels + ic) * g_.length;
      const float* w = inputs_.w.data() + (ic * out_per_group + oc % out_per_group) * g_.kernel_size;
      for (int64 j = 0; j < phase.taps; ++j) {
        const int64 from = base - j * phase.x_step;
        if (from + count <= 0) break;
        const int64 begin = std::max<int64>(0, -from), end = std::min(count, g_.length - from);
        add_tap(sums, x + from, w[phase.first_tap + j * phase.tap_step], begin, end, tf32);
      }
    }
    for (int64 q = 0; q < count; ++q) {
      const int64 at = t + q * g_.stride;
      check::Sums one{sums.y[q], sums.s[q], sums.squares[q], sums.rounded[q], sums.plain[q]};
      if (!inputs_.bias.empty()) check::add_bias(one, inputs_.bias[static_cast<std::size_t>(oc)]);
      y[at] = one.y;
      const int64 products = check::taps_of(g_, at).count * g_.in_per_group();
      bound[at] = check::element_bound(accuracy_, products, one.s);
      check::count_in_row(row, one, products, bound[at], accuracy_);
    }
  }

  ct1d::Geometry g_;
  check::Class accuracy_;
  const Inputs& inputs_;
};

}  // namespace

Reference make_reference(const Problem& problem, Accuracy accuracy, const Inputs& inputs) {
  Reference reference;
  reference.y.resize(static_cast<std::size_t>(problem.y_count()));
  reference.bound.resize(reference.y.size());
  const RowReference rows(problem, accuracy, inputs);
  const int64 length = problem.length_out();
  std::vector<check::RowSums> sums(static_cast<std::size_t>(problem.batch * problem.out_channels));
  const int threads = problem.flop() < 1e6 ? 1 : 0;
  parallel_for(static_cast<int64>(sums.size()), threads, [&](int64 row) {
    sums[static_cast<std::size_t>(row)] =
        rows.compute(row / problem.out_channels, row % problem.out_channels, reference.y.data() + row * length,
                     reference.bound.data() + row * length);
  });
  bound_rows(accuracy, sums, reference);
  if (reference.nans > 0 && all_finite(inputs)) throw UsageError(kUnexpectedNan);
  return reference;
}

Expected<Errors> compare(const Problem& problem, Accuracy accuracy, const Reference& reference,
                         std::span<const float> y) {
  const check::Format format = check::format_of(static_cast<check::Storage>(element_of(accuracy)));
  const int64 length = problem.length_out();
  std::vector<check::RowVerdict> rows(static_cast<std::size_t>(problem.batch * problem.out_channels));
  if (y.size() != reference.y.size())
    throw std::invalid_argument("compare: y has another number of elements than the reference");
  parallel_for(static_cast<int64>(rows.size()), y.size() < 100000 ? 1 : 0, [&](int64 row) {
    for (int64 t = 0; t < length; ++t) {
      const auto at = static_cast<std::size_t>(row * length + t);
      check::judge_into(rows[static_cast<std::size_t>(row)], t, reference.y[at], reference.bound[at], y[at], format);
    }
  });
  return judge_rows(problem, accuracy, reference, rows);
}

}  // namespace tuner
