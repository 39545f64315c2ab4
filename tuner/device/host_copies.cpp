#include "tuner/device/host_copies.h"

#include <cstring>

namespace tuner {

void PendingCopies::issue(void* target, const void* data, unsigned bytes, Random& random) {
  Copy copy{target, bytes, open_group_, {}};
  std::memcpy(copy.data, data, bytes);
  if (random.next() % 4 == 0) {
    complete(copy);
  } else {
    copies_.push_back(copy);
  }
}

void PendingCopies::wait(unsigned groups_in_flight) {
  std::size_t kept = 0;
  for (const Copy& copy : copies_) {
    if (copy.group + groups_in_flight < open_group_) {
      complete(copy);
    } else {
      copies_[kept++] = copy;
    }
  }
  copies_.resize(kept);
}

void PendingCopies::pass(Random& random) {
  if (random.next() % 4 != 0) return;
  const std::size_t chosen = random.next() % copies_.size();
  complete(copies_[chosen]);
  copies_[chosen] = copies_.back();
  copies_.pop_back();
}

void PendingCopies::reset() {
  copies_.clear();
  open_group_ = 0;
}

void PendingCopies::complete(const Copy& copy) { std::memcpy(copy.target, copy.data, copy.bytes); }

}  // namespace tuner
