// Kernels that break the promise, each in one way that a fast kernel is tempted by, as sums on the CPU.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "tests/verify/data.h"
#include "tuner/verify/inputs.h"

namespace tuner::accuracy_test {

/// y of a problem, in float before it is stored.
using Arithmetic = std::function<std::vector<float>(const Problem&, const Inputs&)>;

/// Computes by `arithmetic` on ordinary memory.
class Emulated : public Runnable {
 public:
  Emulated(const Problem& problem, Accuracy accuracy, Arithmetic arithmetic)
      : problem_(problem), element_(element_of(accuracy)), arithmetic_(std::move(arithmetic)) {}
  std::string name() const override { return "emulated"; }
  Work work() const override { return {}; }
  Expected<bool> bind(const Tensors& tensors) override {
    tensors_ = tensors;
    return true;
  }
  Expected<bool> launch() override {
    const Inputs inputs{read(tensors_.x, problem_.x_count()), read(tensors_.w, problem_.w_count()),
                        read(tensors_.bias, problem_.bias ? problem_.out_channels : 0)};
    std::vector<float> y = arithmetic_(problem_, inputs);
    const auto format = ct1d::check::format_of(static_cast<ct1d::check::Storage>(element_));
    for (float& value : y) value = static_cast<float>(ct1d::check::round_to(value, format));
    const auto bytes = stored(y, element_);
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensors_.y));
    return true;
  }

 private:
  std::vector<float> read(const void* tensor, std::int64_t count) const {
    const auto* const bytes = static_cast<const std::byte*>(tensor);
    return widened({bytes, bytes + count * bytes_of(element_)}, element_);
  }
  Problem problem_;
  Element element_;
  Arithmetic arithmetic_;
  Tensors tensors_;
};

/// Sums over channels, then taps: sum = add(sum, x, w). With `inserted_zeros` every tap takes part, and meets zeros
/// where it meets no x.
template <class Add>
std::vector<float> sums_by(const Problem& p, const Inputs& in, bool inserted_zeros, const Add& add) {
  const std::int64_t in_group = p.in_channels / p.groups, out_group = p.out_channels / p.groups;
  std::vector<float> y;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t oc = 0; oc < p.out_channels; ++oc)
      for (std::int64_t t = 0; t < p.length_out(); ++t) {
        float sum = 0;
        for (std::int64_t ic = oc / out_group * in_group; ic < (oc / out_group + 1) * in_group; ++ic)
          for (std::int64_t k = 0; k < p.kernel_size; ++k) {
            const std::int64_t at = t + p.padding - k * p.dilation;
            const bool exists = at >= 0 && at % p.stride == 0 && at / p.stride < p.length;
            if (!exists && !inserted_zeros) continue;
            const std::int64_t row = (b * p.in_channels + ic) * p.length;
            const float x = exists ? in.x[static_cast<std::size_t>(row + at / p.stride)] : 0;
            sum = add(sum, x, in.w[static_cast<std::size_t>((ic * out_group + oc % out_group) * p.kernel_size + k)]);
          }
        y.push_back(p.bias ? sum + in.bias[static_cast<std::size_t>(oc)] : sum);
      }
  return y;
}

inline float to_half(float value) {
  return static_cast<float>(ct1d::check::round_to(value, ct1d::check::format_of(ct1d::check::Storage::f16)));
}

/// x * x_scale and w * w_scale, each in two fp16 numbers; three of the four products.
inline std::vector<float> split_sums(const Problem& p, const Inputs& in, float x_scale, float w_scale) {
  return sums_by(p, in, false, [=](float sum, float x, float w) {
    const float x_high = to_half(x * x_scale), x_low = to_half(x * x_scale - x_high);
    const float w_high = to_half(w * w_scale), w_low = to_half(w * w_scale - w_high);
    return sum + ((x_high * w_low + x_low * w_high) + x_high * w_high) / x_scale / w_scale;
  });
}

