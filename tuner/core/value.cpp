#include "tuner/core/value.h"

#include "tuner/core/hash.h"

namespace tuner {

std::string to_string(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* block = std::get_if<Block>(&value)) return std::to_string(block->x) + "x" + std::to_string(block->y);
  return std::get<std::string>(value);
}

std::string to_string(const Configuration& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration) {
    if (!text.empty()) text += ' ';
    text += name;
    text += '=';
    text += to_string(value);
  }
  return text;
}

std::string id_of(const Variant& variant) {
  return variant.family + "-" + sha256(variant.family + " " + to_string(variant.tunables)).substr(0, 10);
}

}  // namespace tuner
