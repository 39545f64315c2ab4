// Resources by the compiler's report (--ptxas-options=-v), as it stands in NVRTC's log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

/// Largest over the entry functions of the log.
struct PtxasReport {
  int kernels = 0;  // entry functions reported
  int registers = 0;
  int spill_bytes = 0;  // stores + loads of an entry function and the functions it was compiled with
  int static_shared_bytes = 0;
  int barriers = 0;
  /// The first remark that matrix instructions lose what they were written for, from its code on: "(C7510) Potential
  /// Performance Loss: wgmma.mma_async instructions are serialized due to ...". Codes C7500 to C7599
  /// but injected arrivals.
  std::string matrix_remark;
};

/// `spills_of`: symbols of the entry functions whose spills count; empty: all.
PtxasReport parse_ptxas_report(std::string_view log, const std::vector<std::string>& spills_of = {});

/// Why a variant is not worth running, by its report: what was said about its matrix instructions (serialised, waits
/// put between them, setmaxnreg ignored) and, unless `spills_allowed`, spills.
std::optional<std::string> objection_to(const PtxasReport& report, bool spills_allowed);

/// The log without the lines that say how long a kernel took: what else it says is the same at every compile.
std::string without_compile_times(std::string_view log);

}  // namespace tuner
