// What a device must hold so that anything can be proven of a problem.
#include <fmt/format.h>

#include <utility>

#include "tuner/verify/verify.h"

namespace tuner {
namespace {

double tensor_bytes(const Problem& problem, Accuracy accuracy) {
  const double elements = static_cast<double>(problem.x_count()) + static_cast<double>(problem.w_count()) +
                          static_cast<double>(problem.y_count());
  return elements * bytes_of(element_of(accuracy));
}

/// Value and bound of every output.
double reference_bytes(const Problem& problem) { return 16 * static_cast<double>(problem.y_count()); }

std::string in_words(double bytes) {
  for (const auto& [unit, name] : {std::pair(1e15, "PB"), std::pair(1e12, "TB")})
    if (bytes >= unit) return fmt::format("{:.3g} {}", bytes / unit, name);
  return fmt::format("{:.3g} GB", bytes / 1e9);
}

}  // namespace

std::string memory_in_words(const Problem& problem, Accuracy accuracy, const DeviceFacts& device) {
  return fmt::format("{} needs {} for x, w and y and {} for the float64 reference; {} has {}", summary(problem),
                     in_words(tensor_bytes(problem, accuracy)), in_words(reference_bytes(problem)), device.name,
                     in_words(static_cast<double>(device.memory_bytes)));
}

bool exceeds_memory(const Problem& problem, Accuracy accuracy, const DeviceFacts& device) {
  return device.memory_bytes > 0 &&
         tensor_bytes(problem, accuracy) + reference_bytes(problem) > static_cast<double>(device.memory_bytes);
}

}  // namespace tuner
