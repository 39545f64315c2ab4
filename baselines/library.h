// A shared library opened when it is first needed, so that the program starts without it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tuner/core/failure.h"

namespace tuner {

/// Stays open until the process ends: CUDA's libraries do not bear being closed.
class SharedLibrary {
 public:
  /// Opens the first of `names` that the loader takes. The Failure lists each name with what the loader said.
  static Expected<SharedLibrary> open(std::string_view what, std::span<const std::string> names);

  const std::string& name() const { return name_; }
  /// nullptr where there is none.
  void* symbol(const char* name) const;
  /// Sets `function` to the symbol; false where there is none.
  template <class Function>
  bool find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void* handle_;
  std::string name_;
};

}  // namespace tuner
