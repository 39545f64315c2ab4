#include "tuner/device/host_block.h"

#include <algorithm>
#include <utility>

#include "tuner/device/host_report.h"
#include "tuner/device/host_sanitizer.h"

namespace tuner {

using ct1d_host::kWarpSize;

namespace {

/// Unwinds a fibre whose block has failed.
struct Abandoned {};

void shuffle(std::vector<std::uint16_t>& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::size_t other = ((random.next() >> 32) * i) >> 32;
    std::swap(order[i - 1], order[other]);
  }
}

}  // namespace

BlockRunner::BlockRunner() {
  head_ = new (arena_.head()) Head{};
  head_->services = &kServices;
  head_->runner = this;
  report_context_on_sanitizer_death();
}
BlockRunner::~BlockRunner() = default;

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
  fail_block(what + " in " + describe(current()) + " at " + describe(site));
}

void BlockRunner::fail_block(std::string what) {
  if (!failure_) failure_ = std::move(what);
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

}  // namespace tuner
