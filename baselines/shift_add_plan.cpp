#include "baselines/shift_add_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuner {
namespace {

using std::int64_t;

/// Batches [first, first + count) times groups, walked by as few strided-batched calls as possible: one axis is the
/// call's batch, the other is looped over. `make(batch_first, group_first, along_groups)` gives the step for the call's
/// first product; strides along the batch axis are set by the caller there.
template <class Make>
void for_calls(int64_t batches, int64_t groups, Make make) {
  const bool along_groups = groups > batches;
  const int64_t calls = along_groups ? batches : groups;
  const int64_t products = along_groups ? groups : batches;
  for (int64_t call = 0; call < calls; ++call) {
    for (int64_t first = 0; first < products; first += kMaxGemmBatch) {
      const int64_t count = std::min(kMaxGemmBatch, products - first);
      if (along_groups)
        make(call, first, true, count);
      else
        make(first, call, false, count);
    }
  }
}

Failure too_many_steps(std::size_t steps) {
  return {
      Outcome::rejected, fmt::format("more than {} library calls ({} so far) would be needed", kMaxSteps, steps), {}};
}

/// Taps that reach an output, the one that reaches most first: it starts the sum with beta 0.
std::vector<int64_t> ordered_taps(const Problem& problem) {
  std::vector<int64_t> taps;
  int64_t widest = -1, width = 0;
  for (int64_t k = 0; k < problem.kernel_size; ++k) {
    const TapRange range = tap_range(problem, k);
    if (range.end <= range.begin) continue;
    taps.push_back(k);
    if (range.end - range.begin > width) {
      width = range.end - range.begin;
      widest = static_cast<int64_t>(taps.size()) - 1;
    }
  }
  if (widest > 0) std::rotate(taps.begin(), taps.begin() + widest, taps.begin() + widest + 1);
  return taps;
}

ct1d::baseline::PermuteArguments tap_packing(const Problem& p, PackedOrder order) {
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups, taps = p.kernel_size;
  ct1d::baseline::PermuteArguments a{};
  const bool in_first = order == PackedOrder::in_out;
  const int64_t extents[4] = {taps, p.groups, in_first ? in : out, in_first ? out : in};
  const int64_t strides[4] = {1, in * out * taps, in_first ? out * taps : taps, in_first ? taps : out * taps};
  std::copy_n(extents, 4, a.extents);
  std::copy_n(strides, 4, a.strides);
  return a;
}

/// The products of one tap over batches [first_batch, first_batch + batches).
void append_tap(ShiftAddPlan& plan, const Problem& p, PackedOrder order, int64_t k, int64_t first_batch,
                int64_t batches, Destination target, int beta) {
  const TapRange range = tap_range(p, k);
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups, length_out = p.length_out();
  const int64_t c_first_batch = target == Destination::y ? first_batch : 0;
  for_calls(batches, p.groups, [&](int64_t batch, int64_t group, bool along_groups, int64_t count) {
    GemmStep gemm;
    gemm.target = target;
    gemm.m = range.end - range.begin;
    gemm.n = out;
    gemm.k = in;
    gemm.a = (first_batch + batch) * p.in_channels * p.length + group * in * p.length + range.x_begin;
    gemm.lda = p.length;
    gemm.stride_a = along_groups ? in * p.length : p.in_channels * p.length;
    gemm.b = (k * p.groups + group) * in * out;
    gemm.b_transposed = order == PackedOrder::in_out;
    gemm.ldb = gemm.b_transposed ? out : in;
    gemm.stride_b = along_groups ? in * out : 0;
    gemm.c = ((c_first_batch + batch) * p.out_channels + group * out) * length_out + range.begin;
    gemm.ldc = length_out;
    gemm.stride_c = (along_groups ? out : p.out_channels) * length_out;
    gemm.batch = count;
    gemm.beta = beta;
    plan.steps.push_back(gemm);
  });
}

}  // namespace

TapRange tap_range(const Problem& problem, int64_t k) {
  const int64_t shift = k * problem.dilation - problem.padding;  // tap k moves x by this much
  TapRange range;
  range.begin = std::max<int64_t>(0, shift);
  range.end = std::min(problem.length_out(), problem.length + shift);
  range.x_begin = range.begin - shift;
  return range;
}

