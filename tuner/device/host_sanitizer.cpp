#include "tuner/device/host_sanitizer.h"

#include <dlfcn.h>

namespace tuner {
namespace {

template <class Function>
bool find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

AddressSanitizer look_up() {
  AddressSanitizer found;
  const bool whole = find(found.start_switch_fiber, "__sanitizer_start_switch_fiber") &&
                     find(found.finish_switch_fiber, "__sanitizer_finish_switch_fiber") &&
                     find(found.poison, "__asan_poison_memory_region") &&
                     find(found.unpoison, "__asan_unpoison_memory_region") &&
                     find(found.set_death_callback, "__sanitizer_set_death_callback") &&
                     find(found.report_address, "__asan_get_report_address");
  return whole ? found : AddressSanitizer{};
}

}  // namespace

const AddressSanitizer& AddressSanitizer::of_process() {
  static const AddressSanitizer found = look_up();
  return found;
}

}  // namespace tuner
