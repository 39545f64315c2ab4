// Host facts of the `mma` family.
#include <algorithm>

#include "kernels/mma/layout.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::Geometry;
using ct1d::int64;
using ct1d::mma::Tunables;
namespace layout = ct1d::mma;

/// Registers that a thread needs: sums, x of a step and its parts, weights, addresses; fitted to what ptxas reports.
int64 registers_needed(const Tunables& t, bool fp32) {
  const int64 sums = 4 * t.m_tiles * t.n_tiles;
  const int64 operands = 4 * t.m_tiles * t.taps * t.parts();
  const int64 raw = fp32 ? 8 * t.taps : 0;
  return sums + operands + raw + 2 * t.taps * t.parts() + 44;
}
int64 registers_granted(const Tunables& t, const DeviceFacts& device) {
  const int64 share = device.registers_per_sm / (int64{t.threads()} * t.min_blocks) / 8 * 8;
  return std::min<int64>(device.max_registers_per_thread, share);
}

/// What the kernel asserts, and what the device grants: a configuration outside of these cannot run.
std::vector<Constraint> requirements(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  const DeviceFacts& device = context.device;
  const int bytes = bytes_of(element_of(context.accuracy));
  return {
      constraint<T>({"products"}, "class fp32 needs three products, 16-bit tensors take one",
                    [accuracy = context.accuracy, bytes](const T& t) {
                      return accuracy == Accuracy::fp32 ? t.products == 3
                                                        : t.products == 1 || (t.products == 3 && bytes == 4);
                    }),
      constraint<T>({"warps_m", "warps_n"}, "warps must not exceed the device's threads a block",
                    [limit = device.max_threads_per_block](const T& t) { return t.threads() <= limit; }),
      constraint<T>({"warps_m", "warps_n", "min_blocks"},
                    "min_blocks blocks must not exceed the device's threads an SM",
                    [limit = device.max_threads_per_sm](const T& t) { return t.threads() * t.min_blocks <= limit; }),
      constraint<T>({"stages"}, "stages must be 2 or more", [](const T& t) { return t.stages >= 2; }),
      constraint<T>(
          {"m_tiles", "n_tiles", "warps_m", "warps_n", "products", "taps", "min_blocks"},
          "sums, x and weights must fit the registers that min_blocks leaves",
          [device, bytes](const T& t) { return registers_needed(t, bytes == 4) <= registers_granted(t, device); }),
      constraint<T>({"m_tiles", "n_tiles", "warps_m", "warps_n", "stages", "products", "taps", "fold"},
                    "the stages must fit the device's shared memory a block",
                    [g, bytes, limit = device.shared_per_block_optin](const T& t) {
                      return layout::shared_bytes(t, layout::plan_of(t, g), bytes) <= limit;
                    }),
      constraint<T>({"m_tiles", "n_tiles", "warps_m", "warps_n", "stages", "products", "taps", "fold", "min_blocks"},
                    "min_blocks blocks must fit the device's shared memory an SM",
                    [g, bytes, device](const T& t) {
                      const int64 block = layout::shared_bytes(t, layout::plan_of(t, g), bytes);
                      return (block + device.shared_reserved_per_block) * t.min_blocks <= device.shared_per_sm;
                    }),
  };
}

/// What would run but is known not to pay, or only repeats another.
std::vector<Constraint> economies(const BuildContext& context) {
  using T = Tunables;
  const Geometry g = context.problem.geometry();
  return {
      constraint<T>({"products"}, "class tf32 needs no more than one product",
                    [one = context.accuracy == Accuracy::tf32](const T& t) { return !one || t.products == 1; }),
      constraint<T>({"fold"}, "fold is for groups of at most 8 input channels",
                    [g](const T& t) { return t.fold == 0 || g.in_per_group() <= 8; }),
      constraint<T>({"taps", "fold"}, "taps must not exceed what a phase has",
                    [g](const T& t) {
                      const int64 folded = layout::plan_of(t, g).folded;
                      return t.taps == 1 || (t.taps - 1) * folded < layout::taps_of(g);
                    }),
      constraint<T>({"n_tiles", "warps_n"}, "columns must not be twice the group's or more (32 always may)",
                    [g](const T& t) { return t.columns() <= 32 || t.columns() < 2 * g.out_per_group() * g.stride; }),
      constraint<T>({"warps_m", "warps_n"}, "a block must have 4 or 8 warps",
                    [](const T& t) { return t.threads() == 128 || t.threads() == 256; }),
      constraint<T>({"m_tiles", "n_tiles"}, "a warp must have 4 to 16 tiles",
                    [](const T& t) { return t.m_tiles * t.n_tiles >= 4 && t.m_tiles * t.n_tiles <= 16; }),
      constraint<T>({"warps_m", "warps_n", "min_blocks"}, "an SM must be left 8 to 16 warps",
                    [](const T& t) {
                      const int warps = t.threads() / 32 * t.min_blocks;
                      return warps >= 8 && warps <= 16;
                    }),
  };
}

