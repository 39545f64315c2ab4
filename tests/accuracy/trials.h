// The data that the classes' bounds are promised for, as input sets of a problem. docs/MEASURING.md lists them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tuner/verify/generator.cuh"
#include "tuner/verify/inputs.h"
#include "tuner/verify/verify.h"

namespace tuner::accuracy_test {

struct Trial {
  std::string name;
  Inputs inputs;
  bool exact = false;  // in class fp32 without any error
};

/// A problem that the promise is tried on. The names are what a failure is looked for by.
struct Shape {
  std::string name;
  Problem problem;
};

class TrialMaker {
 public:
  TrialMaker(const Problem& problem, Accuracy accuracy)
      : problem_(problem), accuracy_(accuracy), element_(element_of(accuracy)) {}

  /// Kinds that say something about a sum, however long.
  std::vector<Trial> of_sums() const {
    std::vector<Trial> trials;
    for (const Values values :
         {Values::normal, Values::positive, Values::large_mean, Values::spike, Values::wide_channels})
      trials.push_back({std::string(to_string(values)), drawn(values)});
    trials.push_back({"integers", integers(), true});
    return trials;
  }

  std::vector<Trial> all() const {
    std::vector<Trial> trials = of_sums();
    for (auto& more : {scales(), denormals(), ranges(), zeros(), non_finite()})
      trials.insert(trials.end(), more.begin(), more.end());
    return trials;
  }

 private:
  Inputs drawn(Values values) const { return make_inputs(problem_, element_, values, 7); }
  bool half() const { return element_ == Element::f16; }
  std::int64_t channel_of_x(std::size_t i) const {
    return static_cast<std::int64_t>(i) / problem_.length % problem_.in_channels;
  }
  std::int64_t time_of_x(std::size_t i) const { return static_cast<std::int64_t>(i) % problem_.length; }
  std::int64_t in_channel_of_w(std::size_t i) const {
    return static_cast<std::int64_t>(i) / problem_.kernel_size / (problem_.out_channels / problem_.groups);
  }

  /// x times x_scale(i), w times w_scale(i).
  template <class X, class W>
  static Inputs times(Inputs inputs, const X& x_scale, const W& w_scale) {
    for (std::size_t i = 0; i < inputs.x.size(); ++i) inputs.x[i] = static_cast<float>(inputs.x[i] * x_scale(i));
    for (std::size_t i = 0; i < inputs.w.size(); ++i) inputs.w[i] = static_cast<float>(inputs.w[i] * w_scale(i));
    return inputs;
  }
  /// Both scaled throughout, and the bias with their products.
  Trial scaled(std::string name, double x, double w, Values values = Values::normal) const {
    Inputs inputs = times(
        drawn(values), [x](std::size_t) { return x; }, [w](std::size_t) { return w; });
    const double bias = std::clamp(x * w, half() ? 1e-6 : 1e-37, half() ? 1e3 : 1e37);
    for (float& value : inputs.bias) value = static_cast<float>(value * bias);
    return {std::move(name), std::move(inputs)};
  }

  std::vector<Trial> scales() const {
    if (half())
      return {scaled("small_x", 0x1p-9, 1),
              scaled("subnormal_x", 0x1p-18, 0x1p10),
              scaled("subnormal_w", 0x1p10, 0x1p-18),
              scaled("large_x", 0x1p12, 0x1p-12),
              scaled("large_w", 0x1p-12, 0x1p12),
              scaled("results_underflow", 0x1p-14, 0x1p-14),
              scaled("some_results_overflow", 0x1p12, 4),
              scaled("results_overflow", 0x1p14, 0x1p14, Values::positive)};
    std::vector<Trial> trials{scaled("x_1e-30", 1e-30, 1), scaled("x_1e30", 1e30, 1), scaled("w_1e-30", 1, 1e-30),
                              scaled("w_1e30", 1, 1e30), scaled("x_1e30_w_1e-30", 1e30, 1e-30),
                              scaled("x_1e-30_w_1e30", 1e-30, 1e30), scaled("x_nearly_overflows", 0x1p124, 0x1p-100),
                              scaled("w_nearly_overflows", 0x1p-100, 0x1p124), scaled("products_1e-60", 1e-30, 1e-30),
                              // Of one sign: what sums with products of either sign give is not a number by IEEE.
                              scaled("products_1e60", 1e30, 1e30, Values::positive)};
    for (const int exponent : {-20, -9, -3, 3, 9, 18})  // a fixed scale serves some, never all
      trials.push_back(scaled("both_1e" + std::to_string(exponent), std::pow(10, exponent), std::pow(10, exponent)));
    return trials;
  }

