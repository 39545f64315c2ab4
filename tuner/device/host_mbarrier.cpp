#include "tuner/device/host_mbarrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tuner/core/random.h"

namespace tuner {
namespace {

constexpr unsigned kMaxArrivals = (1u << 20) - 1;
constexpr std::int64_t kMaxBytes = (1 << 20) - 1;

/// What the barrier's 8 bytes hold: stray writes change it.
std::uint64_t token(std::uint32_t address) { return mix64(address) | 1; }

}  // namespace

std::optional<std::string> Mbarriers::init(std::uint32_t address, unsigned arrivals, unsigned thread) {
  unsigned char* memory = shared_.at(address, 8);
  if (memory == nullptr || address % 8 != 0)
    return fmt::format("barrier_init at {:#x}, which is no 8 aligned bytes of the block's shared memory", address);
  if (arrivals == 0 || arrivals > kMaxArrivals)
    return fmt::format("barrier_init for {} arrivals (1 to {})", arrivals, kMaxArrivals);
  Barrier& barrier = barriers_[address];
  if (!barrier.waiting.empty() || barrier.bytes != 0)
    return "barrier_init of the " + describe(address) + ", which is in use";
  barrier = Barrier{arrivals, arrivals, 0, 0, static_cast<std::uint16_t>(thread), false, {}, {}};
  const std::uint64_t mark = token(address);
  std::memcpy(memory, &mark, sizeof mark);
  return std::nullopt;
}

void Mbarriers::init_fence(unsigned thread) {
  for (auto& [address, barrier] : barriers_)
    if (barrier.init_thread == thread) barrier.fenced = true;
}

std::optional<std::string> Mbarriers::find(std::uint32_t address, Barrier*& barrier) {
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) return fmt::format("no mbarrier was initialised at shared address {:#x}", address);
  barrier = &found->second;
  std::uint64_t mark;
  std::memcpy(&mark, shared_.at(address, 8), sizeof mark);
  if (mark != token(address)) return "the " + describe(address) + " was overwritten";
  return std::nullopt;
}

std::optional<std::string> Mbarriers::arrive(std::uint32_t address, unsigned expected_bytes,
                                             std::vector<std::uint16_t>& released) {
  Barrier* barrier = nullptr;
  if (auto wrong = find(address, barrier)) return wrong;
  if (barrier->missing == 0) return "an arrival too many on the " + describe(address);
  barrier->bytes += expected_bytes;
  if (barrier->bytes > kMaxBytes) return "more than 1048575 bytes expected on the " + describe(address);
  --barrier->missing;
  return advance(address, *barrier, released);
}

std::optional<std::string> Mbarriers::usable(std::uint32_t address) {
  Barrier* barrier = nullptr;
  return find(address, barrier);
}

std::optional<std::string> Mbarriers::usable_by_loads(std::uint32_t address) {
  Barrier* barrier = nullptr;
  if (auto wrong = find(address, barrier)) return wrong;
  if (!barrier->fenced)
    return "the thread that initialised the " + describe(address) +
           " made no barrier_init_fence(): bulk copies may not see it";
  return std::nullopt;
}

std::optional<std::string> Mbarriers::complete_bytes(std::uint32_t address, unsigned bytes,
                                                     std::vector<std::uint16_t>& released) {
  Barrier* barrier = nullptr;
  if (auto wrong = find(address, barrier)) return wrong;
  barrier->bytes -= bytes;
  if (barrier->bytes < -kMaxBytes) return "more bytes came than were expected on the " + describe(address);
  return advance(address, *barrier, released);
}

std::optional<std::string> Mbarriers::advance(std::uint32_t address, Barrier& barrier,
                                              std::vector<std::uint16_t>& released) {
  if (barrier.missing != 0 || barrier.bytes != 0) return std::nullopt;
  if (!barrier.released.empty())
    return fmt::format(
        "phase {} of the {} completes while thread {} of the block still waits for phase {}: its wait "
        "could miss both",
        barrier.phase, describe(address), barrier.released.front(), barrier.phase - 1);
  ++barrier.phase;
  barrier.missing = barrier.arrivals;
  barrier.released = std::exchange(barrier.waiting, {});
  released = barrier.released;
  return std::nullopt;
}

std::optional<std::string> Mbarriers::wait(std::uint32_t address, unsigned parity, unsigned thread, bool& complete) {
  Barrier* barrier = nullptr;
  if (auto wrong = find(address, barrier)) return wrong;
  if (parity > 1) return fmt::format("a wait for parity {} (0 or 1) on the {}", parity, describe(address));
  complete = barrier->phase % 2 != parity;
  if (!complete) barrier->waiting.push_back(static_cast<std::uint16_t>(thread));
  return std::nullopt;
}

void Mbarriers::resumed(std::uint32_t address, unsigned thread) {
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) return;
  for (auto* threads : {&found->second.waiting, &found->second.released})
    threads->erase(std::remove(threads->begin(), threads->end(), thread), threads->end());
}

std::string Mbarriers::describe(std::uint32_t address) const {
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) return fmt::format("mbarrier at shared address {:#x}", address);
  const Barrier& barrier = found->second;
  std::string bytes = fmt::format("{} bytes missing", barrier.bytes);
  if (barrier.bytes < 0) bytes = fmt::format("{} bytes more than expected", -barrier.bytes);
  return fmt::format("mbarrier at shared address {:#x} (phase {}: {} of {} arrivals missing, {})", address,
                     barrier.phase, barrier.missing, barrier.arrivals, bytes);
}

}  // namespace tuner
