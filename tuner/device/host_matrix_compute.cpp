// Operands of a matrix product, out of registers or of what a descriptor names, and the product.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/device/host_matrix.h"
#include "tuner/device/host_registers.h"
#include "tuner/device/host_report.h"
#include "tuner/device/matrix_model.h"

namespace tuner {

std::optional<std::string> MatrixUnit::compute(Product& product) {
  if (product.computed) return std::nullopt;
  product.computed = true;
  std::vector<std::uint16_t> a, b;
  if (product.what.a[0] == nullptr) {
    if (auto wrong = operand(product.what.a_descriptor, kMatrixRows, product, a)) return wrong;
  } else {
    a.resize(std::size_t{kMatrixRows} * kMatrixDepth);
    for (unsigned thread = 0; thread < kWarpgroupSize; ++thread)
      for (unsigned i = 0; i < 4; ++i) {
        const Word pair = peek(product.a[thread][i]);
        const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8, k = thread % 4 * 2 + i / 2 * 8;
        a[row * kMatrixDepth + k] = static_cast<std::uint16_t>(pair);
        a[row * kMatrixDepth + k + 1] = static_cast<std::uint16_t>(pair >> 16);
      }
  }
  const auto columns = static_cast<int>(product.what.columns);
  if (auto wrong = operand(product.what.b_descriptor, columns, product, b)) return wrong;
  matrix_product(product.what.bfloat16 ? MatrixElement::bfloat16 : MatrixElement::half, a.data(), b.data(), columns,
                 product.what.accumulate, product.sums->values.data());
  return std::nullopt;
}

/// Reads a K-major operand of `rows` by 16 without swizzle (PTX ISA, "Matrix Descriptor Format").
std::optional<std::string> MatrixUnit::operand(std::uint64_t descriptor, int rows, const Product& product,
                                               std::vector<std::uint16_t>& values) {
  const auto field = [&](int bit) { return static_cast<std::uint32_t>(descriptor >> bit & 0x3FFF) << 4; };
  const std::uint32_t start = field(0), k_slabs = field(16), row_groups = field(32);
  if (descriptor >> 62 != 0)
    return fmt::format("matrix descriptor {:#x} with swizzle {}: Host execution knows operands without swizzle",
                       descriptor, descriptor >> 62);
  if ((descriptor & 0x3FFFC000C000C000) != 0)
    return fmt::format("matrix descriptor {:#x} sets bits that mean nothing without swizzle", descriptor);
  constexpr std::uint32_t kCore = 128;  // 8 rows of 16 bytes
  values.resize(static_cast<std::size_t>(rows) * kMatrixDepth);
  for (int group = 0; group < rows / 8; ++group)
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t address = (start + static_cast<std::uint32_t>(group) * row_groups + half * k_slabs) & 0x3FFFF;
      const unsigned char* core = shared_.at(address, kCore);
      if (core == nullptr)
        return fmt::format(
            "matrix descriptor {:#x} names 128 bytes at shared address {:#x}, outside the block's shared memory",
            descriptor, address);
      if (auto wrong = shared_.uncovered(address, kCore))
        return *wrong + "; the matrix product of " + describe(product.site) + " reads it";
      for (int row = 0; row < 8; ++row)
        std::copy_n(reinterpret_cast<const std::uint16_t*>(core) + row * 8, 8,
                    values.begin() + (group * 8 + row) * kMatrixDepth + static_cast<int>(half) * 8);
    }
  return std::nullopt;
}

}  // namespace tuner
