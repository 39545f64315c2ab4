// A kernel in Hopper's asynchronous vocabulary, what it is given and what it must compute, bit for bit: for Host
// execution and for a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tuner/core/random.h"
#include "tuner/device/matrix_model.h"

namespace tuner::host_test {

inline constexpr int kSteps = 6, kColumns = 16;
inline constexpr std::size_t kStepBytes = (64 + kColumns) * 32;
inline constexpr std::size_t kOutputs = 64 * kColumns;

inline const char* const kIncludes =
    "#include \"kernels/common/bulk_copy.cuh\"\n#include \"kernels/common/matrix.cuh\"\n"
    "#include \"kernels/common/warpgroup.cuh\"\nusing namespace ct1d;\n";

/// y (64 by 16) = the sum over 6 k-steps of a times b transposed. x holds for each step a and b in cores of 8 rows by
/// 16 bytes, the halves of k apart. Thread 128 loads into a ring of two stages; warpgroup 0 multiplies, a from
/// registers in odd steps, and stores through shared memory by a bulk copy.
inline const char* const kProducts = R"(
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kSteps = 6, kStepBytes = 2560;
  const uint32 ring = shared_address(shared), staging = ring + 2 * kStepBytes;
  const uint32 full = staging + 4096, empty = full + 16;
  if (t == 0) {
    for (uint32 i = 0; i < 2; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 128);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (t >= 128) {
    registers_down<24>();
    if (t == 128) {
      for (int s = 0; s < kSteps; ++s) {
        const uint32 slot = s % 2;
        if (s >= 2) barrier_wait(empty + 8 * slot, (s / 2 - 1) % 2);
        const unsigned char* source = static_cast<const unsigned char*>(a.x) + s * kStepBytes;
        barrier_expect(full + 8 * slot, kStepBytes);
        bulk_load(ring + slot * kStepBytes, source, 2048, full + 8 * slot);
        bulk_load(ring + slot * kStepBytes + 2048, source + 2048, 512, full + 8 * slot);
      }
    }
    return;
  }
  registers_up<240>();
  float d[8];
  for (float& value : d) value = 0;
  uint32 fragment[4];
  const uint32 row = t / 32 * 16 + t % 32 / 4;
  for (int s = 0; s < kSteps; ++s) {
    const uint32 slot = s % 2, place = ring + slot * kStepBytes;
    barrier_wait(full + 8 * slot, s / 2 % 2);
    for (uint32 i = 0; i < 4; ++i)
      fragment[i] = load_shared_4(place + i / 2 * 1024 + (row + i % 2 * 8) * 16 + t % 4 * 4);
    matrix_fence();
    const uint64 b = matrix_descriptor(matrix_low_word(place + 2048, 256), 128);
    if (s % 2 == 0) {
      matrix_multiply<16>(d, matrix_descriptor(matrix_low_word(place, 1024), 128), b, true);
    } else {
      matrix_multiply<16>(d, fragment, b, true);
    }
    matrix_commit();
    matrix_wait<0>();
    pin(d);
    pin(fragment);
    barrier_arrive(empty + 8 * slot);
  }
  for (int i = 0; i < 8; ++i)
    store_shared_float(staging + (row + i % 4 / 2 * 8) * 64 + (i / 4 * 8 + t % 4 * 2 + i % 2) * 4, d[i]);
  async_proxy_fence();
  named_barrier<1, 128>();
  if (t == 0) {
    bulk_store(y, staging, 4096);
    bulk_commit();
    bulk_wait_read<0>();
  }
)";
inline constexpr unsigned kThreads = 384;
inline constexpr unsigned kSharedBytes = 2 * 2560 + 4096 + 32;

struct Products {
  std::vector<float> x, y;
};

inline Products make_products() {
  tuner::Random random(7);
  std::vector<std::uint16_t> operands(kSteps * kStepBytes / 2);
  for (auto& value : operands)
    value = static_cast<std::uint16_t>((random.next() & 0x83FF) | (12 + random.below(5)) << 10);
  Products problem{std::vector<float>(operands.size() / 2), std::vector<float>(kOutputs, 0.0f)};
  std::memcpy(problem.x.data(), operands.data(), operands.size() * 2);
  for (std::size_t s = 0; s < kSteps; ++s) {
    const auto unpacked = [&](const std::uint16_t* from, std::size_t rows) {
      std::vector<std::uint16_t> values(rows * 16);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t k = 0; k < 16; ++k) values[r * 16 + k] = from[k / 8 * rows * 8 + r * 8 + k % 8];
      return values;
    };
    const std::uint16_t* step = operands.data() + s * kStepBytes / 2;
    matrix_product(MatrixElement::half, unpacked(step, 64).data(), unpacked(step + 1024, kColumns).data(), kColumns,
                   true, problem.y.data());
  }
  return problem;
}

}  // namespace tuner::host_test
