// Products of Hopper's matrix unit for tests of its model: inputs by kind of difficulty, and the file that holds them
// with what the hardware computed. Read by record_matrix_vectors.cu and by tests/host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tuner/core/random.h"

namespace tuner::matrix_vectors {

inline constexpr int kRows = 64, kColumns = 8, kDepth = 16;

/// d = a (64 by 16) times b (8 by 16) transposed + c, or without c. Little endian, as it lies in the file.
struct Product {
  std::uint32_t element;  // 0 fp16, 1 bf16
  std::uint32_t kind;
  std::uint32_t accumulate;
  std::uint16_t a[kRows * kDepth];
  std::uint16_t b[kColumns * kDepth];
  std::uint32_t c[kRows * kColumns];  // bits of fp32
  std::uint32_t d[kRows * kColumns];
};

inline const char* const kKinds[] = {
    "normal",          "any finite bits", "any bits",       "cancelling pairs", "denormal operands",
    "gaps of 2^25",    "sum dominates",   "sum disappears", "zeros with large", "signed zeros",
    "few inf and NaN", "overflow",        "underflow",      "one product",      "largest operands",
    "without sum",     "integers",        "all positive",   "deep underflow",
};
inline constexpr std::uint32_t kKindCount = sizeof(kKinds) / sizeof(kKinds[0]);

/// Draws the inputs of one product.
class Drawing {
 public:
  Drawing(std::uint32_t element, std::uint32_t kind, std::uint64_t seed)
      : element_(element), kind_(kind), random_(mix64(seed * 64 + kind * 2 + element)) {}

  Product draw() {
    Product p{};
    p.element = element_;
    p.kind = kind_;
    p.accumulate = name() == "without sum" ? 0 : 1;
    for (auto& value : p.a) value = operand(true);
    for (auto& value : p.b) value = operand(false);
    for (auto& value : p.c) value = sum();
    if (name() == "cancelling pairs") cancel(p);
    if (name() == "gaps of 2^25" || name() == "one product") thin(p);
    return p;
  }

