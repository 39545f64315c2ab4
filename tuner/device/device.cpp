#include "tuner/device/device.h"

namespace tuner {

const std::string* CompiledUnit::symbol(std::string_view name_expression) const {
  for (const auto& [name, lowered] : symbols)
    if (name == name_expression) return &lowered;
  return nullptr;
}

Expected<bool> Module::launch_with(const Launch& launch, const void*, std::size_t) {
  return Failure{Outcome::launch_failed, "this device launches only run and prepare kernels, not " + launch.kernel, {}};
}

}  // namespace tuner
