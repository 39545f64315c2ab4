// Matrix products in flight of one warpgroup under Host execution (kernels/common/matrix.cuh).
//
// Threads issue on their own; the i-th product of each thread of the warpgroup is one product of all. It can be
// computed once all have issued it, at a moment that the seed chooses, and is at the latest when one of them waits for
// it. Sums live here while they are in flight; the threads' own hold poison.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/host_abi.h"
#include "tuner/core/random.h"
#include "tuner/device/host_bulk.h"
#include "tuner/device/host_shared.h"

namespace tuner {

inline constexpr unsigned kWarpgroupSize = 128;

/// Operations return what the kernel did wrong, or nothing. Threads are named by their number in the warpgroup.
class MatrixUnit {
 public:
  explicit MatrixUnit(SharedMemory& shared) : shared_(shared) {}

  void start();
  void fence(unsigned thread);
  std::optional<std::string> issue(unsigned thread, const ct1d_host::MatrixProduct& product, ct1d_host::Site site,
                                   Random& random);
  void commit(unsigned thread) { ++threads_[thread].open_group; }
  /// Whether all threads have issued what the thread's wait covers.
  bool ready(unsigned thread, unsigned groups_in_flight) const;
  /// Computes what the wait covers and gives the thread its sums; it must be ready.
  std::optional<std::string> wait(unsigned thread, unsigned groups_in_flight);
  bool empty() const { return products_.empty(); }
  /// A moment at which a product may be computed.
  std::optional<std::string> pass(Random& random);
  std::optional<std::string> thread_exits(unsigned thread) const;
  /// Of what a thread that is not ready waits for: "57 of 128 threads have issued the product of FILE:LINE".
  std::string describe_missing(unsigned thread, unsigned groups_in_flight) const;

 private:
  using Word = std::uint32_t;
  struct Sums {  // d of all threads
    unsigned columns = 0;
    std::array<float*, kWarpgroupSize> place{};  // null: the thread has not issued into it, or has got it back
    std::vector<float> values;                   // 64 rows
    std::uint64_t last = 0;                      // product into it, by number
    unsigned issued = 0;                         // threads that have
    unsigned returned = 0;
  };
  struct Product {
    ct1d_host::MatrixProduct what;  // of the thread that issued first; its pointers are that thread's
    ct1d_host::Site site;
    std::uint64_t group;
    std::shared_ptr<Sums> sums;
    unsigned issued = 0;
    Moment moment;
    bool computed = false;
    std::array<std::array<const Word*, 4>, kWarpgroupSize> a{};
    std::array<std::array<Word, 4>, kWarpgroupSize> a_at_issue{};
  };
  /// Memory of a thread that its products use, and what it held at the thread's last fence.
  struct SumRegisters {
    const Word* place;
    std::vector<Word> fenced;
  };
  struct Register {
    const Word* place;
    Word fenced;
  };
  struct ThreadState {
    std::uint64_t issued = 0;  // number of its next product
    std::uint64_t waited = 0;  // products before this number are done for it
    std::uint64_t open_group = 0;
    bool fenced = false;
    std::vector<SumRegisters> d;
    std::vector<Register> a;
  };

  std::optional<std::string> join(Product& product, unsigned thread, const ct1d_host::MatrixProduct& what,
                                  ct1d_host::Site site);
  std::optional<std::string> take_sums(unsigned thread, const ct1d_host::MatrixProduct& what,
                                       std::shared_ptr<Sums>& sums);
  static bool fenced(ThreadState& state, const Word* a);
  static bool fenced(ThreadState& state, const Word* d, std::size_t count);
  std::uint64_t covered(unsigned thread, unsigned groups_in_flight) const;
  std::optional<std::string> compute(Product& product);
  /// And the products into the same sums before it.
  std::optional<std::string> compute_up_to(std::uint64_t number);
  std::optional<std::string> operand(std::uint64_t descriptor, int rows, const Product& product,
                                     std::vector<std::uint16_t>& values);
  std::optional<std::string> give_back(unsigned thread, Sums& sums, const Product& product);
  Product& at(std::uint64_t number) { return products_[static_cast<std::size_t>(number - first_)]; }
  const Product& at(std::uint64_t number) const { return products_[static_cast<std::size_t>(number - first_)]; }

  SharedMemory& shared_;
  std::deque<Product> products_;  // not yet waited for by all
  std::uint64_t first_ = 0;       // number of the front
  std::array<ThreadState, kWarpgroupSize> threads_;
  std::vector<std::shared_ptr<Sums>> in_flight_;
};

}  // namespace tuner
