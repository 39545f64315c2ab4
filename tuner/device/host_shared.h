// A block's shared memory under Host execution: its arrays, their 32-bit addresses, and what the async proxy sees.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/host_abi.h"
#include "tuner/device/host_memory.h"

namespace tuner {

inline constexpr std::size_t kMaxStaticSharedBytes = 48 * 1024;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;  // static + dynamic, sm_90

inline constexpr std::size_t kSharedGuardBytes = 4096;  // before and after each shared array
inline constexpr std::size_t kSharedAlignment = 1024;

/// Dynamic shared memory starts at address kSharedAlignment, static arrays follow, each aligned to it. Address 0 and
/// the gaps are no memory.
///
/// For each array a copy says what the async proxy is sure to see: what bulk loads wrote, and what was there at the
/// last proxy fence. Stores by address are recorded with their thread instead (kernels/common/shared_memory.cuh).
class SharedMemory {
 public:
  /// For a block: everything poisoned. Static arrays of another kernel are dropped.
  void start(std::size_t dynamic_bytes, bool same_kernel);
  const GuardedMemory& dynamic() const { return *arrays_.front().memory; }

  /// Made when first asked for; nothing if it would exceed the limits, which `why` then tells.
  void* static_array(const void* key, std::size_t bytes, std::string& why);

  /// Memory of `bytes` at an address; null unless all of it lies in one array.
  unsigned char* at(std::uint32_t address, std::size_t bytes);
  std::optional<std::uint32_t> address_of(const void* memory, std::size_t bytes) const;

  /// The thread stores there by address.
  void record_store(std::uint32_t address, std::size_t bytes, unsigned thread, ct1d_host::Site site);
  void proxy_fence(unsigned thread);
  /// The async proxy writes there: poison at issue, data at completion.
  void async_poison(std::uint32_t address, std::size_t bytes);
  void async_write(std::uint32_t address, const void* data, std::size_t bytes);
  /// What is wrong with the async proxy's reading there, if anything.
  std::optional<std::string> uncovered(std::uint32_t address, std::size_t bytes);

  /// Bytes written outside an array, and its kind.
  std::size_t violations(const char*& kind);

 private:
  struct Array {
    const void* key;  // null: dynamic
    std::uint32_t address;
    std::unique_ptr<GuardedMemory> memory;
    std::vector<unsigned char> seen;  // by the async proxy
  };
  /// The last store by address to two neighbouring bytes.
  struct Store {
    std::uint32_t fences = 0;  // that the thread had made
    std::uint16_t thread = 0;  // 0: none; one more than its number
    std::uint16_t site = 0;
  };
  static Array make_array(const void* key, std::uint32_t address, std::size_t bytes);
  Array* array_at(std::uint32_t address, std::size_t bytes);
  void forget_stores(std::uint32_t address, std::size_t bytes);
  std::uint16_t site_number(ct1d_host::Site site);
  std::string describe_store(std::uint32_t address, const Store& store) const;

  std::vector<Array> arrays_;          // dynamic first
  std::vector<Store> stores_;          // by address / 2; empty until the first
  std::vector<std::uint32_t> fences_;  // by thread
  std::vector<ct1d_host::Site> sites_;
};

}  // namespace tuner
