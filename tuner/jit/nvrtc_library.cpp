#include "tuner/jit/nvrtc_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "tuner/core/hash.h"

namespace tuner {
namespace {

/// Size, and hash of samples all over the file: 110 MB are too many to hash at every start, and patch releases, which
/// nvrtcVersion does not tell apart, differ in both.
std::string fingerprint_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file || std::fseek(file.get(), 0, SEEK_END) != 0) return "unreadable";
  const long size = std::ftell(file.get());
  constexpr int kSamples = 64;
  std::string samples, sample(16384, '\0');
  for (int i = 0; i < kSamples; ++i) {
    std::fseek(file.get(), size / kSamples * i, SEEK_SET);
    samples.append(sample.data(), std::fread(sample.data(), 1, sample.size(), file.get()));
  }
  return fmt::format("{}-{}", size, sha256(samples).substr(0, 16));
}

template <class Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool resolve_all(void* library, NvrtcApi& nvrtc) {
  return resolve(library, "nvrtcGetErrorString", nvrtc.get_error_string) &&
         resolve(library, "nvrtcVersion", nvrtc.version) &&
         resolve(library, "nvrtcGetNumSupportedArchs", nvrtc.get_num_supported_archs) &&
         resolve(library, "nvrtcGetSupportedArchs", nvrtc.get_supported_archs) &&
         resolve(library, "nvrtcCreateProgram", nvrtc.create_program) &&
         resolve(library, "nvrtcDestroyProgram", nvrtc.destroy_program) &&
         resolve(library, "nvrtcAddNameExpression", nvrtc.add_name_expression) &&
         resolve(library, "nvrtcCompileProgram", nvrtc.compile_program) &&
         resolve(library, "nvrtcGetLoweredName", nvrtc.get_lowered_name) &&
         resolve(library, "nvrtcGetCUBINSize", nvrtc.get_cubin_size) &&
         resolve(library, "nvrtcGetCUBIN", nvrtc.get_cubin) &&
         resolve(library, "nvrtcGetPTXSize", nvrtc.get_ptx_size) && resolve(library, "nvrtcGetPTX", nvrtc.get_ptx) &&
         resolve(library, "nvrtcGetProgramLogSize", nvrtc.get_program_log_size) &&
         resolve(library, "nvrtcGetProgramLog", nvrtc.get_program_log);
}

void describe_library(const NvrtcApi& nvrtc, NvrtcFound& found) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(nvrtc.version), &info) != 0 && info.dli_fname != nullptr)
    found.path = info.dli_fname;
  int major = 0, minor = 0, count = 0;
  nvrtc.version(&major, &minor);
  found.version = fmt::format("{}.{}", major, minor);
  found.fingerprint = fingerprint_of(found.path);
  nvrtc.get_num_supported_archs(&count);
  std::vector<int> archs(static_cast<std::size_t>(count > 0 ? count : 0));
  nvrtc.get_supported_archs(archs.data());
  found.archs = fmt::format("{}", fmt::join(archs, " "));
}

/// What the library wrote of a size that it states, without the zero bytes at its end where it writes text.
template <class Size, class Get>
std::string fetch(nvrtcProgram program, Size size_of, Get get, bool text) {
  std::size_t size = 0;
  if (size_of(program, &size) != NVRTC_SUCCESS || size == 0) return {};
  std::string bytes(size, '\0');
  if (get(program, bytes.data()) != NVRTC_SUCCESS) return {};
  while (text && !bytes.empty() && bytes.back() == '\0') bytes.pop_back();
  return bytes;
}

/// The log's first line that tells of an error.
std::string first_error(const std::string& log) {
  std::size_t start = 0;
  while (start < log.size()) {
    const std::size_t end = std::min(log.find('\n', start), log.size());
    const std::string line = log.substr(start, end - start);
    if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos) return line;
    start = end + 1;
  }
  return {};
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

std::vector<std::string> nvrtc_candidates() {
  // The loader also looks along the program's run path, which names the toolkit that it was built with.
  std::vector<std::string> candidates;
  for (const char* folder : {"", "/usr/local/cuda/lib64/"})
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      candidates.push_back(std::string(folder) + name);
  return candidates;
}

std::optional<NvrtcApi> load_nvrtc(const std::vector<std::string>& candidates, NvrtcFound& found) {
  for (const std::string& candidate : candidates) {
    void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = ::dlerror();
      found.tried += fmt::format("{}: {}\n", candidate, error == nullptr ? "cannot be loaded" : error);
      continue;
    }
    NvrtcApi nvrtc;
    if (resolve_all(library, nvrtc)) {
      describe_library(nvrtc, found);
      return nvrtc;
    }
    found.tried += fmt::format("{}: lacks functions of CUDA 12.4\n", candidate);
    ::dlclose(library);
  }
  return std::nullopt;
}

NvrtcReply compile_with_nvrtc(const NvrtcApi& nvrtc, const NvrtcRequest& request) {
  NvrtcReply reply;
  nvrtcProgram program = nullptr;
  const auto failed = [&](nvrtcResult result, const char* call) {
    if (result == NVRTC_SUCCESS) return false;
    // The front end reports a lack of memory as it reports errors of the source.
    reply.died = result == NVRTC_ERROR_OUT_OF_MEMORY || result == NVRTC_ERROR_INTERNAL_ERROR ||
                 reply.log.find("catastrophic error: out of memory") != std::string::npos;
    reply.reason = fmt::format("{}: {}", call, nvrtc.get_error_string(result));
    const std::string error = first_error(reply.log);
    if (!error.empty()) reply.reason += ": " + error;
    return true;
  };

  std::vector<const char*> names, contents;
  for (const auto& [name, content] : request.headers) {
    names.push_back(name.c_str());
    contents.push_back(content.c_str());
  }
  if (failed(nvrtc.create_program(&program, request.unit.source.c_str(), "unit.cu", static_cast<int>(names.size()),
                                  contents.data(), names.data()),
             "nvrtcCreateProgram"))
    return reply;
  for (const std::string& kernel : request.unit.kernels)
    if (failed(nvrtc.add_name_expression(program, kernel.c_str()), "nvrtcAddNameExpression")) return reply;

  const auto options = pointers_to(request.unit.options);
  const auto start = std::chrono::steady_clock::now();
  const nvrtcResult result = nvrtc.compile_program(program, static_cast<int>(options.size()), options.data());
  reply.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  reply.log = fetch(program, nvrtc.get_program_log_size, nvrtc.get_program_log, true);
  if (failed(result, "nvrtcCompileProgram")) return reply;

  for (const std::string& kernel : request.unit.kernels) {
    const char* lowered = nullptr;
    if (failed(nvrtc.get_lowered_name(program, kernel.c_str(), &lowered), "nvrtcGetLoweredName")) return reply;
    reply.lowered_names.emplace_back(lowered);
  }
  reply.code = request.want_ptx ? fetch(program, nvrtc.get_ptx_size, nvrtc.get_ptx, true)
                                : fetch(program, nvrtc.get_cubin_size, nvrtc.get_cubin, false);
  reply.ok = !reply.code.empty();
  if (!reply.ok) reply.reason = request.want_ptx ? "NVRTC gave no PTX" : "NVRTC gave no cubin";
  return reply;
}

}  // namespace tuner
