// The order of launches, checks and changes of inputs around a Runnable's use.
#include <algorithm>

#include "tuner/verify/verify.h"

namespace tuner {
namespace {

Failure with(std::string prefix, Failure failure) {
  failure.reason = std::move(prefix) + failure.reason;
  return failure;
}

void add(Proof& proof, const Errors& errors) {
  proof.errors.element = std::max(proof.errors.element, errors.element);
  proof.errors.row = std::max(proof.errors.row, errors.row);
}

}  // namespace

Expected<Errors> prove_again(Verifier& verifier, Runnable& runnable) {
  verifier.change_inputs();
  if (const auto launched = runnable.launch(); !launched) return launched.failure();
  return verifier.check_again(runnable);
}

Expected<Proof> prove(Verifier& verifier, Runnable& runnable, const std::function<std::optional<Failure>()>& use) {
  Proof proof;
  const auto before = verifier.verify(runnable);
  if (!before) return before.failure();
  add(proof, *before);
  const std::uint64_t bits = verifier.output_bits();

  verifier.change_inputs();
  if (use) {
    if (auto failure = use()) return *failure;
  } else {
    for (int launch = 0; launch < 2; ++launch)  // the second over the output of the first
      if (const auto launched = runnable.launch(); !launched) return launched.failure();
  }
  const auto after = verifier.check_again(runnable);
  if (!after) return with(use ? "after timing: " : "launched again: ", after.failure());
  add(proof, *after);

  const auto again = prove_again(verifier, runnable);
  if (!again) return with(use ? "launched again after timing: " : "launched again: ", again.failure());
  add(proof, *again);
  proof.repeatable = verifier.output_bits() == bits;
  return proof;
}

}  // namespace tuner