  /// TF32 has no bits for subnormal operands, so that its class promises nothing there; fp16's are among scales().
  std::vector<Trial> denormals() const {
    if (half() || accuracy_ == Accuracy::tf32) return {};
    std::vector<Trial> trials{scaled("denormal_x", 0x1p-130, 0x1p118), scaled("denormal_w", 0x1p118, 0x1p-130),
                              scaled("denormal_x_and_results", 0x1p-130, 1),
                              scaled("denormal_products", 0x1p-70, 0x1p-70)};
    // A few units of the smallest denormal, which bfloat16 has not.
    if (accuracy_ == Accuracy::fp32) trials.push_back(scaled("x_of_few_bits", 0x1p-146, 0x1p126));
    return trials;
  }

  /// Large and small side by side: no one scale serves both. Without a bias, whose size would hide what is small.
  std::vector<Trial> ranges() const {
    const double small = half() ? 0x1p-10 : 1e-9;
    const int widest = half() ? 10 : 27;
    const auto same = [](std::size_t) { return 1.0; };
    const auto scale_at = [&](std::int64_t channel, std::int64_t channels) {
      return channels > 1 ? std::exp2(-static_cast<double>(channel * widest / (channels - 1))) : 1.0;
    };
    const auto by_time = [&](std::int64_t period) {
      return [=, this](std::size_t i) { return time_of_x(i) / period % 2 != 0 ? small : 1.0; };
    };
    const auto by_channel = [&](std::size_t i) { return scale_at(channel_of_x(i), problem_.in_channels); };
    const auto against_channel = [&](std::size_t i) {
      return (half() ? 0x1p-6 : 1) / scale_at(in_channel_of_w(i), problem_.in_channels);
    };
    const auto by_tap = [&](std::size_t i) {
      return scale_at(static_cast<std::int64_t>(i) % problem_.kernel_size, problem_.kernel_size);
    };
    Inputs normal = drawn(Values::normal);
    std::fill(normal.bias.begin(), normal.bias.end(), 0.0f);
    return {{"1_and_1e-9_by_turns", times(normal, by_time(1), same)},
            {"1_and_1e-9_by_forties", times(normal, by_time(40), same)},
            {"small_x_by_large_w", times(normal, by_channel, against_channel)},
            {"taps_of_scales_1_to_1e-8", times(normal, same, by_tap)}};
  }

  std::vector<Trial> zeros() const {
    const auto same = [](std::size_t) { return 1.0; };
    const std::int64_t length = problem_.length;
    // One value apart: a reference of zeros alone would prove nothing.
    const auto all_but = [](std::size_t kept) { return [kept](std::size_t i) { return i == kept ? 1.0 : 0.0; }; };
    // The middle half; of several batches the last one throughout.
    const auto middle = [&](std::size_t i) {
      const bool last = static_cast<std::int64_t>(i) / length / problem_.in_channels == problem_.batch - 1;
      const bool within = time_of_x(i) >= length / 4 && time_of_x(i) < length - length / 4;
      return within || (last && problem_.batch > 1) ? 0.0 : 1.0;
    };
    const Inputs normal = drawn(Values::normal);
    return {{"a_tile_of_zeros", times(normal, middle, same)},
            {"x_of_zeros", times(normal, all_but(static_cast<std::size_t>(length / 2)), same)},
            {"w_of_zeros", times(normal, same, all_but(0))}};
  }

