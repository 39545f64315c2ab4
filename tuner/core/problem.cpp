#include "tuner/core/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tuner {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kWidestElement = 8;  // the float64 reference holds every tensor
/// Above this many phases max_products() settles for its upper bound.
constexpr std::int64_t kMostPhases = 1 << 20;

Wide wide_length_out(const Problem& p) {
  return static_cast<Wide>(p.length - 1) * p.stride - static_cast<Wide>(2) * p.padding +
         static_cast<Wide>(p.dilation) * (p.kernel_size - 1) + p.output_padding + 1;
}

std::string decimal(Wide value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  for (Wide rest = value; rest != 0; rest /= 10) {
    const int digit = static_cast<int>(rest % 10);
    digits += static_cast<char>('0' + (negative ? -digit : digit));
  }
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

/// Whether a tensor of these non-negative extents has an element or byte offset beyond 64 bits.
bool overflows(std::int64_t a, std::int64_t b, std::int64_t c) {
  if (a == 0 || b == 0 || c == 0) return false;
  const Wide limit = kMost / kWidestElement;
  const Wide first = static_cast<Wide>(a) * b;
  return first > limit || first * c > limit;
}

/// Sum over j in [0, n) of floor((a j + b) / m), for a, b >= 0: the Euclid-like recursion, O(log m) steps.
Wide floor_sum(Wide n, Wide m, Wide a, Wide b) {
  Wide sum = 0;
  while (n > 0) {
    sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const Wide last = a * n + b;
    if (last < m) break;
    n = last / m;
    b = last % m;
    std::swap(m, a);
  }
  return sum;
}

/// Pairs (i, k), 0 <= i < length, 0 <= k < kernel_size, with i * stride + k * dilation <= limit.
Wide pairs_up_to(const Problem& p, Wide limit) {
  if (limit < 0) return 0;
  const Wide length = p.length;
  const Wide full_extent = limit - (length - 1) * p.stride;
  const Wide end = std::min<Wide>(p.kernel_size, limit / p.dilation + 1);                     // taps that reach any i
  const Wide full = full_extent < 0 ? 0 : std::min<Wide>(end, full_extent / p.dilation + 1);  // taps that reach all
  const Wide rest = end - full;
  return full * length + rest + floor_sum(rest, p.stride, p.dilation, limit - (end - 1) * p.dilation);
}

/// Taps that exist, summed over the outputs of one (batch, in channel, out channel).
Wide existing_taps(const Problem& p) {
  const Wide first = p.padding;
  return pairs_up_to(p, first + p.length_out() - 1) - pairs_up_to(p, first - 1);
}

/// Of `count` points at `step`, how many can land in the window [padding, padding + length_out) when each may be moved
/// right by at most `reach`.
std::int64_t reaching(const Problem& p, std::int64_t count, std::int64_t step, Wide reach) {
  const Wide low = static_cast<Wide>(p.padding) - reach;
  const Wide high = static_cast<Wide>(p.padding) + p.length_out() - 1;
  const Wide begin = low <= 0 ? 0 : (low + step - 1) / step;
  const Wide end = std::min<Wide>(count, high / step + 1);
  return static_cast<std::int64_t>(std::max<Wide>(0, end - begin));
}

/// Most taps of any output whose taps are first + j * tap_step. Such an output reads x[origin - j * x_step]. Over the
/// origins the number of taps is a trapezoid that rises at multiples of x_step only, so that its largest value in the
/// window of outputs is at the window's start or at the multiple of x_step nearest to the plateau.
std::int64_t most_taps_of_phase(const Problem& p, std::int64_t first, std::int64_t tap_step, std::int64_t x_step) {
  const Wide offset = static_cast<Wide>(first) * p.dilation;
  const Wide window_end = static_cast<Wide>(p.padding) + p.length_out() - 1;
  const Wide low = p.padding > offset ? (p.padding - offset + p.stride - 1) / p.stride : 0;
  if (window_end < offset || low > (window_end - offset) / p.stride) return 0;
  const Wide high = (window_end - offset) / p.stride;
  const Wide last_tap = ct1d::ceil_div(p.kernel_size - first, tap_step) - 1;
  const auto taps = [&](Wide origin) {
    const Wide upper = std::min<Wide>(last_tap, origin / x_step);
    const Wide lower = origin < p.length ? 0 : (origin - p.length + x_step) / x_step;
    return static_cast<std::int64_t>(std::max<Wide>(0, upper - lower + 1));
  };
  const Wide first_multiple = (low + x_step - 1) / x_step;
  const Wide last_multiple = high / x_step;
  if (first_multiple > last_multiple) return taps(low);
  const Wide plateau = std::min<Wide>(last_tap, (p.length - 1) / x_step);
  return std::max(taps(low), taps(std::clamp(plateau, first_multiple, last_multiple) * x_step));
}

}  // namespace

std::int64_t Problem::length_out() const { return static_cast<std::int64_t>(wide_length_out(*this)); }
std::int64_t Problem::x_count() const { return batch * in_channels * length; }
std::int64_t Problem::w_count() const { return in_channels * (out_channels / groups) * kernel_size; }
std::int64_t Problem::y_count() const { return batch * out_channels * length_out(); }

double Problem::flop() const {
  const Wide taps = existing_taps(*this);
  const Wide pairs = static_cast<Wide>(in_channels) * (out_channels / groups);  // below 2^60, as w_count() is
  const Wide per_tap = 2 * pairs * batch;
  Wide exact = 0;
  if (!__builtin_mul_overflow(taps, per_tap, &exact)) return static_cast<double>(exact);
  return static_cast<double>(taps) * static_cast<double>(per_tap);
}

