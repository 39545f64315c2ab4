// Host facts of the `winograd` family.
#include <algorithm>

#include "kernels/winograd/layout.h"
#include "kernels/winograd/transform.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::BlockShape;
using ct1d::Geometry;
using ct1d::int64;
using ct1d::winograd::fewest_channels;
using ct1d::winograd::Tunables;

int patch_t(const Tunables& t) { return t.thread_segments(); }
int patch_oc(const Tunables& t) { return t.thread_channels(); }
int sums(const Tunables& t) { return t.held * patch_t(t) * patch_oc(t); }

/// Registers that a thread needs: its sums, the words of x and the weights of a product, and addresses; fitted to what
/// ptxas reports for instances that do not spill.
int64 registers_needed(const Tunables& t) { return sums(t) + patch_t(t) + patch_oc(t) + 16; }

int64 registers_granted(const Tunables& t, const DeviceFacts& device) {
  const int64 share = device.registers_per_sm / (int64{t.block.threads()} * t.min_blocks) / 8 * 8;
  return std::min<int64>(device.max_registers_per_thread, share);
}

std::string arguments(const Tunables& t) { return "<" + template_arguments(t) + ", float>"; }

/// The block's threads divide the products and a warp's lanes its share of them.
bool shares_evenly(const Tunables& t) {
  return t.points % t.held == 0 && t.block.y % t.slices() == 0 && t.block.x * t.slice_y() % 32 == 0 &&
         t.block.x % t.warp_t == 0 && t.slice_y() % (32 / t.warp_t) == 0;
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const DeviceFacts& device) {
  using T = Tunables;
  return {
      constraint<T>({"block"}, "block.x * block.y must not exceed the device's threads a block",
                    [limit = device.max_threads_per_block](const T& t) { return t.block.threads() <= limit; }),
      constraint<T>(
          {"block", "min_blocks"}, "min_blocks blocks must not exceed the device's threads an SM",
          [limit = device.max_threads_per_sm](const T& t) { return t.block.threads() * t.min_blocks <= limit; }),
      constraint<T>({"points"}, "points must be 4 or 6: more round worse than class fp32 allows",
                    [](const T& t) { return t.points == 4 || t.points == 6; }),
      constraint<T>({"taps"}, "taps must be 2 or 3", [](const T& t) { return t.taps == 2 || t.taps == 3; }),
      constraint<T>({"points", "held"}, "points must be a multiple of held",
                    [](const T& t) { return t.points % t.held == 0; }),
      constraint<T>({"block", "points", "held", "warp_t"},
                    "warps of warp_t by 32 / warp_t threads must divide block.x by block.y * held / points",
                    shares_evenly),
      constraint<T>({"T", "points", "taps"},
                    "T must be a multiple of 4 and of the points - taps + 1 outputs of a segment",
                    [](const T& t) { return t.T % 4 == 0 && t.T % t.outputs() == 0; }),
      constraint<T>({"T", "block", "points", "taps"}, "the segments of T must be a multiple of block.x",
                    [](const T& t) { return t.segments() % t.block.x == 0; }),
      constraint<T>({"T", "block", "points", "taps"}, "the block's threads must be a multiple of the segments of T",
                    [](const T& t) { return t.block.threads() % t.segments() == 0; }),
      constraint<T>({"OC_TILE", "block", "points", "held"},
                    "OC_TILE must be a multiple of 4 and of block.y * held / points",
                    [](const T& t) { return t.OC_TILE % 4 == 0 && t.OC_TILE % t.slice_y() == 0; }),
      constraint<T>({"IC_TILE", "unroll"}, "IC_TILE must be a multiple of unroll",
                    [](const T& t) { return t.IC_TILE % t.unroll == 0; }),
      constraint<T>({"IC_TILE", "block"}, "IC_TILE must not exceed the block's threads",
                    [](const T& t) { return t.IC_TILE <= t.block.threads(); }),
      constraint<T>({"stages"}, "the pipeline needs two stages or more", [](const T& t) { return t.stages >= 2; }),
      constraint<T>({"T", "OC_TILE", "IC_TILE", "block", "points", "taps", "held", "stages"},
                    "the stages must fit the device's shared memory a block",
                    [limit = device.shared_per_block_optin](const T& t) {
                      return ct1d::winograd::layout_of(t).total <= limit / 4;
                    }),
      constraint<T>({"T", "OC_TILE", "IC_TILE", "block", "points", "taps", "held", "stages", "min_blocks"},
                    "min_blocks blocks must fit the device's shared memory an SM",
                    [device](const T& t) {
                      const int64 block = int64{ct1d::winograd::layout_of(t).total} * 4;
                      return (block + device.shared_reserved_per_block) * t.min_blocks <= device.shared_per_sm;
                    }),
      constraint<T>({"T", "OC_TILE", "block", "points", "taps", "held", "min_blocks"},
                    "a thread's sums and operands must fit the registers that min_blocks leaves",
                    [device](const T& t) { return registers_needed(t) <= registers_granted(t, device); }),
  };
}

