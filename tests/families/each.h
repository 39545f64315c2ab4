// Tests of every family in every class: their names, and compilers for the CPU and for a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tuner/family/family.h"
#include "tuner/jit/jit.h"

namespace tuner::each_family {

using FamilyAndClass = std::tuple<std::string, Accuracy>;

inline std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family* family : families()) names.emplace_back(family->name());
  return names;
}

inline std::string name_of(const ::testing::TestParamInfo<FamilyAndClass>& each) {
  return std::get<0>(each.param) + "_" + std::string(to_string(std::get<1>(each.param)));
}

/// For Host execution, without the sanitizer; what it compiles is kept under the build's test-cache/<name>. Null
/// without a C++ compiler.
inline std::unique_ptr<Compiler> host_compiler(const char* name) {
  CompilerOptions options;
  options.cache = std::filesystem::path(TUNER_PROGRAM).replace_filename("test-cache") / name;
  options.jobs = 2;
  options.address_sanitizer = false;
  return make_host_compiler(options);
}

/// For a GPU of this architecture, on all cores.
inline std::unique_ptr<Compiler> gpu_compiler(const std::string& arch, const std::filesystem::path& cache) {
  CompilerOptions options;
  options.arch = arch;
  options.cache = cache;
  options.program = TUNER_PROGRAM;
  options.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return make_nvrtc_compiler(options);
}

}  // namespace tuner::each_family
