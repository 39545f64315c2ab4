// What kernels call: barriers, warp-wide operations, shared memory, asynchronous copies.
#include <algorithm>

#include "tuner/device/host_block.h"
#include "tuner/device/host_report.h"

namespace tuner {

using ct1d_host::kWarpSize;

const ct1d_host::Services BlockRunner::kServices = {&barrier,     &exchange,  &static_shared, &copy_async,
                                                    &copy_commit, &copy_wait, &fail};

BlockRunner& BlockRunner::of(ct1d_host::Worker* worker) { return *static_cast<Head*>(worker)->runner; }

// Barriers.

ct1d_host::Tally BlockRunner::barrier(ct1d_host::Worker* worker, unsigned id, unsigned threads, bool predicate,
                                      ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  if (id >= runner.barriers_.size()) runner.fail_here("barrier " + std::to_string(id) + " (there are 16)", site);
  if (threads % kWarpSize != 0)
    runner.fail_here("barrier for " + std::to_string(threads) + " threads, not a multiple of a warp", site);
  Barrier& barrier = runner.barriers_[id];
  if (barrier.waiting.empty()) barrier.expected = threads;
  if (barrier.expected != threads)
    runner.fail_here("barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                         " threads where others wait for " + std::to_string(barrier.expected),
                     site);
  thread.state = ThreadState::at_barrier;
  thread.barrier = id;
  thread.mask = 0;
  thread.predicate = predicate;
  thread.site = site;
  barrier.waiting.push_back(static_cast<std::uint16_t>(thread.linear));
  runner.complete_barrier(id);
  runner.suspend(thread);
  return thread.tally;
}

bool BlockRunner::complete_barrier(unsigned id) {
  Barrier& barrier = barriers_[id];
  const std::size_t needed = barrier.expected == 0 ? live_ : barrier.expected;
  if (barrier.waiting.size() < needed) return false;
  ct1d_host::Tally tally{static_cast<unsigned>(barrier.waiting.size()), 0};
  const HostThread& first = *threads_[barrier.waiting.front()];
  for (const std::uint16_t i : barrier.waiting) {
    const HostThread& thread = *threads_[i];
    if (thread.predicate) ++tally.held;
    if (barrier.expected == 0 && !same_place(thread.site, first.site))
      fail_block("threads of the block wait at different barriers: " + describe(first) + " in " + describe_wait(first) +
                 ", " + describe(thread) + " in " + describe_wait(thread));
  }
  for (const std::uint16_t i : barrier.waiting) {
    threads_[i]->tally = tally;
    release(*threads_[i]);
  }
  barrier.waiting.clear();
  return true;
}

// Warp-wide operations.

ct1d_host::Exchange BlockRunner::exchange(ct1d_host::Worker* worker, ct1d_host::WarpOperation operation, unsigned mask,
                                          unsigned source_lane, unsigned long long payload, ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  const unsigned lane = thread.linear % kWarpSize;
  if ((mask >> lane & 1) == 0) runner.fail_here("warp-wide operation whose mask leaves the caller out", site);
  thread.state = ThreadState::in_exchange;
  thread.operation = operation;
  thread.mask = mask;
  thread.source_lane = source_lane;
  thread.payload = payload;
  thread.site = site;
  runner.warps_[thread.linear / kWarpSize].waiting |= 1u << lane;
  runner.complete_exchange(thread.linear / kWarpSize, mask);
  runner.suspend(thread);
  return thread.result;
}

bool BlockRunner::complete_exchange(unsigned w, unsigned mask) {
  const unsigned needed = mask & warps_[w].alive;
  if ((warps_[w].waiting & needed) != needed) return false;
  const HostThread* first = nullptr;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((needed >> lane & 1) == 0) continue;
    const HostThread& thread = *threads_[w * kWarpSize + lane];
    if (first == nullptr) first = &thread;
    if (thread.mask != mask || thread.operation != first->operation) return false;  // stuck, and reported as such
  }
  deliver(w, needed);
  return true;
}

void BlockRunner::deliver(unsigned w, unsigned lanes) {
  const auto thread_of = [&](unsigned lane) -> HostThread& { return *threads_[w * kWarpSize + lane]; };
  unsigned long long ballot = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if ((lanes >> lane & 1) != 0 && thread_of(lane).payload != 0) ballot |= 1ull << lane;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    HostThread& thread = thread_of(lane);
    const bool given = (lanes >> thread.source_lane & 1) != 0;
    thread.result = {given ? thread_of(thread.source_lane).payload : ~0ull, ballot};
    release(thread);
  }
  warps_[w].waiting &= ~lanes;
}

// Shared memory and copies.

void* BlockRunner::static_shared(ct1d_host::Worker* worker, const void* key, unsigned long long bytes,
                                 ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  std::size_t total = bytes;
  for (const StaticArray& array : runner.static_arrays_) {
    if (array.key == key && array.memory->size() == bytes) return array.memory->data();
    total += array.memory->size();
  }
  if (total > kMaxStaticSharedBytes)
    runner.fail_here(std::to_string(total) + " bytes of static shared memory (at most 49152)", site);
  if (total + runner.dynamic_shared_->size() > kMaxSharedBytes)
    runner.fail_here("static and dynamic shared memory exceed 232448 bytes", site);
  runner.static_arrays_.push_back({key, std::make_unique<GuardedMemory>(bytes, kSharedGuardBytes, kSharedAlignment)});
  return runner.static_arrays_.back().memory->data();
}

void BlockRunner::copy_async(ct1d_host::Worker* worker, void* shared, const void* data, unsigned bytes,
                             ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  const auto& arrays = runner.static_arrays_;
  const bool inside = runner.dynamic_shared_->contains(shared, bytes) ||
                      std::any_of(arrays.begin(), arrays.end(),
                                  [&](const StaticArray& array) { return array.memory->contains(shared, bytes); });
  if (!inside) runner.fail_here("copy_async to an address outside the block's shared memory", site);
  runner.current().copies.issue(shared, data, bytes, runner.random_);
}

void BlockRunner::copy_commit(ct1d_host::Worker* worker) { of(worker).current().copies.commit(); }

void BlockRunner::copy_wait(ct1d_host::Worker* worker, unsigned groups_in_flight) {
  of(worker).current().copies.wait(groups_in_flight);
}

void BlockRunner::fail(ct1d_host::Worker* worker, const char* what, ct1d_host::Site site) {
  of(worker).fail_here(what, site);
}

}  // namespace tuner
