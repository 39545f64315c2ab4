// What kernels call: barriers, warp-wide operations, shared memory, asynchronous copies.
#include <string>

#include "tuner/device/host_block.h"
#include "tuner/device/host_report.h"

namespace tuner {

using ct1d_host::kWarpSize;

const ct1d_host::Services BlockRunner::kServices = {&barrier,
                                                    &exchange,
                                                    &static_shared,
                                                    &copy_async,
                                                    &copy_commit,
                                                    &copy_wait,
                                                    &fail,
                                                    &shared_address,
                                                    &shared_load,
                                                    &shared_store,
                                                    &proxy_fence,
                                                    &barrier_arrive,
                                                    &set_registers,
                                                    &mbarrier_init,
                                                    &mbarrier_init_fence,
                                                    &mbarrier_arrive,
                                                    &mbarrier_wait,
                                                    &bulk_load,
                                                    &bulk_store,
                                                    &bulk_commit,
                                                    &bulk_wait,
                                                    &matrix_fence,
                                                    &matrix_multiply,
                                                    &matrix_commit,
                                                    &matrix_wait,
                                                    &mbarrier_arrive_after_copies,
                                                    &warp_matrix,
                                                    &cluster_arrive,
                                                    &cluster_wait,
                                                    &mbarrier_arrive_of_block,
                                                    &bulk_load_to_blocks};

BlockRunner& BlockRunner::of(ct1d_host::Worker* worker) { return *static_cast<Head*>(worker)->runner; }

// Barriers.

BlockRunner::Barrier& BlockRunner::barrier_for(unsigned id, unsigned threads, ct1d_host::Site site) {
  if (id >= barriers_.size()) fail_here("barrier " + std::to_string(id) + " (there are 16)", site);
  if (threads % kWarpSize != 0)
    fail_here("barrier for " + std::to_string(threads) + " threads, not a multiple of a warp", site);
  Barrier& barrier = barriers_[id];
  if (barrier.waiting.empty() && barrier.arrived.empty()) barrier.expected = threads;
  if (barrier.expected != threads)
    fail_here("barrier " + std::to_string(id) + " for " + std::to_string(threads) + " threads where others wait for " +
                  std::to_string(barrier.expected),
              site);
  return barrier;
}

ct1d_host::Tally BlockRunner::barrier(ct1d_host::Worker* worker, unsigned id, unsigned threads, bool predicate,
                                      ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  Barrier& barrier = runner.barrier_for(id, threads, site);
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
  const std::size_t arrived = barrier.waiting.size() + barrier.arrived.size();
  if (arrived < needed) return false;
  ct1d_host::Tally tally{static_cast<unsigned>(arrived), 0};
  for (const std::uint16_t i : barrier.waiting) {
    const HostThread& thread = *threads_[i];
    if (thread.predicate) ++tally.held;
    if (const HostThread& first = *threads_[barrier.waiting.front()];
        barrier.expected == 0 && !same_place(thread.site, first.site))
      fail_block("threads of the block wait at different barriers: " + describe(first) + " in " + describe_wait(first) +
                 ", " + describe(thread) + " in " + describe_wait(thread));
  }
  for (const std::uint16_t i : barrier.waiting) {
    threads_[i]->tally = tally;
    release(*threads_[i]);
  }
  barrier.waiting.clear();
  barrier.arrived.clear();
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
  std::string why;
  void* memory = runner.shared_.static_array(key, bytes, why);
  if (memory == nullptr) runner.fail_here(why, site);
  return memory;
}

void BlockRunner::copy_async(ct1d_host::Worker* worker, void* shared, const void* data, unsigned bytes,
                             ct1d_host::Site site) {
  BlockRunner& runner = of(worker);
  if (!runner.shared_.address_of(shared, bytes))
    runner.fail_here("copy_async to an address outside the block's shared memory", site);
  runner.current().copies.issue(shared, data, bytes, runner.random_);
}

void BlockRunner::copy_commit(ct1d_host::Worker* worker) { of(worker).current().copies.commit(); }

void BlockRunner::copy_wait(ct1d_host::Worker* worker, unsigned groups_in_flight) {
  BlockRunner& runner = of(worker);
  HostThread& thread = runner.current();
  thread.copies.wait(groups_in_flight);
  if (runner.bulk_.empty()) return;
  std::vector<std::uint16_t> released;
  if (auto wrong = runner.bulk_.end_batches(thread.linear, released)) runner.fail_block(*wrong);
  runner.release_all(released);
}

void BlockRunner::fail(ct1d_host::Worker* worker, const char* what, ct1d_host::Site site) {
  of(worker).fail_here(what, site);
}

}  // namespace tuner
