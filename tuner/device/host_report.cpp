#include "tuner/device/host_report.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "tuner/device/host_sanitizer.h"

namespace tuner {
namespace {

// The sanitizer's callback takes no argument: this is how it finds the block that its thread was running.
thread_local const RunningBlock* running_here = nullptr;

void on_sanitizer_death() {
  if (running_here == nullptr) return;
  const std::string text = running_here->describe_fault(AddressSanitizer::of_process().report_address());
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace

std::string describe(const HostKernel& kernel, ct1d_host::Dim3 block) {
  return fmt::format("{}, block ({}, {}, {})", kernel.entry->name, block.x, block.y, block.z);
}

std::string describe(const ct1d_host::Thread& thread) {
  return fmt::format("thread ({}, {}, {})", thread.index.x, thread.index.y, thread.index.z);
}

std::string describe(const ct1d_host::Site& site) {
  // The compiler ran on a private copy of the embedded sources: what follows its folder is what a user knows.
  const std::string_view file = site.file;
  const std::size_t at = file.rfind("/kernels/");
  return fmt::format("{}:{}", at == std::string_view::npos ? file : file.substr(at + 1), site.line);
}

bool same_place(const ct1d_host::Site& a, const ct1d_host::Site& b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

std::string describe_wait(const HostThread& thread) {
  if (thread.state == ThreadState::at_barrier) {
    const std::string name = thread.barrier == 0 ? "__syncthreads()" : fmt::format("barrier {}", thread.barrier);
    return name + " at " + describe(thread.site);
  }
  if (thread.state == ThreadState::at_mbarrier)
    return std::string(thread.may_give_up ? "barrier_try() at " : "barrier_wait() at ") + describe(thread.site);
  if (thread.state == ThreadState::at_matrix)
    return fmt::format("matrix_wait<{}>() at {}", thread.matrix_groups, describe(thread.site));
  if (thread.state == ThreadState::at_cluster) return "cluster_wait() at " + describe(thread.site);
  const char* const names[] = {"__syncwarp", "a shuffle", "a vote"};
  return fmt::format("{} with mask {:#010x} at {}", names[static_cast<unsigned>(thread.operation)], thread.mask,
                     describe(thread.site));
}

RunningBlock::RunningBlock(const ct1d_host::Worker& worker, const HostKernel& kernel,
                           const GuardedMemory* dynamic_shared)
    : worker_(worker), kernel_(kernel), dynamic_shared_(dynamic_shared) {
  running_here = this;
}

RunningBlock::~RunningBlock() { running_here = nullptr; }

std::string RunningBlock::describe_fault(const void* address) const {
  std::string text =
      fmt::format("Host execution: {}, {}", describe(kernel_, worker_.block_index), describe(*worker_.current));
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address)) -
                      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dynamic_shared_->data()));
  const auto size = static_cast<std::int64_t>(dynamic_shared_->size());
  if (offset < 0 && offset >= -std::int64_t{kSharedGuardBytes})
    text += fmt::format(", {} bytes before its dynamic shared memory", -offset);
  if (offset >= size && offset < size + std::int64_t{kSharedGuardBytes})
    text += fmt::format(", {} bytes past the end of its {} bytes of dynamic shared memory", offset - size, size);
  return text;
}

void report_context_on_sanitizer_death() {
  const auto& sanitizer = AddressSanitizer::of_process();
  if (sanitizer) sanitizer.set_death_callback(&on_sanitizer_death);
}

}  // namespace tuner
