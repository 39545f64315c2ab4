// Arithmetic of Hopper's matrix unit (wgmma with fp16 or bf16 operands and fp32 sums), bit for bit.
//
// After MMA-Sim (arXiv 2511.10909), checked against what an H200 computed (tests/data/wgmma_h200.bin). One step takes
// 16 products and the sum so far. Each product is exact; its exponent is the sum of its operands', a denormal's being
// the smallest normal one, and it is not normalised. All terms but zeros are cut (toward zero) to 25 fractional bits
// relative to the largest exponent among them, added exactly, and the total is rounded toward zero to fp32; denormals
// are kept. Infinities and NaN by IEEE, any NaN being 0x7FFFFFFF.
#pragma once

#include <cstdint>

namespace tuner {

enum class MatrixElement : unsigned { half, bfloat16 };

inline constexpr int kMatrixRows = 64;
inline constexpr int kMatrixDepth = 16;     // products a step
inline constexpr int kMatrixColumns = 256;  // at most

/// d (rows by columns, row after row) = a (rows by 16) times b (columns by 16) transposed, plus d if `accumulate`.
/// `columns` is a multiple of 8, at most 256.
void matrix_product(MatrixElement element, const std::uint16_t* a, const std::uint16_t* b, int columns, bool accumulate,
                    float* d, int rows = kMatrixRows);

/// One output of it; slower.
float matrix_dot(MatrixElement element, const std::uint16_t* a, const std::uint16_t* b, float sum);

}  // namespace tuner