/// Right for every problem and device: a tap at a time, nothing folded.
Tunables general(Accuracy accuracy) { return {2, 4, 4, 1, 2, accuracy == Accuracy::fp32 ? 3 : 1, 1, 0, 2}; }

class MmaFamily final : public Family {
 public:
  std::string_view name() const override { return "mma"; }
  std::string_view summary() const override {
    return "matrix units of sm_80 and newer: columns are output channels by phases, fp32 split into fp16 parts in "
           "registers, an exact path for what scales do not serve";
  }
  std::optional<std::string> refuses(const BuildContext& context) const override {
    const Geometry g = context.problem.geometry();
    if (context.device.compute_major < 8) return "mma needs matrix products of 16 terms: sm_80 or newer";
    if (context.accuracy == Accuracy::fp32 && layout::least_products(g) < layout::kLeastProducts)
      return "mma in class fp32 needs sums of 16 products or more: two fp16 parts leave a single one an error of 2^-21";
    if (g.stride > 1 && g.dilation > 1 &&
        static_cast<double>(g.kernel_size - 1) * static_cast<double>(g.dilation) / static_cast<double>(g.stride) >
            static_cast<double>(layout::kMostTaps))
      return "mma takes strided taps at neighbouring positions: at most 65536 of them, those between dilated taps too";
    const double columns = static_cast<double>(g.out_channels) * static_cast<double>(g.stride);
    const double terms = static_cast<double>(g.in_per_group() + 16) * static_cast<double>(layout::taps_of(g) + 16);
    if ((columns + 128.0 * static_cast<double>(g.groups)) * terms * 4 > 64e9)
      return "mma would pack weights of more than 64 GB, zeros between strided taps included";
    return std::nullopt;
  }

  std::vector<Tunable> tunables() const override {
    return {{"m_tiles", {1, 2, 4}, "tiles of 16 positions a warp"},
            {"n_tiles", {2, 4, 8}, "tiles of 8 columns (output channels by phases) a warp"},
            {"warps_m", {1, 2, 4, 8}, "warps along positions"},
            {"warps_n", {1, 2, 4}, "warps along columns"},
            {"stages", {2, 3, 4}, "buffers of the asynchronous pipeline"},
            {"products", {3, 1}, "3: operands split into two fp16 parts, sums promoted to fp32; 1: not split"},
            {"taps", {1, 2, 3, 4}, "products of 16 terms a stage, one scale and one promotion for all"},
            {"fold", {1, 0}, "1: few input channels share a product's 16 terms with neighbouring taps"},
            {"min_blocks", {1, 2, 3, 4}, "blocks an SM that the compiler leaves registers for"}};
  }

  std::vector<Constraint> constraints(const BuildContext& context) const override {
    std::vector<Constraint> all = requirements(context);
    for (Constraint& economy : economies(context)) all.push_back(std::move(economy));
    return all;
  }

  Configuration default_configuration(const BuildContext& context) const override {
    const std::vector<Constraint> all = constraints(context);
    const int products = context.accuracy == Accuracy::fp32 ? 3 : 1;
    const int wide = products == 3 ? 4 : 8;  // tiles that no compiler spills
    for (const int fold : {1, 0})
      for (const int taps : {products == 3 ? 1 : 2, 1})
        for (const Tunables& t :
             {Tunables{2, wide, 2, 2, 3, products, taps, fold, 2}, Tunables{2, wide, 4, 1, 3, products, taps, fold, 2},
              Tunables{2, 4, 4, 1, 3, products, taps, fold, 2}})
          if (satisfies(all, t)) return to_configuration(t);
    return general_configuration(context);
  }
  Configuration general_configuration(const BuildContext& context) const override {
    return to_configuration(general(context.accuracy));
  }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = to_tunables<Tunables>(configuration);
    const Geometry g = context.problem.geometry();
    const int bytes = bytes_of(element_of(context.accuracy));
    const std::string arguments = "<" + template_arguments(t) + ", " + element_name(context.accuracy) + ">";
    const std::string kernel = "ct1d::mma::kernel" + arguments;
    const std::string pack = "ct1d::mma::pack" + arguments;
    Program program;
    program.unit.source = "#include \"kernels/mma/kernel.cuh\"\n";
    program.unit.kernels = {kernel, pack};
    program.run = {{kernel, layout::run_shape(t, g, bytes)}};
    program.prepare = {{pack, layout::prepare_shape(t, g, bytes)}};
    program.packed_bytes = static_cast<std::size_t>(layout::packed_bytes(t, g, bytes));
    program.work.tensor_fp16 = context.problem.flop() * t.products;
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_mma() {
  static const MmaFamily family;
  return family;
}

}  // namespace tuner
