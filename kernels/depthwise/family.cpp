// Host facts of the `depthwise` family.
#include <algorithm>

#include "kernels/depthwise/layout.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::BlockShape;
using ct1d::Geometry;
using ct1d::int64;
using ct1d::depthwise::Tunables;
namespace layout = ct1d::depthwise;

int64 length(const Tunables& t, const Geometry& g, int bytes) { return layout::piece_length(t, g.stride, bytes); }

/// Weights that a thread holds where it holds them.
int64 held_weights(const Tunables& t, const Geometry& g) {
  return t.weights == layout::in_registers ? layout::row_weights(t, g) : 0;
}

/// Registers that a thread needs: its sums, windows and weights, and addresses.
int64 registers_needed(const Tunables& t, const Geometry& g, int bytes) {
  const int64 window = layout::window_length(t, g, bytes) + t.x_vector - 1;
  return t.unroll * (t.OC_TILE * length(t, g, bytes) + window) + held_weights(t, g) + 40;
}

/// Elements of the longest load of x that a piece's place and the copies of the code allow.
int64 widest_load(const Tunables& t, const Geometry& g, int bytes) {
  int64 widest = 1;
  while (2 * widest * bytes <= 16 && length(t, g, bytes) / g.stride % (2 * widest) == 0 &&
         2 * widest * g.stride <= layout::kMaxCopies)
    widest *= 2;
  return widest;
}

std::string arguments(const Tunables& t, const Geometry& g, Accuracy accuracy) {
  std::string text = "<";
  text += template_arguments(t);
  const bool s = t.specialise != 0;
  for (const int64 fact : {s ? g.stride : 0, s ? g.kernel_size : 0, s ? g.dilation : 0, layout::compiled_channels(t, g),
                           s ? g.out_per_group() : 0})
    text += ", " + std::to_string(fact);
  return text + ", " + element_name(accuracy) + ">";
}

