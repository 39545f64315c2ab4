#include "tuner/verify/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/verify/parallel.h"

namespace tuner {
namespace {

namespace check = ct1d::check;

constexpr std::array<std::pair<Values, std::string_view>, 8> kNames{{{Values::normal, "normal"},
                                                                     {Values::positive, "positive"},
                                                                     {Values::large_mean, "large_mean"},
                                                                     {Values::spike, "spike"},
                                                                     {Values::wide_channels, "wide_channels"},
                                                                     {Values::integers, "integers"},
                                                                     {Values::index_coded, "index_coded"},
                                                                     {Values::patches, "patches"}}};
static_assert(static_cast<int>(Values::patches) == static_cast<int>(check::Kind::patches));
static_assert(static_cast<int>(Values::spike) == static_cast<int>(check::Kind::spike));
static_assert(static_cast<int>(Element::bf16) == static_cast<int>(check::Storage::bf16));

std::vector<float> make_tensor(const check::Generator& generator, check::Tensor tensor, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  constexpr std::int64_t kPiece = 1 << 16;
  parallel_for((count + kPiece - 1) / kPiece, 0, [&](std::int64_t piece) {
    const std::int64_t end = std::min(count, (piece + 1) * kPiece);
    for (std::int64_t i = piece * kPiece; i < end; ++i)
      values[static_cast<std::size_t>(i)] = check::generated(generator, tensor, i);
  });
  return values;
}

}  // namespace

std::string_view to_string(Values values) { return kNames.at(static_cast<std::size_t>(values)).second; }

std::optional<Values> parse_values(std::string_view name) {
  for (const auto& [values, text] : kNames)
    if (text == name) return values;
  return std::nullopt;
}

check::Generator generator_of(const Problem& problem, Element element, Values values, std::uint64_t seed) {
  return {static_cast<check::Kind>(values), static_cast<check::Storage>(element), seed, problem.geometry()};
}

Inputs make_inputs(const Problem& problem, Element element, Values values, std::uint64_t seed) {
  const check::Generator generator = generator_of(problem, element, values, seed);
  return {make_tensor(generator, check::Tensor::x, problem.x_count()),
          make_tensor(generator, check::Tensor::w, problem.w_count()),
          make_tensor(generator, check::Tensor::bias, problem.bias ? problem.out_channels : 0)};
}

bool all_finite(const Inputs& inputs) {
  for (const std::vector<float>* tensor : {&inputs.x, &inputs.w, &inputs.bias})
    if (!std::all_of(tensor->begin(), tensor->end(), [](float value) { return std::isfinite(value); })) return false;
  return true;
}

void round_inputs(Inputs& inputs, Element element) {
  const check::Format format = check::format_of(static_cast<check::Storage>(element));
  for (std::vector<float>* tensor : {&inputs.x, &inputs.w, &inputs.bias})
    for (float& value : *tensor) value = static_cast<float>(check::round_to(value, format));
}

std::vector<std::byte> stored(const std::vector<float>& values, Element element) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(element)));
  for (std::size_t i = 0; i < values.size(); ++i)
    check::store(bytes.data(), static_cast<std::int64_t>(i), values[i], static_cast<check::Storage>(element));
  return bytes;
}

std::vector<float> widened(const std::vector<std::byte>& bytes, Element element) {
  std::vector<float> values(bytes.size() / static_cast<std::size_t>(bytes_of(element)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (element == Element::f32)
      values[i] = reinterpret_cast<const float*>(bytes.data())[i];
    else if (element == Element::f16)
      values[i] = check::widen(reinterpret_cast<const check::F16*>(bytes.data())[i]);
    else
      values[i] = check::widen(reinterpret_cast<const check::Bf16*>(bytes.data())[i]);
  }
  return values;
}

}  // namespace tuner
