#include "tuner/device/host_block.h"

#include <algorithm>
#include <utility>

#include "tuner/device/host_cluster.h"
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

BlockRunner::BlockRunner(HostCluster& cluster, unsigned rank) : cluster_(cluster) {
  head_ = new (arena_.head()) Head{};
  head_->services = &kServices;
  head_->runner = this;
  head_->cluster_rank = rank;
  report_context_on_sanitizer_death();
}
BlockRunner::~BlockRunner() = default;

HostThread& BlockRunner::current() { return *static_cast<HostThread*>(head_->current); }

void BlockRunner::start(const HostKernel& kernel, ct1d_host::Dim3 block, std::uint64_t seed) {
  const ct1d::LaunchShape& shape = kernel.shape;
  shared_.start(shape.shared_bytes, kernel.entry == kernel_.entry);
  mbarriers_.start();
  bulk_.start();
  kernel_ = kernel;
  random_ = Random(seed);
  abandoning_ = false;
  failure_.reset();
  head_->block_index = block;
  head_->block_dim = {shape.block_x, shape.block_y, shape.block_z};
  head_->grid_dim = {shape.grid_x, shape.grid_y, shape.grid_z};
  head_->dynamic_shared = shared_.dynamic().data();
  for (Barrier& barrier : barriers_) barrier = {};

  held_ = 0;
  stretch_ = 1u << random_.below(8);
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
    thread.gave_up_at = ~std::uint64_t{0};
    thread.cluster_arrivals = thread.cluster_waits = 0;
    thread.copies.reset();
    ready_.push_back(static_cast<std::uint16_t>(i));
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const std::size_t lanes = block_threads_ > w * kWarpSize ? block_threads_ - w * kWarpSize : 0;
    warps_[w] = {lanes >= kWarpSize ? ~0u : (1u << lanes) - 1, 0, 0};
  }
  while (matrix_.size() < block_threads_ / kWarpgroupSize) matrix_.emplace_back(shared_);
  for (MatrixUnit& unit : matrix_) unit.start();
}

void BlockRunner::run_round() {
  const RunningBlock running(*head_, kernel_, &shared_.dynamic());
  round_.swap(ready_);
  ready_.clear();
  shuffle(round_, random_);
  draw_held_warps();
  bool ran = false;
  for (const std::uint16_t i : round_) {
    if (held_ >> i / kWarpSize & 1) {
      ready_.push_back(i);
      continue;
    }
    ran = true;
    resume(*threads_[i]);
    if (failure_) return;
  }
  if (!ran) held_ = 0;  // all others wait for these
  if (live_ == 0) check_end();
}

/// For a stretch of rounds some warps stand still, so that they fall behind the others as far as barriers let them.
void BlockRunner::draw_held_warps() {
  if (stretch_ == 0) {
    held_ = block_threads_ > kWarpSize ? static_cast<std::uint32_t>(random_.next() & random_.next()) : 0;
    stretch_ = 1u << random_.below(8);
  }
  --stretch_;
}

void BlockRunner::resume(HostThread& thread) {
  head_->current = &thread;
  thread.fibre->resume();
}

void BlockRunner::suspend(HostThread& thread) {
  pass_time(thread);
  thread.fibre->suspend();
  if (abandoning_) throw Abandoned{};
}

/// A moment at which asynchronous operations may complete.
void BlockRunner::pass_time(HostThread& thread) {
  if (!thread.copies.empty()) thread.copies.pass(random_);
  if (!bulk_.empty()) {
    std::vector<std::uint16_t> released;
    if (auto wrong = bulk_.pass(random_, released)) fail_block(*wrong);
    release_all(released);
  }
  const std::size_t warpgroup = thread.linear / kWarpgroupSize;
  if (warpgroup < matrix_.size() && !matrix_[warpgroup].empty())
    if (auto wrong = matrix_[warpgroup].pass(random_)) fail_block(*wrong);
}

void BlockRunner::release(HostThread& thread) {
  ++progress_;
  thread.state = ThreadState::ready;
  ready_.push_back(static_cast<std::uint16_t>(thread.linear));
}

void BlockRunner::release_all(const std::vector<std::uint16_t>& threads) {
  for (const std::uint16_t i : threads) release(*threads_[i]);
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
  std::optional<std::string> wrong = bulk_.thread_exits(thread.linear);
  const std::size_t warpgroup = thread.linear / kWarpgroupSize;
  if (!wrong && warpgroup < matrix_.size()) wrong = matrix_[warpgroup].thread_exits(thread.linear % kWarpgroupSize);
  if (wrong) fail_block(describe(thread) + ": " + *wrong);
  thread.state = ThreadState::exited;
  --live_;
  ++progress_;
  const unsigned w = thread.linear / kWarpSize;
  Warp& warp = warps_[w];
  warp.alive &= ~(1u << thread.linear % kWarpSize);
  for (unsigned lane = 0; warp.waiting != 0 && lane < kWarpSize; ++lane)
    if ((warp.waiting >> lane & 1) != 0) complete_exchange(w, threads_[w * kWarpSize + lane]->mask);
  for (unsigned id = 0; id < barriers_.size(); ++id)
    if (!barriers_[id].waiting.empty()) complete_barrier(id);
  cluster_.thread_exited(thread);
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

void BlockRunner::check(const std::optional<std::string>& wrong, ct1d_host::Site site) {
  if (wrong) fail_here(*wrong, site);
}

void BlockRunner::check_end() {
  failure_ = bulk_.block_ends();
  if (failure_ || AddressSanitizer::of_process()) return;  // which has reported any access already
  const char* kind = nullptr;
  if (const std::size_t bytes = shared_.violations(kind); bytes != 0) {
    failure_ = std::to_string(bytes) + " bytes were written outside the block's " + kind +
               " shared memory (the address sanitizer would say where)";
  }
}

}  // namespace tuner
