// Host facts of the `wgmma_packed` family.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/wgmma_packed/layout.h"
#include "tuner/family/cheapest.h"
#include "tuner/family/hopper_blocks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::Geometry;
using ct1d::int64;
using ct1d::wgmma_packed::Tunables;
namespace layout = ct1d::wgmma_packed;

int element_bytes(const BuildContext& context) { return bytes_of(element_of(context.accuracy)); }
layout::Facts facts_of(const Tunables& t, const BuildContext& context) {
  const Geometry g = context.problem.geometry();
  return layout::facts_of(t, g, layout::most_terms(g, element_bytes(context), context.accuracy == Accuracy::bf16));
}

/// The kernels count places, rows, tiles and stages in 32 bits.
bool fits_int(const Geometry& g) {
  constexpr double kMost = 2147483647.0 - 65536;
  const auto real = [](int64 value) { return static_cast<double>(value); };
  const double reach = real(g.length_out) + real(g.padding) + real(g.dilation) * real(g.kernel_size);
  const double places = std::max(1.0, real(g.batch)) * (real(g.length) + reach / real(g.stride) + 16);
  const double rows = 2 * real(g.out_channels) * real(g.stride) + 128;
  const double tiles = (places / 64 + 1) * (rows / 60 + 1);
  const double packs = (places / 32 + 6) * (real(g.in_channels) / 16 + 8);
  const double panels = rows / 60 * (real(g.in_channels) / 16 + 1);  // of a step
  return std::max({reach + 1024 * real(g.stride), places, rows * 64, tiles, packs, panels}) < kMost;
}

