#include "tuner/device/host_block.h"

#include <algorithm>
#include <utility>

#include "tuner/device/host_report.h"
#include "tuner/device/host_sanitizer.h"

namespace tuner {

using ct1d_host::kWarpSize;

namespace {

constexpr std::size_t kSharedGuardBytes = 4096;
constexpr std::size_t kSharedAlignment = 1024;

/// Unwinds a fibre whose block has failed.
struct Abandoned {};

void shuffle(std::vector<std::uint16_t>& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::size_t other = ((random.next() >> 32) * i) >> 32;
    std::swap(order[i - 1], order[other]);
  }
}

bool same_place(const ct1d_host::Site& a, const ct1d_host::Site& b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

}  // namespace

struct BlockRunner::Head : ct1d_host::Worker {
  BlockRunner* runner;
};
static_assert(sizeof(ct1d_host::Worker) + sizeof(void*) <= FibreArena::kHeadBytes);

const ct1d_host::Services BlockRunner::kServices = {&barrier,     &exchange,  &static_shared, &copy_async,
                                                    &copy_commit, &copy_wait, &fail};

BlockRunner::BlockRunner() {
  head_ = new (arena_.head()) Head{};
  head_->services = &kServices;
  head_->runner = this;
  report_context_on_sanitizer_death();
}
BlockRunner::~BlockRunner() = default;

BlockRunner& BlockRunner::of(ct1d_host::Worker* worker) { return *static_cast<Head*>(worker)->runner; }
HostThread& BlockRunner::current() { return *static_cast<HostThread*>(head_->current); }

std::optional<std::string> BlockRunner::run(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed) {
  start(kernel, block, seed);
  const RunningBlock running(*head_, kernel, dynamic_shared_.get());
  run_rounds();
  if (!failure_) check_shared_guards();
  if (!failure_) return std::nullopt;
  return describe(kernel_, block) + ": " + *std::exchange(failure_, std::nullopt);
}

void BlockRunner::start(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed) {
  const ct1d::LaunchShape& shape = kernel.shape;
  if (kernel.entry != kernel_.entry) static_arrays_.clear();
  kernel_ = kernel;
  random_ = Random(seed);
  abandoning_ = false;
  head_->block_index = block;
  head_->block_dim = {shape.block_x, shape.block_y, shape.block_z};
  head_->grid_dim = {shape.grid_x, shape.grid_y, shape.grid_z};
  set_dynamic_shared(shape.shared_bytes);
  for (StaticArray& array : static_arrays_) array.memory->poison();
  for (Barrier& barrier : barriers_) barrier.waiting.clear();

  live_ = block_threads_ = std::size_t{shape.block_x} * shape.block_y * shape.block_z;
  ready_.clear();
  for (std::size_t i = 0; i < block_threads_; ++i) {
    if (i == threads_.size()) {
      threads_.push_back(std::make_unique<HostThread>());
      threads_[i]->linear = static_cast<unsigned>(i);
      threads_[i]->runner = this;
      threads_[i]->fibre = std::make_unique<Fibre>(arena_.open_stack(i), &thread_body, threads_[i].get());
    }
    HostThread& thread = *threads_[i];
    const auto linear = static_cast<unsigned>(i);
    thread.index = {linear % shape.block_x, linear / shape.block_x % shape.block_y,
                    linear / (shape.block_x * shape.block_y)};
    thread.state = ThreadState::ready;
    thread.copies.reset();
    ready_.push_back(static_cast<std::uint16_t>(i));
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const std::size_t lanes = block_threads_ > w * kWarpSize ? block_threads_ - w * kWarpSize : 0;
    warps_[w] = {lanes >= kWarpSize ? ~0u : (1u << lanes) - 1, 0};
  }
}

void BlockRunner::set_dynamic_shared(std::size_t bytes) {
  if (dynamic_shared_ == nullptr || dynamic_shared_->size() != bytes) {
    dynamic_shared_ = std::make_unique<GuardedMemory>(bytes, kSharedGuardBytes, kSharedAlignment);
  } else {
    dynamic_shared_->poison();
  }
  head_->dynamic_shared = dynamic_shared_->data();
}

void BlockRunner::run_rounds() {
  while (!ready_.empty()) {
    round_.swap(ready_);
    ready_.clear();
    shuffle(round_, random_);
    for (const std::uint16_t i : round_) {
      resume(*threads_[i]);
      if (failure_) return abandon();
    }
  }
  if (live_ == 0) return;
  failure_ = describe_stuck();
  abandon();
}

void BlockRunner::resume(HostThread& thread) {
  head_->current = &thread;
  thread.fibre->resume();
}

void BlockRunner::suspend(HostThread& thread) {
  if (!thread.copies.empty()) thread.copies.pass(random_);
  thread.fibre->suspend();
  if (abandoning_) throw Abandoned{};
}

void BlockRunner::release(HostThread& thread) {
  thread.state = ThreadState::ready;
  ready_.push_back(static_cast<std::uint16_t>(thread.linear));
}

void BlockRunner::thread_body(void* argument) {
  HostThread& thread = *static_cast<HostThread*>(argument);
  BlockRunner& runner = *thread.runner;
  try {
    if (!runner.abandoning_) {
      runner.kernel_.entry->call(runner.kernel_.arguments);
      runner.thread_exited(thread);
    }
  } catch (const Abandoned&) {
  }
  thread.state = ThreadState::exited;
}

void BlockRunner::thread_exited(HostThread& thread) {
  thread.state = ThreadState::exited;
  --live_;
  const unsigned w = thread.linear / kWarpSize;
  Warp& warp = warps_[w];
  warp.alive &= ~(1u << thread.linear % kWarpSize);
  for (unsigned lane = 0; warp.waiting != 0 && lane < kWarpSize; ++lane)
    if ((warp.waiting >> lane & 1) != 0) complete_exchange(w, threads_[w * kWarpSize + lane]->mask);
  for (unsigned id = 0; id < barriers_.size(); ++id)
    if (!barriers_[id].waiting.empty()) complete_barrier(id);
}

void BlockRunner::abandon() {
  abandoning_ = true;
  for (std::size_t i = 0; i < block_threads_; ++i)
    if (threads_[i]->state != ThreadState::exited) resume(*threads_[i]);
}

void BlockRunner::fail_here(const std::string& what, ct1d_host::Site site) {
  if (!failure_) failure_ = what + " in " + describe(current()) + " at " + describe(site);
  throw Abandoned{};
}

void BlockRunner::check_shared_guards() {
  if (AddressSanitizer::of_process()) return;  // has reported any access already
  std::size_t bytes = dynamic_shared_->violations();
  const char* kind = "dynamic";
  for (StaticArray& array : static_arrays_) {
    if (bytes != 0) break;
    kind = "static";
    bytes = array.memory->violations();
  }
  if (bytes != 0) {
    failure_ = std::to_string(bytes) + " bytes were written outside the block's " + kind +
               " shared memory (the address sanitizer would say where)";
  }
}

std::string BlockRunner::describe_stuck() const {
  std::string text = "deadlock: no thread can go on";
  std::vector<bool> told(block_threads_, false);
  for (std::size_t i = 0; i < block_threads_; ++i) {
    const HostThread& first = *threads_[i];
    if (told[i] || first.state == ThreadState::exited) continue;
    std::size_t others = 0;
    for (std::size_t j = i + 1; j < block_threads_; ++j) {
      const HostThread& other = *threads_[j];
      if (other.state != first.state || !same_place(other.site, first.site) || other.mask != first.mask) continue;
      told[j] = true;
      ++others;
    }
    text += "; " + describe(first) + (others != 0 ? " and " + std::to_string(others) + " others wait" : " waits") +
            " in " + describe_wait(first);
  }
  if (live_ < block_threads_) text += "; " + std::to_string(block_threads_ - live_) + " threads have exited";
  return text;
}

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
    if (barrier.expected == 0 && !same_place(thread.site, first.site) && !failure_) {
      failure_ = "threads of the block wait at different barriers: " + describe(first) + " in " + describe_wait(first) +
                 ", " + describe(thread) + " in " + describe_wait(thread);
      throw Abandoned{};
    }
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
