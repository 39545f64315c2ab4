#include "baselines/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tuner {

Expected<SharedLibrary> SharedLibrary::open(std::string_view what, std::span<const std::string> names) {
  std::string tried, log;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, name);
    const char* error = dlerror();
    tried += (tried.empty() ? "" : ", ") + name;
    log += fmt::format("{}: {}\n", name, error ? error : "no reason given");
  }
  const std::string first = log.substr(0, log.find('\n'));
  return Failure{Outcome::rejected, fmt::format("{} is not available: looked for {} ({})", what, tried, first), log};
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace tuner