/// Whether the geometry is one that a specialised kernel can be compiled for.
bool compiles_in(const Geometry& g) {
  return g.stride <= layout::kMaxCopies && g.kernel_size <= layout::kMaxTaps && g.dilation <= layout::kMaxDilation;
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const Geometry& g, int bytes, const DeviceFacts& device) {
  using T = Tunables;
  return {
      constraint<T>({"block"}, "block.x * block.y must not exceed the device's threads a block",
                    [limit = device.max_threads_per_block](const T& t) { return t.block.threads() <= limit; }),
      constraint<T>({"block"}, "block.x must be 16 or a multiple of 32, in whole warps",
                    [](const T& t) { return (t.block.x == 16 || t.block.x % 32 == 0) && t.block.threads() % 32 == 0; }),
      constraint<T>({"chunks", "unroll"}, "chunks must be a multiple of unroll",
                    [](const T& t) { return t.chunks % t.unroll == 0; }),
      constraint<T>({"specialise"}, "only strides to 16, 64 taps and dilations to 4096 are compiled in",
                    [fits = compiles_in(g)](const T& t) { return t.specialise == 0 || fits; }),
      constraint<T>({"run", "unroll", "OC_TILE", "x_vector", "exchange", "streaming", "weights", "specialise"},
                    "kernels with all geometry at run time take one output at a time and read weights where used",
                    [](const T& t) {
                      return t.specialise != 0 ||
                             (t.run == 1 && t.unroll == 1 && t.OC_TILE == 1 && t.x_vector == 1 && t.exchange == 0 &&
                              t.streaming == 0 && t.weights == layout::where_used);
                    }),
      constraint<T>({"x_vector"}, "x_vector must be a power of two of at most 16 bytes",
                    [bytes](const T& t) { return (t.x_vector & (t.x_vector - 1)) == 0 && t.x_vector * bytes <= 16; }),
      constraint<T>(
          {"run", "x_vector", "specialise"}, "x_vector must divide the positions of x between pieces",
          [g, bytes](const T& t) { return t.specialise == 0 || length(t, g, bytes) / g.stride % t.x_vector == 0; }),
      constraint<T>({"x_vector", "specialise"}, "at most 16 phases and places of a window in loads are compiled",
                    [g](const T& t) { return t.specialise == 0 || g.stride * t.x_vector <= layout::kMaxCopies; }),
      constraint<T>({"run", "specialise"}, "a window of x must be at most 64 positions",
                    [g, bytes](const T& t) {
                      return t.specialise == 0 || layout::window_length(t, g, bytes) <= layout::kMaxWindow;
                    }),
      constraint<T>({"weights", "specialise"}, "weights stay in registers only of at most 8 input channels a group",
                    [g](const T& t) {
                      return t.specialise == 0 || t.weights != layout::in_registers ||
                             g.in_per_group() <= layout::kFewChannels;
                    }),
      constraint<T>({"block", "run", "OC_TILE", "weights", "exchange", "specialise"},
                    "weights and exchanged pieces must fit the device's shared memory a block",
                    [g, bytes, limit = device.shared_per_block_optin](const T& t) {
                      return t.specialise == 0 ||
                             layout::weight_bytes(t, g) + layout::exchange_bytes(t, g, bytes) <= limit;
                    }),
      constraint<T>(
          {"block", "min_blocks"}, "min_blocks blocks must not exceed the device's threads an SM",
          [limit = device.max_threads_per_sm](const T& t) { return t.block.threads() * t.min_blocks <= limit; }),
      constraint<T>({"block", "run", "unroll", "OC_TILE", "x_vector", "weights", "specialise", "min_blocks"},
                    "a thread's sums, windows and weights must fit the registers that min_blocks leaves",
                    [g, bytes, device](const T& t) {
                      const int64 granted =
                          std::min<int64>(device.max_registers_per_thread,
                                          device.registers_per_sm / (t.block.threads() * t.min_blocks) / 8 * 8);
                      return t.specialise == 0 || registers_needed(t, g, bytes) <= granted;
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const Geometry& g, int bytes) {
  using T = Tunables;
  return {
      constraint<T>({"OC_TILE"}, "OC_TILE must not be twice the group's output channels or more",
                    [g](const T& t) { return t.OC_TILE < 2 * g.out_per_group(); }),
      constraint<T>(
          {"run", "exchange", "specialise"}, "pieces of 16 bytes need no exchange",
          [g, bytes](const T& t) { return t.specialise == 0 || t.exchange == 0 || length(t, g, bytes) * bytes > 16; }),
      constraint<T>(
          {"block", "chunks", "specialise"},
          "kernels with all geometry at run time differ little by their blocks: 128x1 with 4 chunks alone",
          [](const T& t) { return t.specialise != 0 || (t.block.x == 128 && t.block.y == 1 && t.chunks == 4); }),
      constraint<T>({"run", "exchange", "specialise"}, "pieces above 32 bytes are exchanged",
                    [g, bytes](const T& t) {
                      return t.specialise == 0 || t.exchange != 0 || length(t, g, bytes) * bytes <= 32 || t.run == 1;
                    }),
      constraint<T>({"run", "x_vector", "specialise"},
                    "x_vector must be the largest that the pieces allow, or half of it",
                    [g, bytes](const T& t) { return t.specialise == 0 || 4 * t.x_vector > widest_load(t, g, bytes); }),
      constraint<T>({"weights", "specialise"}, "weights are read where used only of more than 8 input channels a group",
                    [g](const T& t) {
                      return t.specialise == 0 || t.weights != layout::where_used ||
                             g.in_per_group() > layout::kFewChannels;
                    }),
      constraint<T>({"block", "run", "chunks", "specialise"},
                    "a block's part of a row must not be twice the row or more (32 threads with one piece each may)",
                    [g, bytes](const T& t) {
                      const int64 part = int64{t.block.x} * t.chunks;
                      return (t.block.x <= 32 && t.chunks == 1) || t.specialise == 0 ||
                             part < 2 * layout::pieces(t, g, bytes);
                    }),
      constraint<T>(
          {"block", "run", "chunks", "specialise"},
          "several rows a block only where a row's pieces are fewer than 1024",
          [g, bytes](const T& t) { return t.block.y == 1 || t.specialise == 0 || layout::pieces(t, g, bytes) < 1024; }),
      constraint<T>({"block", "min_blocks"}, "an SM must be left 512 or 1024 threads",
                    [](const T& t) {
                      const int threads = t.block.threads() * t.min_blocks;
                      return threads == 512 || threads == 1024;
                    }),
      constraint<T>({"run", "unroll", "OC_TILE", "x_vector", "weights", "specialise"},
                    "a thread must leave room for others: at most 128 registers by its sums, windows and weights",
                    [g, bytes](const T& t) { return t.specialise == 0 || registers_needed(t, g, bytes) <= 128; }),
  };
}

/// Right for every problem and device: all geometry at run time.
constexpr Tunables kGeneral{{128, 1}, 1, 4, 1, 1, 1, layout::where_used, 0, 0, 0, 4};

/// The first that a problem and device allow is the default.
constexpr Tunables kPreferred[] = {
    // block, run, chunks, unroll, OC_TILE, x_vector, weights, exchange, streaming, specialise, min_blocks
    {{128, 1}, 1, 8, 2, 1, 4, 0, 0, 0, 1, 4}, {{128, 1}, 1, 8, 2, 1, 2, 0, 0, 0, 1, 4},
    {{32, 4}, 1, 4, 1, 1, 4, 0, 0, 0, 1, 4},  {{32, 4}, 1, 4, 1, 1, 2, 0, 0, 0, 1, 4},
    {{32, 4}, 1, 1, 1, 1, 2, 0, 0, 0, 1, 4},  {{128, 1}, 1, 2, 1, 4, 1, 0, 0, 0, 1, 4},
    {{32, 4}, 1, 1, 1, 1, 1, 0, 0, 0, 1, 4},  {{128, 1}, 1, 2, 1, 1, 1, 1, 0, 0, 1, 4},
    {{128, 1}, 1, 2, 1, 1, 1, 2, 0, 0, 1, 4}, {{32, 4}, 1, 1, 1, 1, 1, 1, 0, 0, 1, 4},
    {{32, 4}, 1, 1, 1, 1, 1, 2, 0, 0, 1, 4},
};

class DepthwiseFamily final : public Family {
 public:
  std::string_view name() const override { return "depthwise"; }
  std::string_view summary() const override {
    return "few output channels a group: pieces of rows from windows in registers, stored on sectors, bound by memory";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    if (context.problem.geometry().out_per_group() > layout::kFewChannels)
      return "depthwise is for groups of at most 8 output channels";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"block",
             {Block{64, 1}, Block{128, 1}, Block{256, 1}, Block{64, 2}, Block{64, 4}, Block{32, 2}, Block{32, 4},
              Block{32, 8}, Block{16, 8}, Block{16, 16}},
             "threads along a row, and rows"},
            {"run", {1, 2, 4}, "outputs of a piece, in vectors of 16 bytes (times the stride's part that they lack)"},
            {"chunks", {1, 2, 4, 8, 16}, "pieces a thread"},
            {"unroll", {1, 2, 4}, "pieces that a thread has in registers at once"},
            {"OC_TILE", {1, 2, 4, 8}, "output channels of the group a thread computes"},
            {"x_vector", {1, 2, 4, 8}, "elements of x a load"},
            {"weights", {0, 1, 2}, "0: in registers; 1: in shared memory; 2: read where they are used"},
            {"exchange", {0, 1}, "1: pieces pass through shared memory, so that a warp stores whole sectors at once"},
            {"streaming", {0, 1}, "1: stores are marked as read by nobody soon"},
            {"specialise", {1, 0}, "1: stride, taps and dilation compiled in; 0: all geometry at run time"},
            {"min_blocks", {2, 4, 8, 16}, "blocks an SM that the compiler leaves registers for"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    const int bytes = bytes_of(element_of(context.accuracy));
    std::vector<Constraint> all = requirements(g, bytes, context.device);
    for (Constraint& economy : economies(g, bytes)) all.push_back(std::move(economy));
    return all;
  }

  Configuration default_configuration(const BuildContext& context) const override {
    const std::vector<Constraint> all = constraints(context);
    for (const Tunables& t : kPreferred)
      if (satisfies(all, t)) return to_configuration(t);
    return to_configuration(kGeneral);
  }
  Configuration general_configuration(const BuildContext&) const override { return to_configuration(kGeneral); }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const int bytes = bytes_of(element_of(context.accuracy));
    const std::string kernel = "ct1d::depthwise::kernel" + arguments(t, g, context.accuracy);
    Program program;
    program.unit.source = "#include \"kernels/depthwise/kernel.cuh\"\n";
    program.unit.kernels = {kernel};
    program.run = {{kernel, layout::run_shape(t, g, bytes)}};
    program.work.fma_fp32 = context.problem.flop();
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_depthwise() {
  static const DepthwiseFamily family;
  return family;
}

}  // namespace tuner
