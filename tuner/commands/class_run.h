// Tuning one problem in one accuracy class: search, baselines, run-off; or, without a GPU, compile facts and proofs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/commands/budget.h"
#include "tuner/commands/class_records.h"
#include "tuner/commands/host_proof.h"
#include "tuner/commands/progress.h"
#include "tuner/commands/target.h"
#include "tuner/core/config.h"
#include "tuner/core/result.h"

namespace tuner {

/// What one (problem, class) may spend: evaluations, and of the run's seconds the share that falls to one of so many.
struct Allowance {
  std::optional<std::int64_t> evaluations;
  std::size_t pairs_left = 1;
};

/// What a run shares over its problems and classes.
struct Session {
  const Config& config;
  Target& target;
  HostProver* prover;  // offline only; null: no C++ compiler
  Progress& progress;
  Store& store;
  int jobs = 1;
  RunBudget budget{std::nullopt, 0, 0};
  std::string lost = {};        // why the device or the store can no longer be used; empty while they can
  bool out_of_time = false;     // the budget's seconds do not suffice for another pair
  double searched_seconds = 0;  // by this run, other processes that it resumes included
  TakenOver taken_over{0};
};

/// What the store knows and what still holds is taken over, the rest is found out and stored as soon as it is known.
/// Everything found before an interrupt is in the record. Never throws for a variant's sake.
ClassRecord run_class(Session& session, const NamedProblem& problem, Accuracy accuracy, const Allowance& allowance);

}  // namespace tuner
