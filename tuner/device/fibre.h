// Fibres on stacks of one arena, with AddressSanitizer told of every switch.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>

namespace tuner {

struct AddressSanitizer;

struct StackSpan {
  void* low;
  std::size_t size;  // bytes
};

/// Owning reservation of ct1d_host::kArenaBytes aligned to its size: a head at its start, then stacks, each with an
/// inaccessible page below it. Memory is committed as it is touched.
class FibreArena {
 public:
  static constexpr std::size_t kHeadBytes = 64 * 1024;
  static constexpr std::size_t kMaxStacks = 1024;

  /// Throws std::bad_alloc.
  FibreArena();
  ~FibreArena();
  FibreArena(const FibreArena&) = delete;
  FibreArena& operator=(const FibreArena&) = delete;

  void* head() const { return base_; }
  /// Opens stack `index`, below kMaxStacks. Throws std::bad_alloc (the kernel's limit on mappings).
  StackSpan open_stack(std::size_t index) const;

 private:
  void* base_;
};

/// A fibre that calls its body each time it is resumed after the body returned. The body must not throw. Must be idle
/// (body returned, or never entered) when destroyed.
class Fibre {
 public:
  using Body = void (*)(void* argument);
  Fibre(StackSpan stack, Body body, void* argument);
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// From outside: runs until suspend() or the end of the body.
  void resume();
  /// From within: back to whoever resumed.
  void suspend();

 private:
  StackSpan stack_;
  Body body_;
  void* argument_;
  const AddressSanitizer* sanitizer_;  // null where the process has none
  bool finish_ = false;
  boost::context::fiber inside_;
  boost::context::fiber outside_;
  void* fake_stack_ = nullptr;
  const void* outside_low_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace tuner
