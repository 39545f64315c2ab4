// Host facts of the `wgmma` family.
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "kernels/common/phases.h"
#include "kernels/wgmma/estimate.h"
#include "tuner/family/cheapest.h"
#include "tuner/family/hopper_blocks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::Geometry;
using ct1d::int64;
using ct1d::wgmma::Tunables;
namespace layout = ct1d::wgmma;

/// Terms that accumulators sum before what they cut off, all of one sign on data of one sign, shows in a class's bound.
/// By the model of the matrix unit it is 5.5e-9 of the sum a term for operands of 11 bits, 1.5e-9 for those of 8. Rows
/// of tf32: at 256 the worst of 40 is 1.04 times as wrong as rounded operands leave it, at 384 1.09 (1.1 is allowed,
/// and an H200 found a row beyond it). Elements of fp16 and bf16: 0.87 of what the bound has beside the rounding at
/// 384, 0.68 at 1024.
int most_unpromoted(Accuracy accuracy) {
  return accuracy == Accuracy::fp16 ? 384 : accuracy == Accuracy::bf16 ? 1024 : 256;
}
int element_bytes(const BuildContext& context) { return bytes_of(element_of(context.accuracy)); }

constexpr int kTiles[] = {128, 120, 112, 104, 96, 88, 80, 72, 64, 56, 48, 40, 32, 24, 16, 8};
constexpr int kStages[] = {7, 5, 4, 3, 2};  // as the default tries them

/// Registers that a thread needs: sums, products in flight, both parts of A, and addresses, or what stores and the
/// exact path take whatever the tile; fitted to instances that ptxas reports without spills.
int64 registers_needed(const Tunables& t, const Geometry& g, int bytes) {
  const int64 halo = (t.taps - 1) * layout::facts_of(t, g, 4).tap_step;
  const int64 in_flight = t.promote == 1 ? t.OC_TILE / 2 : 0;
  const bool one_by_one = g.stride != 1 && g.stride != 2 && g.stride != 4 && g.stride % 8 != 0;  // stores
  const int narrow = t.products == 1 && t.promote == 1 ? 0 : 16;
  const int64 least = bytes == 2 || t.OC_TILE > narrow ? 88 : 72;
  const int64 tight = t.min_blocks > 1 && t.products == 1 ? 12 : 0;
  return std::max(least,
                  t.OC_TILE + in_flight + (t.parts() + t.ahead) * 4 * (halo + 2) + 31 + (one_by_one ? 8 : 0) + tight);
}
int64 registers_granted(const Tunables& t, const DeviceFacts& device) {
  const int64 share = device.registers_per_sm / (layout::kThreads * t.min_blocks) / 8 * 8;
  return std::min<int64>(device.max_registers_per_thread, share);
}

/// Products of an output with all of its taps, in the phase that has least (of those that have any).
int64 least_products(const Geometry& g) {
  return g.in_per_group() * std::max<int64>(1, g.kernel_size / ct1d::tap_step(g));
}

/// The kernel counts positions, channels, steps and tiles in 32 bits.
bool fits_int(const Geometry& g) {
  constexpr double kMost = 2147483647.0 - 65536;
  constexpr double kTile = 4 * layout::kBlockPositions;
  const auto real = [](int64 value) { return static_cast<double>(value); };
  const double reach = real(g.length_out) + real(g.padding) + real(g.dilation) * real(g.kernel_size);
  const double columns = real(g.out_channels) * real(g.stride);
  const double item = std::max((real(g.padding) + real(g.length_out)) / real(g.stride),
                               real(g.length) + real(g.dilation) * real(g.kernel_size) / real(g.stride));
  const double places = std::max(1.0, real(g.batch)) * (item + 10);
  const double tiles = (places / layout::kBlockPositions + 1) * (columns / 4 + real(g.groups));
  const double steps = (real(g.in_per_group()) / layout::kStepChannels + 1) * real(g.kernel_size);
  return std::max({reach + kTile * real(g.stride), places + kTile, tiles, steps, real(g.in_channels), columns * 16}) <
         kMost;
}