double Problem::min_bytes(int element_bytes) const {
  const std::int64_t x_used = reaching(*this, length, stride, static_cast<Wide>(dilation) * (kernel_size - 1));
  const std::int64_t taps_used = reaching(*this, kernel_size, dilation, static_cast<Wide>(stride) * (length - 1));
  const double x_bytes = static_cast<double>(batch * in_channels) * static_cast<double>(x_used);
  const double w_bytes = static_cast<double>(in_channels * (out_channels / groups)) * static_cast<double>(taps_used);
  const double bias_bytes = bias ? static_cast<double>(out_channels) : 0;
  if (batch == 0) return 0;
  return element_bytes * (x_bytes + w_bytes + bias_bytes + static_cast<double>(y_count()));
}

std::int64_t Problem::max_products() const {
  const std::int64_t tap_step = stride / ct1d::gcd(stride, dilation);
  const std::int64_t x_step = dilation / ct1d::gcd(stride, dilation);
  const std::int64_t bound = ct1d::min_of(ct1d::ceil_div(kernel_size, tap_step), ct1d::ceil_div(length, x_step));
  const std::int64_t in_per_group = in_channels / groups;
  if (bound == 1) return existing_taps(*this) > 0 ? in_per_group : 0;
  if (tap_step > kMostPhases) return bound * in_per_group;
  std::int64_t most = 0;
  for (std::int64_t first = 0; first < tap_step && first < kernel_size && most < bound; ++first)
    most = std::max(most, most_taps_of_phase(*this, first, tap_step, x_step));
  return most * in_per_group;
}

ct1d::Geometry Problem::geometry() const {
  const std::int64_t out = length_out();
  return {batch, in_channels,          out_channels, kernel_size,        stride, padding, dilation, groups, length,
          out,   in_channels * length, length,       out_channels * out, out};
}

std::optional<std::string> illegal(const Problem& p) {
  struct Minimum {
    const char* name;
    std::int64_t value;
    std::int64_t least;
  };
  for (const Minimum& m : {Minimum{"batch", p.batch, 0}, Minimum{"in_channels", p.in_channels, 1},
                           Minimum{"out_channels", p.out_channels, 1}, Minimum{"kernel_size", p.kernel_size, 1},
                           Minimum{"stride", p.stride, 1}, Minimum{"padding", p.padding, 0},
                           Minimum{"output_padding", p.output_padding, 0}, Minimum{"dilation", p.dilation, 1},
                           Minimum{"groups", p.groups, 1}, Minimum{"length", p.length, 1}}) {
    if (m.value < m.least) return fmt::format("{} must be at least {}, but is {}", m.name, m.least, m.value);
  }
  for (const auto& [name, value] : {std::pair{"stride", p.stride}, std::pair{"dilation", p.dilation}}) {
    if (value > kMost / kWidestElement) return fmt::format("{} {} overflows 64-bit byte offsets", name, value);
  }
  if (p.in_channels % p.groups != 0)
    return fmt::format("in_channels must be divisible by groups, but {} is not by {}", p.in_channels, p.groups);
  if (p.out_channels % p.groups != 0)
    return fmt::format("out_channels must be divisible by groups, but {} is not by {}", p.out_channels, p.groups);
  if (p.output_padding >= std::max(p.stride, p.dilation))
    return fmt::format(
        "output_padding must be smaller than either stride or dilation, but is {} with stride {} and dilation {}",
        p.output_padding, p.stride, p.dilation);
  const Wide out = wide_length_out(p);
  if (out < 1)
    return fmt::format(
        "the output length must be at least 1, but (length - 1) * stride - 2 * padding + dilation * "
        "(kernel_size - 1) + output_padding + 1 = {}",
        decimal(out));
  // Kernels also address the uncropped output, which reaches padding further on either side.
  if (out + static_cast<Wide>(2) * p.padding > kMost / kWidestElement)
    return fmt::format("the uncropped output length {} overflows 64-bit byte offsets",
                       decimal(out + static_cast<Wide>(2) * p.padding));
  const auto too_large = [](const char* what, std::int64_t a, std::int64_t b, std::int64_t c) {
    return fmt::format("{} of {} x {} x {} elements overflows 64-bit byte offsets", what, a, b, c);
  };
  if (overflows(p.batch, p.in_channels, p.length)) return too_large("x", p.batch, p.in_channels, p.length);
  if (overflows(p.in_channels, p.out_channels / p.groups, p.kernel_size))
    return too_large("w", p.in_channels, p.out_channels / p.groups, p.kernel_size);
  if (overflows(p.batch, p.out_channels, static_cast<std::int64_t>(out)))
    return too_large("y", p.batch, p.out_channels, static_cast<std::int64_t>(out));
  return std::nullopt;
}

std::string summary(const Problem& p) {
  std::string text = fmt::format("B{} {}->{} K{} s{}", p.batch, p.in_channels, p.out_channels, p.kernel_size, p.stride);
  if (p.padding != 0) text += fmt::format(" p{}", p.padding);
  if (p.output_padding != 0) text += fmt::format(" op{}", p.output_padding);
  if (p.dilation != 1) text += fmt::format(" d{}", p.dilation);
  if (p.groups != 1) text += fmt::format(" g{}", p.groups);
  if (p.bias) text += " bias";
  return text + fmt::format(" L{}", p.length);
}

}  // namespace tuner
