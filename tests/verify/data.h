// Shorthand for the verifier's tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tuner/verify/reference.cuh"
#include "tuner/verify/verify.h"

namespace tuner::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Values of small problems in the order of bug_cases.json: in, out channels, K, S, P, OP, D, groups, L.
inline Problem problem_of(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t s, std::int64_t p,
                          std::int64_t op, std::int64_t d, std::int64_t groups, std::int64_t length,
                          std::int64_t batch = 1) {
  Problem problem;
  problem.batch = batch;
  problem.in_channels = in;
  problem.out_channels = out;
  problem.kernel_size = k;
  problem.stride = s;
  problem.padding = p;
  problem.output_padding = op;
  problem.dilation = d;
  problem.groups = groups;
  problem.length = length;
  return problem;
}

inline std::vector<double> reference_of(Problem problem, const Inputs& inputs, Accuracy accuracy = Accuracy::fp32) {
  problem.bias = !inputs.bias.empty();
  return make_reference(problem, accuracy, inputs).y;
}

/// The definition, scattered: every x times every tap, straight from the formula of the forward direction's adjoint.
/// Shares nothing with the verifier.
inline std::vector<double> scatter(const Problem& p, const Inputs& in) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t length = p.length_out(), icg = p.in_channels / p.groups, ocg = p.out_channels / p.groups;
  std::vector<double> y(at(p.y_count()), 0.0);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t ic = 0; ic < p.in_channels; ++ic)
      for (std::int64_t i = 0; i < p.length; ++i)
        for (std::int64_t oc = 0; oc < ocg; ++oc)
          for (std::int64_t k = 0; k < p.kernel_size; ++k) {
            const std::int64_t t = i * p.stride - p.padding + k * p.dilation;
            if (t < 0 || t >= length) continue;
            y[at((b * p.out_channels + ic / icg * ocg + oc) * length + t)] +=
                static_cast<double>(in.x[at((b * p.in_channels + ic) * p.length + i)]) *
                in.w[at((ic * ocg + oc) * p.kernel_size + k)];
          }
  if (!in.bias.empty())
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += in.bias[i / at(length) % at(p.out_channels)];
  return y;
}

/// The ordinary sequential fp32 sum of every element, optionally over inputs changed on the way in.
template <class Change>
std::vector<float> plain_sum(const Problem& p, const Inputs& in, const Change& change) {
  namespace check = ct1d::check;
  const ct1d::Geometry g = p.geometry();
  std::vector<float> x = in.x, w = in.w, y;
  for (std::vector<float>* tensor : {&x, &w})
    for (float& value : *tensor) value = change(value);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t oc = 0; oc < p.out_channels; ++oc)
      for (std::int64_t t = 0; t < p.length_out(); ++t) {
        check::Sums sums[1];
        check::sum_outputs<1, false>(g, x.data(), w.data(), p.bias ? in.bias.data() : nullptr, b, oc, 1,
                                     check::taps_of(g, t), sums);
        y.push_back(sums[0].plain);
      }
  return y;
}

inline std::vector<float> plain_sum(const Problem& p, const Inputs& in) {
  return plain_sum(p, in, [](float value) { return value; });
}

}  // namespace tuner::testing
