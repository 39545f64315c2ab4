// Host facts of the `tiled` family.
#include <algorithm>
#include <limits>

#include "kernels/tiled/layout.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::BlockShape;
using ct1d::Geometry;
using ct1d::int64;
using ct1d::tiled::Tunables;

int patch_t(const Tunables& t) { return t.T / t.block.x; }
int patch_oc(const Tunables& t) { return t.OC_TILE / t.block.y; }

/// Registers that a thread needs: its sums, the windows or words of x, the weights of a tap, and addresses; fitted to
/// what ptxas reports for instances that do not spill.
int64 registers_needed(const Tunables& t, const Geometry& g) {
  const int sums = patch_t(t) * patch_oc(t);
  if (t.specialise == 0) return sums + patch_t(t) + patch_oc(t) + 48;
  const int64 window = t.run + (ct1d::tiled::chunk_taps(t, g) - 1) * ct1d::tiled::x_step(g);
  return sums + patch_t(t) / t.run * ct1d::tiled::round_up(window, 4) + patch_oc(t) + 40;
}

int64 registers_granted(const Tunables& t, const DeviceFacts& device) {
  const int64 share = device.registers_per_sm / (int64{t.block.threads()} * t.min_blocks) / 8 * 8;
  return std::min<int64>(device.max_registers_per_thread, share);
}

