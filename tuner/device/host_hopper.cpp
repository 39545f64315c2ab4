// What kernels call of Hopper's asynchronous vocabulary: shared memory by address, mbarriers, bulk copies, matrix
// products, registers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/common/element.cuh"
#include "tuner/device/host_block.h"
#include "tuner/device/host_registers.h"
#include "tuner/device/host_report.h"
#include "tuner/device/matrix_model.h"

namespace tuner {

using ct1d_host::kWarpSize;
using ct1d_host::Site;
using ct1d_host::Worker;

// Shared memory by address.

unsigned BlockRunner::shared_address(Worker* worker, const void* shared, Site site) {
  BlockRunner& runner = of(worker);
  const auto address = runner.shared_.address_of(shared, 0);
  if (!address) runner.fail_here("shared_address() of what is not in the block's shared memory", site);
  return *address;
}

void* BlockRunner::shared_load(Worker* worker, unsigned address, unsigned bytes, Site site) {
  BlockRunner& runner = of(worker);
  unsigned char* memory = runner.shared_.at(address, bytes);
  if (memory == nullptr)
    runner.fail_here(fmt::format("{} bytes at shared address {:#x}, outside the block's shared memory", bytes, address),
                     site);
  if (address % bytes != 0)
    runner.fail_here(fmt::format("{} bytes at shared address {:#x}, which is no multiple of them", bytes, address),
                     site);
  return memory;
}

void* BlockRunner::shared_store(Worker* worker, unsigned address, unsigned bytes, Site site) {
  void* memory = shared_load(worker, address, bytes, site);
  BlockRunner& runner = of(worker);
  runner.shared_.record_store(address, bytes, runner.current().linear, site);
  return memory;
}

void BlockRunner::proxy_fence(Worker* worker) {
  BlockRunner& runner = of(worker);
  runner.shared_.proxy_fence(runner.current().linear);
  runner.mbarriers_.init_fence(runner.current().linear);
}

// Named barriers and registers.

void BlockRunner::barrier_arrive(Worker* worker, unsigned id, unsigned threads, Site site) {
  BlockRunner& runner = of(worker);
  Barrier& barrier = runner.barrier_for(id, threads, site);
  const auto thread = static_cast<std::uint16_t>(runner.current().linear);
  if (std::find(barrier.arrived.begin(), barrier.arrived.end(), thread) != barrier.arrived.end())
    runner.fail_here("second arrival at barrier " + std::to_string(id) + " before it was complete", site);
  barrier.arrived.push_back(thread);
  runner.complete_barrier(id);
}

void BlockRunner::set_registers(Worker* worker, unsigned registers, Site site) {
  BlockRunner& runner = of(worker);
  runner.warps_[runner.current().linear / kWarpSize].registers = registers;
  const std::size_t warps = (runner.block_threads_ + kWarpSize - 1) / kWarpSize;
  std::size_t asked = 0;
  for (std::size_t w = 0; w < warps; ++w) {
    if (runner.warps_[w].registers == 0) return;  // not all have asked yet
    asked += runner.warps_[w].registers;
  }
  constexpr std::size_t kRegistersOfWarps = 65536 / kWarpSize;
  const std::size_t at_start = std::min<std::size_t>(kRegistersOfWarps / warps / 8 * 8, 255 / 8 * 8 + 8);
  if (asked > at_start * warps)
    runner.fail_here(
        fmt::format("the block's warps ask for {} registers in all and start with at most {}: some would wait "
                    "for them for ever",
                    asked * kWarpSize, at_start * warps * kWarpSize),
        site);
}

// mbarriers.

void BlockRunner::mbarrier_init(Worker* worker, unsigned address, unsigned arrivals, Site site) {
  BlockRunner& runner = of(worker);
  runner.check(runner.mbarriers_.init(address, arrivals, runner.current().linear), site);
}

void BlockRunner::mbarrier_init_fence(Worker* worker) {
  BlockRunner& runner = of(worker);
  runner.mbarriers_.init_fence(runner.current().linear);
}

void BlockRunner::mbarrier_arrive(Worker* worker, unsigned address, unsigned expected_bytes, Site site) {
  BlockRunner& runner = of(worker);
  std::vector<std::uint16_t> released;
  runner.check(runner.mbarriers_.arrive(address, expected_bytes, released), site);
  runner.release_all(released);
}

void BlockRunner::mbarrier_arrive_after_copies(Worker* worker, unsigned address, Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  std::vector<std::uint16_t> released;
  runner.check(
      runner.bulk_.issue({thread.copies.take(), address, draw_moment(runner.random_), thread.linear}, released), site);
  runner.release_all(released);
}

bool BlockRunner::mbarrier_wait(Worker* worker, unsigned address, unsigned parity, bool may_fail, Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  bool complete = false;
  runner.check(runner.mbarriers_.wait(address, parity, thread.linear, complete), site);
  if (complete) return true;
  thread.site = site;
  thread.mask = 0;
  thread.mbarrier = address;
  thread.may_give_up = may_fail;
  thread.gave_up = may_fail && runner.random_.next() >> 62 == 0;  // at once, as hardware may
  if (thread.gave_up) {
    runner.mbarriers_.resumed(address, thread.linear);
    thread.state = ThreadState::ready;
    runner.ready_.push_back(static_cast<std::uint16_t>(thread.linear));
    runner.suspend(thread);
    return false;
  }
  thread.state = ThreadState::at_mbarrier;
  runner.suspend(thread);
  runner.mbarriers_.resumed(address, thread.linear);
  return !std::exchange(thread.gave_up, false);
}

// Bulk copies.

void BlockRunner::check_bulk(const char* what, const void* global, unsigned shared, unsigned bytes, Site site) {
  if (bytes == 0 || bytes % 16 != 0 || shared % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    fail_here(fmt::format("{} of {} bytes between {} and shared address {:#x}: not all multiples of 16", what, bytes,
                          global, shared),
              site);
  if (shared_.at(shared, bytes) == nullptr)
    fail_here(
        fmt::format("{} of {} bytes at shared address {:#x}, outside the block's shared memory", what, bytes, shared),
        site);
}

void BlockRunner::bulk_load(Worker* worker, unsigned shared, const void* global, unsigned bytes, unsigned barrier,
                            void (*read)(void*, const void*, unsigned), Site site) {
  BlockRunner& runner = of(worker);
  runner.check_bulk("bulk_load", global, shared, bytes, site);
  runner.check(runner.mbarriers_.usable_by_loads(barrier), site);
  std::vector<unsigned char> data(bytes);
  read(data.data(), global, bytes);
  runner.issue_load(runner, shared, std::move(data), barrier, site);
}

/// Of the calling thread, to its own block or another one.
void BlockRunner::issue_load(BlockRunner& to, unsigned shared, std::vector<unsigned char> data, unsigned barrier,
                             Site site) {
  std::vector<std::uint16_t> released;
  check(to.bulk_.issue({shared, barrier, std::move(data), draw_moment(random_), current().linear, site}, released),
        site);
  to.release_all(released);
}

void BlockRunner::bulk_store(Worker* worker, void* global, unsigned shared, unsigned bytes,
                             void (*touch)(const void*, unsigned), Site site) {
  BlockRunner& runner = of(worker);
  runner.check_bulk("bulk_store", global, shared, bytes, site);
  touch(global, bytes);
  const unsigned thread = runner.current().linear;
  runner.check(runner.bulk_.issue({static_cast<unsigned char*>(global),
                                   shared,
                                   {},
                                   bytes,
                                   runner.bulk_.open_group(thread),
                                   draw_moment(runner.random_),
                                   false,
                                   thread,
                                   site}),
               site);
}

void BlockRunner::bulk_commit(Worker* worker) { of(worker).bulk_.commit(of(worker).current().linear); }

void BlockRunner::bulk_wait(Worker* worker, unsigned groups_in_flight, bool read_only) {
  BlockRunner& runner = of(worker);
  const HostThread& thread = runner.current();
  if (auto wrong = runner.bulk_.wait(thread.linear, groups_in_flight, read_only))
    runner.fail_block(*wrong + ", for " + describe(thread));
}

// Matrix products.

MatrixUnit& BlockRunner::matrix_unit(Site site) {
  const std::size_t warpgroup = current().linear / kWarpgroupSize;
  if (warpgroup >= matrix_.size() || (warpgroup + 1) * kWarpgroupSize > block_threads_)
    fail_here("a matrix product needs a whole warpgroup of 128 threads", site);
  return matrix_[warpgroup];
}

void BlockRunner::matrix_fence(Worker* worker) {
  BlockRunner& runner = of(worker);
  const unsigned linear = runner.current().linear;
  if (linear / kWarpgroupSize < runner.matrix_.size())
    runner.matrix_[linear / kWarpgroupSize].fence(linear % kWarpgroupSize);
}

void BlockRunner::matrix_multiply(Worker* worker, const ct1d_host::MatrixProduct* product, Site site) {
  BlockRunner& runner = of(worker);
  const unsigned linear = runner.current().linear;
  MatrixUnit& unit = runner.matrix_unit(site);
  runner.check(unit.issue(linear % kWarpgroupSize, *product, site, runner.random_), site);
  const unsigned first = linear / kWarpgroupSize * kWarpgroupSize;
  for (unsigned i = 0; i < kWarpgroupSize; ++i) {
    HostThread& other = *runner.threads_[first + i];
    if (other.state != ThreadState::at_matrix) continue;
    if (!unit.ready(i, other.matrix_groups)) break;
    runner.release(other);
  }
}

void BlockRunner::matrix_commit(Worker* worker) {
  BlockRunner& runner = of(worker);
  const unsigned linear = runner.current().linear;
  if (linear / kWarpgroupSize < runner.matrix_.size())
    runner.matrix_[linear / kWarpgroupSize].commit(linear % kWarpgroupSize);
}

void BlockRunner::matrix_wait(Worker* worker, unsigned groups_in_flight, Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  MatrixUnit& unit = runner.matrix_unit(site);
  const unsigned i = thread.linear % kWarpgroupSize;
  if (!unit.ready(i, groups_in_flight)) {
    thread.site = site;
    thread.mask = 0;
    thread.matrix_groups = groups_in_flight;
    thread.state = ThreadState::at_matrix;
    runner.suspend(thread);
  }
  runner.check(unit.wait(i, groups_in_flight), site);
}

/// The first lane computes for all, between two meetings of the warp.
void BlockRunner::warp_matrix(Worker* worker, const ct1d_host::WarpProduct* product, Site site) {
  using ct1d_host::WarpOperation;
  BlockRunner& runner = of(worker);
  const unsigned first = runner.current().linear / kWarpSize * kWarpSize;
  const unsigned lane = runner.current().linear - first;
  if (runner.warps_[first / kWarpSize].alive != ~0u)
    runner.fail_here("a warp's matrix product needs all of its 32 lanes", site);
  const auto payload = reinterpret_cast<std::uintptr_t>(product);
  exchange(worker, WarpOperation::sync, ~0u, lane, payload, site);
  if (lane == 0) {
    constexpr int kRows = 16, kColumns = 8;
    std::array<std::uint16_t, std::size_t{kRows} * kMatrixDepth> a;
    std::array<std::uint16_t, std::size_t{kColumns} * kMatrixDepth> b;
    std::array<float, std::size_t{kRows} * kColumns> d;
    std::array<const ct1d_host::WarpProduct*, kWarpSize> of_lane;
    const auto sum = [&](unsigned from, unsigned i) -> float& {
      return d[(from / 4 + i / 2 * 8) * kColumns + from % 4 * 2 + i % 2];
    };
    for (unsigned from = 0; from < kWarpSize; ++from) {
      const HostThread& thread = *runner.threads_[first + from];
      of_lane[from] = reinterpret_cast<const ct1d_host::WarpProduct*>(static_cast<std::uintptr_t>(thread.payload));
      if (!same_place(thread.site, site) || of_lane[from]->bfloat16 != product->bfloat16)
        runner.fail_here("lanes of a warp meet in different matrix products", site);
      const unsigned k = from % 4 * 2;
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t pair = peek(of_lane[from]->a + i);
        std::uint16_t* const to = &a[(from / 4 + i % 2 * 8) * kMatrixDepth + k + i / 2 * 8];
        to[0] = static_cast<std::uint16_t>(pair);
        to[1] = static_cast<std::uint16_t>(pair >> 16);
        sum(from, i) = ct1d::float_of_bits(peek(reinterpret_cast<const std::uint32_t*>(of_lane[from]->d) + i));
      }
      for (unsigned i = 0; i < 2; ++i) {
        const std::uint32_t pair = peek(of_lane[from]->b + i);
        std::uint16_t* const to = &b[from / 4 * kMatrixDepth + k + i * 8];
        to[0] = static_cast<std::uint16_t>(pair);
        to[1] = static_cast<std::uint16_t>(pair >> 16);
      }
    }
    matrix_product(product->bfloat16 ? MatrixElement::bfloat16 : MatrixElement::half, a.data(), b.data(), kColumns,
                   true, d.data(), kRows);
    for (unsigned to = 0; to < kWarpSize; ++to)
      for (unsigned i = 0; i < 4; ++i) of_lane[to]->d[i] = sum(to, i);
  }
  exchange(worker, WarpOperation::sync, ~0u, lane, payload, site);
}

}  // namespace tuner
