// How cuBLAS computes a ConvTranspose1d: which matrix products, over which parts of x and y, in which order.
// Pure arithmetic: no CUDA, no cuBLAS. Offsets, extents and strides are in elements.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "baselines/elements.cuh"
#include "tuner/core/accuracy.h"
#include "tuner/core/failure.h"
#include "tuner/core/problem.h"

namespace tuner {

/// Outputs [begin, end) that tap k of a stride-1 problem reaches; output begin reads x[x_begin]. Empty: begin >= end.
struct TapRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t x_begin = 0;
  bool operator==(const TapRange&) const = default;
};
TapRange tap_range(const Problem& problem, std::int64_t k);

/// What a step writes: y itself, or the fp32 workspace.
enum class Destination { y, workspace };

/// Initial values of columns that no beta-0 product writes: bias, or 0.
struct FillStep {
  Destination target = Destination::y;
  bool bias = false;
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t left_end = 0;  // columns [0, left_end) and [right_begin, length_out)
  std::int64_t right_begin = 0;
};

/// `batch` column-major products C (m x n) = A (m x k) B (k x n) + beta C, A in x, B in the weights (packed, or w
/// itself for columns). Never reads C when beta is 0.
struct GemmStep {
  Destination target = Destination::y;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a = 0, lda = 0, stride_a = 0;
  std::int64_t b = 0, ldb = 0, stride_b = 0;
  bool b_transposed = false;
  std::int64_t c = 0, ldc = 0, stride_c = 0;
  std::int64_t batch = 1;
  int beta = 0;
};

/// Workspace into y: columns added up, fp32 rows converted.
struct GatherStep {
  std::int64_t first_batch = 0, batches = 0;
  std::int64_t first_channel = 0, channels = 0;
  std::int64_t kernel_size = 1, stride = 1, padding = 0, dilation = 1, length = 0;
};

using ShiftAddStep = std::variant<FillStep, GemmStep, GatherStep>;

struct ShiftAddPlan {
  std::string route;
  std::vector<ShiftAddStep> steps;
  std::size_t workspace_bytes = 0;
  bool packed = false;                         // weights go through `packing` first, once per weights
  ct1d::baseline::PermuteArguments packing{};  // without pointers
};

/// What tells one product of a plan from another to a library that chooses algorithms: everything but where the data
/// lies, of which only the alignment in bytes counts.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  std::int64_t batch = 1;
  bool b_transposed = false;
  std::uint32_t align_a = 256, align_b = 256, align_c = 256;
  auto operator<=>(const GemmShape&) const = default;
};
GemmShape gemm_shape(const GemmStep& step, Accuracy accuracy);
/// Those of all products, none twice.
std::set<GemmShape> gemm_shapes(const ShiftAddPlan& plan, Accuracy accuracy);

/// Bytes through the steps of a plan, each step's operands once: what is added to is read and written.
double traffic_bytes(const ShiftAddPlan& plan, const Problem& problem, Accuracy accuracy);

enum class PackedOrder { in_out, out_in };  // each tap's matrix: (in, out) or (out, in) channels, last contiguous

/// Stride 1: one product a tap and group or batch, straight into y (16-bit classes: into an fp32 workspace, then one
/// conversion, since rounding y after every tap would not meet their bounds).
Expected<ShiftAddPlan> plan_gemm_per_tap(const Problem& problem, Accuracy accuracy, PackedOrder order,
                                         std::size_t workspace_limit);
/// Any stride: all taps at once into columns (out_channels, kernel_size, length), tiled over batches and channels so
/// that a tile takes at most `tile_bytes`, each tile gathered into y.
Expected<ShiftAddPlan> plan_columns(const Problem& problem, std::size_t tile_bytes);

/// Most products a strided-batched call takes here: grid dimensions end at 65535.
inline constexpr std::int64_t kMaxGemmBatch = 65535;
/// Plans of more library calls than this are refused: they would measure launch overhead alone.
inline constexpr std::size_t kMaxSteps = 20000;

/// The gather step's kernel arguments, all but pointers, for y contiguous.
ct1d::baseline::GatherArguments gather_arguments(const Problem& problem, const GatherStep& step);

}  // namespace tuner
