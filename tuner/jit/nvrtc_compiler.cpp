// NVRTC as a backend: requests to the zygote, reports into facts.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "tuner/core/hash.h"
#include "tuner/jit/compile_service.h"
#include "tuner/jit/includes.h"
#include "tuner/jit/nvrtc_library.h"
#include "tuner/jit/ptxas_report.h"
#include "tuner/jit/zygote.h"

namespace tuner {
namespace {

/// Digits of "sm_90a".
std::string digits_of(const std::string& arch) {
  std::string digits;
  for (char c : arch)
    if (c >= '0' && c <= '9') digits += c;
  return digits;
}

class NvrtcBackend final : public CompileBackend {
 public:
  explicit NvrtcBackend(const CompilerOptions& options)
      : options_(options),
        zygote_(options.program, options.nvrtc.empty() ? nvrtc_candidates() : options.nvrtc),
        base_options_{"--gpu-architecture=" + options.arch, "--std=c++17", "-default-device", "--ptxas-options=-v",
                      // Nothing on disk is ever included: the program carries what a unit may use.
                      "--no-source-include"} {}

  void start() override {
    found_ = zygote_.start();
    std::istringstream words(found_.archs);
    const std::vector<std::string> archs{std::istream_iterator<std::string>(words), {}};
    if (std::find(archs.begin(), archs.end(), digits_of(options_.arch)) == archs.end())
      throw EnvironmentError(fmt::format("NVRTC {} ({}) cannot compile for {}; it knows sm_{}", found_.version,
                                         found_.path, options_.arch, fmt::join(archs, ", sm_")));
  }

  std::string identity() const override { return "NVRTC " + found_.version; }

  std::vector<std::string> warnings() const override {
    if (found_.fixed_addresses) return {};
    return {
        "address randomisation could not be turned off: compiling anew may give other machine code for the same "
        "variant"};
  }

  std::string key(const CompileUnit& unit) const override {
    std::string extra = found_.fingerprint;
    for (const std::string& option : base_options_) extra += " " + option;
    return compile_key(unit, options_.arch, identity(), extra);
  }

  Expected<Artefact> build(const CompileUnit& unit, int cancel) override {
    auto reply = ask(unit, false, cancel);
    if (!reply) return reply.failure();
    Artefact artefact;
    const PtxasReport report = parse_ptxas_report(reply->log);
    artefact.facts.registers = report.registers;
    artefact.facts.spill_bytes = report.spill_bytes;
    artefact.facts.static_shared_bytes = report.static_shared_bytes;
    artefact.facts.barriers = report.barriers;
    artefact.facts.compile_ms = reply->compile_ms;
    for (std::size_t i = 0; i < unit.kernels.size(); ++i)
      artefact.facts.symbols.emplace_back(unit.kernels[i], reply->lowered_names[i]);
    artefact.facts.log = std::move(reply->log);
    artefact.content = std::move(reply->code);
    return artefact;
  }

  Expected<std::string> ptx(const CompileUnit& unit, int cancel) override {
    auto reply = ask(unit, true, cancel);
    if (!reply) return Failure{Outcome::compile_failed, reply.failure().reason, reply.failure().log};
    return std::move(reply->code);
  }

 private:
  Expected<NvrtcReply> ask(const CompileUnit& unit, bool want_ptx, int cancel) {
    NvrtcRequest request;
    request.limits = options_.limits;
    request.unit = unit;
    request.unit.options = base_options_;
    request.unit.options.insert(request.unit.options.end(), unit.options.begin(), unit.options.end());
    request.headers = included_files(unit.source);
    request.want_ptx = want_ptx;
    auto reply = zygote_.compile(request, cancel);
    if (!reply)
      return Failure{
          Outcome::unproven, "the compile was abandoned, or its process ended from outside or not started", {}};
    reply->log = without_compile_times(reply->log);
    if (!reply->ok) return Failure{reply->died ? Outcome::crashed : Outcome::compile_failed, reply->reason, reply->log};
    return std::move(*reply);
  }

  CompilerOptions options_;
  Zygote zygote_;
  NvrtcFound found_;
  std::vector<std::string> base_options_;
};

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(const CompilerOptions& options) {
  return std::make_unique<CompileService>(std::make_unique<NvrtcBackend>(options),
                                          ArtifactCache(options.cache / "cubins", ".cubin"), options.jobs);
}

}  // namespace tuner