/// The multiplies that `points` products of `taps` taps need where a direct sum over `phase_taps` needs 1.
double multiplies(int points, int taps, int64 phase_taps) {
  const double chunks = static_cast<double>(ct1d::ceil_div(phase_taps, taps));
  return chunks * points / (static_cast<double>(phase_taps) * (points - taps + 1));
}

/// What a class's bounds rule out.
std::vector<Constraint> accuracy(const Geometry& g, Accuracy accuracy) {
  if (accuracy != Accuracy::fp32) return {};
  return {
      constraint<Tunables>({"points"},
                           "6 points need 32 input channels a group in class fp32, 4 need 16: with fewer, outputs can "
                           "be far smaller than the neighbours relative to which they are rounded",
                           [g](const Tunables& t) { return g.in_per_group() >= fewest_channels(t.points); }),
      constraint<Tunables>(
          {"points", "taps"},
          "6 points with 2 taps need 64 input channels a group and rows of 4096 outputs in class fp32: "
          "their error is 1.7 to 1.8 times the plain sum's, and by chance more than twice",
          [g](const Tunables& t) {
            return t.points == 4 || t.taps == 3 || (g.in_per_group() >= 64 && g.length_out >= 4096);
          }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const Geometry& g) {
  using T = Tunables;
  return {
      constraint<T>({"points", "taps"},
                    "the taps of a phase, in chunks of `taps`, must need fewer multiplies than direct",
                    [most = ct1d::most_taps(g)](const T& t) { return multiplies(t.points, t.taps, most) < 0.95; }),
      constraint<T>({"T", "OC_TILE", "block", "points", "taps", "held"},
                    "a thread must keep 32 to 128 sums (4 or more with OC_TILE below 64)",
                    [](const T& t) { return sums(t) <= 128 && sums(t) >= (t.OC_TILE < 64 ? 4 : 32); }),
      constraint<T>(
          {"T", "OC_TILE", "block", "points", "taps", "held"},
          "a thread's patch of a product must be at most twice as long as it is wide (small ones may be longer)",
          [](const T& t) {
            const int patch = patch_t(t) * patch_oc(t);
            return patch < 32 || (patch_t(t) <= 2 * patch_oc(t) && patch_oc(t) <= 2 * patch_t(t));
          }),
      constraint<T>({"T", "block", "points", "taps", "IC_TILE"},
                    "the block must not transform more rows at once than a stage has",
                    [](const T& t) { return t.rows_at_once() <= t.IC_TILE; }),
      constraint<T>({"IC_TILE", "unroll"}, "2 channels or more a loop iteration where a stage has 8",
                    [](const T& t) { return t.unroll >= 2 || t.IC_TILE < 8; }),
      constraint<T>({"block", "min_blocks"}, "an SM must be left 8 to 24 warps (fewer in blocks below 128 threads)",
                    [](const T& t) {
                      const int warps = t.block.threads() / 32 * t.min_blocks;
                      return (warps >= 8 || t.block.threads() < 128) && warps <= 24;
                    }),
      constraint<T>({"T"}, "T must not be twice a phase's outputs or more (64 and less always may)",
                    [g](const T& t) { return t.T <= 64 || t.T < 2 * ct1d::ceil_div(g.length_out, g.stride); }),
      constraint<T>({"OC_TILE"}, "OC_TILE must not be twice the group's output channels or more (16 always may)",
                    [g](const T& t) { return t.OC_TILE <= 16 || t.OC_TILE < 2 * g.out_per_group(); }),
  };
}

/// Right for every problem that is not refused, and every device: small tiles, and chunks of two taps, which pay for
/// any phase of two or more.
constexpr Tunables kGeneral{48, 16, 8, {4, 32}, 4, 2, 1, 4, 2, 2, 2};

/// From the fastest to the smallest; the first that a problem and device allow is the default.
constexpr Tunables kPreferred[] = {
    // T, OC, IC, block, points, taps, held, warp_t, stages, unroll, min_blocks
    {128, 128, 8, {4, 48}, 6, 3, 1, 4, 2, 2, 2}, {128, 64, 8, {4, 48}, 6, 3, 1, 4, 2, 2, 2},
    {160, 64, 8, {4, 48}, 6, 2, 1, 4, 2, 2, 2},  {64, 128, 8, {4, 32}, 4, 3, 1, 4, 2, 2, 3},
    {64, 64, 8, {4, 32}, 4, 3, 1, 4, 2, 2, 3},   {96, 64, 8, {4, 32}, 4, 2, 1, 4, 2, 2, 3},
};

/// Reads of shared memory that a thread makes for each multiply of a product: words of x and weights in vectors.
double reads_a_multiply(const Tunables& t) {
  const auto reads = [](int n) { return static_cast<double>(n) / ct1d::winograd::vector_of(n); };
  return (reads(patch_t(t)) + reads(patch_oc(t))) / (static_cast<double>(patch_t(t)) * patch_oc(t));
}

class WinogradFamily final : public Family {
 public:
  std::string_view name() const override { return "winograd"; }
  std::string_view summary() const override {
    return "minimal filtering along t on fp32 units: 1.5 to 2 times fewer multiplies for 2, 3 and more taps a phase; "
           "direct where a tile's range of magnitudes would cost accuracy";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    if (element_of(context.accuracy) != Element::f32) return "winograd computes on fp32 tensors";
    if (context.device.compute_major < 8) return "winograd needs asynchronous copies: sm_80 or newer";
    const Geometry g = context.problem.geometry();
    if (ct1d::most_taps(g) < 2) return "winograd needs a phase of two taps or more: kernel_size above stride / gcd";
    if (context.accuracy == Accuracy::fp32 && g.in_per_group() < fewest_channels(4))
      return "winograd in class fp32 needs 16 input channels a group: with fewer, outputs can be far smaller than the "
             "neighbours relative to which they are rounded";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"T", {48, 64, 96, 128, 160, 192, 256}, "outputs of one phase that a block computes"},
            {"OC_TILE", {16, 32, 64, 128}, "output channels of a block"},
            {"IC_TILE", {4, 8, 16}, "input channels of a pipeline stage"},
            {"block",
             {Block{4, 48}, Block{8, 24}, Block{8, 48}, Block{4, 96}, Block{4, 32}, Block{8, 16}, Block{8, 32},
              Block{16, 8}, Block{16, 16}},
             "threads of a block: by segments, and by products and output channels"},
            {"points", {4, 6}, "products of a transform, which gives points - taps + 1 outputs"},
            {"taps", {2, 3}, "taps of a transform; phases of more are taken in chunks"},
            {"held", {1, 2, 4}, "products whose sums a thread keeps; the others are other warps'"},
            {"warp_t", {4, 8, 16}, "lanes of a warp along t"},
            {"stages", {2, 3}, "buffers of the asynchronous pipeline"},
            {"unroll", {1, 2, 4}, "channels a loop iteration"},
            {"min_blocks", {1, 2, 3, 4}, "blocks an SM that the compiler leaves registers for"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    std::vector<Constraint> all = requirements(context.device);
    for (Constraint& c : accuracy(g, context.accuracy)) all.push_back(std::move(c));
    for (Constraint& c : economies(g)) all.push_back(std::move(c));
    return all;
  }

  Configuration default_configuration(const BuildContext& context) const override {
    const std::vector<Constraint> all = constraints(context);
    const Geometry g = context.problem.geometry();
    const Tunables* best = nullptr;
    const auto cost = [&](const Tunables& t) { return multiplies(t.points, t.taps, ct1d::most_taps(g)); };
    for (const Tunables& t : kPreferred)
      if (t.OC_TILE < 2 * g.out_per_group() && satisfies(all, t) && (best == nullptr || cost(t) < cost(*best)))
        best = &t;
    return best != nullptr ? to_configuration(*best) : general_configuration(context);
  }
  Configuration general_configuration(const BuildContext&) const override { return to_configuration(kGeneral); }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const auto instance = [&](const char* what) { return std::string("ct1d::winograd::") + what + arguments(t); };
    Program program;
    program.unit.source = "#include \"kernels/winograd/kernel.cuh\"\n#include \"kernels/winograd/pack.cuh\"\n";
    program.unit.kernels = {instance("kernel"), instance("scale"), instance("weigh"), instance("pack")};
    program.run = {{instance("kernel"), ct1d::winograd::run_shape(t, g, 4)}};
    for (const char* step : {"scale", "weigh", "pack"})
      program.prepare.push_back(
          {instance(step), ct1d::winograd::prepare_shape(t, g, 4, static_cast<int>(program.prepare.size()))});
    program.packed_bytes = static_cast<std::size_t>(ct1d::winograd::packed_bytes(t, g, 4));
    // Chunks that are not full cost more, and so does what is computed directly.
    const double products = context.problem.flop() * t.points / (static_cast<double>(t.taps) * t.outputs());
    program.work.fma_fp32 = products;
    program.work.bytes = context.problem.min_bytes(4);
    program.work.shared_accesses = products / 2 / 32 * reads_a_multiply(t);
    return program;
  }
};

}  // namespace

const Family& family_winograd() {
  static const WinogradFamily family;
  return family;
}

}  // namespace tuner
