// A run's result as a value, and its file (result.json, best.json; docs/FORMATS.md). report, compare and emit read only
// this.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/accuracy.h"
#include "tuner/core/device_facts.h"
#include "tuner/core/failure.h"
#include "tuner/core/problem.h"
#include "tuner/core/statistics.h"
#include "tuner/core/value.h"

namespace tuner {

/// Energy of a launch over windows of sustained load, millijoules.
struct EnergyRecord {
  Interval mj;
  std::vector<double> samples;  // one a window
  bool operator==(const EnergyRecord&) const = default;
};

struct TimeRecord {
  Interval ms;
  std::vector<double> samples;
  std::string l2 = "cold";
  std::string regime = "burst";
  Interval clock_mhz = {};   // SM clock over the samples: median, slowest, fastest; zeros where unknown
  int dropped = 0;           // samples at a fallen clock, taken again and not among `samples`
  bool interleaved = false;  // sample i belongs to round i of a run-off and pairs with the other entrants'
  std::vector<std::string> throttling = {};  // what held clocks down meanwhile, as NVML says
  std::optional<EnergyRecord> energy = {};
  bool operator==(const TimeRecord&) const = default;
};

struct VariantRecord {
  std::string id;
  Variant variant;
  Outcome outcome = Outcome::unproven;
  std::string reason;
  std::string log;
  int registers = 0;
  int spill_bytes = 0;
  int shared_bytes = 0;  // static + dynamic, per block
  double occupancy = 0;
  std::string cubin_sha256;
  double compile_ms = 0;
  double prepare_ms = 0;  // the once-per-weights step, timed apart; 0 where there is none
  std::optional<Errors> errors;
  std::optional<Problem> proven_on;  // offline: the cut problem that Host execution proved it on
  std::optional<TimeRecord> time;    // never without a GPU
  double lower_bound_ms = 0;
  std::vector<TimeRecord> other_regimes = {};  // finalists: one for each further regime of the config
};

struct BaselineRecord {
  std::string name;
  std::string route;
  std::string engine;
  std::string knobs;
  std::size_t workspace_bytes = 0;
  double traffic_bytes = 0;  // through the route's steps, each step's operands once; 0 where unknown
  bool deterministic = true;
  bool not_comparable = false;  // a note: never the best, in no ratio
  std::string status;           // "ok", "not run", or the outcome's name
  std::string reason;
  std::optional<Errors> errors;
  std::optional<TimeRecord> time;
  bool best_of_its_name = false;  // the route that its baseline is represented by in `ratios`
  std::vector<TimeRecord> other_regimes = {};
};

struct RatioRecord {
  std::string baseline;  // name of the baseline, best route of it
  double ratio = 0;      // baseline time / our time: above 1 we are faster
  double low = 0;
  double high = 0;
  std::string regime = {};    // that both were timed in; empty in files of version 0.1: the first
  std::string quantity = {};  // "energy" where it is one of energies; else of times
};

/// The winner measured once more, alone, on inputs it never saw.
struct AgainRecord {
  std::string id;
  TimeRecord time;
  bool agrees = true;  // its interval and the run-off's, widened by 1 %, overlap
  bool operator==(const AgainRecord&) const = default;
};

/// The machine's state during a run-off, as NVML says.
struct Conditions {
  double power_limit_w = 0;
  std::string mig;  // "off", "on", "not supported", or "not available: why"
  int other_processes = 0;
  std::vector<std::string> throttling;  // what held clocks down
  std::string not_available;            // why the above is unknown; empty where it is known
  std::vector<TimeRecord> copy = {};    // of x, in the same rounds, regime by regime: what memory does
  bool operator==(const Conditions&) const = default;
};

/// Where the wall time of a search went, seconds. The parts add up to `wall`.
struct SearchAccount {
  double wall = 0;
  double compile_wait = 0;  // nothing compiled was ready
  double load = 0;          // modules, buffers, packing
  double verify = 0;
  double measure = 0;  // launching and waiting for timed launches and warm-ups
  double idle = 0;     // pauses, so that the clock recovers
  double store = 0;
  double other = 0;
  double compile_cpu = 0;  // of all compiles that were not in the cache, on `jobs` processes at a time
  int jobs = 1;
  bool operator==(const SearchAccount&) const = default;

  /// What no order of this work could go below: compiling on all jobs at once, or the GPU's part.
  double bound() const { return std::max(compile_cpu / std::max(jobs, 1), verify + measure); }
};

struct ClassRecord {
  Accuracy accuracy = Accuracy::fp32;
  double plain_error = 0;  // reference_error_of_plain_sum: largest relative row error of the sequential fp32 sum
  std::vector<VariantRecord> variants;
  std::vector<BaselineRecord> baselines;
  std::string best;  // a variant id, or "<baseline>: <route>" where nothing of ours is faster; empty offline
  std::vector<std::string> tie;                     // variant ids that cannot be told from the best
  std::vector<RatioRecord> ratios;                  // of the interleaved run-off
  std::vector<std::string> shortlist;               // offline: ids in order of the model
  std::map<std::string, std::uint64_t> rejections;  // raw combinations refused, by "family: reason"
  std::uint64_t space_size = 0;                     // valid configurations over all families
  std::optional<AgainRecord> best_again = {};
  std::optional<Conditions> conditions = {};
  std::optional<SearchAccount> search_account = {};
  std::vector<std::string> warnings = {};  // what a reader of the times must know
};

struct ProblemRecord {
  std::string name;
  Problem problem;
  std::vector<ClassRecord> classes;
};

struct RunResult {
  int schema_version = 1;
  std::string tool_version;
  std::string tool_commit;
  std::string config_text;  // JSON as read
  std::string config_hash;
  std::string name;
  Environment environment;
  std::string objective = "time";  // what `best` is the least of: "time" or "energy"
  std::string started;             // ISO 8601, UTC
  std::string command;             // that reproduces it
  bool measured = false;
  bool interrupted = false;
  double search_seconds = 0;
  std::vector<ProblemRecord> problems;
};

std::string to_json(const RunResult& result);
std::string best_to_json(const RunResult& result);
/// Throws UsageError (one line with path and JSON path) for anything that is not a result of a schema version known
/// here.
RunResult read_result(const std::filesystem::path& path);
/// result.json and best.json under `folder`, atomically. Throws EnvironmentError. Returns the two paths.
std::pair<std::filesystem::path, std::filesystem::path> write_result(const RunResult& result,
                                                                     const std::filesystem::path& folder);

/// Finds by id or unique prefix; nullptr if none or several.
const VariantRecord* find_variant(const ClassRecord& record, std::string_view id);

}  // namespace tuner
