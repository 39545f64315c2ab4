// CUDA C++'s built-in words, types and functions for Host execution: what a kernel uses without including anything.
//
// The host compiler sees this file before the kernel's source, in which `extern __shared__` and `__shared__` arrays
// have been rewritten (host_form_of_source in tuner/device/host_device.h). PTX has no host form here: it belongs into
// kernels/common with its host form beside it. Not for any other host code: names and macros are CUDA's, global.
#pragma once

#if !defined(CT1D_HOST_EXECUTION)
#error "kernels/common/host_runtime.h is for Host execution only"
#endif

#include "kernels/common/host_abi.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__
// Declarations that the rewriting could not read: still one a block, but neither poisoned nor guarded.
#define __shared__ static thread_local

// Trailing parameters that tell where a call stands.
#define CT1D_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace ct1d_host {

__forceinline__ Worker* worker() {
  const auto address = reinterpret_cast<unsigned long long>(__builtin_frame_address(0));
  return reinterpret_cast<Worker*>(address & ~(kArenaBytes - 1));
}

inline unsigned lane() { return worker()->current->linear % kWarpSize; }
inline void fail(const char* what, Site site) { worker()->services->fail(worker(), what, site); }

/// Reference to the block's static shared array of type Array; `key` differs between declarations and instances.
template <class Array>
Array& static_shared(const void* key, CT1D_HOST_SITE) {
  void* memory = worker()->services->static_shared(worker(), key, sizeof(Array), Site{file, line});
  return *static_cast<Array*>(memory);
}

template <int Bytes>
struct __attribute__((may_alias, aligned(Bytes))) Chunk {
  unsigned words[Bytes / 4];
};

/// The loads and stores stand here, in code that a sanitizer watches.
template <int Bytes>
void copy_async(void* shared, const void* global, bool valid, Site site) {
  const auto address = [](const void* pointer) { return reinterpret_cast<unsigned long long>(pointer); };
  if (address(shared) % Bytes != 0) fail("copy_async to an address that is not a multiple of its size", site);
  if (valid && address(global) % Bytes != 0)
    fail("copy_async from an address that is not a multiple of its size", site);
  Chunk<Bytes> data{};
  if (valid) data = *static_cast<const Chunk<Bytes>*>(global);
  Chunk<Bytes> poison;
  for (unsigned& word : poison.words) word = 0x01010101u * kPoisonByte;
  *static_cast<Chunk<Bytes>*>(shared) = poison;
  worker()->services->copy_async(worker(), shared, &data, Bytes, site);
}
inline void copy_commit() { worker()->services->copy_commit(worker()); }
inline void copy_wait(unsigned groups_in_flight) { worker()->services->copy_wait(worker(), groups_in_flight); }

/// `bytes` is a multiple of 16, as are the addresses.
inline void read_chunks(void* target, const void* source, unsigned bytes) {
  for (unsigned i = 0; i < bytes / 16; ++i)
    static_cast<Chunk<16>*>(target)[i] = static_cast<const Chunk<16>*>(source)[i];
}
inline void touch_chunks(const void* memory, unsigned bytes) {
  for (unsigned i = 0; i < bytes / 4; ++i) (void)static_cast<const volatile unsigned*>(memory)[i];
}

template <class Value>
Value shuffle(unsigned mask, Value value, unsigned source_lane, Site site) {
  static_assert(sizeof(Value) <= 8, "shuffles move at most 8 bytes");
  unsigned long long payload = 0;
  __builtin_memcpy(&payload, &value, sizeof(Value));
  payload = worker()->services->exchange(worker(), WarpOperation::shuffle, mask, source_lane, payload, site).payload;
  __builtin_memcpy(&value, &payload, sizeof(Value));
  return value;
}
inline unsigned vote(unsigned mask, bool predicate, Site site) {
  const Exchange got =
      worker()->services->exchange(worker(), WarpOperation::vote, mask, lane(), predicate ? 1 : 0, site);
  return static_cast<unsigned>(got.ballot);
}

template <auto kernel>
struct Call;
template <class Arguments, void (*kernel)(Arguments)>
struct Call<kernel> {
  static void run(const void* arguments) { kernel(*static_cast<const Arguments*>(arguments)); }
  static constexpr Entry entry(const char* name) { return {name, &run, sizeof(Arguments)}; }
};

}  // namespace ct1d_host

#define threadIdx (::ct1d_host::worker()->current->index)
#define blockIdx (::ct1d_host::worker()->block_index)
#define blockDim (::ct1d_host::worker()->block_dim)
#define gridDim (::ct1d_host::worker()->grid_dim)
inline constexpr int warpSize = ct1d_host::kWarpSize;

#include "kernels/common/host_builtins.h"
