// Host facts of the `wgmma_fused` family.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/wgmma_fused/layout.h"
#include "tuner/family/cheapest.h"
#include "tuner/family/hopper_blocks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::Geometry;
using ct1d::int64;
using ct1d::wgmma_fused::Tunables;
namespace layout = ct1d::wgmma_fused;

int element_bytes(const BuildContext& context) { return bytes_of(element_of(context.accuracy)); }
layout::Facts facts_of(const Tunables& t, const BuildContext& context) {
  const Geometry g = context.problem.geometry();
  return layout::facts_of(t, g, layout::most_terms(g, element_bytes(context), context.accuracy == Accuracy::bf16));
}
int shared_bytes(const Tunables& t, const BuildContext& context) {
  return layout::shared_of(t, facts_of(t, context), element_bytes(context)).bytes;
}
int64 groups_of(const Tunables& t, const Geometry& g) {
  return ct1d::ceil_div(layout::extent_of(t, g).panels, t.row_tiles());
}

/// Registers of a thread that multiplies: sums, products in flight, addresses; and of one that converts.
/// Fitted to instances that ptxas reports without spills.
int consumer_needs(const Tunables& t, int bytes) {
  if (t.products == 3) return 3 * t.T / 2 + 40;
  if (t.T == 128) return 204;
  return t.T == 96 ? (t.rows == 64 && bytes == 4 ? 164 : 160) : 112;
}
int producer_needs(const Tunables& t, int bytes) { return t.T / 2 + (bytes == 4 ? 44 : 24); }

