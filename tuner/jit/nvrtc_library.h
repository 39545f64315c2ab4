// NVRTC, found and loaded at run time. Used in the zygote and its children only.
#pragma once

#include <nvrtc.h>

#include <optional>
#include <string>
#include <vector>

#include "tuner/jit/nvrtc_messages.h"

namespace tuner {

/// The functions of NVRTC that are used, by its own names without the prefix.
struct NvrtcApi {
  decltype(&::nvrtcGetErrorString) get_error_string = nullptr;
  decltype(&::nvrtcVersion) version = nullptr;
  decltype(&::nvrtcGetNumSupportedArchs) get_num_supported_archs = nullptr;
  decltype(&::nvrtcGetSupportedArchs) get_supported_archs = nullptr;
  decltype(&::nvrtcCreateProgram) create_program = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy_program = nullptr;
  decltype(&::nvrtcAddNameExpression) add_name_expression = nullptr;
  decltype(&::nvrtcCompileProgram) compile_program = nullptr;
  decltype(&::nvrtcGetLoweredName) get_lowered_name = nullptr;
  decltype(&::nvrtcGetCUBINSize) get_cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) get_cubin = nullptr;
  decltype(&::nvrtcGetPTXSize) get_ptx_size = nullptr;
  decltype(&::nvrtcGetPTX) get_ptx = nullptr;
  decltype(&::nvrtcGetProgramLogSize) get_program_log_size = nullptr;
  decltype(&::nvrtcGetProgramLog) get_program_log = nullptr;
};

/// Loads the first of `candidates` (paths or names for the loader) that has all functions, for the rest of the
/// process's life; `found` says which, or what was tried.
std::optional<NvrtcApi> load_nvrtc(const std::vector<std::string>& candidates, NvrtcFound& found);

/// Where NVRTC is looked for, in order.
std::vector<std::string> nvrtc_candidates();

NvrtcReply compile_with_nvrtc(const NvrtcApi& nvrtc, const NvrtcRequest& request);

}  // namespace tuner
