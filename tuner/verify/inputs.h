// Inputs between their forms: generator, float, storage of the element type.
#pragma once

#include <cstddef>
#include <vector>

#include "tuner/verify/generator.cuh"
#include "tuner/verify/verify.h"

namespace tuner {

ct1d::check::Generator generator_of(const Problem& problem, Element element, Values values, std::uint64_t seed);

bool all_finite(const Inputs& inputs);
inline constexpr const char* kUnexpectedNan = "the reference holds a NaN although all inputs are finite";

/// Rounds every value to the nearest one that the element type holds.
void round_inputs(Inputs& inputs, Element element);

/// Representable values as the device stores them, and back.
std::vector<std::byte> stored(const std::vector<float>& values, Element element);
std::vector<float> widened(const std::vector<std::byte>& bytes, Element element);

}  // namespace tuner
