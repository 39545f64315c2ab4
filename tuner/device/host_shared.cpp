#include "tuner/device/host_shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tuner/device/host_report.h"

namespace tuner {
namespace {

constexpr std::uint32_t kFirstAddress = kSharedAlignment;
constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kAddresses = std::size_t{1} << 18;  // what a matrix descriptor can name

std::uint32_t aligned(std::size_t address) {
  return static_cast<std::uint32_t>((address + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment);
}

}  // namespace

SharedMemory::Array SharedMemory::make_array(const void* key, std::uint32_t address, std::size_t bytes) {
  return {key, address, std::make_unique<GuardedMemory>(bytes, kSharedGuardBytes, kSharedAlignment),
          std::vector<unsigned char>(bytes, ct1d_host::kPoisonByte)};
}

void SharedMemory::start(std::size_t dynamic_bytes, bool same_kernel) {
  if (arrays_.empty() || !same_kernel || dynamic().size() != dynamic_bytes) {
    arrays_.clear();
    arrays_.push_back(make_array(nullptr, kFirstAddress, dynamic_bytes));
  } else {
    for (Array& array : arrays_) {
      array.memory->poison();
      std::fill(array.seen.begin(), array.seen.end(), ct1d_host::kPoisonByte);
    }
  }
  stores_.clear();
  sites_.clear();
  fences_.assign(kMaxThreads, 0);
}

void* SharedMemory::static_array(const void* key, std::size_t bytes, std::string& why) {
  std::size_t total = bytes;
  for (std::size_t i = 1; i < arrays_.size(); ++i) {
    if (arrays_[i].key == key && arrays_[i].memory->size() == bytes) return arrays_[i].memory->data();
    total += arrays_[i].memory->size();
  }
  const std::uint32_t address = aligned(arrays_.back().address + arrays_.back().memory->size());
  if (total > kMaxStaticSharedBytes) {
    why = fmt::format("{} bytes of static shared memory (at most {})", total, kMaxStaticSharedBytes);
  } else if (total + dynamic().size() > kMaxSharedBytes) {
    why = fmt::format("static and dynamic shared memory exceed {} bytes", kMaxSharedBytes);
  } else if (address + bytes > kAddresses) {
    why = "static shared arrays are too many for Host execution, which starts each at a multiple of 1024 bytes";
  } else {
    arrays_.push_back(make_array(key, address, bytes));
    return arrays_.back().memory->data();
  }
  return nullptr;
}

SharedMemory::Array* SharedMemory::array_at(std::uint32_t address, std::size_t bytes) {
  for (Array& array : arrays_) {
    const std::size_t size = array.memory->size();
    const std::size_t offset = std::size_t{address} - array.address;  // wraps where the address lies before
    if (offset <= size && bytes <= size - offset) return &array;
  }
  return nullptr;
}

unsigned char* SharedMemory::at(std::uint32_t address, std::size_t bytes) {
  const Array* array = array_at(address, bytes);
  return array != nullptr ? array->memory->data() + (address - array->address) : nullptr;
}

std::optional<std::uint32_t> SharedMemory::address_of(const void* memory, std::size_t bytes) const {
  for (const Array& array : arrays_) {
    if (!array.memory->contains(memory, bytes)) continue;
    return array.address + static_cast<std::uint32_t>(static_cast<const unsigned char*>(memory) - array.memory->data());
  }
  return std::nullopt;
}

std::uint16_t SharedMemory::site_number(ct1d_host::Site site) {
  for (std::size_t i = sites_.size(); i > 0; --i)
    if (sites_[i - 1].line == site.line && sites_[i - 1].file == site.file) return static_cast<std::uint16_t>(i - 1);
  if (sites_.size() == UINT16_MAX) return 0;
  sites_.push_back(site);
  return static_cast<std::uint16_t>(sites_.size() - 1);
}

void SharedMemory::record_store(std::uint32_t address, std::size_t bytes, unsigned thread, ct1d_host::Site site) {
  if (stores_.empty()) stores_.resize(kAddresses / 2);
  const Store store{fences_[thread], static_cast<std::uint16_t>(thread + 1), site_number(site)};
  std::fill_n(stores_.begin() + address / 2, (bytes + 1) / 2, store);
}

void SharedMemory::proxy_fence(unsigned thread) {
  ++fences_[thread];
  for (Array& array : arrays_) std::memcpy(array.seen.data(), array.memory->data(), array.seen.size());
}

void SharedMemory::async_poison(std::uint32_t address, std::size_t bytes) {
  Array& array = *array_at(address, bytes);
  std::memset(array.memory->data() + (address - array.address), ct1d_host::kPoisonByte, bytes);
  std::memset(array.seen.data() + (address - array.address), ct1d_host::kPoisonByte, bytes);
  forget_stores(address, bytes);
}

void SharedMemory::async_write(std::uint32_t address, const void* data, std::size_t bytes) {
  Array& array = *array_at(address, bytes);
  std::memcpy(array.memory->data() + (address - array.address), data, bytes);
  std::memcpy(array.seen.data() + (address - array.address), data, bytes);
  forget_stores(address, bytes);
}

void SharedMemory::forget_stores(std::uint32_t address, std::size_t bytes) {
  if (!stores_.empty()) std::fill_n(stores_.begin() + address / 2, (bytes + 1) / 2, Store{});
}

std::optional<std::string> SharedMemory::uncovered(std::uint32_t address, std::size_t bytes) {
  Array& array = *array_at(address, bytes);
  unsigned char* seen = array.seen.data() + (address - array.address);
  const unsigned char* memory = array.memory->data() + (address - array.address);
  if (!stores_.empty()) {
    for (std::size_t i = 0; i < bytes; i += 2) {
      Store& store = stores_[(address + i) / 2];
      if (store.thread == 0) continue;
      if (fences_[store.thread - 1u] <= store.fences)
        return describe_store(address + static_cast<std::uint32_t>(i), store);
      std::memcpy(seen + i, memory + i, std::min<std::size_t>(2, bytes - i));
      store = {};
    }
  }
  if (std::memcmp(seen, memory, bytes) == 0) return std::nullopt;
  const auto differing = std::mismatch(memory, memory + bytes, seen).first - memory;
  return fmt::format(
      "shared memory at address {:#x} ({} bytes from the start of the block's {} shared memory) was changed by "
      "ordinary "
      "stores that no async_proxy_fence() covers",
      address + static_cast<std::uint32_t>(differing), address - array.address + differing,
      array.key == nullptr ? "dynamic" : "static");
}

std::string SharedMemory::describe_store(std::uint32_t address, const Store& store) const {
  return fmt::format(
      "shared memory at address {:#x} was stored by thread {} of the block at {}, and no "
      "async_proxy_fence() of that thread covers it",
      address, store.thread - 1, describe(sites_[store.site]));
}

std::size_t SharedMemory::violations(const char*& kind) {
  for (Array& array : arrays_) {
    kind = array.key == nullptr ? "dynamic" : "static";
    if (const std::size_t bytes = array.memory->violations(); bytes != 0) return bytes;
  }
  return 0;
}

}  // namespace tuner