Expected<ShiftAddPlan> plan_gemm_per_tap(const Problem& p, Accuracy accuracy, PackedOrder order,
                                         std::size_t workspace_limit) {
  if (p.stride != 1)
    return Failure{Outcome::rejected, fmt::format("one product a tap needs stride 1, not {}", p.stride), {}};
  const bool wide = element_of(accuracy) == Element::f32;
  const int64_t per_batch = p.out_channels * p.length_out();
  int64_t chunk = p.batch;
  if (!wide) {
    const auto fitting = static_cast<int64_t>(workspace_limit / sizeof(float)) / per_batch;
    if (fitting == 0)
      return Failure{Outcome::rejected,
                     fmt::format("one batch of fp32 sums takes {} bytes, more than the workspace limit of {}",
                                 per_batch * 4, workspace_limit),
                     {}};
    chunk = std::min(chunk, fitting);
  }
  const std::vector<int64_t> taps = ordered_taps(p);
  const Destination target = wide ? Destination::y : Destination::workspace;
  const bool bias_first = wide && p.bias;
  const TapRange first = taps.empty() ? TapRange{} : tap_range(p, taps.front());
  ShiftAddPlan plan;
  plan.route = fmt::format("strided-batched GEMM a tap, weights ({})",
                           order == PackedOrder::in_out ? "tap, in, out" : "tap, out, in");
  plan.packed = true;
  plan.packing = tap_packing(p, order);
  if (!wide) plan.workspace_bytes = static_cast<std::size_t>(chunk * per_batch) * sizeof(float);
  for (int64_t batch = 0; batch < p.batch; batch += chunk) {
    const int64_t count = std::min(chunk, p.batch - batch);
    FillStep fill{target, bias_first, wide ? batch * per_batch : 0, count * p.out_channels, first.begin, first.end};
    if (bias_first || taps.empty()) fill.left_end = fill.right_begin = p.length_out();
    if (fill.left_end > 0 || fill.right_begin < p.length_out()) plan.steps.push_back(fill);
    for (const int64_t k : taps) {
      append_tap(plan, p, order, k, batch, count, target, bias_first || k != taps.front() ? 1 : 0);
      if (plan.steps.size() > kMaxSteps) return too_many_steps(plan.steps.size());
    }
    if (!wide) plan.steps.push_back(GatherStep{batch, count, 0, p.out_channels, 1, 1, 0, 1, p.length_out()});
  }
  return plan;
}

Expected<ShiftAddPlan> plan_columns(const Problem& p, std::size_t tile_bytes) {
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  const int64_t per_channel = p.kernel_size * p.length;
  const int64_t fitting = static_cast<int64_t>(tile_bytes / sizeof(float)) / per_channel;
  if (fitting == 0)
    return Failure{
        Outcome::rejected,
        fmt::format("one channel's columns take {} bytes, more than the limit of {}", per_channel * 4, tile_bytes),
        {}};
  // A tile is whole batches, or whole groups of one batch, or a part of one group.
  int64_t batches = 1, channels = 0;
  if (fitting >= p.out_channels) {
    channels = p.out_channels;
    batches = std::min(p.batch, fitting / p.out_channels);
  } else {
    channels = fitting >= out ? fitting / out * out : fitting;
  }
  ShiftAddPlan plan;
  plan.workspace_bytes = static_cast<std::size_t>(batches * channels * per_channel) * sizeof(float);
  plan.route =
      fmt::format("GEMM to columns and gather, {} tiles of {} batches x {} channels",
                  ct1d::ceil_div(p.batch, batches) * (channels >= out ? ct1d::ceil_div(p.out_channels, channels)
                                                                      : p.groups * ct1d::ceil_div(out, channels)),
                  batches, channels);
  const auto append_tile = [&](int64_t batch, int64_t batch_count, int64_t channel, int64_t channel_count) {
    const int64_t first_group = channel / out;
    const int64_t groups = std::max<int64_t>(1, channel_count / out);
    for_calls(batch_count, groups, [&](int64_t b, int64_t group, bool along_groups, int64_t count) {
      GemmStep gemm;
      gemm.target = Destination::workspace;
      gemm.m = p.length;
      gemm.n = std::min(out, channel_count) * p.kernel_size;
      gemm.k = in;
      gemm.a = ((batch + b) * p.in_channels + (first_group + group) * in) * p.length;
      gemm.lda = p.length;
      gemm.stride_a = (along_groups ? in : p.in_channels) * p.length;
      gemm.b = (first_group + group) * in * out * p.kernel_size + channel % out * p.kernel_size;
      gemm.ldb = out * p.kernel_size;
      gemm.b_transposed = true;
      gemm.stride_b = along_groups ? in * out * p.kernel_size : 0;
      gemm.c = (b * channel_count + group * out) * per_channel;
      gemm.ldc = p.length;
      gemm.stride_c = (along_groups ? out : channel_count) * per_channel;
      gemm.batch = count;
      plan.steps.push_back(gemm);
    });
    plan.steps.push_back(GatherStep{batch, batch_count, channel, channel_count, p.kernel_size, p.stride, p.padding,
                                    p.dilation, p.length});
  };
  for (int64_t batch = 0; batch < p.batch; batch += batches) {
    for (int64_t channel = 0; channel < p.out_channels;) {
      const int64_t end = channels >= out ? p.out_channels : (channel / out + 1) * out;
      const int64_t count = std::min(channels, end - channel);
      append_tile(batch, std::min(batches, p.batch - batch), channel, count);
      channel += count;
      if (plan.steps.size() > kMaxSteps) return too_many_steps(plan.steps.size());
    }
  }
  return plan;
}

