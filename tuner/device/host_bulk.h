// Bulk copies, and others that end on mbarriers, in flight of a block under Host execution, completed at a legal moment
// that the seed chooses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/host_abi.h"
#include "tuner/core/random.h"
#include "tuner/device/host_copies.h"
#include "tuner/device/host_mbarrier.h"
#include "tuner/device/host_shared.h"

namespace tuner {

/// When an asynchronous operation completes: at issue, at some later point of any thread, or as late as it may.
enum class Moment : std::uint8_t { issue, between, last };
Moment draw_moment(Random& random);

/// Operations return what the kernel did wrong, or nothing; `released` as for Mbarriers.
class BulkCopies {
 public:
  BulkCopies(SharedMemory& shared, Mbarriers& barriers) : shared_(shared), barriers_(barriers) {}

  void start();
  struct Load {
    std::uint32_t target;
    std::uint32_t barrier;
    std::vector<unsigned char> data;
    Moment moment;
    unsigned thread;
    ct1d_host::Site site;
  };
  struct Store {
    unsigned char* target;
    std::uint32_t source;
    std::vector<unsigned char> data;  // of `bytes` once read
    unsigned bytes;
    std::uint64_t group;
    Moment moment;
    bool read;
    unsigned thread;
    ct1d_host::Site site;
  };
  /// Copies of a thread by copy_async() whose end is an arrival.
  struct Batch {
    std::vector<PendingCopies::Copy> copies;
    std::uint32_t barrier;
    Moment moment;
    unsigned thread;
  };
  /// The copy's `data` is read already; its target is poisoned.
  std::optional<std::string> issue(Load load, std::vector<std::uint16_t>& released);
  std::optional<std::string> issue(Store store);
  std::optional<std::string> issue(Batch batch, std::vector<std::uint16_t>& released);
  /// The thread waits for its copy_async().
  std::optional<std::string> end_batches(unsigned thread, std::vector<std::uint16_t>& released);
  void commit(unsigned thread) { ++groups_[thread]; }
  std::optional<std::string> wait(unsigned thread, unsigned groups_in_flight, bool read_only);

  bool empty() const { return loads_.empty() && stores_.empty() && batches_.empty(); }
  bool arrivals_in_flight() const { return !loads_.empty() || !batches_.empty(); }
  /// A moment at which something may complete.
  std::optional<std::string> pass(Random& random, std::vector<std::uint16_t>& released);
  /// Nothing else can go on: completes what ends in an arrival.
  std::optional<std::string> force(Random& random, std::vector<std::uint16_t>& released);
  /// The thread exits; the block ends.
  std::optional<std::string> thread_exits(unsigned thread) const;
  std::optional<std::string> block_ends();
  std::uint64_t open_group(unsigned thread) const { return groups_[thread]; }

 private:
  std::optional<std::string> complete_load(std::size_t i, std::vector<std::uint16_t>& released);
  std::optional<std::string> complete_batch(std::size_t i, std::vector<std::uint16_t>& released);
  std::optional<std::string> read(Store& store);
  static void write(const Store& store);

  SharedMemory& shared_;
  Mbarriers& barriers_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<Batch> batches_;
  std::vector<std::uint64_t> groups_;  // open group by thread
};

}  // namespace tuner
