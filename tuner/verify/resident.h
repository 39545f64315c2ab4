// What verifiers share: tensors resident on the device, and the order of checks.
#pragma once

#include "tuner/verify/verify.h"

namespace tuner {

class ResidentVerifier : public Verifier {
 public:
  /// Allocates x, w, bias and y; std::bad_alloc where the device cannot hold them.
  ResidentVerifier(Device& device, const Problem& problem, Accuracy accuracy);

  Expected<Errors> verify(Runnable& runnable) override;
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

  Device& device_;
  Problem problem_;
  Accuracy accuracy_;
  std::unique_ptr<Buffer> x_, w_, bias_, y_;  // bias_ is null where the problem has none
  Reference reference_;                       // y and bound are empty where the device holds them
};

/// Reference and comparison on the CPU, over inputs given.
std::unique_ptr<ResidentVerifier> make_cpu_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                    Inputs inputs);

/// All on the CUDA device. With `inputs` null they are generated there.
std::unique_ptr<ResidentVerifier> make_cuda_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                     const CompiledUnit& kernels, Values values, std::uint64_t seed,
                                                     const Inputs* inputs);

}  // namespace tuner