std::string arguments(const Tunables& t, const BuildContext& context) {
  const layout::Facts facts = facts_of(t, context);
  std::string text = "<" + template_arguments(t);
  for (const int64 fact : {facts.offsets, facts.step, facts.stride, facts.halo, facts.group})
    text += ", " + std::to_string(fact);
  return text + ", " + element_name(context.accuracy) + ">";
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const BuildContext& context) {
  using T = Tunables;
  const DeviceFacts& device = context.device;
  const int bytes = element_bytes(context);
  return {
      constraint<T>({"products"}, "operands of 16 bits have one part",
                    [bytes](const T& t) { return t.products == 1 || bytes == 4; }),
      constraint<T>({"products"}, "class fp32 needs three products",
                    [needed = context.accuracy == Accuracy::fp32](const T& t) { return t.products == 3 || !needed; }),
      constraint<T>({"products"}, "products must be 3 or 1",
                    [](const T& t) { return t.products == 3 || t.products == 1; }),
      constraint<T>({"T"}, "T must be 64, 96, 128 or 192",
                    [](const T& t) { return t.T == 64 || t.T == 96 || t.T == 128 || t.T == 192; }),
      constraint<T>({"rows"}, "rows must be 128 or 64: two panels of 64 rows, or one at two tiles of places",
                    [](const T& t) { return t.rows == 128 || t.rows == 64; }),
      constraint<T>({"T", "products"}, "three products leave registers for 128 places",
                    [](const T& t) { return t.products == 1 || t.T <= 128; }),
      constraint<T>({"stages"}, "stages must be 2 or more", [](const T& t) { return t.stages >= 2; }),
      constraint<T>({"band"}, "band must be 1 or more", [](const T& t) { return t.band >= 1; }),
      constraint<T>({"blocks"}, "blocks must not exceed the device's SMs: one is resident on each",
                    [most = device.sm_count](const T& t) { return t.blocks >= 1 && (most == 0 || t.blocks <= most); }),
      constraint<T>({"cluster"}, "cluster must be 1 or 2", [](const T& t) { return t.cluster == 1 || t.cluster == 2; }),
      constraint<T>({"blocks", "cluster"}, "blocks must be a multiple of the cluster",
                    [](const T& t) { return t.blocks % t.cluster == 0; }),
      constraint<T>({"T", "rows", "products", "stages"}, "the ring must fit the device's shared memory a block",
                    [context, limit = device.shared_per_block_optin](const T& t) {
                      const layout::Facts f = facts_of(t, context);
                      return layout::run_shape(t, context.problem.geometry(), f).shared_bytes <=
                             static_cast<unsigned>(limit);
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  return {
      constraint<T>({"products"}, "class tf32 needs no more than one product",
                    [enough = context.accuracy == Accuracy::tf32](const T& t) { return !enough || t.products == 1; }),
      as_many_blocks_as_listed<T>(context.device),
      constraint<T>({"rows"}, "rows must be 64 where there is one panel",
                    [g](const T& t) { return t.rows == 64 || layout::extent_of(t, g).panels > 1; }),
      constraint<T>({"T", "rows", "band"}, "band must not exceed the tiles of places twice (1 always may)",
                    [g](const T& t) {
                      return t.band == 1 ||
                             t.band < 2 * ct1d::ceil_div(layout::extent_of(t, g).place_tiles, t.place_tiles());
                    }),
      constraint<T>({"band", "cluster"}, "band must be a multiple of the cluster, whose tiles have the same panels",
                    [](const T& t) { return t.band % t.cluster == 0; }),
      constraint<T>({"T", "rows", "cluster"}, "a cluster needs as many tiles of places as it has blocks",
                    [g](const T& t) {
                      return t.cluster == 1 ||
                             t.cluster <= ct1d::ceil_div(layout::extent_of(t, g).place_tiles, t.place_tiles());
                    }),
  };
}

std::vector<Constraint> all_constraints(const BuildContext& context) {
  return joined(requirements(context), economies(context));
}

/// All geometry but the number of offsets at run time.
Tunables smallest(const BuildContext& context) {
  Tunables t;
  t.T = 64;
  t.rows = 64;
  t.products = context.accuracy == Accuracy::fp32 ? 3 : 1;
  t.stages = 2;
  t.band = 1;
  t.blocks = blocks_for(context.device);
  return t;
}

/// Time of the products, in stages of a 64 by 64 tile: tiles in whole waves, a warpgroup's share each.
double cost_of(const Tunables& t, const Geometry& g) {
  const double tiles = layout::schedule_of(t, g).tiles;  // of clusters
  const double waves = std::ceil(tiles * t.cluster / t.blocks);
  // What an SM's stage takes: its products, or its bytes from L2, at about 28 a cycle.
  const double products = 2.0 * t.T * t.products;
  const double bytes = t.parts() * (t.row_tiles() * 2048.0 / t.cluster + t.place_tiles() * t.T * 32.0 / 2) / 14;
  return waves * (std::max(products, bytes) + 24);
}

class WgmmaPackedFamily final : public Family {
 public:
  std::string_view name() const override { return "wgmma_packed"; }
  std::string_view summary() const override {
    return "Hopper's matrix units for many channels: a first kernel packs x as fp16 or bf16, or as fp16 parts of fp32, "
           "so "
           "that the second only multiplies; stride by phases, an exact path for what scales do not serve";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    if (context.device.arch != "sm_90a") return "wgmma_packed needs Hopper's matrix instructions: sm_90a";
    if (g.groups != 1) return "wgmma_packed serves one group";
    if (g.in_channels < layout::kStepChannels) return "wgmma_packed serves 16 input channels or more";
    if (!fits_int(g)) return "wgmma_packed counts places, rows and tiles in 32 bits";
    if (g.stride > layout::kMostOfFact) return "wgmma_packed serves strides up to 1024";
    const ct1d::Offsets offsets = ct1d::offsets_of(g);
    if (offsets.count > layout::kMostOffsets || (offsets.count - 1) * offsets.step > layout::kMostHalo)
      return "wgmma_packed keeps weights of 16 channels and all taps of a phase in a slot: at most 8, that reach back "
             "16 "
             "positions";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"T", {192, 128, 96, 64}, "places of a warpgroup's tile, columns of its products"},
            {"rows", {128, 64}, "of a block: output channels times phases; 64: each warpgroup has places of its own"},
            {"products", {3, 1}, "3: two fp16 parts of each operand; 1: one part"},
            {"stages",
             {2, 3, 4, 5, 6, 8, 10, 12},
             "of the ring, 16 channels of packed x and weights each; 2: stride and offsets known at run time"},
            {"band", {1, 2, 4, 8, 16, 32}, "tiles of places whose panels of rows are walked together"},
            {"blocks", block_values(), "persistent blocks, one an SM"},
            {"cluster",
             {1, 2},
             "blocks with neighbouring tiles of places that load their weights together, a share each",
             std::int64_t{1}}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override { return all_constraints(context); }

  Configuration default_configuration(const BuildContext& context) const override {
    return promising_configurations(context).front();
  }
  std::vector<Configuration> promising_configurations(const BuildContext& context) const override {
    const std::vector<Constraint> all = all_constraints(context);
    const Geometry g = context.problem.geometry();
    const Tunables least = smallest(context);
    CheapestByKind<Tunables, std::tuple<int, int>> candidates;  // by tile
    if (satisfies(all, least)) candidates.offer({least.T, least.rows}, cost_of(least, g) * 2, least);
    for (const int tile : {192, 128, 96, 64})
      for (const int rows : {128, 64})
        for (const int band : {8, 4, 2, 1})
          for (const int stages : {12, 8, 6, 5, 4, 3}) {
            Tunables t = least;  // no clusters: they were 2 % slower where they were timed
            t.T = tile;
            t.rows = rows;
            t.band = band;
            t.stages = stages;
            const double cost = cost_of(t, g);
            if (cost < candidates.least({tile, rows}) && satisfies(all, t)) candidates.offer({tile, rows}, cost, t);
          }
    return promising_of(candidates, 4, least);
  }
  Configuration general_configuration(const BuildContext& context) const override {
    return to_configuration(smallest(context));
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const int bytes = element_bytes(context);
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const layout::Facts f = facts_of(t, context);
    const layout::Extent e = layout::extent_of(t, g);
    const std::string text = arguments(t, context);
    const std::string kernel = "ct1d::wgmma_packed::kernel" + text;
    const std::string pack_x = "ct1d::wgmma_packed::pack_x" + text;
    const std::string pack = "ct1d::wgmma_packed::pack" + text;
    Program program;
    program.unit.source = "#include \"kernels/wgmma_packed/kernel.cuh\"\n";
    program.unit.kernels = {kernel, pack_x, pack};
    program.run = {{pack_x, layout::pack_x_shape(t, g, f, bytes)}, {kernel, layout::run_shape(t, g, f)}};
    program.prepare = {{pack, layout::prepare_shape(t, g)}};
    program.packed_bytes = static_cast<std::size_t>(layout::packed_of(t, g, f.offsets).bytes);
    program.workspace_bytes = static_cast<std::size_t>(layout::workspace_of(t, g, f, bytes).bytes);
    // Whole tiles, of channels in whole steps: what is executed, not what was asked for.
    const double sums = static_cast<double>(e.place_tiles * t.T) * static_cast<double>(e.panels * layout::kRows);
    const auto terms = static_cast<double>(e.steps * layout::kStepChannels * f.offsets);
    program.work.tensor_fp16 = sums * 2 * t.products * terms;
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_wgmma_packed() {
  static const WgmmaPackedFamily family;
  return family;
}

}  // namespace tuner
