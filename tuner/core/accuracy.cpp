#include "tuner/core/accuracy.h"

#include <cmath>

namespace tuner {
namespace {

constexpr std::array<std::string_view, 4> kNames{"fp32", "tf32", "fp16", "bf16"};

}  // namespace

std::string_view to_string(Accuracy accuracy) { return kNames.at(static_cast<std::size_t>(accuracy)); }

std::optional<Accuracy> parse_accuracy(std::string_view name) {
  for (const Accuracy accuracy : kAccuracies) {
    if (to_string(accuracy) == name) return accuracy;
  }
  return std::nullopt;
}

Element element_of(Accuracy accuracy) {
  switch (accuracy) {
    case Accuracy::fp16:
      return Element::f16;
    case Accuracy::bf16:
      return Element::bf16;
    case Accuracy::fp32:
    case Accuracy::tf32:
      break;
  }
  return Element::f32;
}

int bytes_of(Element element) { return element == Element::f32 ? 4 : 2; }

std::string_view bound_in_words(Accuracy accuracy) {
  switch (accuracy) {
    case Accuracy::fp32:
      return "(8 + 2 sqrt(n)) u S + n 2^-149";
    case Accuracy::tf32:
      return "2^-10 S + (8 + 2 sqrt(n)) u S + n 2^-149";
    case Accuracy::fp16:
      return "half an ulp of y in fp16 + (8 + 2 sqrt(n)) u S + n 2^-149";
    case Accuracy::bf16:
      return "half an ulp of y in bf16 + (8 + 2 sqrt(n)) u S + n 2^-149";
  }
  return "";
}

double fp32_element_bound(std::int64_t n, double s) {
  const auto products = static_cast<double>(n);
  return (8 + 2 * std::sqrt(products)) * 0x1p-24 * s + products * 0x1p-149;
}

}  // namespace tuner
