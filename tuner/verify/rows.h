// What the sums and verdicts of rows mean: class bounds on each row's Frobenius error, and the final judgement.
#pragma once

#include <span>

#include "tuner/verify/reference.cuh"
#include "tuner/verify/verify.h"

namespace tuner {

/// Fills row_bound, row_norm, plain_error, nans and outside of `reference`. rows[b * out_channels + oc].
void bound_rows(Accuracy accuracy, std::span<const ct1d::check::RowSums> rows, Reference& reference);

/// Largest ratios over all rows, or wrong_result naming the worst element or row.
Expected<Errors> judge_rows(const Problem& problem, Accuracy accuracy, const Reference& reference,
                            std::span<const ct1d::check::RowVerdict> rows);

}  // namespace tuner
