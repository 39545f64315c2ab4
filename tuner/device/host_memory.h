// Memory of Host execution: between guard bands that a stray write changes and that AddressSanitizer reports at once.
#pragma once

#include <cstddef>
#include <memory>

namespace tuner {

/// Owning block of `size` bytes, every byte ct1d_host::kPoisonByte (NaN), with `guard` bytes before and after. Where
/// the sanitizer's runtime is present, any access to the guard bands by instrumented code is reported.
class GuardedMemory {
 public:
  /// `alignment` is a power of two; `guard` a multiple of it. Throws std::bad_alloc.
  GuardedMemory(std::size_t size, std::size_t guard, std::size_t alignment);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  unsigned char* data() const { return base_ + guard_; }
  std::size_t size() const { return size_; }
  bool contains(const void* address, std::size_t bytes) const;
  /// Fills the inside with the poison byte again.
  void poison();
  /// Bytes of the guard bands that were written; restores them.
  std::size_t violations();

 private:
  void guard_bands(bool closed) const;

  std::size_t size_;
  std::size_t guard_;
  unsigned char* base_;
};

}  // namespace tuner
