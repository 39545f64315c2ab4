// A block's mbarriers under Host execution: phases, arrivals, bytes, and who waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/host_abi.h"
#include "tuner/device/host_shared.h"

namespace tuner {

/// Operations return what the kernel did wrong, or nothing. Threads are named by their number in the block.
class Mbarriers {
 public:
  explicit Mbarriers(SharedMemory& shared) : shared_(shared) {}

  void start() { barriers_.clear(); }
  std::optional<std::string> init(std::uint32_t address, unsigned arrivals, unsigned thread);
  void init_fence(unsigned thread);
  /// `released` receives the threads that need not wait any longer.
  std::optional<std::string> arrive(std::uint32_t address, unsigned expected_bytes,
                                    std::vector<std::uint16_t>& released);
  std::optional<std::string> usable(std::uint32_t address);
  /// A bulk load may complete on it.
  std::optional<std::string> usable_by_loads(std::uint32_t address);
  std::optional<std::string> complete_bytes(std::uint32_t address, unsigned bytes,
                                            std::vector<std::uint16_t>& released);
  /// Whether the phase is complete; if not, the thread now waits.
  std::optional<std::string> wait(std::uint32_t address, unsigned parity, unsigned thread, bool& complete);
  /// The thread goes on: after it was released, or because it gives up.
  void resumed(std::uint32_t address, unsigned thread);

  std::string describe(std::uint32_t address) const;  // "mbarrier at shared address 0x400 (phase 3: ...)"

 private:
  struct Barrier {
    unsigned arrivals = 0;   // a phase
    unsigned missing = 0;    // in this phase
    std::int64_t bytes = 0;  // expected and not yet there
    std::uint64_t phase = 0;
    std::uint16_t init_thread = 0;
    bool fenced = false;
    std::vector<std::uint16_t> waiting;   // for this phase
    std::vector<std::uint16_t> released;  // by the end of the last one, and not yet resumed
  };
  std::optional<std::string> find(std::uint32_t address, Barrier*& barrier);
  std::optional<std::string> advance(std::uint32_t address, Barrier& barrier, std::vector<std::uint16_t>& released);

  SharedMemory& shared_;
  std::map<std::uint32_t, Barrier> barriers_;
};

}  // namespace tuner
