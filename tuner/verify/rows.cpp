#include "tuner/verify/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

namespace check = ct1d::check;

constexpr double kLeastRelative = 4e-7;
constexpr double kClassFactor = 1.1;
constexpr double kPlainFactor = 2;
/// The plain sum's error is one draw: in another order a right sum may err more, the more so the fewer elements carry
/// the row's error (few outputs, or one large value among many). docs/MEASURING.md has the evidence.
constexpr double kFewElements = 5;

std::string place(const Problem& problem, std::size_t row, std::int64_t t) {
  const auto channels = static_cast<std::size_t>(problem.out_channels);
  const std::string where = fmt::format("b {}, oc {}", row / channels, row % channels);
  return t < 0 ? where : fmt::format("{}, t {}", where, t);
}

Failure wrong_element(const Problem& problem, Accuracy accuracy, std::size_t row, const check::RowVerdict& worst,
                      std::int64_t wrong) {
  const std::string where = place(problem, row, worst.t);
  const std::string count = fmt::format("{} of {} elements are wrong", wrong, problem.y_count());
  if (std::isnan(worst.got) && !std::isnan(worst.want))
    return {Outcome::wrong_result,
            fmt::format("y[{}] is nan (never written, or computed from nan), the reference {:.9g}; {}", where,
                        worst.want, count),
            {}};
  const double error = std::abs(worst.got - worst.want);
  return {Outcome::wrong_result,
          fmt::format("y[{}] is {:.9g}, the reference {:.9g}: off by {:.3g} where {} allows {:.3g}; {}", where,
                      worst.got, worst.want, error, to_string(accuracy),
                      std::isfinite(worst.worst) ? error / worst.worst : worst.bound, count),
          {}};
}

}  // namespace

void bound_rows(Accuracy accuracy, std::span<const check::RowSums> rows, Reference& reference) {
  double nans = 0, outside = 0;
  for (const check::RowSums& row : rows) {
    nans += row.nans;
    outside += row.outside;
  }
  reference.nans = static_cast<std::int64_t>(nans);
  reference.outside = static_cast<std::int64_t>(outside);
  reference.plain_error = 0;
  reference.row_bound.assign(rows.size(), 0);
  reference.row_norm.assign(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const check::RowSums& row = rows[i];
    const double norm = std::sqrt(row.y2), plain = std::sqrt(row.plain2);
    if (norm == 0) continue;
    const double carriers = row.expected2 * row.expected2 / row.expected4;
    const double any_order = (1 + kFewElements / std::sqrt(carriers)) * std::sqrt(row.expected2);
    double allowed = std::max({kPlainFactor * plain, kLeastRelative * norm, any_order});
    if (accuracy != Accuracy::fp32) allowed = std::max(allowed, kClassFactor * std::sqrt(row.rounded2));
    reference.row_norm[i] = norm;
    reference.row_bound[i] = allowed / norm;
    reference.plain_error = std::max(reference.plain_error, plain / norm);
  }
}

Expected<Errors> judge_rows(const Problem& problem, Accuracy accuracy, const Reference& reference,
                            std::span<const check::RowVerdict> rows) {
  Errors errors;
  std::size_t element_row = 0, norm_row = 0;
  std::int64_t wrong = 0, nans = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    wrong += rows[i].wrong;
    nans += rows[i].nans;
    if (rows[i].worst > errors.element) {
      errors.element = rows[i].worst;
      element_row = i;
    }
    // Where the reference is zero throughout there is nothing to be relative to: the elements' bounds decide alone.
    if (reference.row_norm[i] == 0) continue;
    const double ratio = std::sqrt(rows[i].error2) / (reference.row_norm[i] * reference.row_bound[i]);
    if (ratio > errors.row) {
      errors.row = ratio;
      norm_row = i;
    }
  }
  if (nans != reference.nans)
    return Failure{
        Outcome::wrong_result,
        fmt::format("the reference holds {} NaN where {} were computed: something wrote over it", nans, reference.nans),
        {}};
  if (errors.element > 1) return wrong_element(problem, accuracy, element_row, rows[element_row], wrong);
  if (errors.row > 1)
    return Failure{
        Outcome::wrong_result,
        fmt::format("row ({}): relative Frobenius error {:.3g} where {} allows {:.3g}", place(problem, norm_row, -1),
                    errors.row * reference.row_bound[norm_row], to_string(accuracy), reference.row_bound[norm_row]),
        {}};
  return errors;
}

}  // namespace tuner
