// Host facts of the `wgmma_shared` family.
#include <algorithm>
#include <cstdint>

#include "kernels/wgmma_shared/layout.h"
#include "tuner/family/hopper_blocks.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::Geometry;
using ct1d::int64;
using ct1d::wgmma_shared::Tunables;
namespace layout = ct1d::wgmma_shared;

int element_bytes(const BuildContext& context) { return bytes_of(element_of(context.accuracy)); }

layout::Facts facts_of(const BuildContext& context) {
  return layout::facts_of(context.problem.geometry(), element_bytes(context));
}

/// Whether sums of a tile leave their accumulators before its end.
bool promotes(const BuildContext& context) {
  const int most = context.accuracy == Accuracy::fp16   ? layout::kMostTermsHalf
                   : context.accuracy == Accuracy::bf16 ? layout::kMostTermsBfloat16
                                                        : layout::kMostTerms;
  const layout::Facts facts = facts_of(context);
  return layout::promoted_stages(facts.taps, facts.steps, most) < facts.steps;
}

/// Registers of a thread that multiplies: sums, products in flight, addresses; and of one that converts. Fitted to
/// instances that ptxas reports without spills.
struct Demand {
  int bytes;      // of an element
  bool promotes;  // sums leave their accumulators within a tile
  bool more;      // channels beyond kRows
};
Demand demand_of(const BuildContext& context) {
  return {element_bytes(context), promotes(context), facts_of(context).more > 0};
}
int consumer_needs(const Tunables& t, const Demand& d) {
  const int more = d.more ? 8 : 0;
  if (d.bytes == 2) {
    const int rest = t.shadow == 1 ? 56 : t.shadow == 2 && t.T == 192 ? 32 : 40;
    return 3 * t.T / 4 + (d.promotes ? t.T / 2 : 0) + rest + more;
  }
  if (t.products == 1) return t.T + 32 + more;
  return 3 * t.T / 2 + (t.shadow == 2 ? 48 : t.T == 128 ? 16 : 24);
}
int producer_needs(const Tunables& t, int bytes) {
  return t.stage_steps() * t.T / (8 / bytes) + (bytes == 2 ? 32 : 24);
}

/// The kernel counts positions, tiles and stages in 32 bits.
bool fits_int(const Geometry& g) {
  constexpr double kMost = 2147483647.0 - 65536;
  const auto real = [](int64 value) { return static_cast<double>(value); };
  const double reach = real(g.length_out) + real(g.padding) + real(g.dilation) * real(g.kernel_size);
  const double tiles = (reach / 64 + 1) * std::max(1.0, real(g.batch));
  return std::max({reach, real(g.length), tiles * 2 * (layout::kMostIn / layout::kStepChannels)}) < kMost;
}

