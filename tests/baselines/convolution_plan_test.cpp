// cuDNN's two directions: parameters by literal numbers, and both computed on the CPU as cuDNN defines them.
#include "baselines/convolution_plan.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/baselines/small_problems.h"

namespace tuner {
namespace {

using testing::by_definition;
using testing::integers;
using testing::small_problems;

using Pair = std::array<std::int64_t, 2>;

/// The convolution between image and response that a plan describes: one of them is computed from the other.
class Simulation {
 public:
  Simulation(const Problem& p, const ConvolutionPlan& plan) : problem_(p), plan_(plan) {
    auto x = integers(p.x_count(), 1);
    const auto w = integers(p.w_count(), 2);
    expected = by_definition(without_bias(p), x, w, {});
    const bool last = plan.memory == Memory::channels_last;
    if (last) {
      x = transposed(x, p.batch, p.in_channels, p.length);
      expected = transposed(expected, p.batch, p.out_channels, p.length_out());
    }
    const std::vector<float> filter = plan.packed ? packed(w) : w;
    y.assign(static_cast<std::size_t>(p.y_count()), 0.0f);
    const auto& image = plan.image;
    const auto& response = plan.response;
    const std::int64_t groups = p.groups;
    EXPECT_EQ(response_extent(0), response.extents[2]);
    EXPECT_EQ(response_extent(1), response.extents[3]);
    const std::int64_t per_image = image.extents[1] / groups, per_response = response.extents[1] / groups;
    EXPECT_EQ(plan.filter.extents[0], response.extents[1]);
    EXPECT_EQ(plan.filter.extents[1], per_image);
    for (std::int64_t n = 0; n < image.extents[0]; ++n)
      for (std::int64_t k = 0; k < response.extents[1]; ++k)
        for (std::int64_t c = 0; c < per_image; ++c)
          for (std::int64_t h = 0; h < response.extents[2]; ++h)
            for (std::int64_t v = 0; v < response.extents[3]; ++v)
              for (std::int64_t r = 0; r < plan.filter.extents[2]; ++r)
                for (std::int64_t s = 0; s < plan.filter.extents[3]; ++s) {
                  const std::int64_t i = h * plan.stride[0] - plan.pre_padding[0] + r * plan.dilation[0];
                  const std::int64_t j = v * plan.stride[1] - plan.pre_padding[1] + s * plan.dilation[1];
                  if (i < 0 || j < 0 || i >= image.extents[2] || j >= image.extents[3]) continue;
                  const std::size_t at_image = at(image, n, k / per_response * per_image + c, i, j);
                  const std::size_t at_response = at(response, n, k, h, v);
                  const float tap = filter.at(at(plan.filter, k, c, r, s));
                  if (plan.backward_data)
                    y.at(at_image) += x.at(at_response) * tap;
                  else
                    y.at(at_response) += x.at(at_image) * tap;
                }
  }

  std::vector<float> y, expected;

 private:
  /// (batches, rows, columns) to (batches, columns, rows).
  static std::vector<float> transposed(const std::vector<float>& from, std::int64_t batches, std::int64_t rows,
                                       std::int64_t columns) {
    std::vector<float> to;
    for (std::int64_t b = 0; b < batches; ++b)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t r = 0; r < rows; ++r)
          to.push_back(from.at(static_cast<std::size_t>((b * rows + r) * columns + c)));
    return to;
  }
  static Problem without_bias(Problem p) {
    p.bias = false;
    return p;
  }
  static std::size_t at(const TensorShape& shape, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return static_cast<std::size_t>(shape.offset + a * shape.strides[0] + b * shape.strides[1] + c * shape.strides[2] +
                                    d * shape.strides[3]);
  }
  /// cuDNN's rule for the extent of a convolution's output.
  std::int64_t response_extent(std::size_t axis) const {
    const std::int64_t window = plan_.dilation[axis] * (plan_.filter.extents[axis + 2] - 1) + 1;
    return (plan_.image.extents[axis + 2] + plan_.pre_padding[axis] + plan_.post_padding[axis] - window) /
               plan_.stride[axis] +
           1;
  }
  std::vector<float> packed(const std::vector<float>& w) const {
    const auto& a = plan_.packing;
    std::vector<float> result;
    for (std::int64_t i = 0; i < a.extents[0]; ++i)
      for (std::int64_t j = 0; j < a.extents[1]; ++j)
        for (std::int64_t k = 0; k < a.extents[2]; ++k)
          for (std::int64_t l = 0; l < a.extents[3]; ++l)
            result.push_back(w.at(static_cast<std::size_t>(a.offset + i * a.strides[0] + j * a.strides[1] +
                                                           k * a.strides[2] + l * a.strides[3])));
    return result;
  }