 private:
  std::string name() const { return kKinds[kind_]; }
  bool bf16() const { return element_ == 1; }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((random_.next() >> 32) * n >> 32); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint32_t>(high - low + 1))); }

  /// Random sign and fraction; `exponent` unbiased, cut to what the type has (the lowest gives a denormal).
  std::uint16_t with_exponent(int exponent) {
    const int bias = bf16() ? 127 : 15, fraction_bits = bf16() ? 7 : 10;
    const int field = std::min(std::max(exponent + bias, 0), 2 * bias);
    return static_cast<std::uint16_t>(below(2) << 15 | static_cast<unsigned>(field) << fraction_bits |
                                      below(1u << fraction_bits));
  }
  std::uint32_t sum_with_exponent(int exponent) {
    const int field = std::min(std::max(exponent + 127, 0), 254);
    return below(2) << 31 | static_cast<unsigned>(field) << 23 | below(1u << 23);
  }
  std::uint16_t special() {
    const std::uint16_t infinity = bf16() ? 0x7F80 : 0x7C00;
    const std::uint16_t choice[] = {infinity, static_cast<std::uint16_t>(infinity | 1),
                                    static_cast<std::uint16_t>(infinity | (bf16() ? 0x40 : 0x200))};
    return static_cast<std::uint16_t>(below(2) << 15 | choice[below(3)]);
  }
  std::uint16_t integer(int most) {
    const int value = between(-most, most);
    const float f = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    if (bf16() || value == 0) return static_cast<std::uint16_t>(bits >> 16);
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 0x3FF));
  }

  std::uint16_t operand(bool of_a) {
    const std::string kind = name();
    const int top = bf16() ? 127 : 15, bottom = bf16() ? -126 : -14;
    if (kind == "any bits") return static_cast<std::uint16_t>(below(65536));
    if (kind == "any finite bits") return with_exponent(between(bottom - 1, top));
    if (kind == "denormal operands")
      return with_exponent(one_in(3) ? bottom - 1 : between(bottom, of_a ? bottom + 3 : top));
    if (kind == "sum disappears") return with_exponent(bf16() ? between(58, 62) : between(9, 14));
    if (kind == "zeros with large") {
      if (one_in(2)) return static_cast<std::uint16_t>(below(2) << 15);
      return with_exponent(one_in(2) ? top - 1 : between(bottom - 1, bottom + 4));
    }
    if (kind == "signed zeros") {
      if (one_in(20)) return with_exponent(bottom - 1);
      return static_cast<std::uint16_t>(of_a || one_in(2) ? below(2) << 15 : with_exponent(0));
    }
    if (kind == "few inf and NaN") return one_in(40) ? special() : one_in(8) ? 0 : with_exponent(between(-6, 6));
    if (kind == "overflow") return with_exponent(between(bf16() ? 58 : 10, bf16() ? 66 : 15));
    if (kind == "underflow") return with_exponent(bf16() ? between(-78, -58) : between(-15, -10));
    if (kind == "deep underflow") return with_exponent(bf16() ? between(-74, -62) : between(-15, -14));
    if (kind == "largest operands") return static_cast<std::uint16_t>(with_exponent(top) | (bf16() ? 0x7F : 0x3FF));
    if (kind == "integers") return integer(bf16() ? 255 : 2047);
    if (kind == "all positive") return with_exponent(between(-3, 0)) & 0x7FFF;
    return with_exponent(between(-4, 3));
  }

  std::uint32_t sum() {
    const std::string kind = name();
    if (kind == "any bits") return static_cast<std::uint32_t>(random_.next() >> 32);
    if (kind == "any finite bits") return sum_with_exponent(bf16() ? between(-127, 127) : between(-60, 45));
    if (kind == "cancelling pairs") return one_in(3) ? 0 : sum_with_exponent(between(-30, -10));
    if (kind == "denormal operands")
      return one_in(2) ? below(2) << 31 | below(1u << 23) : sum_with_exponent(between(-40, -5));
    if (kind == "gaps of 2^25" || kind == "one product")
      return one_in(3) ? below(2) << 31 : sum_with_exponent(between(-32, 4));
    if (kind == "sum dominates") return sum_with_exponent(between(18, 34));
    if (kind == "sum disappears") return sum_with_exponent(bf16() ? between(90, 104) : between(-8, 8));
    if (kind == "zeros with large") return one_in(2) ? 0 : sum_with_exponent(between(-127, bf16() ? -100 : -20));
    if (kind == "signed zeros") return one_in(6) ? sum_with_exponent(-127) : below(2) << 31;
    if (kind == "few inf and NaN" && one_in(20))
      return below(2) << 31 | 0x7F800000u | (one_in(2) ? below(1u << 23) : 0);
    if (kind == "overflow") return sum_with_exponent(between(124, 127));
    if (kind == "underflow") return one_in(4) ? below(2) << 31 : sum_with_exponent(between(-127, -118));
    if (kind == "deep underflow") return below(2) << 31 | (one_in(2) ? 0 : below(1u << below(12)));
    if (kind == "integers") return bits_of_integer(between(-(1 << 23), 1 << 23));
    if (kind == "all positive") return sum_with_exponent(between(2, 9)) & 0x7FFFFFFF;
    return sum_with_exponent(between(-6, 6));
  }
  static std::uint32_t bits_of_integer(int value) {
    const float f = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    return bits;
  }

  /// Products of odd k undo those before, but for the last bits of some.
  void cancel(Product& p) {
    for (int r = 0; r < kRows; ++r)
      for (int k = 0; k < kDepth; k += 2)
        p.a[r * kDepth + k + 1] = static_cast<std::uint16_t>(p.a[r * kDepth + k] ^ (one_in(6) ? 1 : 0));
    for (int r = 0; r < kColumns; ++r)
      for (int k = 0; k < kDepth; k += 2)
        p.b[r * kDepth + k + 1] = static_cast<std::uint16_t>(p.b[r * kDepth + k] ^ 0x8000);
  }
  /// Few terms a row, far apart: what the cut to 25 bits leaves can be told.
  void thin(Product& p) {
    for (int r = 0; r < kRows; ++r) {
      const int large = between(0, kDepth - 1);
      for (int k = 0; k < kDepth; ++k) {
        auto& value = p.a[r * kDepth + k];
        if (k == large) {
          value = with_exponent(bf16() ? 12 : 8);
        } else if (name() == "one product" || !one_in(4)) {
          value = static_cast<std::uint16_t>(below(2) << 15);
        } else {
          value = with_exponent(between(bf16() ? -18 : -15, -12));
        }
      }
    }
  }

  std::uint32_t element_, kind_;
  Random random_;
};

inline constexpr char kMagic[8] = {'W', 'G', 'M', 'M', 'A', '0', '0', '1'};

inline void write_products(const std::string& path, const std::vector<Product>& products) {
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic, sizeof kMagic);
  file.write(reinterpret_cast<const char*>(products.data()),
             static_cast<std::streamsize>(products.size() * sizeof(Product)));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

inline std::vector<Product> read_products(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof kMagic] = {};
  file.read(magic, sizeof magic);
  if (!file || std::memcmp(magic, kMagic, sizeof magic) != 0) throw std::runtime_error(path + " holds no products");
  std::vector<Product> products;
  Product product;
  while (file.read(reinterpret_cast<char*>(&product), sizeof product)) products.push_back(product);
  return products;
}

}  // namespace tuner::matrix_vectors
