// Proof that a Runnable computes the right thing: float64 reference in full, class bounds on every element and row,
// NaN-filled outputs, guard bands, inputs unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/core/accuracy.h"
#include "tuner/device/device.h"

namespace tuner {

/// How inputs are drawn. All are functions of (seed, element index), so any part can be generated anywhere.
enum class Values { normal, positive, large_mean, spike, wide_channels, integers, index_coded, patches };
std::string_view to_string(Values values);
std::optional<Values> parse_values(std::string_view name);

/// Host copies of one input set in float; elements are exactly representable in `element`.
struct Inputs {
  std::vector<float> x, w, bias;
};
Inputs make_inputs(const Problem& problem, Element element, Values values, std::uint64_t seed);

/// Float64 reference and bounds of one output element (kernels read alike on CPU and GPU: verify/reference.cuh).
struct Reference {
  std::vector<double> y;          // as (batch, out_channels, length_out)
  std::vector<double> bound;      // class bound on |y - reference| without the half ulp of 16-bit outputs
  std::vector<double> row_bound;  // class bound on the Frobenius error of a (b, oc) row, relative to row_norm
  std::vector<double> row_norm;
  double plain_error = 0;    // largest relative row error of the ordinary sequential fp32 sum
  std::int64_t outside = 0;  // elements in no norm: not finite, or beyond what the element type holds
  std::int64_t nans = 0;     // NaN in y: compare() refuses a reference that has another number of them
};
/// On all cores. Throws UsageError if the reference itself holds a NaN where no input is non-finite.
Reference make_reference(const Problem& problem, Accuracy accuracy, const Inputs& inputs);
/// No row holds anything but zeros. False without rows.
bool zero_throughout(const Reference& reference);

/// Compares y (widened to float) with the reference. wrong_result's reason names the worst element: (b, oc, t), both
/// values, the bound; or the worst row.
Expected<Errors> compare(const Problem& problem, Accuracy accuracy, const Reference& reference,
                         std::span<const float> y);

/// "B64 128->128 K3 s1 L65536 needs 4.3 GB for x, w and y and 8.59 GB for the float64 reference; NVIDIA H200 has 151
/// GB".
std::string memory_in_words(const Problem& problem, Accuracy accuracy, const DeviceFacts& device);
/// Whether that is more than the device has. False where its memory is unknown.
bool exceeds_memory(const Problem& problem, Accuracy accuracy, const DeviceFacts& device);

/// One input set resident on a device with its reference; checks any number of Runnables. On a CUDA device inputs,
/// reference and comparison are computed there; elsewhere on the CPU.
class Verifier {
 public:
  virtual ~Verifier() = default;
  virtual double plain_error() const = 0;
  /// Fills y with NaN, binds, launches once, checks everything. Leaves the Runnable bound to this input set.
  virtual Expected<Errors> verify(Runnable& runnable) = 0;
  /// Gives a few elements of x other values, or puts the first ones back, and fills y with NaN: no output that was kept
  /// from before is right for what launches next. While they are changed, rows that they reach are judged by their
  /// elements alone. Nothing changes where no element of x shows in y (all weights 0).
  virtual void change_inputs() = 0;
  /// Checks y as it stands now (after timing) for the inputs as they stand, guards and inputs too.
  virtual Expected<Errors> check_again(Runnable& runnable) = 0;
  /// A checksum of y's bits.
  virtual std::uint64_t output_bits() = 0;
  virtual Runnable::Tensors tensors() const = 0;
};
/// `kernels` is verify_unit() compiled for the device; null: reference and comparison on the CPU.
/// Failure, with the numbers: the device's memory cannot hold tensors and reference (launch_failed); the reference is
/// all zero although products exist, so that it proves nothing (wrong_result).
Expected<std::unique_ptr<Verifier>> make_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                  Values values, std::uint64_t seed,
                                                  const CompiledUnit* kernels = nullptr);
/// The same over inputs given (a case file), reference included. Data that proves nothing is `rejected` here: a class's
/// elements may hold zeros alone of what another's hold.
Expected<std::unique_ptr<Verifier>> make_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                  Inputs inputs, const CompiledUnit* kernels = nullptr);

struct Proof {
  Errors errors;           // the largest of all checks
  bool repeatable = true;  // launches on the same inputs gave the same bits
};
/// Proves a Runnable around its use, such as being timed: right before; right after the use, which meets inputs changed
/// since; and right from the first inputs once more. Without `use`, two launches on end stand for it. A failure of
/// `use` is returned as it is.
Expected<Proof> prove(Verifier& verifier, Runnable& runnable,
                      const std::function<std::optional<Failure>()>& use = nullptr);
/// One more launch of a Runnable that is bound to the verifier's tensors, on inputs changed since or put back. After a
/// use of several Runnables together, whose outputs took one another's place.
Expected<Errors> prove_again(Verifier& verifier, Runnable& runnable);

/// The verifier's own CUDA kernels, to be compiled like any other unit.
CompileUnit verify_unit();

}  // namespace tuner