  Problem problem_;
  ConvolutionPlan plan_;
};

Problem problem(std::int64_t taps, std::int64_t stride, std::int64_t padding, std::int64_t output_padding,
                std::int64_t dilation, std::int64_t length) {
  Problem p;
  p.in_channels = 4;
  p.out_channels = 6;
  p.kernel_size = taps;
  p.stride = stride;
  p.padding = padding;
  p.output_padding = output_padding;
  p.dilation = dilation;
  p.length = length;
  return p;
}

TEST(BackwardData, PutsTheAxisWhereItIsAskedFor) {
  const Problem p = problem(4, 3, 1, 0, 2, 10);
  const ConvolutionPlan wide = plan_backward_data(p, Axis::width);
  EXPECT_EQ(wide.image.extents, (std::array<std::int64_t, 4>{1, 6, 1, p.length_out()}));
  EXPECT_EQ(wide.filter.extents, (std::array<std::int64_t, 4>{4, 6, 1, 4}));
  EXPECT_EQ(wide.stride, (Pair{1, 3}));
  EXPECT_EQ(wide.dilation, (Pair{1, 2}));
  EXPECT_EQ(wide.pre_padding, (Pair{0, 1}));
  const ConvolutionPlan high = plan_backward_data(p, Axis::height);
  EXPECT_EQ(high.response.extents, (std::array<std::int64_t, 4>{1, 4, 10, 1}));
  EXPECT_EQ(high.stride, (Pair{3, 1}));
}

TEST(BackwardData, OutputPaddingIsInTheExtentUntilItReachesTheStride) {
  EXPECT_EQ(plan_backward_data(problem(3, 2, 1, 1, 1, 10), Axis::width).post_padding, (Pair{0, 1}));
  EXPECT_EQ(plan_backward_data(problem(4, 1, 2, 2, 3, 10), Axis::width).post_padding, (Pair{0, 0}));
}

TEST(FlippedForward, PadsByWhatTheTapsReachBeyondThePadding) {
  const auto plan = plan_flipped_forward(problem(3, 1, 0, 0, 2, 10), Axis::width);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pre_padding, (Pair{0, 4}));
  EXPECT_EQ(plan->post_padding, (Pair{0, 4}));
  EXPECT_EQ(plan->filter.extents, (std::array<std::int64_t, 4>{6, 4, 1, 3}));
  EXPECT_EQ(plan->packing.offset, 2);
  EXPECT_EQ(plan->packing.strides[3], -1);
}

TEST(FlippedForward, CropsWherePaddingPassesTheTapsAndAddsOutputPaddingAtTheEnd) {
  const auto cropped = plan_flipped_forward(problem(3, 1, 5, 0, 1, 40), Axis::width);
  ASSERT_TRUE(cropped);
  EXPECT_EQ(cropped->image.offset, 3);
  EXPECT_EQ(cropped->image.extents[3], 34);
  EXPECT_EQ(cropped->image.strides[1], 40);
  EXPECT_EQ(cropped->pre_padding, (Pair{0, 0}));
  const auto longer = plan_flipped_forward(problem(4, 1, 2, 2, 3, 50), Axis::height);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->pre_padding, (Pair{7, 0}));
  EXPECT_EQ(longer->post_padding, (Pair{9, 0}));
}

TEST(FlippedForward, RefusesStrides) {
  const auto plan = plan_flipped_forward(problem(3, 2, 0, 0, 1, 10), Axis::width);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.failure().reason, "forward with a flipped kernel needs stride 1, not 2");
}

TEST(ChannelsLast, PutsTheChannelsNextToEachOtherInEveryTensor) {
  const Problem p = problem(3, 1, 5, 0, 1, 40);
  const ConvolutionPlan backward = plan_backward_data(p, Axis::width, Memory::channels_last);
  EXPECT_EQ(backward.route, "backward-data, channels-last");
  EXPECT_EQ(backward.response.extents, (std::array<std::int64_t, 4>{1, 4, 1, 40}));
  EXPECT_EQ(backward.response.strides, (std::array<std::int64_t, 4>{160, 1, 160, 4}));
  EXPECT_EQ(backward.filter.strides, (std::array<std::int64_t, 4>{18, 1, 18, 6}));
  EXPECT_TRUE(backward.packed);
  const auto forward = plan_flipped_forward(p, Axis::width, Memory::channels_last);
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->image.offset, 3 * 4);
  EXPECT_EQ(forward->image.extents[3], 34);
  EXPECT_EQ(forward->image.strides, (std::array<std::int64_t, 4>{160, 1, 160, 4}));
  EXPECT_EQ(forward->filter.strides, (std::array<std::int64_t, 4>{12, 1, 12, 4}));
}

TEST(ConvolutionSimulation, BothDirectionsGiveTheDefinitionInBothLayouts) {
  int forward = 0;
  for (const Problem& p : small_problems(300, 11)) {
    for (const auto& [axis, memory] :
         {std::pair{Axis::width, Memory::channels_first}, std::pair{Axis::height, Memory::channels_first},
          std::pair{Axis::width, Memory::channels_last}, std::pair{Axis::height, Memory::channels_last}}) {
      SCOPED_TRACE(summary(p));
      const Simulation backward(p, plan_backward_data(p, axis, memory));
      EXPECT_EQ(backward.y, backward.expected);
      const auto plan = plan_flipped_forward(p, axis, memory);
      if (!plan) continue;
      const Simulation flipped(p, *plan);
      EXPECT_EQ(flipped.y, flipped.expected);
      ++forward;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(forward, 400);
}

}  // namespace
}  // namespace tuner