inline std::vector<float> fixed_scale_split(const Problem& p, const Inputs& in) { return split_sums(p, in, 256, 256); }

/// The power of two that puts the tensor's largest magnitude at 2^13 to 2^14.
inline float scale_of(const std::vector<float>& tensor) {
  float largest = 0;
  for (const float value : tensor)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest > 0 ? std::exp2(static_cast<float>(std::min(13 - std::ilogb(largest), 127))) : 1;
}
inline std::vector<float> one_scale_split(const Problem& p, const Inputs& in) {
  return split_sums(p, in, scale_of(in.x), scale_of(in.w));
}

inline std::vector<float> tf32_products(const Problem& p, const Inputs& in) {
  return testing::plain_sum(p, in, [](float value) { return ct1d::check::round_to_tf32(value); });
}

inline std::vector<float> zeros_inserted(const Problem& p, const Inputs& in) {
  return sums_by(p, in, true, [](float sum, float x, float w) { return sum + x * w; });
}

inline std::vector<float> denormals_flushed(const Problem& p, const Inputs& in) {
  return testing::plain_sum(p, in, [](float value) { return std::abs(value) < 0x1p-126f ? 0.0f : value; });
}

/// As a matrix unit rounds its accumulator.
inline std::vector<float> rounded_toward_zero(const Problem& p, const Inputs& in) {
  return sums_by(p, in, false, [](float sum, float x, float w) {
    const double exact = static_cast<double>(sum) + static_cast<double>(x) * w;
    const auto nearest = static_cast<float>(exact);
    return std::abs(nearest) > std::abs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
  });
}

/// Winograd's F(2, 3) along t: stride 1, three taps, one group. An infinity reaches outputs that have no product with
/// it, and a small tap that is an output's only one is as wrong as the largest tap's rounding.
inline std::vector<float> winograd(const Problem& p, const Inputs& in) {
  std::vector<float> y(static_cast<std::size_t>(p.y_count()));
  const std::int64_t length = p.length_out();
  for (std::int64_t row = 0; row < p.batch * p.out_channels; ++row)
    for (std::int64_t t = 0; t < length; t += 2) {
      float sum[2] = {};
      for (std::int64_t ic = 0; ic < p.in_channels; ++ic) {
        const auto x = [&](std::int64_t i) {
          const std::int64_t at = t + p.padding - 2 + i;
          const std::int64_t from = (row / p.out_channels * p.in_channels + ic) * p.length;
          return at >= 0 && at < p.length ? in.x[static_cast<std::size_t>(from + at)] : 0.0f;
        };
        const float* w =
            in.w.data() + (ic * p.out_channels + row % p.out_channels) * 3;  // y[t] = sum x[t + p - k] w[k]
        const float m1 = (x(0) - x(2)) * w[2], m2 = (x(1) + x(2)) * ((w[2] + w[1] + w[0]) / 2);
        const float m3 = (x(2) - x(1)) * ((w[2] - w[1] + w[0]) / 2), m4 = (x(1) - x(3)) * w[0];
        sum[0] += m1 + m2 + m3;
        sum[1] += m2 - m3 - m4;
      }
      for (std::int64_t i = 0; i < 2 && t + i < length; ++i)
        y[static_cast<std::size_t>(row * length + t + i)] =
            sum[i] + (p.bias ? in.bias[static_cast<std::size_t>(row % p.out_channels)] : 0);
    }
  return y;
}

/// The plain sum, with the last channel of every batch off by `relative` of itself.
inline Arithmetic last_channel_off(float relative) {
  return [relative](const Problem& p, const Inputs& in) {
    std::vector<float> y = testing::plain_sum(p, in);
    const std::int64_t length = p.length_out();
    for (std::size_t i = 0; i < y.size(); ++i)
      if (static_cast<std::int64_t>(i) / length % p.out_channels == p.out_channels - 1) y[i] *= 1 + relative;
    return y;
  };
}

}  // namespace tuner::accuracy_test
