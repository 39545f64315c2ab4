// Records what the matrix unit of the GPU computes, for tests/host to hold the model of it against. Stands alone:
//   nvcc -std=c++20 -O2 -I. -cudart static -gencode=arch=compute_90a,code=sm_90a tests/device/record_matrix_vectors.cu
//        tuner/device/matrix_model.cpp -o record_vectors && ./record_vectors wgmma_h200.bin
// Says where the model differs from the GPU, over many more products than it writes.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "kernels/common/matrix.cuh"
#include "tests/device/matrix_vectors.h"
#include "tuner/device/matrix_model.h"

using namespace tuner;
using namespace tuner::matrix_vectors;

#define CHECK(call) check(call, #call, __LINE__)
void check(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s (line %d)\n", what, cudaGetErrorString(error), line);
  std::exit(3);
}

/// A block a product; with a from registers, or from shared memory. Fills d.
template <class Element, bool FromRegisters>
__device__ void compute(Product& p, unsigned char* shared) {
  using namespace ct1d;
  const int t = static_cast<int>(threadIdx.x);
  auto* a = reinterpret_cast<unsigned short*>(shared);
  auto* b = a + kRows * kDepth;
  // Cores of 8 rows by 8 k; the two halves of k lie apart.
  const auto place = [](int row, int k, int rows) { return k / 8 * rows * 8 + row * 8 + k % 8; };
  for (int i = t; i < kRows * kDepth; i += 128) a[place(i / kDepth, i % kDepth, kRows)] = p.a[i];
  for (int i = t; i < kColumns * kDepth; i += 128) b[place(i / kDepth, i % kDepth, kColumns)] = p.b[i];
  async_proxy_fence();
  __syncthreads();
  const int row = t / 32 * 16 + t % 32 / 4, quad = t % 4 * 2;
  const int rows[4] = {row, row, row + 8, row + 8};
  float d[kColumns / 2];
  for (int i = 0; i < kColumns / 2; ++i) d[i] = float_of_bits(p.c[rows[i] * kColumns + quad + i % 2]);
  const auto pair = [&](int r, int k) {
    return static_cast<uint32>(p.a[r * kDepth + k]) | static_cast<uint32>(p.a[r * kDepth + k + 1]) << 16;
  };
  uint32 fragment[4] = {pair(row, quad), pair(row + 8, quad), pair(row, quad + 8), pair(row + 8, quad + 8)};
  const uint64 a_descriptor = matrix_descriptor(matrix_low_word(shared_address(a), kRows * 16), 128);
  const uint64 b_descriptor = matrix_descriptor(matrix_low_word(shared_address(b), kColumns * 16), 128);
  const bool accumulate = p.accumulate != 0;
  matrix_fence();
  if constexpr (FromRegisters) {
    matrix_multiply<kColumns, Element>(d, fragment, b_descriptor, accumulate);
  } else {
    matrix_multiply<kColumns, Element>(d, a_descriptor, b_descriptor, accumulate);
  }
  matrix_commit();
  matrix_wait<0>();
  pin(d);
  pin(fragment);
  for (int i = 0; i < kColumns / 2; ++i) p.d[rows[i] * kColumns + quad + i % 2] = bits_of_float(d[i]);
}

template <bool FromRegisters>
__global__ void record(Product* products) {
  __shared__ alignas(1024) unsigned char shared[(kRows + kColumns) * kDepth * 2];
  Product& p = products[blockIdx.x];
  if (p.element == 0) {
    compute<ct1d::Half, FromRegisters>(p, shared);
  } else {
    compute<ct1d::Bfloat16, FromRegisters>(p, shared);
  }
}

template <bool FromRegisters>
void run(std::vector<Product>& products) {
  Product* device = nullptr;
  const std::size_t bytes = products.size() * sizeof(Product);
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemcpy(device, products.data(), bytes, cudaMemcpyHostToDevice));
  record<FromRegisters><<<static_cast<unsigned>(products.size()), 128>>>(device);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(products.data(), device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
}

void print_term_by_term(const Product& p, int i, std::uint32_t expected) {
  const int m = i / kColumns, n = i % kColumns;
  std::printf("  %s, %s: c %08x gpu %08x model %08x;", p.element == 0 ? "fp16" : "bf16", kKinds[p.kind],
              p.accumulate != 0 ? p.c[i] : 0, p.d[i], expected);
  for (int k = 0; k < kDepth; ++k) std::printf(" %04x*%04x", p.a[m * kDepth + k], p.b[n * kDepth + k]);
  std::printf("\n");
}

/// Differences by element and kind; the first few in full.
void compare(const std::vector<Product>& products) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<long, long>> wrong;
  for (const Product& p : products) {
    float d[kRows * kColumns];
    std::memcpy(d, p.c, sizeof d);
    matrix_product(static_cast<MatrixElement>(p.element), p.a, p.b, kColumns, p.accumulate != 0, d);
    auto& [bad, all] = wrong[{p.element, p.kind}];
    for (int i = 0; i < kRows * kColumns; ++i, ++all) {
      std::uint32_t bits;
      std::memcpy(&bits, d + i, sizeof bits);
      if (bits == p.d[i]) continue;
      if (bad++ < 6) print_term_by_term(p, i, bits);
    }
  }
  for (const auto& [what, count] : wrong)
    std::printf("%s %-18s %ld of %ld differ\n", what.first == 0 ? "fp16" : "bf16", kKinds[what.second], count.first,
                count.second);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: record_vectors FILE\n");
    return 2;
  }
  constexpr int kRecorded = 1, kCompared = 60;  // products of each kind
  std::vector<Product> products;
  for (int seed = 0; seed < kCompared; ++seed)
    for (std::uint32_t element = 0; element < 2; ++element)
      for (std::uint32_t kind = 0; kind < kKindCount; ++kind)
        products.push_back(Drawing(element, kind, static_cast<std::uint64_t>(seed)).draw());
  std::vector<Product> from_shared = products;
  run<true>(products);
  run<false>(from_shared);
  long unequal = 0;
  for (std::size_t i = 0; i < products.size(); ++i)
    unequal += std::memcmp(products[i].d, from_shared[i].d, sizeof products[i].d) != 0;
  std::printf("%ld of %zu products differ between a in registers and a in shared memory\n", unequal, products.size());
  compare(products);
  products.resize(std::size_t{kRecorded} * 2 * kKindCount);
  write_products(argv[1], products);
  std::printf("wrote %zu products, %zu bytes\n", products.size(), products.size() * sizeof(Product) + sizeof kMagic);
}
