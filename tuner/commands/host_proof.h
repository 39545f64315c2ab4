// Proving variants right on the CPU: Host execution of the very instance, on a problem cut to what a CPU can do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/commands/command_line.h"
#include "tuner/jit/jit.h"
#include "tuner/worker/worker.h"

namespace tuner {

/// The same operation with fewer batches, channels and a shorter L, such that tiles of the configuration are met whole,
/// partly filled and more than once, and at most `max_products` products are summed in all. Kernel size, stride,
/// dilation, paddings and bias stay.
Problem cut_for_host(const Problem& problem, const Configuration& configuration, double max_products = 3e7);

class HostProver {
 public:
  /// `jobs` compiles at a time. available() is false where there is no C++ compiler.
  HostProver(const Settings& settings, int jobs, std::uint64_t seed, const CompileLimits& limits = {});

  bool available() const { return compiler_ != nullptr; }
  struct Proof {
    Evaluation evaluation;
    Problem on;
    double plain_error = 0;  // of the sequential fp32 sum there
  };
  /// Hash of what a proof's code is made of.
  std::string key(const BuildContext& context, const Variant& variant) const;
  /// Ok with errors, or why not, on problems cut from `context.problem`; `each(i, proof)` is called as soon as it is
  /// there. Ends early when a signal comes in between.
  void prove(const BuildContext& context, const std::vector<Variant>& variants,
             const std::function<void(std::size_t, const Proof&)>& each);
  Compiler& compiler() { return *compiler_; }
  /// Started at the first call.
  Worker& worker();

 private:
  std::uint64_t seed_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tuner
