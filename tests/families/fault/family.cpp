// The `fault` family: right where its tunable `fault` is "none", wrong in the named way elsewhere. Test builds only.
#include <array>

#include "tests/families/fault/layout.h"
#include "tests/families/named.h"
#include "tuner/family/typed_family.h"

namespace tuner {
namespace {

using ct1d::fault::Tunables;

/// In the order of ct1d::fault::Fault.
constexpr std::array kFaults{"none",
                             "illegal_address",
                             "misaligned_address",
                             "shared_out_of_bounds",
                             "infinite_loop",
                             "trap",
                             "device_assert",
                             "late",
                             "compiler_memory",
                             "compiler_hang",
                             "syntax_error",
                             "worker_killed",
                             "worker_stopped",
                             "out_of_memory",
                             "too_much_shared",
                             "too_many_threads"};

/// The struct's number goes under its name in configurations.
Configuration named(const Tunables& tunables) {
  Configuration configuration = to_configuration(tunables);
  configuration.front().second = std::string(kFaults[static_cast<std::size_t>(tunables.fault)]);
  return configuration;
}

Tunables numbered(const Configuration& configuration) {
  Configuration numbers = configuration;
  for (auto& [name, value] : numbers)
    if (name == "fault") value = std::int64_t{place_of_name(kFaults, configuration)};
  return to_tunables<Tunables>(numbers);
}

/// What overwhelms a compiler stands in files of its own, as it is met whatever the template arguments.
const char* source_of(int fault) {
  switch (fault) {
    case ct1d::fault::kCompilerMemory:
      return "#include \"tests/families/fault/compiler_memory.cuh\"\n";
    case ct1d::fault::kCompilerHang:
      return "#include \"tests/families/fault/compiler_hang.cuh\"\n";
    default:
      return "#include \"tests/families/fault/kernel.cuh\"\n";
  }
}

class FaultFamily final : public Family {
 public:
  std::string_view name() const override { return "fault"; }
  std::string_view summary() const override { return "fails where it is told to; in test builds only"; }
  std::optional<std::string> refuses(const BuildContext&) const override { return std::nullopt; }

  std::vector<Tunable> tunables() const override {
    return {{"fault", {kFaults.begin(), kFaults.end()}, "what goes wrong"},
            {"block", {Block{128, 1}, Block{64, 1}, Block{256, 1}}, "threads of a block"},
            {"repeat", {1, 2, 4, 8}, "times that each sum is made"}};
  }

  std::vector<Constraint> constraints(const BuildContext&) const override {
    return {{{"fault", "block", "repeat"}, "a fault comes in one shape", [](const Configuration& configuration) {
               const Tunables t = numbered(configuration);
               return t.fault == ct1d::fault::kNone || (t.block.threads() == 128 && t.repeat == 1);
             }}};
  }

  Configuration default_configuration(const BuildContext&) const override { return named(Tunables{}); }
  Configuration general_configuration(const BuildContext&) const override { return named(Tunables{}); }

  Program build(const BuildContext& context, const Configuration& configuration) const override {
    const Tunables t = numbered(configuration);
    const int bytes = bytes_of(element_of(context.accuracy));
    const ct1d::Geometry g = context.problem.geometry();
    const std::string kernel =
        "ct1d::fault::kernel<" + template_arguments(t) + ", " + element_name(context.accuracy) + ">";
    Program program;
    program.unit.source = source_of(t.fault);
    program.unit.kernels = {kernel};
    program.run = {{kernel, ct1d::fault::run_shape(t, g, bytes)}};
    program.workspace_bytes = static_cast<std::size_t>(ct1d::fault::workspace_bytes(t, g, bytes));
    program.work.fma_fp32 = context.problem.flop();
    program.work.bytes = context.problem.min_bytes(bytes);
    return program;
  }
};

}  // namespace

const Family& family_fault() {
  static const FaultFamily family;
  return family;
}

}  // namespace tuner
