// What a run covers, as a config file states it (docs/FORMATS.md). The reader here is the one authority on configs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/core/accuracy.h"
#include "tuner/core/problem.h"
#include "tuner/core/value.h"

namespace tuner {

struct NamedProblem {
  std::string name;
  Problem problem;
};

struct FamilySelection {
  std::string name;
  std::vector<std::pair<std::string, std::vector<Value>>>
      values;  // narrowed lists; tunables not named keep the family's
};

struct SearchOptions {
  std::string strategy = "auto";
  std::uint64_t seed = 1;
  std::string objective = "time";  // time | energy
  std::optional<double> budget_seconds;
  std::optional<std::int64_t> budget_evaluations;
};

struct MeasureConfig {
  std::string l2 = "cold";                      // cold | warm
  std::vector<std::string> regime = {"burst"};  // burst | sustained
  double half_width = 0.005;
  int max_samples = 200;
  double max_seconds = 2.0;
  double cut_factor = 2.0;
};

struct CudnnOptions {
  std::int64_t workspace_mib = 16384;
  bool deterministic = false;
};

struct CompileConfig {
  double seconds = 60;  // of each compile
  std::int64_t memory_mib = 4096;
};

struct Config {
  int schema_version = 1;
  std::string name;                    // default: the file's stem
  std::string device_expect;           // "NVIDIA H200": what the file was written for
  std::string device_target;           // "sm_90a": without a GPU
  std::string device_profile;          // "h200": configs/devices/h200.json
  std::vector<NamedProblem> problems;  // workloads included, file order
  std::vector<Accuracy> classes = {Accuracy::fp32};
  std::optional<std::vector<FamilySelection>> families;  // missing: all that apply
  std::vector<std::string> restrict_;
  SearchOptions search;
  MeasureConfig measure;
  std::vector<std::string> baselines = {"cudnn", "cublas_shift_add"};
  CudnnOptions cudnn;
  CompileConfig compile;
  int jobs = 0;  // 0: one a core
  std::string out = "results/local";
  std::string text;  // as read, for the result's `config`
  std::string hash;  // of the text and the workloads files
};

/// Names that a config may use, handed in by the driver because core knows no family.
struct Vocabulary {
  struct FamilyNames {
    std::string name;
    std::vector<std::string> integer_tunables;
    std::vector<std::string> block_tunables;
    std::map<std::string, std::vector<std::string>> enumerated_tunables;
  };
  std::vector<FamilyNames> families;
  std::vector<std::string> strategies;
  std::vector<std::string> baselines;
};

/// Reads a config and the workloads files it names. Throws UsageError: one line with file, JSON path, value, what is
/// allowed.
Config read_config(const std::filesystem::path& path, const Vocabulary& vocabulary);

/// A device profile, configs/devices/<name>.json; a name with a '/' is a path. The shipped ones are embedded in the
/// program.
struct DeviceFacts;
DeviceFacts read_profile(const std::string& name);
std::vector<std::string> profile_names();

/// Cases for `tuner verify --cases`: the contract's form.
struct Case {
  std::string name;
  Problem problem;
  std::vector<double> input, weight, bias, output;
};
std::vector<Case> read_cases(const std::filesystem::path& path);

}  // namespace tuner
