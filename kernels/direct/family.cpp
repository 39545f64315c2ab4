// Host facts of the `direct` family.
#include "kernels/direct/layout.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::BlockShape;
using ct1d::direct::Tunables;

class DirectFamily final : public Family {
 public:
  std::string_view name() const override { return "direct"; }
  std::string_view summary() const override {
    return "x window and weights in shared memory, two words of it read for each multiply: the starting point";
  }
  std::optional<std::string> refuses(const BuildContext&) const override { return std::nullopt; }

  std::vector<Tunable> tunables() const override {
    return {{"T", {32, 64, 128, 256}, "outputs along t of a block"},
            {"OC_TILE", {1, 8, 16, 32}, "output channels of a block"},
            {"IC_TILE", {1, 8, 32, 64, 128}, "input channels in shared memory at a time"},
            {"block", {Block{32, 4}, Block{32, 8}, Block{64, 4}, Block{32, 16}, Block{128, 1}}, "threads of a block"},
            {"specialise", {1, 0}, "1: taps of a pass compiled in; 0: all geometry at run time"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override {
    const auto& device = context.device;
    const ct1d::Geometry g = context.problem.geometry();
    const int bytes = bytes_of(element_of(context.accuracy));
    using T = Tunables;
    return {
        constraint<T>({"block"}, "block.x * block.y must not exceed the device's threads a block",
                      [limit = device.max_threads_per_block](const T& t) { return t.block.threads() <= limit; }),
        constraint<T>({"T", "block"}, "T must be a multiple of block.x",
                      [](const T& t) { return t.T % t.block.x == 0; }),
        constraint<T>({"OC_TILE", "block"}, "OC_TILE must be a multiple of block.y",
                      [](const T& t) { return t.OC_TILE % t.block.y == 0; }),
        constraint<T>({"T", "OC_TILE", "block"}, "a thread keeps at most 16 outputs: each is a loop of its own",
                      [](const T& t) { return t.T * t.OC_TILE <= 16 * t.block.threads(); }),
        constraint<T>({"OC_TILE"}, "OC_TILE must not be twice the group's output channels or more (16 always may)",
                      [g](const T& t) { return t.OC_TILE <= 16 || t.OC_TILE < 2 * g.out_per_group(); }),
        constraint<T>({"IC_TILE"}, "IC_TILE must not be twice the group's input channels or more (32 always may)",
                      [g](const T& t) { return t.IC_TILE <= 32 || t.IC_TILE < 2 * g.in_per_group(); }),
        constraint<T>({"T", "OC_TILE", "IC_TILE", "specialise"},
                      "the tiles must fit the device's shared memory a block",
                      [g, bytes, limit = device.shared_per_block_optin](const T& t) {
                        return ct1d::direct::run_shape(t, g, bytes).shared_bytes <= static_cast<unsigned>(limit);
                      }),
    };
  }

  Configuration default_configuration(const BuildContext&) const override { return to_configuration(Tunables{}); }
  Configuration general_configuration(const BuildContext&) const override {
    Tunables general;
    general.specialise = 0;
    return to_configuration(general);
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const int bytes = bytes_of(element_of(context.accuracy));
    const ct1d::Geometry g = context.problem.geometry();
    std::string kernel = "ct1d::direct::kernel<";
    kernel += template_arguments(t) + ", ";
    kernel += std::to_string(t.specialise != 0 ? ct1d::direct::taps_a_pass(t, g, bytes) : 0) + ", ";
    kernel += element_name(context.accuracy) + ">";
    Program program;
    program.unit.source = "#include \"kernels/direct/kernel.cuh\"\n";
    program.unit.kernels = {kernel};
    program.run = {{kernel, ct1d::direct::run_shape(t, g, bytes)}};
    program.work.fma_fp32 = context.problem.flop();
    program.work.bytes = context.problem.min_bytes(bytes);
    program.work.shared_accesses = context.problem.flop() / 2 * 2 / 32;  // a word of x and one of w for every multiply
    return program;
  }
};

}  // namespace

const Family& family_direct() {
  static const DirectFamily family;
  return family;
}

}  // namespace tuner
