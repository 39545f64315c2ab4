// Tuning one problem in one accuracy class: search, baselines, run-off; or, without a GPU, compile facts and proofs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/commands/class_records.h"
#include "tuner/commands/host_proof.h"
#include "tuner/commands/progress.h"
#include "tuner/commands/target.h"
#include "tuner/core/config.h"
#include "tuner/core/result.h"

namespace tuner {

/// What one (problem, class) may spend.
struct Allowance {
  std::optional<double> seconds;
  std::optional<std::int64_t> evaluations;
};

/// What a run shares over its problems and classes.
struct Session {
  const Config& config;
  Target& target;
  HostProver* prover;  // offline only; null: no C++ compiler
  Progress& progress;
  Store& store;
  int jobs = 1;
  std::string lost = {};        // why the device or the store can no longer be used; empty while they can
  double searched_seconds = 0;  // spent so far; what a budget in seconds counts, baselines and run-off on top
  TakenOver taken_over = {};
};

/// What the store knows and what still holds is taken over, the rest is found out and stored as soon as it is known.
/// Everything found before an interrupt is in the record. Never throws for a variant's sake.
ClassRecord run_class(Session& session, const NamedProblem& problem, Accuracy accuracy, const Allowance& allowance);

}  // namespace tuner
