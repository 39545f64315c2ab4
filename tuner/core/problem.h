// One ConvTranspose1d problem: parameters, legality (PyTorch's rules), operation and byte counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/geometry.h"

namespace tuner {

/// x (batch, in_channels, length), w (in_channels, out_channels / groups, kernel_size), y (batch, out_channels,
/// length_out()).
struct Problem {
  std::int64_t batch = 1;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel_size = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = false;
  std::int64_t length = 0;

  bool operator==(const Problem&) const = default;

  /// (length - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1.
  std::int64_t length_out() const;
  std::int64_t x_count() const;
  std::int64_t w_count() const;
  std::int64_t y_count() const;

  /// Multiply-adds that exist (no inserted zero, no tap outside x), times two. Exact.
  double flop() const;
  /// Fewest bytes through device memory: what some output needs of x and w, and bias, read once, y written once, at
  /// `element_bytes` an element.
  double min_bytes(int element_bytes) const;
  /// Most products that any output element sums (an upper bound of it beyond a million phases).
  std::int64_t max_products() const;
  /// Contiguous tensors.
  ct1d::Geometry geometry() const;
};

/// Nothing if legal, else one line naming the rule and the numbers, as PyTorch decides legality; also refuses what
/// would overflow 64-bit byte offsets (at 8 bytes an element). Batch 0 is legal (an empty result).
std::optional<std::string> illegal(const Problem& problem);

/// "B64 128->128 K3 s1 L65536", defaults left out.
std::string summary(const Problem& problem);

}  // namespace tuner
