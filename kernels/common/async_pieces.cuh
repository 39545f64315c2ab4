// Copies as async_copy.cuh's, to shared memory by 32-bit address, of which only the first bytes need exist, and their
// host form.
#pragma once

#include "kernels/common/async_copy.cuh"
#include "kernels/common/shared_memory.cuh"

namespace ct1d {

#if defined(CT1D_HOST_EXECUTION)

template <int Bytes>
inline void piece_load(uint32 shared, const void* global, int valid, CT1D_HOST_SITE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "pieces of 4, 8 or 16 bytes");
  using namespace ct1d_host;
  if (valid > 0 && reinterpret_cast<uint64>(global) % Bytes != 0)
    fail("piece_load from an address that is not a multiple of its size", {file, line});
  if (valid < 0 || valid > Bytes || valid % 2 != 0) fail("piece_load of bytes that are no piece", {file, line});
  Chunk<Bytes> data{};
  __builtin_memcpy(&data, global, static_cast<unsigned>(valid));
  void* const target = worker()->services->shared_store(worker(), shared, Bytes, {file, line});
  Chunk<Bytes> poison;
  for (unsigned& word : poison.words) word = 0x01010101u * kPoisonByte;
  *static_cast<Chunk<Bytes>*>(target) = poison;
  worker()->services->copy_async(worker(), target, &data, Bytes, {file, line});
}

#else

/// The first `valid` bytes, a multiple of 2, are read; the rest become zero. Addresses are multiples of Bytes.
template <int Bytes>
__device__ __forceinline__ void piece_load(uint32 shared, const void* global, int valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "pieces of 4, 8 or 16 bytes");
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(Bytes), "r"(valid)
                 : "memory");
  }
}

#endif

}  // namespace ct1d
