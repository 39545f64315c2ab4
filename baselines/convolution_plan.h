// How cuDNN computes a ConvTranspose1d as a 2D convolution: directions, extents, paddings. Pure arithmetic.
//
// cuDNN's convolution maps an image to a response. Backward-data maps a response back to an image and is the transposed
// convolution: response = x, image = y, the filter as PyTorch stores it. Forward with stride 1 gives the same result
// with the filter flipped along the taps and its channels exchanged: image = x, response = y.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "baselines/elements.cuh"
#include "tuner/core/failure.h"
#include "tuner/core/problem.h"

namespace tuner {

/// Where the one axis lies in cuDNN's two. PyTorch puts it last (height 1).
enum class Axis { width, height };

/// Order of a tensor's elements in memory: (batch, channel, position) as PyTorch stores them, or (batch, position,
/// channel), which cuDNN's tensor core engines prefer and x and y are converted to and from.
enum class Memory { channels_first, channels_last };

struct TensorShape {
  std::array<std::int64_t, 4> extents{};  // N C H W, or K C R S of the filter
  std::array<std::int64_t, 4> strides{};  // elements
  std::int64_t offset = 0;                // first element used
};

struct ConvolutionPlan {
  std::string route;
  bool backward_data = true;
  TensorShape image, filter, response;
  std::array<std::int64_t, 2> pre_padding{}, post_padding{}, stride{1, 1}, dilation{1, 1};
  Memory memory = Memory::channels_first;
  bool packed = false;                         // the filter goes through `packing` first, once per weights
  ct1d::baseline::PermuteArguments packing{};  // without pointers
};

ConvolutionPlan plan_backward_data(const Problem& problem, Axis axis, Memory memory = Memory::channels_first);
/// Stride 1 only. A padding beyond dilation * (kernel_size - 1) crops x instead of padding it.
Expected<ConvolutionPlan> plan_flipped_forward(const Problem& problem, Axis axis,
                                               Memory memory = Memory::channels_first);

}  // namespace tuner