GemmShape gemm_shape(const GemmStep& s, Accuracy accuracy) {
  const int64_t element = bytes_of(element_of(accuracy));
  // y holds the class's elements; the workspace, and y in classes of fp32 elements, fp32.
  const int64_t sum = s.target == Destination::workspace ? 4 : element;
  const auto alignment = [](int64_t bytes) {
    return static_cast<std::uint32_t>(bytes == 0 ? 256 : std::min<int64_t>(256, bytes & -bytes));
  };
  GemmShape shape;
  shape.m = s.m, shape.n = s.n, shape.k = s.k;
  shape.lda = s.lda, shape.ldb = s.ldb, shape.ldc = s.ldc;
  shape.stride_a = s.stride_a, shape.stride_b = s.stride_b, shape.stride_c = s.stride_c;
  shape.batch = s.batch;
  shape.b_transposed = s.b_transposed;
  shape.align_a = alignment(s.a * element);
  shape.align_b = alignment(s.b * element);
  shape.align_c = alignment(s.c * sum);
  return shape;
}

std::set<GemmShape> gemm_shapes(const ShiftAddPlan& plan, Accuracy accuracy) {
  std::set<GemmShape> shapes;
  for (const ShiftAddStep& step : plan.steps)
    if (const auto* gemm = std::get_if<GemmStep>(&step)) shapes.insert(gemm_shape(*gemm, accuracy));
  return shapes;
}

double traffic_bytes(const ShiftAddPlan& plan, const Problem& p, Accuracy accuracy) {
  const double element = bytes_of(element_of(accuracy));
  const auto count = [](auto... extents) { return (1.0 * ... * static_cast<double>(extents)); };
  const auto bytes_to = [&](Destination target) { return target == Destination::y ? element : 4.0; };
  double bytes = 0;
  for (const ShiftAddStep& step : plan.steps) {
    if (const auto* fill = std::get_if<FillStep>(&step)) {
      bytes += count(fill->rows, fill->left_end + p.length_out() - fill->right_begin) * bytes_to(fill->target);
    } else if (const auto* gemm = std::get_if<GemmStep>(&step)) {
      const int64_t weights = gemm->stride_b == 0 ? 1 : gemm->batch;
      bytes += (count(gemm->batch, gemm->m, gemm->k) + count(weights, gemm->k, gemm->n)) * element;
      bytes += count(gemm->batch, gemm->m, gemm->n, gemm->beta == 0 ? 1 : 2) * bytes_to(gemm->target);
    } else {
      const auto& gather = std::get<GatherStep>(step);
      const double rows = count(gather.batches, gather.channels);
      bytes += rows * (count(gather.kernel_size, gather.length) * 4.0 + count(p.length_out()) * element);
    }
  }
  return bytes;
}

ct1d::baseline::GatherArguments gather_arguments(const Problem& p, const GatherStep& step) {
  ct1d::baseline::GatherArguments a{};
  a.batches = step.batches;
  a.channels = step.channels;
  a.first_channel = step.first_channel;
  a.y_row_stride = p.length_out();
  a.y_batch_stride = p.out_channels * p.length_out();
  a.kernel_size = step.kernel_size;
  a.stride = step.stride;
  a.padding = step.padding;
  a.dilation = step.dilation;
  a.length = step.length;
  a.length_out = p.length_out();
  ct1d::baseline::complete(a);
  return a;
}

}  // namespace tuner