  /// Infinities and NaN at both ends and in the middle, of x and of taps, among normal data and a few zeros that they
  /// meet.
  std::vector<Trial> non_finite() const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    Inputs plain = drawn(Values::normal);
    for (std::size_t i = 3; i < plain.x.size(); i += 17) plain.x[i] = 0;
    for (std::size_t i = 5; i < plain.w.size(); i += 11) plain.w[i] = 0;
    const auto with = [&](std::string name, const auto& change) {
      Trial trial{std::move(name), plain};
      change(trial.inputs.x, trial.inputs.w);
      return trial;
    };
    const auto x_at = [&](std::int64_t channel, std::int64_t t) {
      return static_cast<std::size_t>(channel % problem_.in_channels * problem_.length + t);
    };
    const std::int64_t length = problem_.length;
    return {with("inf_at_the_first_of_x", [&](auto& x, auto&) { x.front() = kInf; }),
            with("inf_at_the_last_of_x", [&](auto& x, auto&) { x.back() = -kInf; }),
            with("inf_at_the_end_of_a_row", [&](auto& x, auto&) { x[x_at(0, length - 1)] = kInf; }),
            with("inf_in_x", [&](auto& x, auto&) { x[x_at(0, length / 2)] = x[x_at(1, length / 2 + 13)] = kInf; }),
            with("opposite_infs_in_x",
                 [&](auto& x, auto&) {
                   x[x_at(0, length / 2)] = kInf;
                   x[x_at(1, length / 2)] = -kInf;
                   x[x_at(1, length / 3)] = -kInf;
                 }),
            with("nan_in_x", [&](auto& x, auto&) { x[x_at(0, length / 3)] = x[x_at(1, length / 3 + 13)] = kNan; }),
            with("inf_in_the_first_tap", [&](auto&, auto& w) { w.front() = kInf; }),
            with("inf_in_the_last_tap", [&](auto&, auto& w) { w.back() = -kInf; }),
            with("nan_in_w", [&](auto&, auto& w) { w[w.size() / 2] = kNan; }),
            with("inf_in_x_and_w", [&](auto& x, auto& w) {
              x[x_at(0, length / 4)] = kInf;
              w[w.size() / 2] = kInf;
            })};
  }

  /// Of at most 11 bits, and so few of them in w that no sum reaches 2^24, in whatever order.
  Inputs integers() const {
    const std::int64_t room = ((1 << 24) - 16) / std::max<std::int64_t>(problem_.max_products(), 1);
    const std::int64_t most_x = std::min<std::int64_t>(2047, room);
    const std::int64_t most_w = std::min<std::int64_t>(2047, room / most_x);
    Inputs inputs = drawn(Values::normal);
    ct1d::check::uint64 draw = 1;
    const auto fill = [&draw](std::vector<float>& values, std::int64_t most) {
      for (float& value : values)
        value = static_cast<float>(
            static_cast<std::int64_t>(ct1d::check::mix(++draw) % static_cast<ct1d::check::uint64>(2 * most + 1)) -
            most);
    };
    fill(inputs.x, most_x);
    fill(inputs.w, most_w);
    fill(inputs.bias, 8);
    return inputs;
  }

  Problem problem_;
  Accuracy accuracy_;
  Element element_;
};

/// Everything, or of long sums what says something about them.
inline std::vector<Trial> trials_of(const Problem& problem, Accuracy accuracy) {
  const TrialMaker maker(problem, accuracy);
  return problem.max_products() >= 1000 ? maker.of_sums() : maker.all();
}

/// From one product an output to 10,000, with and without edges, gaps and phases; small, for the CPU.
inline std::vector<Shape> small_shapes() {
  return {{"one_product", {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 150}},
          {"seed_like", {2, 40, 24, 3, 1, 0, 0, 1, 1, true, 131}},
          {"few_products", {1, 6, 6, 5, 1, 2, 0, 1, 6, true, 150}},
          {"few_channels", {1, 3, 4, 9, 1, 4, 0, 1, 1, false, 150}},
          {"long_sums", {1, 336, 12, 3, 1, 1, 0, 1, 1, true, 190}},
          {"upsample", {1, 12, 10, 4, 2, 1, 0, 1, 1, true, 75}},
          {"stride_wider_than_kernel", {1, 4, 6, 2, 3, 0, 2, 1, 1, false, 60}},
          {"grouped_and_dilated", {2, 6, 9, 3, 2, 1, 1, 3, 3, true, 50}},
          {"ten_thousand_products", {1, 1250, 3, 8, 1, 0, 0, 1, 1, true, 40}}};
}

/// The same kinds with many tiles, for a GPU.
inline std::vector<Shape> large_shapes() {
  return {{"one_product", {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 100001}},
          {"seed_like", {2, 128, 128, 3, 1, 0, 0, 1, 1, true, 5001}},
          {"odd_channels", {1, 127, 130, 3, 1, 1, 0, 1, 1, false, 3000}},
          {"upsample", {1, 96, 48, 16, 8, 4, 0, 1, 1, true, 700}},
          {"stride_wider_than_kernel", {2, 20, 33, 2, 5, 0, 3, 1, 1, false, 900}},
          {"grouped_and_dilated", {2, 48, 60, 3, 2, 1, 1, 3, 3, true, 800}},
          {"depthwise", {1, 130, 130, 5, 1, 2, 0, 1, 130, true, 1500}},
          {"ten_thousand_products", {1, 1250, 40, 8, 1, 0, 0, 1, 1, true, 600}}};
}

}  // namespace tuner::accuracy_test
