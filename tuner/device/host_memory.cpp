#include "tuner/device/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/common/host_abi.h"
#include "tuner/device/host_sanitizer.h"

namespace tuner {
namespace {

constexpr unsigned char kGuardByte = 0xA5;

std::size_t restore(unsigned char* band, std::size_t bytes) {
  const auto changed = bytes - static_cast<std::size_t>(std::count(band, band + bytes, kGuardByte));
  if (changed != 0) std::memset(band, kGuardByte, bytes);
  return changed;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t size, std::size_t guard, std::size_t alignment) : size_(size), guard_(guard) {
  if (size > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t whole = (guard + size + guard + alignment - 1) / alignment * alignment;
  base_ = static_cast<unsigned char*>(std::aligned_alloc(alignment, whole));
  if (base_ == nullptr) throw std::bad_alloc();
  std::memset(base_, kGuardByte, guard_);
  std::memset(data() + size_, kGuardByte, guard_);
  poison();
  guard_bands(true);
}

GuardedMemory::~GuardedMemory() {
  guard_bands(false);
  std::free(base_);
}

bool GuardedMemory::contains(const void* address, std::size_t bytes) const {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(data());
  return offset <= size_ && bytes <= size_ - offset;
}

void GuardedMemory::poison() { std::memset(data(), ct1d_host::kPoisonByte, size_); }

std::size_t GuardedMemory::violations() {
  guard_bands(false);
  const std::size_t changed = restore(base_, guard_) + restore(data() + size_, guard_);
  guard_bands(true);
  return changed;
}

void GuardedMemory::guard_bands(bool closed) const {
  const auto& sanitizer = AddressSanitizer::of_process();
  if (!sanitizer) return;
  const auto set = closed ? sanitizer.poison : sanitizer.unpoison;
  set(base_, guard_);
  set(data() + size_, guard_);
}

}  // namespace tuner
