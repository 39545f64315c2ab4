// The `cheat` family: right where its tunable `cheat` is "honest", and passing off something else elsewhere. Test
// builds only.
#include <array>

#include "tests/families/cheat/layout.h"
#include "tests/families/named.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::cheat::Tunables;

/// In the order of ct1d::cheat::Cheat.
constexpr std::array kCheats{"honest",
                             "stale_output",
                             "mutated_input",
                             "small_zeros",
                             "half_written",
                             "every_second_output",
                             "cached",
                             "fingerprint_cached",
                             "late_skip",
                             "late_corruption",
                             "tf32_as_fp32",
                             "fp16_as_fp32",
                             "one_wrong_channel",
                             "shifted_row",
                             "swapped_index",
                             "reads_neighbour",
                             "nondeterministic",
                             "nondeterministic_openly",
                             "accumulates",
                             "accumulates_over_numbers",
                             "nan_wildcard",
                             "writes_past_the_end"};
static_assert(kCheats.size() == ct1d::cheat::kPastTheEnd + 1);

Configuration named(const char* cheat) { return {{"cheat", std::string(cheat)}}; }

class CheatFamily final : public Family {
 public:
  std::string_view name() const override { return "cheat"; }
  std::string_view summary() const override { return "cheats where it is told to; in test builds only"; }
  std::optional<std::string> refuses(const BuildContext&) const override { return std::nullopt; }
  std::vector<Tunable> tunables() const override {
    return {{"cheat", {kCheats.begin(), kCheats.end()}, "what is passed off as the result"}};
  }
  std::vector<Constraint> constraints(const BuildContext&) const override { return {}; }
  Configuration default_configuration(const BuildContext&) const override { return named("honest"); }
  Configuration general_configuration(const BuildContext&) const override { return named("honest"); }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t{place_of_name(kCheats, configuration)};
    const int bytes = bytes_of(element_of(context.accuracy));
    const ct1d::Geometry g = context.problem.geometry();
    const std::string kernel =
        "ct1d::cheat::kernel<" + template_arguments(t) + ", " + element_name(context.accuracy) + ">";
    Program program;
    program.unit.source = "#include \"tests/families/cheat/kernel.cuh\"\n";
    program.unit.kernels = {kernel};
    program.run = {{kernel, ct1d::cheat::run_shape(t, g, bytes)}};
    program.workspace_bytes = static_cast<std::size_t>(ct1d::cheat::workspace_bytes(t, g, bytes));
    program.deterministic = t.cheat != ct1d::cheat::kSaltedOpenly;
    program.work.fma_fp32 = context.problem.flop();
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_cheat() {
  static const CheatFamily family;
  return family;
}

}  // namespace tuner
