// Accuracy classes: element type, name, and the bounds a variant must meet (docs/MEASURING.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tuner {

enum class Accuracy { fp32, tf32, fp16, bf16 };
inline constexpr std::array kAccuracies{Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16};

enum class Element { f32, f16, bf16 };

std::string_view to_string(Accuracy accuracy);
std::optional<Accuracy> parse_accuracy(std::string_view name);
/// Element type of x, w, bias and y in a class.
Element element_of(Accuracy accuracy);
int bytes_of(Element element);
/// "(8 + 2 sqrt(n)) u S + n 2^-149" and the like: the class's element bound in words, for results.
std::string_view bound_in_words(Accuracy accuracy);

/// The bound of class fp32 on |y - reference|: (8 + 2 sqrt(n)) u S + n 2^-149, u = 2^-24; n products, S = sum |x||w| +
/// |bias|.
double fp32_element_bound(std::int64_t n, double s);

/// Largest ratio of error to bound over all elements and over all rows; a variant is right when both are at most 1.
struct Errors {
  double element = 0;
  double row = 0;
};

}  // namespace tuner
