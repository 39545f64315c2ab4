// `tuner inspect`: everything about one variant of a result, in a folder; optionally run alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "tuner/commands/command_line.h"
#include "tuner/commands/host_proof.h"
#include "tuner/commands/interrupt.h"
#include "tuner/commands/target.h"
#include "tuner/core/file.h"
#include "tuner/core/hash.h"
#include "tuner/core/json.h"
#include "tuner/core/result.h"
#include "tuner/family/checks.h"
#include "tuner/jit/process.h"

namespace tuner {
namespace {

struct Found {
  const ProblemRecord* problem;
  const ClassRecord* record;
  const VariantRecord* variant;
};

/// The first problem and class that holds the variant, of those asked for: its id does not depend on them.
Found find_in(const RunResult& result, const InspectOptions& options) {
  const auto asked = [](const std::string& wanted, std::string_view name) { return wanted.empty() || wanted == name; };
  for (const ProblemRecord& problem : result.problems)
    for (const ClassRecord& record : problem.classes)
      if (asked(options.problem, problem.name) && asked(options.accuracy, to_string(record.accuracy)))
        if (const VariantRecord* variant = options.variant.empty() ? nullptr : find_variant(record, options.variant))
          return {&problem, &record, variant};
  throw UsageError(fmt::format("{}: {}no variant, or several, whose id starts with `{}`", options.result.string(),
                               options.problem.empty() && options.accuracy.empty()
                                   ? ""
                                   : fmt::format("of problem `{}` and class `{}`: ", options.problem, options.accuracy),
                               options.variant));
}

/// The disassembly by whichever tool of the CUDA toolkit is on PATH, or a line that says none is.
std::string disassemble(const std::filesystem::path& cubin) {
  const CompileLimits limits{60, std::size_t{4} << 30};
  const std::vector<std::vector<std::string>> tools{{"cuobjdump", "--dump-sass", cubin.string()},
                                                    {"nvdisasm", cubin.string()}};
  for (const auto& tool : tools)
    if (const ProcessEnd end = run_program(limits, -1, tool); end.success()) return end.errors;
  return "No disassembler: neither cuobjdump nor nvdisasm of the CUDA toolkit is on PATH.\n";
}

std::string facts_text(const Found& found, const CompiledUnit& unit, const Program& program) {
  const VariantRecord& variant = *found.variant;
  std::string text =
      fmt::format("{} {}\nproblem {} ({}), class {}\n", variant.id, to_string(variant.variant.tunables),
                  found.problem->name, summary(found.problem->problem), to_string(found.record->accuracy));
  text += fmt::format("recorded outcome: {} {}\n", to_string(variant.outcome), variant.reason);
  text += fmt::format(
      "registers {}, spills {} bytes, static shared {} bytes, cubin {}{}\n", unit.registers, unit.spill_bytes,
      unit.static_shared_bytes, unit.sha256,
      unit.sha256 == variant.cubin_sha256 ? " (as recorded)" : " (NOT the recorded one: sources or compiler changed)");
  for (const auto* launches : {&program.prepare, &program.run})
    for (const Launch& launch : *launches)
      text += fmt::format("{}: grid {}x{}x{}, block {}x{}x{}, dynamic shared {} bytes: {}\n",
                          launches == &program.run ? "run" : "prepare, once per weights", launch.shape.grid_x,
                          launch.shape.grid_y, launch.shape.grid_z, launch.shape.block_x, launch.shape.block_y,
                          launch.shape.block_z, launch.shape.shared_bytes, launch.kernel);
  return text;
}

Json launch_json(const char* step, const Launch& launch, const CompiledUnit& unit, const std::string& arguments,
                 const Json& pointers) {
  const ct1d::LaunchShape& shape = launch.shape;
  const std::string* symbol = unit.symbol(launch.kernel);
  return {{"step", step},
          {"kernel", launch.kernel},
          {"symbol", symbol ? Json(*symbol) : Json()},
          {"grid", {shape.grid_x, shape.grid_y, shape.grid_z}},
          {"block", {shape.block_x, shape.block_y, shape.block_z}},
          {"cluster_x", shape.cluster_x},
          {"shared_bytes", shape.shared_bytes},
          {"arguments", arguments},
          {"pointers", pointers}};
}

template <class Arguments>
std::string hex_of(const Arguments& arguments) {
  std::array<unsigned char, sizeof arguments> bytes;
  std::memcpy(bytes.data(), &arguments, bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// All that another program needs to launch the cubin: kernels in order, and the one argument of each as bytes, in
/// which its pointers are null and stand at the offsets named.
std::string launches_text(const Problem& problem, const Program& program, const CompiledUnit& unit) {
  ct1d::RunArguments run{};
  ct1d::PrepareArguments prepare{};
  run.geometry = prepare.geometry = problem.geometry();
  const Json run_pointers{{"x", offsetof(ct1d::RunArguments, x)},
                          {program.packed_bytes > 0 ? "packed" : "w", offsetof(ct1d::RunArguments, weights)},
                          {"bias", offsetof(ct1d::RunArguments, bias)},
                          {"y", offsetof(ct1d::RunArguments, y)},
                          {"workspace", offsetof(ct1d::RunArguments, workspace)}};
  const Json prepare_pointers{{"w", offsetof(ct1d::PrepareArguments, w)},
                              {"packed", offsetof(ct1d::PrepareArguments, packed)}};
  Json launches = Json::array();
  for (const Launch& launch : program.prepare)
    launches.push_back(launch_json("prepare", launch, unit, hex_of(prepare), prepare_pointers));
  for (const Launch& launch : program.run)
    launches.push_back(launch_json("run", launch, unit, hex_of(run), run_pointers));
  return dump_json({{"schema_version", 1},
                    {"launches", std::move(launches)},
                    {"elements",
                     {{"x", problem.x_count()},
                      {"w", problem.w_count()},
                      {"bias", problem.bias ? problem.out_channels : 0},
                      {"y", problem.y_count()}}},
                    {"packed_bytes", program.packed_bytes},
                    {"workspace_bytes", program.workspace_bytes}});
}

/// The unit's source and, below it, each file of the kernels that it includes.
std::string whole_source(const CompileUnit& unit) {
  std::string text = unit.source;
  for (const std::string& kernel : unit.kernels) text += "// kernel: " + kernel + "\n";
  for (const auto& [path, content] : embedded_sources())
    if (unit.source.find(path) != std::string::npos || path.rfind("kernels/common/", 0) == 0 ||
        unit.source.find(std::string(path.substr(0, path.rfind('/') + 1))) != std::string::npos)
      text += fmt::format("\n//===== {} =====\n{}", path, content);
  return text;
}

Evaluation run_alone(const Found& found, const BuildContext& context, Target& target, const CompiledUnit& unit,
                     const InspectOptions& inspected, const Settings& settings) {
  if (target.measured()) {
    if (const auto loaded = target.worker->load(context, Values::normal, 1); !loaded)
      return failed_evaluation(loaded.failure());
    MeasureOptions options;
    options.l2 = l2_named(inspected.l2);
    options.regime = regime_named(inspected.regime);
    return target.worker->evaluate(found.variant->variant, unit, &options);
  }
  HostProver prover(settings, job_count(0), 1);
  if (!prover.available()) return failed_evaluation({Outcome::unproven, "no GPU and no C++ compiler", {}});
  for (const std::string& warning : prover.compiler().warnings()) fmt::print(stderr, "warning: {}\n", warning);
  std::vector<HostProver::Proof> proofs;
  prover.prove(context, {found.variant->variant},
               [&](std::size_t, const HostProver::Proof& proof) { proofs.push_back(proof); });
  return proofs.empty() ? Evaluation{} : proofs.front().evaluation;
}

}  // namespace

int inspect(const InspectOptions& options, const Settings& settings) {
  const RunResult result = read_result(options.result);
  const Found found = find_in(result, options);
  const Family* family = find_family(found.variant->variant.family);
  if (!family)
    throw UsageError(
        fmt::format("{}: family `{}` is not in this program", options.result.string(), found.variant->variant.family));
  const BuildContext context{found.problem->problem, found.record->accuracy, result.environment.device};
  const Configuration configuration = recorded_configuration(*family, context, found.variant->variant);
  InterruptGuard guard;
  DeviceChoice choice;
  if (!options.run) choice.kind = DeviceChoice::Kind::offline;
  Target target = open_target({.device = choice, .target = result.environment.device.arch}, settings);
  const Program program = family->build(context, configuration);
  auto compiling = target.nvrtc->compile(program.unit);
  if (!wait_unless_interrupted(compiling)) throw Interrupted{interrupt_signal()};
  const auto unit = compiling.get();

  const std::filesystem::path folder = options.out.empty() ? std::filesystem::path(found.variant->id) : options.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw EnvironmentError(fmt::format("{}: cannot create: {}", folder.string(), error.message()));
  write_file_atomically(folder / "source.cu", whole_source(program.unit));
  write_file_atomically(folder / "compile.log", unit ? unit->log : unit.failure().log);
  if (!unit) {
    fmt::print("{}: does not compile: {}\n{}\n", found.variant->id, unit.failure().reason,
               (folder / "compile.log").string());
    return 1;
  }
  if (const auto ptx = target.nvrtc->ptx(program.unit)) write_file_atomically(folder / "kernel.ptx", *ptx);
  write_file_atomically(folder / "kernel.cubin", read_file(unit->file));
  write_file_atomically(folder / "kernel.sass", disassemble(unit->file));
  write_file_atomically(folder / "launches.json", launches_text(context.problem, program, *unit));
  const std::string facts = facts_text(found, *unit, program);
  write_file_atomically(folder / "facts.txt", facts);
  fmt::print("{}Written: {}/ source.cu kernel.ptx kernel.cubin kernel.sass launches.json compile.log facts.txt\n",
             facts, folder.string());
  fmt::print("Profile: ncu --target-processes all --set full --clock-control none tuner inspect {} {} --run\n",
             options.result.string(), found.variant->id);
  if (!options.run) return 0;
  const Evaluation evaluation = run_alone(found, context, target, *unit, options, settings);
  fmt::print("Run on {}: {} {}", target.measured() ? target.environment.device.name : "the CPU (a cut problem)",
             to_string(evaluation.outcome), evaluation.reason);
  if (evaluation.errors)
    fmt::print("; largest error over bound: element {:.3g}, row {:.3g}", evaluation.errors->element,
               evaluation.errors->row);
  if (const auto& time = evaluation.time) {
    fmt::print("; median {:.6g} ms, 95 % [{:.6g}, {:.6g}], {} samples, L2 {}, {}", time->ms.median, time->ms.low,
               time->ms.high, time->samples.size(), time->l2, time->regime);
    if (time->clock_mhz.median > 0) fmt::print(", SM clock {:.0f} MHz", time->clock_mhz.median);
  }
  fmt::print("\n{}", evaluation.log);
  return evaluation.outcome == Outcome::ok ? 0 : 1;
}

}  // namespace tuner
