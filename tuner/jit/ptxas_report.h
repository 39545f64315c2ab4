// Resources by the compiler's report (--ptxas-options=-v), as it stands in NVRTC's log.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

/// Largest over the entry functions of the log.
struct PtxasReport {
  int kernels = 0;  // entry functions reported
  int registers = 0;
  int spill_bytes = 0;  // stores + loads of an entry function and the functions it was compiled with
  int static_shared_bytes = 0;
  int barriers = 0;
};

PtxasReport parse_ptxas_report(std::string_view log);

/// The log without the lines that say how long a kernel took: what else it says is the same at every compile.
std::string without_compile_times(std::string_view log);

}  // namespace tuner
