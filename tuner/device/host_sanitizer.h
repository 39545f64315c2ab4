// AddressSanitizer's runtime where the process has it: linked in, or preloaded into a plain build.
#pragma once

#include <cstddef>

namespace tuner {

/// The functions that Host execution calls; all null where the runtime is absent. See sanitizer/asan_interface.h and
/// sanitizer/common_interface_defs.h for each.
struct AddressSanitizer {
  void (*start_switch_fiber)(void** fake_stack_save, const void* bottom, std::size_t size) = nullptr;
  void (*finish_switch_fiber)(void* fake_stack_save, const void** bottom_old, std::size_t* size_old) = nullptr;
  void (*poison)(const volatile void* address, std::size_t size) = nullptr;
  void (*unpoison)(const volatile void* address, std::size_t size) = nullptr;
  void (*set_death_callback)(void (*callback)()) = nullptr;
  void* (*report_address)() = nullptr;

  explicit operator bool() const { return start_switch_fiber != nullptr; }
  /// Looked up once.
  static const AddressSanitizer& of_process();
};

}  // namespace tuner
