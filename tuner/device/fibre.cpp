#include "tuner/device/fibre.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

#include "kernels/common/host_abi.h"
#include "tuner/device/host_sanitizer.h"

namespace tuner {
namespace {

constexpr std::size_t kPage = 4096;
// An odd number of pages, so that neighbouring stacks do not fall on the same cache sets.
constexpr std::size_t kStackStride = 55 * kPage;
static_assert(FibreArena::kHeadBytes + FibreArena::kMaxStacks * kStackStride <= ct1d_host::kArenaBytes);

/// The stack belongs to an arena: nothing to allocate or free.
struct ArenaStack {
  boost::context::stack_context context;
  boost::context::stack_context allocate() const { return context; }
  void deallocate(boost::context::stack_context&) const {}
};

}  // namespace

FibreArena::FibreArena() {
  constexpr std::size_t size = ct1d_host::kArenaBytes;
  void* mapped = mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* first = static_cast<char*>(mapped);
  const std::size_t before = (size - reinterpret_cast<std::uintptr_t>(first) % size) % size;
  if (before != 0) munmap(first, before);
  munmap(first + before + size, size - before);
  base_ = first + before;
  if (mprotect(base_, kHeadBytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(base_, size);
    throw std::bad_alloc();
  }
}

FibreArena::~FibreArena() { munmap(base_, ct1d_host::kArenaBytes); }

StackSpan FibreArena::open_stack(std::size_t index) const {
  char* guard = static_cast<char*>(base_) + kHeadBytes + index * kStackStride;
  char* low = guard + kPage;
  if (mprotect(low, kStackStride - kPage, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  const std::size_t colour = index / 16 % 8 * (kPage / 8);  // spreads the tops over a page's cache lines
  return {low, kStackStride - kPage - colour};
}

Fibre::Fibre(StackSpan stack, Body body, void* argument) : stack_(stack), body_(body), argument_(argument) {
  sanitizer_ = AddressSanitizer::of_process() ? &AddressSanitizer::of_process() : nullptr;
  boost::context::stack_context context;
  context.size = stack.size;
  context.sp = static_cast<char*>(stack.low) + stack.size;
  const boost::context::preallocated place(context.sp, context.size, context);
  inside_ = boost::context::fiber(std::allocator_arg, place, ArenaStack{context}, [this](boost::context::fiber&& from) {
    outside_ = std::move(from);
    if (sanitizer_ != nullptr) sanitizer_->finish_switch_fiber(nullptr, &outside_low_, &outside_size_);
    while (!finish_) {
      body_(argument_);
      suspend();
    }
    if (sanitizer_ != nullptr) sanitizer_->start_switch_fiber(nullptr, outside_low_, outside_size_);
    return std::move(outside_);
  });
}

Fibre::~Fibre() {
  finish_ = true;
  resume();
}

void Fibre::resume() {
  if (sanitizer_ == nullptr) {
    inside_ = std::move(inside_).resume();
    return;
  }
  void* fake_stack = nullptr;
  sanitizer_->start_switch_fiber(&fake_stack, stack_.low, stack_.size);
  inside_ = std::move(inside_).resume();
  sanitizer_->finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void Fibre::suspend() {
  if (sanitizer_ == nullptr) {
    outside_ = std::move(outside_).resume();
    return;
  }
  sanitizer_->start_switch_fiber(&fake_stack_, outside_low_, outside_size_);
  outside_ = std::move(outside_).resume();
  sanitizer_->finish_switch_fiber(fake_stack_, &outside_low_, &outside_size_);
}

}  // namespace tuner