std::string arguments(const Tunables& t, const BuildContext& context) {
  const layout::Facts facts = layout::facts_of(t, context.problem.geometry(), element_bytes(context));
  std::string text = "<" + template_arguments(t);
  for (const int64 fact : {facts.tap_step, facts.slots, facts.stride}) text += ", " + std::to_string(fact);
  return text + ", " + element_name(context.accuracy) + ">";
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  const DeviceFacts& device = context.device;
  const int most = most_unpromoted(context.accuracy);
  const int bytes = element_bytes(context);
  return {
      constraint<T>({"products"}, "operands of 16 bits have one part",
                    [bytes](const T& t) { return t.products == 1 || bytes == 4; }),
      constraint<T>({"products"}, "class fp32 needs three products",
                    [needed = context.accuracy == Accuracy::fp32](const T& t) { return t.products == 3 || !needed; }),
      constraint<T>({"products"}, "products must be 3 or 1",
                    [](const T& t) { return t.products == 3 || t.products == 1; }),
      constraint<T>({"products", "promote"}, "promote must be 1, or 0 with one product",
                    [](const T& t) { return t.promote == 1 || (t.promote == 0 && t.products == 1); }),
      constraint<T>({"promote", "halves"}, "halves must be 1, or 2 where sums are promoted",
                    [](const T& t) { return t.halves == 1 || (t.halves == 2 && t.promote == 1); }),
      constraint<T>({"OC_TILE", "halves"}, "OC_TILE must be a multiple of 8 * halves of at most 128",
                    [](const T& t) { return t.OC_TILE % (8 * t.halves) == 0 && t.OC_TILE <= 128; }),
      constraint<T>({"promote", "taps", "split"},
                    "sums that are not promoted must have at most " + std::to_string(most) +
                        " terms: accumulators round toward zero, and all of one sign it adds up",
                    [g, most](const T& t) {
                      const int64 sums = layout::extent_of(t, g).steps * t.taps;
                      return t.promote == 1 || sums * layout::kStepChannels <= most;
                    }),
      constraint<T>({"stages"}, "stages must be 2 or more", [](const T& t) { return t.stages >= 2; }),
      constraint<T>({"blocks"}, "blocks must not exceed the device's SMs",
                    [most = device.sm_count](const T& t) { return most == 0 || t.blocks <= most; }),
      constraint<T>({"taps"}, "taps that share a conversion of x must lie within 32 positions",
                    [step = ct1d::offsets_of(g).step](const T& t) { return t.taps == 1 || step <= 32 / (t.taps - 1); }),
      constraint<T>({"min_blocks"}, "min_blocks must be 1 to 3",
                    [](const T& t) { return t.min_blocks >= 1 && t.min_blocks <= 3; }),
      constraint<T>(
          {"OC_TILE", "products", "promote", "taps", "min_blocks", "ahead"},
          "sums, products in flight and converted x must fit the registers that min_blocks leaves a thread",
          [g, bytes, device](const T& t) { return registers_needed(t, g, bytes) <= registers_granted(t, device); }),
      constraint<T>({"products", "halves", "min_blocks", "ahead"},
                    "ahead must be 0, or 1 with one product, one half and one block an SM",
                    [](const T& t) {
                      return t.ahead == 0 || (t.ahead == 1 && t.products == 1 && t.halves == 1 && t.min_blocks == 1);
                    }),
      constraint<T>({"streaming"}, "streaming must be 0 or 1",
                    [](const T& t) { return t.streaming == 0 || t.streaming == 1; }),
      constraint<T>({"split"}, "split must be 1 to 8", [](const T& t) { return t.split >= 1 && t.split <= 8; }),
      constraint<T>({"OC_TILE", "blocks", "split"}, "tiles are split where there are less of them than blocks",
                    [g, bytes](const T& t) {
                      return t.split == 1 || layout::tile_count(t, g, bytes) < int64{t.split} * t.blocks;
                    }),
      constraint<T>({"OC_TILE", "resident", "blocks", "split", "min_blocks"},
                    "resident weights need a block for every OC_TILE columns and each that shares them",
                    [g](const T& t) { return t.resident == 0 || layout::extent_of(t, g).slices <= t.grid(); }),
      constraint<T>({"OC_TILE", "products", "taps", "stages", "resident", "split", "min_blocks"},
                    "weights and stages must fit the shared memory that min_blocks leaves a block",
                    [g, bytes, limit = device.shared_per_block_optin](const T& t) {
                      const int room = std::min(limit, layout::shared_budget(t));
                      return layout::run_shape(t, g, bytes).shared_bytes <= static_cast<unsigned>(room);
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  return {
      constraint<T>({"products"}, "only class fp32 needs more than one product",
                    [enough = context.accuracy != Accuracy::fp32](const T& t) { return !enough || t.products == 1; }),
      as_many_blocks_as_listed<T>(context.device),
      constraint<T>({"taps"}, "taps must not exceed those of a phase",
                    [most = ct1d::offsets_of(g).count](const T& t) { return t.taps <= most; }),
      constraint<T>({"OC_TILE"},
                    "OC_TILE must not be twice the group's output channels times phases or more (8 and 32 always may)",
                    [columns = g.out_per_group() * g.stride](const T& t) {
                      return t.OC_TILE == 8 || t.OC_TILE == 32 || t.OC_TILE < 2 * columns;
                    }),
      constraint<T>({"OC_TILE"}, "OC_TILE of 24, 40, 56, 88, 104 or 120 is for strides beyond 2 other than 4",
                    [stride = g.stride](const T& t) {
                      return t.OC_TILE % 16 == 0 || t.OC_TILE == 8 || t.OC_TILE == 72 || (stride > 2 && stride != 4);
                    }),
      constraint<T>({"OC_TILE", "taps", "wide_stores", "resident"},
                    "wide_stores changes nothing but at stride 1 (and where all geometry is known at run time)",
                    [g](const T& t) {
                      return t.wide_stores == 1 || g.stride == 1 || layout::facts_of(t, g, 4).stride != g.stride;
                    }),
      constraint<T>({"split"}, "blocks that share a tile must have a step of channels each",
                    [g](const T& t) {
                      const int64 steps = ct1d::ceil_div(g.in_per_group(), layout::kStepChannels);
                      return t.split == 1 || t.split <= steps;
                    }),
      constraint<T>({"resident", "stages"}, "streamed weights leave room for 3 stages or more",
                    [](const T& t) { return t.resident != 0 || t.stages >= 3; }),
  };
}

std::vector<Constraint> all_constraints(const BuildContext& context) {
  return joined(requirements(context), economies(context));
}

/// All geometry at run time: taps one at a time, weights streamed.
Tunables general(const BuildContext& context) {
  Tunables t;
  t.OC_TILE = 32;
  t.products = context.accuracy == Accuracy::fp32 ? 3 : 1;
  t.taps = 1;
  t.stages = 4;
  t.turns = 0;
  t.wide_stores = 0;
  t.resident = 0;
  t.blocks = blocks_for(context.device);
  return t;
}

/// OC_TILE, split, ahead.
std::vector<std::array<int, 3>> tilings() {
  std::vector<std::array<int, 3>> all;
  for (const int ahead : {1, 0})
    for (const int split : {1, 2, 4, 8})
      for (const int tile : kTiles) all.push_back({tile, split, ahead});
  return all;
}

/// With more blocks an SM where one panel has all columns and there are tiles for them: blocks fill each other's waits.
Tunables shared_sms(const Tunables& alone, const std::vector<Constraint>& all, const Geometry& g, int bytes,
                    std::initializer_list<int> blocks) {
  if (layout::extent_of(alone, g).panels > 1) return alone;
  for (const int min_blocks : blocks)
    for (const int stages : kStages) {
      Tunables t = alone;
      t.min_blocks = min_blocks;
      t.ahead = 0;
      t.stages = stages;
      if (layout::tile_count(t, g, bytes) >= 2 * t.grid() && satisfies(all, t)) return t;
    }
  return alone;
}

class WgmmaFamily final : public Family {
 public:
  std::string_view name() const override { return "wgmma"; }
  std::string_view summary() const override {
    return "Hopper's matrix units on fp16 and bf16, or on fp16 parts of fp32 that are scaled and split in registers; "
           "weights packed in shared memory, stride by phases, an exact path for what scales do not serve";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    if (context.device.arch != "sm_90a") return "wgmma needs Hopper's matrix instructions: sm_90a";
    if (!fits_int(context.problem.geometry())) return "wgmma counts positions, channels and tiles in 32 bits";
    if (context.accuracy == Accuracy::fp32 && least_products(context.problem.geometry()) < 16)
      return "wgmma in class fp32 needs sums of 16 products or more: two fp16 parts leave a single one an error of "
             "2^-21";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"OC_TILE",
             {8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128},
             "columns of a block: output channels times phases"},
            {"products", {3, 1}, "3: two fp16 parts of each operand; 1: one part"},
            {"promote", {1, 0}, "1: sums are added up in fp32 every 16 channels; 0: a tile's stay in the accumulators"},
            {"taps", {1, 2, 3, 4}, "taps of a phase that are multiplied from one conversion of x"},
            {"halves", {1, 2}, "products in flight, of OC_TILE / halves columns"},
            {"stages", {2, 3, 4, 5, 6, 7, 8}, "of a warpgroup's ring of raw x, 16 channels each"},
            {"turns", {1, 0}, "1: the warpgroups' products take turns; 0: they compete"},
            {"wide_stores", {1, 0}, "1: shuffled to pieces of 16 bytes where rows of y are off by 8; 0: pieces of 8"},
            {"resident", {1, 0}, "1: a block's weights stay in shared memory; 0: they stream through a ring"},
            {"strip", {0, 1, 5, 25}, "neighbouring tiles that a block walks; 0: all of its own"},
            {"blocks", block_values(), "SMs that have persistent blocks"},
            {"split", {1, 2, 4, 8}, "blocks that share a tile's channels; a second kernel adds their sums up"},
            {"min_blocks", {1, 2, 3}, "blocks an SM that the compiler leaves registers for"},
            {"ahead", {0, 1}, "1: x of the next step is converted while products run"},
            {"streaming", {0, 1}, "1: stores of y are marked as read by nobody soon"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override { return all_constraints(context); }

  Configuration default_configuration(const BuildContext& context) const override {
    return promising_configurations(context).front();
  }
  std::vector<Configuration> promising_configurations(const BuildContext& context) const override {
    const std::vector<Constraint> all = all_constraints(context);
    const Geometry g = context.problem.geometry();
    const int bytes = element_bytes(context);
    const Tunables usual = general(context);
    CheapestByKind<Tunables, std::tuple<int, int>> candidates;  // by columns and split
    candidates.offer({usual.OC_TILE, usual.split}, layout::cycles_of(usual, g, bytes), usual);
    for (const int promote : {0, 1})
      for (const int resident : {1, 0})
        for (const int taps : {3, 2, 4, 1})
          for (const auto& [tile, split, ahead] : tilings()) {
            Tunables t = usual;
            t.ahead = ahead;
            t.split = split;
            t.promote = promote;
            t.resident = resident;
            t.taps = taps;
            t.OC_TILE = tile;
            t.wide_stores = 1;
            const double cycles = layout::cycles_of(t, g, bytes);
            if (cycles >= candidates.least({tile, split})) continue;
            const bool valid = std::any_of(std::begin(kStages), std::end(kStages), [&](int count) {
              t.stages = count;
              return satisfies(all, t);
            });
            if (valid) candidates.offer({tile, split}, cycles, t);
          }
    std::vector<Configuration> promising;
    const auto add = [&](const Tunables& t) {
      const Configuration configuration = to_configuration(t);
      if (std::find(promising.begin(), promising.end(), configuration) == promising.end())
        promising.push_back(configuration);
    };
    const std::vector<Tunables> cheapest = candidates.cheapest(3);
    for (const Tunables& t : cheapest) add(shared_sms(t, all, g, bytes, {3, 2}));
    add(shared_sms(cheapest.front(), all, g, bytes, {2}));  // where three do not fit the registers after all
    add(cheapest.front());
    return promising;
  }
  Configuration general_configuration(const BuildContext& context) const override {
    return to_configuration(general(context));
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const int bytes = element_bytes(context);
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const std::string kernel = "ct1d::wgmma::kernel" + arguments(t, context);
    const std::string pack = "ct1d::wgmma::pack" + arguments(t, context);
    Program program;
    program.unit.source = "#include \"kernels/wgmma/kernel.cuh\"\n";
    program.unit.kernels = {kernel, pack};
    program.run = {{kernel, layout::run_shape(t, g, bytes)}};
    if (t.split > 1) {
      const std::string finish = "ct1d::wgmma::finish" + arguments(t, context);
      program.unit.kernels.push_back(finish);
      program.run.push_back({finish, layout::run_shape(t, g, bytes, 1)});
      program.workspace_bytes = static_cast<std::size_t>(layout::workspace_bytes(t, g, bytes));
    }
    program.prepare = {{pack, layout::prepare_shape(t, g, bytes)}};
    program.packed_bytes = static_cast<std::size_t>(layout::packed_bytes(t, g, bytes));
    // Whole tiles, of channels and taps in whole steps: what is executed, not what was asked for.
    const double sums = static_cast<double>(layout::tile_count(t, g, bytes)) * layout::kBlockPositions * t.OC_TILE;
    const auto steps = static_cast<double>(layout::extent_of(t, g).steps);
    program.work.tensor_fp16 = sums * steps * 2 * t.products * t.taps * layout::kStepChannels;
    if (t.promote == 1) program.work.fma_fp32 = sums * steps * 2;  // promotion
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_wgmma() {
  static const WgmmaFamily family;
  return family;
}

}  // namespace tuner
