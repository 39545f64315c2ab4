// What verifiers share: tensors resident on the device, and the order of checks.
#pragma once

#include "tuner/verify/change.h"
#include "tuner/verify/verify.h"

namespace tuner {

inline constexpr std::uint32_t kNanWord = 0xFFFFFFFF;  // NaN in every element type

class ResidentVerifier : public Verifier {
 public:
  /// Allocates x, w, bias and y; std::bad_alloc where the device cannot hold them.
  ResidentVerifier(Device& device, const Problem& problem, Accuracy accuracy);

  Expected<Errors> verify(Runnable& runnable) override;
  void change_inputs() override;
  Expected<Errors> check_again(Runnable& runnable) override;
  Runnable::Tensors tensors() const override;
  /// The reference in full, on the host.
  virtual Reference reference() = 0;
  /// The reference is zero throughout.
  bool proves_nothing() const;

 protected:
  /// Whether x, w or bias differ from what they were; if so, they are restored.
  virtual bool inputs_changed() = 0;
  /// Compares y as it stands on the device.
  virtual Expected<Errors> compare_y() = 0;
  /// Stores one element of x, which then counts as unchanged. Overridden where x is kept elsewhere too.
  virtual void write_x(std::int64_t place, float value);
  /// Reference and bound of these outputs from the inputs as they stand.
  virtual Wanted wanted(const std::vector<std::int64_t>& outputs) = 0;
  /// Exchanges `other` with the reference and bounds of these outputs.
  virtual void exchange_reference(const std::vector<std::int64_t>& outputs, Wanted& other) = 0;
  /// The inputs as they stand are those that inputs_changed() holds them to while they are changed.
  virtual void remember_changed_inputs() {}

  Device& device_;
  Problem problem_;
  Accuracy accuracy_;
  std::unique_ptr<Buffer> x_, w_, bias_, y_;  // bias_ is null where the problem has none
  Reference reference_;                       // y and bound are empty where the device holds them
  bool changed_ = false;                      // x and the reference are those of change_

 private:
  Change find_change();
  bool change_one(std::uint64_t draw, Change& change);
  float read_x(std::int64_t place);
  void write_places();
  void exchange_wanted();
  bool is_for_other_inputs();

  std::optional<Change> change_;  // made when first asked for
};

/// Reference and comparison on the CPU, over inputs given.
std::unique_ptr<ResidentVerifier> make_cpu_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                    Inputs inputs);

/// All on the CUDA device. With `inputs` null they are generated there.
std::unique_ptr<ResidentVerifier> make_cuda_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                     const CompiledUnit& kernels, Values values, std::uint64_t seed,
                                                     const Inputs* inputs);

}  // namespace tuner
