// What the steps of tuning one problem in one accuracy class share: search, baselines, run-off, proofs.
#pragma once

#include <string>

#include "tuner/commands/class_records.h"
#include "tuner/commands/class_run.h"

namespace tuner {

struct ClassTask {
  ClassTask(Session& session, const NamedProblem& problem, Accuracy accuracy);

  Session& session;
  std::string name;  // of the problem
  BuildContext context;
  MeasureOptions measure;  // the first regime's
  ClassRecords records;
  ClassRecord result;
  double clock_mhz = 0;  // of bursts so far

  const std::string& objective() const { return session.config.search.objective; }
  bool by_energy() const { return objective() == "energy"; }
  /// "seed fp32"
  std::string label() const;
  /// An interrupt, a budget that is spent, inputs that cannot be made, or a device or store that is lost. What the
  /// store knows is still taken over then, and nothing else is done.
  bool stopped() const;
  /// Inputs and reference in the worker, made when something is to be run for the first time.
  bool load();
  /// The worker holds others since.
  void forget_inputs() { loaded_ = false; }
  Program program_of(const Variant& variant) const;
  /// Bursts are to run at the clock that earlier ones had.
  void note_clock(const TimeRecord& time);

 private:
  bool loaded_ = false, no_inputs_ = false;
};

/// The search needs an order, not a number to publish: short looks, which the run-off replaces for those that may win.
MeasureOptions search_options(MeasureOptions options);

}  // namespace tuner
