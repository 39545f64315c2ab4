#include "baselines/convolution_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuner {
namespace {

using std::int64_t;

/// (outer, inner, length) with `row` elements from one row to the next.
TensorShape tensor(int64_t outer, int64_t inner, int64_t length, int64_t row, Axis axis) {
  if (axis == Axis::width) return {{outer, inner, 1, length}, {inner * row, row, row, 1}, 0};
  return {{outer, inner, length, 1}, {inner * row, row, 1, 1}, 0};
}

std::array<int64_t, 2> along(Axis axis, int64_t value, int64_t other) {
  return axis == Axis::width ? std::array{other, value} : std::array{value, other};
}

const char* layout_name(Axis axis) { return axis == Axis::width ? "H=1" : "W=1"; }

}  // namespace

ConvolutionPlan plan_backward_data(const Problem& p, Axis axis) {
  ConvolutionPlan plan;
  plan.route = fmt::format("backward-data, {}", layout_name(axis));
  plan.response = tensor(p.batch, p.in_channels, p.length, p.length, axis);
  plan.image = tensor(p.batch, p.out_channels, p.length_out(), p.length_out(), axis);
  plan.filter = tensor(p.in_channels, p.out_channels / p.groups, p.kernel_size, p.kernel_size, axis);
  plan.stride = along(axis, p.stride, 1);
  plan.dilation = along(axis, p.dilation, 1);
  plan.pre_padding = along(axis, p.padding, 0);
  // The forward convolution of y must have x's length. With output_padding < stride its rounding down sees to that;
  // more output_padding takes as much off the padding at the end.
  plan.post_padding = along(axis, p.output_padding < p.stride ? p.padding : p.padding - p.output_padding, 0);
  return plan;
}

Expected<ConvolutionPlan> plan_flipped_forward(const Problem& p, Axis axis) {
  if (p.stride != 1)
    return Failure{
        Outcome::rejected, fmt::format("forward with a flipped kernel needs stride 1, not {}", p.stride), {}};
  const int64_t before = p.dilation * (p.kernel_size - 1) - p.padding;
  const int64_t after = before + p.output_padding;
  const int64_t crop_before = std::max<int64_t>(0, -before), crop_after = std::max<int64_t>(0, -after);
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups, taps = p.kernel_size;
  const int64_t length = p.length - crop_before - crop_after;
  if (length < 1)
    return Failure{Outcome::rejected, fmt::format("padding {} leaves no element of x to convolve", p.padding), {}};
  ConvolutionPlan plan;
  plan.route = fmt::format("forward, flipped kernel, {}", layout_name(axis));
  plan.backward_data = false;
  plan.image = tensor(p.batch, p.in_channels, length, p.length, axis);
  plan.image.offset = crop_before;
  plan.response = tensor(p.batch, p.out_channels, p.length_out(), p.length_out(), axis);
  plan.filter = tensor(p.out_channels, in, taps, taps, axis);
  plan.dilation = along(axis, p.dilation, 1);
  plan.pre_padding = along(axis, std::max<int64_t>(0, before), 0);
  plan.post_padding = along(axis, std::max<int64_t>(0, after), 0);
  plan.packed = true;
  // packed[group][out][in][k] = w[group][in][out][taps - 1 - k]
  const int64_t extents[4] = {p.groups, out, in, taps};
  const int64_t strides[4] = {in * out * taps, taps, out * taps, -1};
  std::copy_n(extents, 4, plan.packing.extents);
  std::copy_n(strides, 4, plan.packing.strides);
  plan.packing.offset = taps - 1;
  return plan;
}

}  // namespace tuner