/// The kernel counts places, rows, tiles and images in 32 bits.
bool fits_int(const Geometry& g) {
  constexpr double kMost = 2147483647.0 - 65536;
  const auto real = [](int64 value) { return static_cast<double>(value); };
  const double reach = real(g.length_out) + real(g.padding) + real(g.dilation) * real(g.kernel_size);
  const double places = std::max(1.0, real(g.batch)) * (real(g.length) + reach / real(g.stride) + 16);
  const double rows = 2 * real(g.out_channels) * real(g.stride) + 128;
  const double images = (places / 64 + 1) * (real(g.in_channels) / 16 + 8);
  const double tiles = (places / 64 + 1) * (rows / 60 + 1);
  return std::max({reach + 1024 * real(g.stride), places, rows * 64, tiles, images}) < kMost;
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const BuildContext& context) {
  using T = Tunables;
  const DeviceFacts& device = context.device;
  const Geometry g = context.problem.geometry();
  const int bytes = element_bytes(context);
  const int64 steps = layout::steps_of(g);
  return {
      constraint<T>({"products"}, "operands of 16 bits have one part",
                    [bytes](const T& t) { return t.products == 1 || bytes == 4; }),
      constraint<T>({"products"}, "class fp32 needs three products",
                    [needed = context.accuracy == Accuracy::fp32](const T& t) { return t.products == 3 || !needed; }),
      constraint<T>({"products"}, "products must be 3 or 1",
                    [](const T& t) { return t.products == 3 || t.products == 1; }),
      constraint<T>({"T"}, "T must be 64, 96 or 128", [](const T& t) { return t.T == 64 || t.T == 96 || t.T == 128; }),
      constraint<T>({"rows"}, "rows must be 128 or 64: two panels of 64 rows, or one at two tiles of places",
                    [](const T& t) { return t.rows == 128 || t.rows == 64; }),
      constraint<T>({"producers"}, "producers must be 4 or 8: whole warpgroups",
                    [](const T& t) { return t.producers == 4 || t.producers == 8; }),
      constraint<T>({"rows", "stages", "producers"},
                    "each consumer's own images (of 64 rows every other one) need a slot for each warp that converts: "
                    "one that waits for a slot would take an old phase for the new one",
                    [](const T& t) { return t.stages >= t.converters() * t.place_tiles(); }),
      constraint<T>({"passes"}, "passes must be 1 or more", [](const T& t) { return t.passes >= 1; }),
      constraint<T>({"rows", "stages", "passes"},
                    "stages must hold all channels of a tile of places: they stay until its last group of rows",
                    [steps](const T& t) { return t.passes == 1 || t.stages >= steps * t.place_tiles(); }),
      constraint<T>({"blocks"}, "blocks must not exceed the device's SMs: one is resident on each",
                    [most = device.sm_count](const T& t) { return t.blocks >= 1 && (most == 0 || t.blocks <= most); }),
      constraint<T>({"producers", "consumer_registers"},
                    "consumer_registers must be a multiple of 8 of no less than all threads start with, and leave the "
                    "producers 24",
                    [](const T& t) {
                      return t.consumer_registers % 8 == 0 && t.consumer_registers >= t.start_registers() &&
                             t.producer_registers() >= 24;
                    }),
      constraint<T>({"T", "products", "consumer_registers"}, "sums and products in flight must fit consumer_registers",
                    [bytes](const T& t) { return consumer_needs(t, bytes) <= t.consumer_registers; }),
      constraint<T>({"T", "producers", "consumer_registers"},
                    "16 channels of x, T / 2 values a lane, must fit the registers that the consumers leave",
                    [bytes](const T& t) { return producer_needs(t, bytes) <= t.producer_registers(); }),
      constraint<T>({"T", "rows", "products", "stages", "weights", "passes"},
                    "weights and images must fit the device's shared memory a block",
                    [context](const T& t) {
                      return shared_bytes(t, context) <= static_cast<int>(context.device.shared_per_block_optin);
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  const int64 steps = layout::steps_of(g);
  return {
      constraint<T>({"products"}, "class tf32 needs no more than one product",
                    [enough = context.accuracy == Accuracy::tf32](const T& t) { return !enough || t.products == 1; }),
      as_many_blocks_as_listed<T>(context.device),
      constraint<T>({"rows"}, "rows must be 64 where there is one panel",
                    [g](const T& t) { return t.rows == 64 || layout::extent_of(t, g).panels > 1; }),
      constraint<T>({"rows", "passes"}, "passes must not exceed the groups of rows",
                    [g](const T& t) { return t.passes <= groups_of(t, g); }),
      constraint<T>({"weights", "passes"}, "slots for weights must be fewer than the weights of a block",
                    [steps](const T& t) { return t.weights < t.passes * steps; }),
      constraint<T>(
          {"rows", "stages", "producers"},
          "stages must not exceed twice the channels of a tile of places, or what the converting warps need",
          [steps](const T& t) {
            return t.stages <= std::max<int64>({8, 2 * steps * t.place_tiles(), t.converters() * t.place_tiles() + 2});
          }),
      constraint<T>({"T", "products", "consumer_registers"},
                    "consumer_registers must not exceed what sums need by 40 or more, unless the threads start with it",
                    [bytes = element_bytes(context)](const T& t) {
                      return t.consumer_registers < consumer_needs(t, bytes) + 40 ||
                             t.consumer_registers == t.start_registers();
                    }),
  };
}

std::vector<Constraint> all_constraints(const BuildContext& context) {
  return joined(requirements(context), economies(context));
}

/// What takes the least memory: fits wherever any does.
Tunables smallest(const BuildContext& context) {
  Tunables t;
  t.T = 64;
  t.rows = 64;
  t.products = context.accuracy == Accuracy::fp32 ? 3 : 1;
  t.stages = 6;
  t.producers = 4;
  t.consumer_registers = 168;
  t.weights = layout::steps_of(context.problem.geometry()) > 2 ? 2 : 0;
  t.passes = 1;
  t.blocks = blocks_for(context.device);
  return t;
}

/// Cycles of an SM: a group of places takes its bytes or its products, whichever last longer, and some of the other.
double cost_of(const Tunables& t, const BuildContext& context) {
  const Geometry g = context.problem.geometry();
  const layout::Grid grid = layout::grid_of(t, g);
  const layout::Facts f = facts_of(t, context);
  const double blocks = grid.chunks * grid.workers;
  const double bytes = element_bytes(context);
  const double places = t.T * t.place_tiles();
  const double steps = static_cast<double>(f.steps);
  const double weights = t.passes * steps * layout::weight_slot_bytes(t, f.offsets);
  // 17.7 bytes a cycle and SM are 4.2 TB/s; fewer SMs have more each. From L2 about 22.
  const double rate = std::min(40.0, 17.7 * 132 / std::min(blocks, 132.0));
  const double rows = std::min<double>(t.passes * t.rows, static_cast<double>(g.out_channels * g.stride));
  const double moved = places * bytes * (steps * 16 + rows) / rate + (t.weights > 0 ? weights / 22 : 0);
  const double products =
      t.passes * steps * (static_cast<double>(f.offsets) * t.products * t.T + 130.0 / static_cast<double>(f.group));
  const double stores = t.passes * t.T * 12.0;
  const double convert = steps * t.place_tiles() * (700.0 + 2.0 * t.T) / t.converters();
  const double group = std::max({moved, products, convert}) + 0.25 * std::min(moved, products) + 0.5 * stores;
  const double waves = std::ceil(blocks / 132);
  const double most = std::ceil(static_cast<double>(grid.place_groups) / grid.workers);
  return waves * (most * group + (t.weights > 0 ? 0 : weights / 22) + moved + 3000);
}

class WgmmaFusedFamily final : public Family {
 public:
  std::string_view name() const override { return "wgmma_fused"; }
  std::string_view summary() const override {
    return "Hopper's matrix units where a tile of x fits shared memory: warps of the block convert it once for all "
           "phases and output channels; stride by phases, an exact path for what scales do not serve";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    if (context.device.arch != "sm_90a") return "wgmma_fused needs Hopper's matrix instructions: sm_90a";
    if (g.groups != 1) return "wgmma_fused serves one group";
    if (g.in_channels < layout::kStepChannels) return "wgmma_fused serves 16 input channels or more";
    if (g.in_channels > layout::kMostSteps * layout::kStepChannels)
      return "wgmma_fused serves up to 1024 input channels";
    if (!fits_int(g)) return "wgmma_fused counts places, rows and tiles in 32 bits";
    if (g.stride > 1024) return "wgmma_fused serves strides up to 1024";
    const ct1d::Offsets offsets = ct1d::offsets_of(g);
    if (offsets.count > layout::kMostOffsets || (offsets.count - 1) * offsets.step > layout::kMostHalo)
      return "wgmma_fused keeps weights of 16 channels and all taps of a phase in a slot: at most 8, that reach back "
             "16 "
             "positions";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"T", {128, 96, 64}, "places of a warpgroup's tile, columns of its products"},
            {"rows", {128, 64}, "of a group: output channels times phases; 64: each warpgroup has places of its own"},
            {"products", {3, 1}, "3: two fp16 parts of each operand; 1: one part, or 16 bits as they are"},
            {"stages", {4, 6, 8, 12, 16, 24, 32}, "of the ring of converted x, 16 channels of T places each"},
            {"producers", {4, 8}, "warps: one copies weights, the others convert x, 16 channels each at a time"},
            {"consumer_registers", {128, 144, 160, 168, 184, 208}, "of a thread that multiplies; the rest converts"},
            {"weights", {0, 2, 4, 8}, "slots for weights of 16 channels and a group of rows; 0: all stay"},
            {"passes", {1, 2, 3, 4, 6, 8}, "groups of rows that a block multiplies a tile of places with"},
            {"blocks", block_values(), "persistent blocks, one an SM"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override { return all_constraints(context); }

  Configuration default_configuration(const BuildContext& context) const override {
    return promising_configurations(context).front();
  }
  std::vector<Configuration> promising_configurations(const BuildContext& context) const override {
    const std::vector<Constraint> all = all_constraints(context);
    CheapestByKind<Tunables, std::tuple<int, int, bool>> candidates;  // by tile and whether weights stay
    const auto offer = [&](const Tunables& t) {
      const auto kind = std::tuple(t.T, t.rows, t.weights == 0);
      const double cost = cost_of(t, context);
      if (cost < candidates.least(kind) && satisfies(all, t)) candidates.offer(kind, cost, t);
    };
    const Tunables least = smallest(context);
    offer(least);
    for (const int tile : {128, 96, 64})
      for (const int rows : {128, 64})
        for (const int producers : {8, 4})
          for (const int registers : {128, 144, 160, 168, 184, 208})
            for (const int weights : {0, 8, 4})
              for (const int passes : {1, 2, 3, 4, 6, 8})
                for (const int stages : {32, 24, 16, 12, 8}) {
                  Tunables t = least;
                  t.T = tile;
                  t.rows = rows;
                  t.producers = producers;
                  t.consumer_registers = registers;
                  t.weights = weights;
                  t.passes = passes;
                  t.stages = stages;
                  if (consumer_needs(t, element_bytes(context)) <= registers) offer(t);
                }
    return promising_of(candidates, 6, least);
  }
  Configuration general_configuration(const BuildContext& context) const override {
    return to_configuration(smallest(context));
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const layout::Facts f = facts_of(t, context);
    const layout::Extent e = layout::extent_of(t, g);
    std::string arguments = "<" + template_arguments(t);
    for (const int64 fact : {f.offsets, f.step, f.stride, f.halo, f.steps, f.group})
      arguments += ", " + std::to_string(fact);
    arguments += std::string(", ") + element_name(context.accuracy) + ">";
    const std::string kernel = "ct1d::wgmma_fused::kernel" + arguments;
    const std::string pack = "ct1d::wgmma_fused::pack" + arguments;
    Program program;
    program.unit.source = "#include \"kernels/wgmma_fused/kernel.cuh\"\n";
    program.unit.kernels = {kernel, pack};
    program.run = {{kernel, layout::run_shape(t, g, element_bytes(context))}};
    program.prepare = {{pack, layout::prepare_shape(t, g, element_bytes(context))}};
    program.packed_bytes = static_cast<std::size_t>(layout::packed_bytes(t, g, element_bytes(context)));
    // Whole tiles, of channels in whole steps: what is executed, not what was asked for.
    const double sums = static_cast<double>(e.place_tiles * t.T) * static_cast<double>(e.panels * layout::kRows);
    const auto terms = static_cast<double>(e.steps * layout::kStepChannels * f.offsets);
    program.work.tensor_fp16 = sums * 2 * t.products * terms;
    program.work.bytes = context.problem.min_bytes(element_bytes(context));
    return program;
  }
};

}  // namespace

const Family& family_wgmma_fused() {
  static const WgmmaFusedFamily family;
  return family;
}

}  // namespace tuner
