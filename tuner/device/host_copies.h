// A thread's asynchronous copies in flight, completed at a legal moment that the seed chooses.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tuner/core/random.h"

namespace tuner {

/// Legal moments: at issue, at any later point of the thread, at the latest in the wait for the copy's group. The
/// destination holds the poison that the issuing code wrote until then. Order among copies is free, as on the GPU.
class PendingCopies {
 public:
  struct Copy {
    void* target;
    unsigned bytes;
    std::uint64_t group;
    unsigned char data[16];
  };
  static void complete(const Copy& copy);
  void issue(void* target, const void* data, unsigned bytes, Random& random);
  void commit() { ++open_group_; }
  /// Completes every committed group but the `groups_in_flight` most recent.
  void wait(unsigned groups_in_flight);
  /// A moment between issue and wait: something may complete.
  void pass(Random& random);
  /// Forgets what was never waited for: nothing may rely on it.
  void reset();
  /// Hands over all that are in flight.
  std::vector<Copy> take() { return std::exchange(copies_, {}); }
  bool empty() const { return copies_.empty(); }

 private:
  std::vector<Copy> copies_;
  std::uint64_t open_group_ = 0;
};

}  // namespace tuner