unsigned shared_bytes(const Tunables& t, const BuildContext& context) {
  return layout::run_shape(t, context.problem.geometry(), element_bytes(context)).shared_bytes;
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
      constraint<T>(
          {"T"},
          "T must be 64, 96 or 128 (of 16 bits 64, 128 or 192): whole columns of a converting warp, a flag for "
          "four outputs (of 192 for eight)",
          [bytes](const T& t) { return t.T == 64 || t.T == 128 || t.T == (bytes == 2 ? 192 : 96); }),
      constraint<T>({"products"}, "products must be 3 or 1",
                    [](const T& t) { return t.products == 3 || t.products == 1; }),
      constraint<T>(
          {"T", "products"}, "more than 128 output channels need one product and T of 128: 64 positions a consumer",
          [more = facts_of(context).more > 0](const T& t) { return !more || (t.T == 128 && t.products == 1); }),
      constraint<T>({"producers"}, "producers must be 4 or 8",
                    [](const T& t) { return t.producers == 4 || t.producers == 8; }),
      constraint<T>(
          {"stages", "producers"},
          "stages must be the producers' number or twice it: a warp that waits for a slot must have filled it "
          "before, or it takes an old phase for the new one",
          [](const T& t) { return t.stages == t.producers || t.stages == 2 * t.producers; }),
      constraint<T>({"channels"}, "channels must be 16 or 32",
                    [](const T& t) { return t.channels == 16 || t.channels == 32; }),
      constraint<T>({"products", "channels"},
                    "a stage of 32 channels needs one product: of three the sums are promoted every 16",
                    [](const T& t) { return t.channels == 16 || t.products == 1; }),
      constraint<T>({"channels"}, "channels in, padded to sixteens, must fill whole stages",
                    [steps = facts_of(context).steps](const T& t) { return steps % t.stage_steps() == 0; }),
      constraint<T>({"producers", "channels"},
                    "each producer of fp32 must have a stage of every tile: it posts the largest value for the scale",
                    [bytes, steps = facts_of(context).steps](const T& t) {
                      return bytes == 2 || t.producers <= steps / t.stage_steps();
                    }),
      constraint<T>({"stages", "channels"},
                    "a ring must not hold more stages than a tile has, of 16 bits two tiles: what was posted of a tile "
                    "is read two tiles later, of 16 bits there are four records of tiles",
                    [bytes, steps = facts_of(context).steps](const T& t) {
                      return t.stages <= (bytes == 2 ? 2 : 1) * steps / t.stage_steps();
                    }),
      constraint<T>({"products", "shadow"},
                    "shadow must be 1, or 2 with three products: one has a single group a stage; of 16 bits, which are "
                    "stored in parts, 1, 2 or 4",
                    [bytes](const T& t) {
                      return t.shadow == 1 || (t.shadow == 2 && t.products == 3) ||
                             ((t.shadow == 2 || t.shadow == 4) && bytes == 2);
                    }),
      constraint<T>({"blocks"}, "blocks must not exceed the device's SMs: one is resident on each",
                    [most = device.sm_count](const T& t) { return most == 0 || t.blocks <= most; }),
      constraint<T>({"streaming"}, "streaming must be 0 or 1",
                    [](const T& t) { return t.streaming == 0 || t.streaming == 1; }),
      constraint<T>({"producers", "consumer_registers"},
                    "consumer_registers must be a multiple of 8 of no less than all threads start with, and leave the "
                    "producers 24",
                    [](const T& t) {
                      return t.consumer_registers % 8 == 0 && t.consumer_registers >= t.start_registers() &&
                             t.producer_registers() >= 24;
                    }),
      constraint<T>(
          {"T", "products", "consumer_registers", "shadow"}, "sums and products in flight must fit consumer_registers",
          [demand = demand_of(context)](const T& t) { return consumer_needs(t, demand) <= t.consumer_registers; }),
      constraint<T>({"T", "producers", "consumer_registers", "channels"},
                    "a stage of x, T / 2 values a lane of 16 channels, must fit the registers that the consumers leave",
                    [bytes](const T& t) { return producer_needs(t, bytes) <= t.producer_registers(); }),
      constraint<T>({"T", "products", "stages", "channels"},
                    "weights and stages must fit the device's shared memory a block",
                    [context](const T& t) {
                      return shared_bytes(t, context) <= static_cast<unsigned>(context.device.shared_per_block_optin);
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const BuildContext& context) {
  using T = Tunables;
  return {
      constraint<T>({"products"}, "class tf32 needs no more than one product",
                    [enough = context.accuracy == Accuracy::tf32](const T& t) { return !enough || t.products == 1; }),
      as_many_blocks_as_listed<T>(context.device),
      constraint<T>({"T", "products", "consumer_registers", "shadow"},
                    "consumer_registers must not exceed what sums need by 40 or more, unless the threads start with it",
                    [demand = demand_of(context)](const T& t) {
                      return t.consumer_registers < consumer_needs(t, demand) + 40 ||
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
  t.T = facts_of(context).more > 0 ? 128 : 64;
  t.products = context.accuracy == Accuracy::fp32 ? 3 : 1;
  t.stages = 4;
  t.producers = 4;
  t.shadow = element_bytes(context) == 2 ? 2 : 1;
  t.consumer_registers = consumer_needs(t, demand_of(context)) > 168 ? 208 : 168;
  t.blocks = blocks_for(context.device);
  return t;
}

/// Rows short of a tile and long ones that end in a short tile leave outputs that do not exist.
std::vector<int> tiles_by_waste(const Geometry& g) {
  std::vector<int> tiles{128, 96, 64};
  std::stable_sort(tiles.begin(), tiles.end(), [&g](int a, int b) {
    const auto cost = [&g](int tile) { return ct1d::ceil_div(g.length_out, tile) * (tile + 24); };
    return cost(a) < cost(b);
  });
  return tiles;
}

class WgmmaSharedFamily final : public Family {
 public:
  std::string_view name() const override { return "wgmma_shared"; }
  std::string_view summary() const override {
    return "Hopper's matrix units on fp16 parts of fp32, or on 16 bits as they are, which warps of their own bring "
           "into "
           "shared memory, weights resident there, up to 144 channels in and 136 out, an exact path for what scales do "
           "not "
           "serve";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    if (context.device.arch != "sm_90a") return "wgmma_shared needs Hopper's matrix instructions: sm_90a";
    if (g.stride != 1) return "wgmma_shared serves stride 1";
    if (g.groups != 1) return "wgmma_shared serves one group";
    if (g.in_channels > layout::kMostIn || g.out_channels > layout::kRows + layout::kMoreChannels)
      return "wgmma_shared serves up to 144 channels in and 136 out";
    if (context.accuracy == Accuracy::fp32 && g.out_channels > layout::kRows)
      return "wgmma_shared in class fp32 serves up to 128 channels out";
    if (context.accuracy == Accuracy::fp32 && g.in_channels * g.kernel_size < 16)
      return "wgmma_shared in class fp32 needs sums of 16 products or more: two fp16 parts leave a single one an error "
             "of 2^-21";
    if (!fits_int(g)) return "wgmma_shared counts positions and tiles in 32 bits";
    if (g.kernel_size > 8 || shared_bytes(smallest(context), context) > static_cast<unsigned>(layout::kSharedBudget))
      return "wgmma_shared keeps all weights and a ring of x, with what taps reach back, in shared memory: there is no "
             "room for so many taps or so wide a dilation";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"T", {128, 96, 64, 192}, "outputs along t of a tile"},
            {"products", {3, 1}, "3: two fp16 parts of each operand; 1: one part, or 16 bits as they are"},
            {"stages", {4, 8, 16}, "of the ring of converted x"},
            {"producers", {4, 8}, "warps that convert x, a stage each at a time"},
            {"consumer_registers",
             {128, 144, 160, 168, 176, 192, 200, 208},
             "of a thread that multiplies; the rest converts"},
            {"shadow", {1, 2, 4}, "groups of products that run while a finished tile is stored; of 16 bits: stages"},
            {"strip", {0, 1, 5, 25}, "neighbouring tiles that a block walks; 0: all of its own"},
            {"blocks", block_values(), "persistent blocks, one an SM"},
            {"streaming", {0, 1}, "1: stores of y are marked as read by nobody soon"},
            {"channels", {16, 32}, "of a stage: half as many barriers, twice as much on its way to a producer"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override { return all_constraints(context); }

  Configuration default_configuration(const BuildContext& context) const override {
    const std::vector<Constraint> all = all_constraints(context);
    Tunables t = smallest(context);
    // Of 16 bits a stage of 32 channels took 0.851 ms on the seed problem, of 16 channels 0.884.
    for (const int channels : bytes_of(element_of(context.accuracy)) == 2 ? std::vector{32, 16} : std::vector{16})
      for (const int tile : tiles_by_waste(context.problem.geometry()))
        for (const int producers : {8, 4})
          for (const int stages : {8, 16, 4})
            for (const int registers : {160, 144, 128, 208, 176, 168, 192}) {
              t.channels = channels;
              t.T = tile;
              t.producers = producers;
              t.stages = stages;
              t.consumer_registers = registers;
              if (satisfies(all, t)) return to_configuration(t);
            }
    return to_configuration(smallest(context));
  }
  Configuration general_configuration(const BuildContext& context) const override {
    return to_configuration(smallest(context));
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    static constexpr const char* kElements[] = {"float", "ct1d::Half", "ct1d::Bfloat16"};  // in Element's order
    const Element element = element_of(context.accuracy);
    const int bytes = bytes_of(element);
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const layout::Facts facts = facts_of(context);
    std::string arguments = "<" + template_arguments(t);
    for (const int64 fact : {facts.taps, facts.dilation, facts.halo, facts.steps, facts.more})
      arguments += ", " + std::to_string(fact);
    arguments += std::string(", ") + kElements[static_cast<int>(element)] + ">";
    const std::string kernel = "ct1d::wgmma_shared::kernel" + arguments;
    const std::string pack = "ct1d::wgmma_shared::pack" + arguments;
    Program program;
    program.unit.source = "#include \"kernels/wgmma_shared/kernel.cuh\"\n";
    program.unit.kernels = {kernel, pack};
    program.run = {{kernel, layout::run_shape(t, g, bytes)}};
    program.prepare = {{pack, layout::prepare_shape(t, g, bytes)}};
    program.packed_bytes = static_cast<std::size_t>(layout::packed_bytes(t, g, bytes));
    // Whole tiles and steps: what is executed, not what was asked for.
    const double sums =
        static_cast<double>(layout::tile_count(t, g)) * t.T * static_cast<double>(layout::kRows + facts.more);
    const auto channels = static_cast<double>(facts.steps * layout::kStepChannels);
    const auto taps = static_cast<double>(g.kernel_size);
    program.work.tensor_fp16 = sums * 2 * t.products * taps * channels;
    if (t.products == 3) program.work.fma_fp32 = sums * static_cast<double>(facts.steps) * 2;  // promotion
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_wgmma_shared() {
  static const WgmmaSharedFamily family;
  return family;
}

}  // namespace tuner
