// What a block does when none of its threads can run: asynchronous operations end, waits give up, or it has failed.
#include "tuner/device/host_block.h"
#include "tuner/device/host_report.h"

namespace tuner {

bool BlockRunner::go_on_without_threads() {
  std::vector<std::uint16_t> released;
  while (bulk_.arrivals_in_flight()) {
    ++progress_;
    failure_ = bulk_.force(random_, released);
    if (failure_) return false;
    release_all(released);
    if (!released.empty()) return true;
  }
  return let_waits_give_up();
}

bool BlockRunner::let_waits_give_up() {
  for (std::size_t i = 0; i < block_threads_; ++i) {
    HostThread& thread = *threads_[i];
    if (thread.state != ThreadState::at_mbarrier || !thread.may_give_up || thread.gave_up_at == progress_) continue;
    thread.gave_up = true;
    thread.gave_up_at = progress_;
    thread.state = ThreadState::ready;
    ready_.push_back(static_cast<std::uint16_t>(i));
  }
  return !ready_.empty();
}

std::string BlockRunner::describe_wait_of(const HostThread& thread) const {
  std::string text = describe_wait(thread);
  if (thread.state == ThreadState::at_mbarrier) text += " on the " + mbarriers_.describe(thread.mbarrier);
  if (thread.state == ThreadState::at_matrix)
    text += ": " + matrix_[thread.linear / kWarpgroupSize].describe_missing(thread.linear % kWarpgroupSize,
                                                                            thread.matrix_groups);
  return text;
}

std::string BlockRunner::describe_place() const { return describe(kernel_, head_->block_index); }

std::string BlockRunner::describe_waits() const {
  std::string text;
  std::vector<bool> told(block_threads_, false);
  for (std::size_t i = 0; i < block_threads_; ++i) {
    const HostThread& first = *threads_[i];
    if (told[i] || first.state == ThreadState::exited) continue;
    std::size_t others = 0;
    for (std::size_t j = i + 1; j < block_threads_; ++j) {
      const HostThread& other = *threads_[j];
      if (other.state != first.state || !same_place(other.site, first.site) || other.mask != first.mask ||
          (first.state == ThreadState::at_mbarrier && other.mbarrier != first.mbarrier))
        continue;
      told[j] = true;
      ++others;
    }
    text += "; " + describe(first) + (others != 0 ? " and " + std::to_string(others) + " others wait" : " waits") +
            " in " + describe_wait_of(first);
  }
  if (live_ < block_threads_) text += "; " + std::to_string(block_threads_ - live_) + " threads have exited";
  return text;
}

}  // namespace tuner
