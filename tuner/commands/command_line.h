// The command line and the environment, read once. Nothing else in the program reads argv or environment variables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tuner {

/// Environment variables and terminal facts that the program looks at.
struct Settings {
  std::filesystem::path cache;    // compiled artefacts, from XDG_CACHE_HOME or HOME
  std::string cxx;                // CXX: the compiler for Host execution
  std::string tf32_override;      // NVIDIA_TF32_OVERRIDE, which changes what cuBLAS and cuDNN compute
  std::string compute_sanitizer;  // where it was found; where not, the name alone
  bool color = false;             // stdout is a terminal and NO_COLOR is unset
  bool progress_bar = false;      // stderr is a terminal
};

enum class Verbosity { quiet, normal, verbose };

/// `--device`: auto, cuda[:N], offline[:PROFILE].
struct DeviceChoice {
  enum class Kind { automatic, cuda, offline } kind = Kind::automatic;
  int index = 0;
  std::string profile;
};

struct Budget {
  std::optional<double> seconds;
  std::optional<std::int64_t> evaluations;
};

struct TuneOptions {
  std::filesystem::path config;
  DeviceChoice device;
  std::optional<std::filesystem::path> out;
  Budget budget;
  std::vector<std::string> problems, families, classes;
  std::optional<std::uint64_t> seed;
  std::optional<int> jobs;
  bool diagnose = false;
  bool resume = false;
  Verbosity verbosity = Verbosity::normal;
  std::string reproduce;  // the command line as typed, for the result
};

struct VerifyOptions {
  std::vector<std::filesystem::path> cases;
  DeviceChoice device;
  std::vector<std::string> families, classes;
  std::optional<std::filesystem::path> json;
};

struct InspectOptions {
  std::filesystem::path result;
  std::string variant;
  std::string problem, accuracy;  // which one's, of those that the result has the variant for; empty: the first
  bool run = false;
  std::string l2 = "cold";  // of the run's timing
  std::string regime = "burst";
  std::filesystem::path out;
};

struct ReportOptions {
  std::vector<std::filesystem::path> results;
  std::string format = "table";
  std::optional<std::filesystem::path> out;
};

struct CompareCommand {
  std::filesystem::path base, now;
  double fail_slower = 3.0;  // percent
  bool allow_different = false;
  bool live = false;                           // time both best variants against each other, here and now
  std::vector<std::string> problems, classes;  // only these; empty: all
  std::optional<std::filesystem::path> json;   // of a live comparison: ratios and samples
};

struct EmitCommand {
  std::vector<std::filesystem::path> results;
  std::filesystem::path out;
  std::string name_space = "conv_transpose1d";
  bool unmeasured = false;
  std::string command;  // as typed, for the banner
};

int tune(const TuneOptions& options, const Settings& settings);
int verify(const VerifyOptions& options, const Settings& settings);
int inspect(const InspectOptions& options, const Settings& settings);
int report(const ReportOptions& options, const Settings& settings);
int compare(const CompareCommand& options, const Settings& settings);
int emit(const EmitCommand& options, const Settings& settings);
int list(const std::string& what, const Settings& settings);
int describe(const std::string& family, const Settings& settings);
int doctor(const Settings& settings);

/// Parses, runs the subcommand and maps every failure to the exit codes of docs/FORMATS.md: 0 done, 1 nothing valid or
/// a check failed, 2 usage, 3 environment, 4 regression, 70 internal, 130 and 143 interrupted.
int run_command_line(int argc, char** argv);

/// The hidden entries of the processes that this program starts from itself; nothing if `argv` names none.
std::optional<int> run_helper_process(int argc, char** argv);

}  // namespace tuner