std::string arguments(const Tunables& t, const Geometry& g) {
  const int64 taps = t.specialise != 0 ? ct1d::tiled::chunk_taps(t, g) : 0;
  const int64 step = t.specialise != 0 ? ct1d::tiled::x_step(g) : 0;
  std::string text = "<";
  text += template_arguments(t);
  for (const int64 fact : {taps, step}) text += ", " + std::to_string(fact);
  return text + ", float>";
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const Geometry& g, const DeviceFacts& device) {
  using T = Tunables;
  return {
      constraint<T>({"block"}, "block.x * block.y must not exceed the device's threads a block",
                    [limit = device.max_threads_per_block](const T& t) { return t.block.threads() <= limit; }),
      constraint<T>(
          {"block", "min_blocks"}, "min_blocks blocks must not exceed the device's threads an SM",
          [limit = device.max_threads_per_sm](const T& t) { return t.block.threads() * t.min_blocks <= limit; }),
      constraint<T>({"block", "warp_t"}, "a warp of warp_t by 32 / warp_t threads must divide the block",
                    [](const T& t) { return t.block.x % t.warp_t == 0 && t.block.y % (32 / t.warp_t) == 0; }),
      constraint<T>({"T", "block", "run"}, "T must be a multiple of block.x * run",
                    [](const T& t) { return t.T % (t.block.x * t.run) == 0; }),
      constraint<T>({"block", "run"}, "runs above 4 need block.x to be a multiple of 8: else banks conflict",
                    [](const T& t) { return t.run <= 4 || t.block.x % 8 == 0; }),
      constraint<T>({"OC_TILE", "block"}, "OC_TILE must be a multiple of block.y",
                    [](const T& t) { return t.OC_TILE % t.block.y == 0; }),
      constraint<T>({"run", "specialise"}, "run must be 4 or more if specialised, 1 if not",
                    [](const T& t) { return t.specialise != 0 ? t.run >= 4 : t.run == 1; }),
      constraint<T>({"specialise"}, "the step between taps that is compiled in must fit an int",
                    [fits = ct1d::tiled::x_step(g) <= std::numeric_limits<int>::max()](const T& t) {
                      return t.specialise == 0 || fits;
                    }),
      constraint<T>({"IC_TILE", "unroll"}, "IC_TILE must be a multiple of unroll",
                    [](const T& t) { return t.IC_TILE % t.unroll == 0; }),
      constraint<T>({"unroll", "specialise"}, "only specialised kernels unroll channels",
                    [](const T& t) { return t.specialise != 0 || t.unroll == 1; }),
      constraint<T>({"T", "OC_TILE", "IC_TILE", "run", "stages", "specialise"},
                    "the stages must fit the device's shared memory a block",
                    [g, limit = device.shared_per_block_optin](const T& t) {
                      return ct1d::tiled::run_shape(t, g, 4).shared_bytes <= static_cast<unsigned>(limit);
                    }),
      constraint<T>({"T", "OC_TILE", "IC_TILE", "run", "stages", "specialise", "min_blocks"},
                    "min_blocks blocks must fit the device's shared memory an SM",
                    [g, device](const T& t) {
                      const int64 block = ct1d::tiled::run_shape(t, g, 4).shared_bytes;
                      return (block + device.shared_reserved_per_block) * t.min_blocks <= device.shared_per_sm;
                    }),
      constraint<T>({"T", "OC_TILE", "IC_TILE", "block", "run", "stages", "specialise", "min_blocks"},
                    "a thread's patch, window and weights must fit the registers that min_blocks leaves",
                    [g, device](const T& t) { return registers_needed(t, g) <= registers_granted(t, device); }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const Geometry& g) {
  using T = Tunables;
  return {
      constraint<T>({"T", "block"}, "a thread's patch must be at most 16 long in t",
                    [](const T& t) { return patch_t(t) <= 16; }),
      constraint<T>({"T", "OC_TILE", "block"},
                    "a thread's patch must have at most 128 outputs and at least 32 (16 with OC_TILE 32, 4 below)",
                    [](const T& t) {
                      const int patch = patch_t(t) * patch_oc(t);
                      return patch >= (t.OC_TILE < 32 ? 4 : t.OC_TILE < 64 ? 16 : 32) && patch <= 128;
                    }),
      constraint<T>({"IC_TILE", "unroll", "specialise"}, "specialised kernels unroll at least 2 channels if they can",
                    [](const T& t) { return t.specialise == 0 || t.unroll >= 2 || t.IC_TILE < 2; }),
      constraint<T>({"block", "warp_t"}, "a warp must be as square as the block allows, or half as much",
                    [](const T& t) { return t.warp_t <= 16 || t.block.y % 2 != 0; }),
      constraint<T>({"specialise", "packed"}, "kernels with all geometry at run time read weights as they are",
                    [](const T& t) { return t.specialise != 0 || t.packed == 0; }),
      constraint<T>({"block", "specialise", "min_blocks"},
                    "an SM must be left 8 to 16 warps (fewer in blocks below 128 threads)",
                    [](const T& t) {
                      const int warps = t.block.threads() / 32 * t.min_blocks;
                      return (warps >= 8 || t.block.threads() < 128 || t.specialise == 0) && warps <= 16;
                    }),
      constraint<T>({"T"}, "T must not be twice a phase's outputs or more (128 always may)",
                    [g](const T& t) { return t.T <= 128 || t.T < 2 * ct1d::ceil_div(g.length_out, g.stride); }),
      constraint<T>({"OC_TILE"}, "OC_TILE must not be twice the group's output channels or more (16 always may)",
                    [g](const T& t) { return t.OC_TILE <= 16 || t.OC_TILE < 2 * g.out_per_group(); }),
      constraint<T>({"OC_TILE"}, "OC_TILE must be 16 or more where the group has 128 output channels or more",
                    [g](const T& t) { return t.OC_TILE >= 16 || g.out_per_group() < 128; }),
      constraint<T>({"IC_TILE"}, "IC_TILE must not be twice the group's input channels or more (4 always may)",
                    [g](const T& t) { return t.IC_TILE <= 4 || t.IC_TILE < 2 * g.in_per_group(); }),
  };
}

/// Right for every problem and device: small tiles, all geometry at run time, no prepare step.
constexpr Tunables kGeneral{128, 16, 4, {32, 4}, 1, 16, 2, 1, 0, 0, 1};

/// From the largest patch to the smallest; the first that a problem and device allow is the default.
constexpr Tunables kPreferred[] = {
    // T, OC, IC, block, run, warp_t, stages, unroll, specialise, packed, min_blocks
    {96, 128, 16, {8, 16}, 4, 8, 2, 2, 1, 1, 3},  {96, 128, 8, {8, 16}, 4, 8, 2, 2, 1, 1, 3},
    {128, 128, 8, {16, 16}, 4, 8, 2, 2, 1, 1, 2}, {128, 64, 8, {16, 8}, 4, 8, 2, 2, 1, 1, 3},
    {128, 32, 8, {16, 8}, 4, 8, 2, 2, 1, 1, 3},   {128, 16, 8, {32, 4}, 4, 8, 2, 2, 1, 1, 2},
    {128, 16, 4, {32, 4}, 4, 8, 2, 2, 1, 0, 2},   {128, 8, 4, {32, 4}, 4, 8, 2, 2, 1, 0, 2},
    {256, 1, 1, {64, 1}, 4, 32, 2, 1, 1, 0, 1},   {128, 1, 1, {32, 1}, 4, 32, 2, 1, 1, 0, 1},
};

/// Reads of shared memory that a thread makes for each multiply: windows in pieces of 16 bytes and weights in vectors,
/// over the patch; without specialisation a word of x for each output and tap.
double reads_a_multiply(const Tunables& t, const Geometry& g) {
  const int vector = patch_oc(t) % 4 == 0 ? 4 : patch_oc(t) % 2 == 0 ? 2 : 1;
  const double weights = patch_oc(t) / vector;
  const double patch = static_cast<double>(patch_t(t)) * patch_oc(t);
  if (t.specialise == 0) return (patch_t(t) + weights) / patch;
  const auto taps = static_cast<double>(ct1d::tiled::chunk_taps(t, g));
  const auto window = ct1d::ceil_div(t.run + (ct1d::tiled::chunk_taps(t, g) - 1) * ct1d::tiled::x_step(g), 4);
  const double windows = static_cast<double>(window * (patch_t(t) / t.run));
  return (windows + taps * weights) / (taps * patch);
}

class TiledFamily final : public Family {
 public:
  std::string_view name() const override { return "tiled"; }
  std::string_view summary() const override {
    return "fp32 multiply-adds on register patches, x windows reused over the taps, asynchronous stages, stride by "
           "phases";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    if (element_of(context.accuracy) != Element::f32) return "tiled computes on fp32 tensors";
    if (context.device.compute_major < 8) return "tiled needs asynchronous copies: sm_80 or newer";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"T", {64, 96, 128, 192, 256}, "outputs of one phase that a block computes"},
            {"OC_TILE", {1, 8, 16, 32, 64, 128}, "output channels of a block"},
            {"IC_TILE", {1, 4, 8, 16}, "input channels of a pipeline stage"},
            {"block",
             {Block{16, 16}, Block{16, 8}, Block{8, 16}, Block{32, 8}, Block{32, 4}, Block{64, 1}, Block{32, 1}},
             "threads of a block"},
            {"run", {1, 4, 8}, "neighbouring outputs of a thread that share one x window in registers"},
            {"warp_t", {8, 16, 32}, "lanes of a warp along t"},
            {"stages", {2, 3}, "buffers of the asynchronous pipeline"},
            {"unroll", {1, 2, 4}, "channels a loop iteration"},
            {"specialise", {1, 0}, "1: taps and x step compiled in, windows in registers; 0: at run time"},
            {"packed", {1, 0}, "1: weights packed once in reading order; 0: read as they are"},
            {"min_blocks", {1, 2, 3}, "blocks an SM that the compiler leaves registers for"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    std::vector<Constraint> all = requirements(g, context.device);
    for (Constraint& economy : economies(g)) all.push_back(std::move(economy));
    return all;
  }

  Configuration default_configuration(const BuildContext& context) const override {
    const std::vector<Constraint> all = constraints(context);
    const int64 out_channels = context.problem.geometry().out_per_group();
    for (const Tunables& t : kPreferred) {
      const bool wasteful = t.OC_TILE > 1 && t.OC_TILE >= 2 * out_channels;
      const bool narrow = t.OC_TILE == 1 && out_channels > 1;
      if (!wasteful && !narrow && satisfies(all, t)) return to_configuration(t);
    }
    return to_configuration(kGeneral);
  }
  Configuration general_configuration(const BuildContext&) const override { return to_configuration(kGeneral); }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const std::string kernel = "ct1d::tiled::kernel" + arguments(t, g);
    Program program;
    program.unit.source = "#include \"kernels/tiled/kernel.cuh\"\n";
    program.unit.kernels = {kernel};
    program.run = {{kernel, ct1d::tiled::run_shape(t, g, 4)}};
    if (t.packed != 0) {
      const std::string pack = "ct1d::tiled::pack" + arguments(t, g);
      program.unit.kernels.push_back(pack);
      program.prepare = {{pack, ct1d::tiled::prepare_shape(t, g, 4)}};
      program.packed_bytes = static_cast<std::size_t>(ct1d::tiled::packed_bytes(t, g, 4));
    }
    program.work.fma_fp32 = context.problem.flop();
    program.work.bytes = context.problem.min_bytes(4);
    program.work.shared_accesses = context.problem.flop() / 2 / 32 * reads_a_multiply(t, g);
    return program;
  }
};

}  // namespace

const Family& family_tiled() {
  static const TiledFamily family;
  return family;
}

}  // namespace tuner
