#include "baselines/convolution_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuner {
namespace {

using std::int64_t;

/// (outer, inner, length) with `row` elements from one row to the next; channels-last always lies tight over `row`.
TensorShape tensor(int64_t outer, int64_t inner, int64_t length, int64_t row, Axis axis, Memory memory) {
  TensorShape shape;
  shape.extents =
      axis == Axis::width ? std::array{outer, inner, int64_t{1}, length} : std::array{outer, inner, length, int64_t{1}};
  const bool last = memory == Memory::channels_last;
  const int64_t step = last ? inner : 1;  // from one position to the next
  const int64_t whole = row * step;       // over all of them
  shape.strides = axis == Axis::width ? std::array{inner * row, last ? 1 : row, whole, step}
                                      : std::array{inner * row, last ? 1 : row, step, step};
  return shape;
}

std::array<int64_t, 2> along(Axis axis, int64_t value, int64_t other) {
  return axis == Axis::width ? std::array{other, value} : std::array{value, other};
}

const char* layout_name(Axis axis, Memory memory) {
  if (memory == Memory::channels_last) return "channels-last";
  return axis == Axis::width ? "H=1" : "W=1";
}

/// What the filter goes through: (a, b, c, d) with these extents, gathered from w with these strides.
void pack(ConvolutionPlan& plan, const std::array<int64_t, 4>& extents, const std::array<int64_t, 4>& strides,
          int64_t offset) {
  plan.packed = true;
  std::copy_n(extents.begin(), 4, plan.packing.extents);
  std::copy_n(strides.begin(), 4, plan.packing.strides);
  plan.packing.offset = offset;
}

}  // namespace

ConvolutionPlan plan_backward_data(const Problem& p, Axis axis, Memory memory) {
  const int64_t out = p.out_channels / p.groups, taps = p.kernel_size;
  ConvolutionPlan plan;
  plan.route = fmt::format("backward-data, {}", layout_name(axis, memory));
  plan.memory = memory;
  plan.response = tensor(p.batch, p.in_channels, p.length, p.length, axis, memory);
  plan.image = tensor(p.batch, p.out_channels, p.length_out(), p.length_out(), axis, memory);
  plan.filter = tensor(p.in_channels, out, taps, taps, axis, memory);
  // packed[in][k][out] = w[in][out][k]
  if (memory == Memory::channels_last) pack(plan, {p.in_channels, 1, taps, out}, {out * taps, 0, 1, taps}, 0);
  plan.stride = along(axis, p.stride, 1);
  plan.dilation = along(axis, p.dilation, 1);
  plan.pre_padding = along(axis, p.padding, 0);
  // The forward convolution of y must have x's length. With output_padding < stride its rounding down sees to that;
  // more output_padding takes as much off the padding at the end.
  plan.post_padding = along(axis, p.output_padding < p.stride ? p.padding : p.padding - p.output_padding, 0);
  return plan;
}

Expected<ConvolutionPlan> plan_flipped_forward(const Problem& p, Axis axis, Memory memory) {
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
  plan.route = fmt::format("forward, flipped kernel, {}", layout_name(axis, memory));
  plan.backward_data = false;
  plan.memory = memory;
  plan.image = tensor(p.batch, p.in_channels, length, p.length, axis, memory);
  plan.image.offset = memory == Memory::channels_last ? crop_before * p.in_channels : crop_before;
  plan.response = tensor(p.batch, p.out_channels, p.length_out(), p.length_out(), axis, memory);
  plan.filter = tensor(p.out_channels, in, taps, taps, axis, memory);
  plan.dilation = along(axis, p.dilation, 1);
  plan.pre_padding = along(axis, std::max<int64_t>(0, before), 0);
  plan.post_padding = along(axis, std::max<int64_t>(0, after), 0);
  // w[group][in][out][taps - 1 - k], as packed[group][out][in][k] or packed[group][out][k][in]
  if (memory == Memory::channels_first)
    pack(plan, {p.groups, out, in, taps}, {in * out * taps, taps, out * taps, -1}, taps - 1);
  else
    pack(plan, {p.groups, out, taps, in}, {in * out * taps, taps, -1, out * taps}, taps - 1);
  return plan;
}

}  // namespace tuner
