#include "baselines/cublas_library.h"

#include <fmt/format.h>

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <library_types.h>

#include <climits>

#include "baselines/cublas_arithmetic.h"
#include "baselines/library.h"

namespace tuner {
namespace {

// cublasGemmStridedBatchedEx with int or std::int64_t extents; stated here because the header overloads the name.
template <class Int>
using GemmFunction = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int m, Int n, Int k,
                                    const void* alpha, const void* a, cudaDataType, Int lda, long long stride_a,
                                    const void* b, cudaDataType, Int ldb, long long stride_b, const void* beta, void* c,
                                    cudaDataType, Int ldc, long long stride_c, Int batch, cublasComputeType_t,
                                    cublasGemmAlgo_t);

struct Cublas {
  SharedLibrary library;
  std::string version;
  decltype(cublasCreate_v2)* create = nullptr;
  decltype(cublasDestroy_v2)* destroy = nullptr;
  decltype(cublasSetStream_v2)* set_stream = nullptr;
  decltype(cublasSetWorkspace_v2)* set_workspace = nullptr;
  decltype(cublasSetMathMode)* set_math_mode = nullptr;
  decltype(cublasGetMathMode)* get_math_mode = nullptr;
  GemmFunction<int>* gemm = nullptr;
  GemmFunction<std::int64_t>* gemm_64 = nullptr;
  decltype(cublasGetProperty)* get_property = nullptr;
  decltype(cublasGetStatusString)* status_string = nullptr;
};

Expected<Cublas> open_cublas() {
  auto opened = SharedLibrary::open("cuBLAS", cublas_file_names("cublas"));
  if (!opened) return opened.failure();
  Cublas c{*opened, {}};
  const SharedLibrary& library = c.library;
  const bool found =
      library.find(c.create, "cublasCreate_v2") && library.find(c.destroy, "cublasDestroy_v2") &&
      library.find(c.set_stream, "cublasSetStream_v2") && library.find(c.set_workspace, "cublasSetWorkspace_v2") &&
      library.find(c.set_math_mode, "cublasSetMathMode") && library.find(c.get_math_mode, "cublasGetMathMode") &&
      library.find(c.gemm, "cublasGemmStridedBatchedEx") && library.find(c.gemm_64, "cublasGemmStridedBatchedEx_64") &&
      library.find(c.get_property, "cublasGetProperty") && library.find(c.status_string, "cublasGetStatusString");
  if (!found)
    return Failure{Outcome::rejected, fmt::format("{} lacks functions of cuBLAS 12 or newer", library.name()), {}};
  int major = 0, minor = 0, patch = 0;
  c.get_property(MAJOR_VERSION, &major);
  c.get_property(MINOR_VERSION, &minor);
  c.get_property(PATCH_LEVEL, &patch);
  c.version = fmt::format("{}.{}.{} ({})", major, minor, patch, library.name());
  return c;
}

const Expected<Cublas>& cublas() {
  static const Expected<Cublas> library = open_cublas();
  return library;
}

std::string math_name(cublasMath_t mode) {
  switch (mode) {
    case CUBLAS_DEFAULT_MATH:
      return "CUBLAS_DEFAULT_MATH";
    case CUBLAS_PEDANTIC_MATH:
      return "CUBLAS_PEDANTIC_MATH";
    case CUBLAS_TF32_TENSOR_OP_MATH:
      return "CUBLAS_TF32_TENSOR_OP_MATH";
    default:
      return fmt::format("math mode {}", static_cast<int>(mode));
  }
}

class Handle : public CublasHandle {
 public:
  Handle(const Cublas& library, Accuracy accuracy) : library_(library), arithmetic_(cublas_arithmetic(accuracy)) {}
  ~Handle() override {
    if (handle_) library_.destroy(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Expected<bool> open(cudaStream_t stream, void* workspace, std::size_t bytes) {
    if (auto made = check(library_.create(&handle_), "cublasCreate"); !made) return made;
    if (auto set = check(library_.set_stream(handle_, stream), "cublasSetStream"); !set) return set;
    if (auto set = check(library_.set_workspace(handle_, workspace, bytes), "cublasSetWorkspace"); !set) return set;
    if (auto set = check(library_.set_math_mode(handle_, arithmetic_.math), "cublasSetMathMode"); !set) return set;
    cublasMath_t mode{};
    if (auto got = check(library_.get_math_mode(handle_, &mode), "cublasGetMathMode"); !got) return got;
    mode_ = fmt::format("{}, {}", arithmetic_.compute_name, math_name(mode));
    return true;
  }

  const std::string& mode() const override { return mode_; }

  Expected<bool> gemm(const GemmStep& s, const void* a, const void* b, void* c) override {
    const float alpha = 1.0f, beta = static_cast<float>(s.beta);  // fp32 compute takes float scalars in every class
    const auto trans_b = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const bool small =
        s.m <= INT_MAX && s.n <= INT_MAX && s.k <= INT_MAX && s.lda <= INT_MAX && s.ldb <= INT_MAX && s.ldc <= INT_MAX;
    const auto call = [&](auto function, auto narrow) {
      using Int = decltype(narrow);
      const auto in = [](std::int64_t value) { return static_cast<Int>(value); };
      return function(handle_, CUBLAS_OP_N, trans_b, in(s.m), in(s.n), in(s.k), &alpha, a, arithmetic_.element,
                      in(s.lda), s.stride_a, b, arithmetic_.element, in(s.ldb), s.stride_b, &beta, c, arithmetic_.sum,
                      in(s.ldc), s.stride_c, in(s.batch), arithmetic_.compute, CUBLAS_GEMM_DEFAULT);
    };
    const cublasStatus_t status = small ? call(library_.gemm, int{}) : call(library_.gemm_64, std::int64_t{});
    return check(status, "cublasGemmStridedBatchedEx");
  }

 private:
  Expected<bool> check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    return Failure{Outcome::launch_failed, fmt::format("{}: {}", call, library_.status_string(status)), {}};
  }

  const Cublas& library_;
  CublasArithmetic arithmetic_;
  cublasHandle_t handle_ = nullptr;
  std::string mode_;
};

}  // namespace

Expected<std::string> cublas_version() {
  if (!cublas()) return cublas().failure();
  return cublas()->version;
}

Expected<std::unique_ptr<CublasHandle>> make_cublas_handle(cudaStream_t stream, Accuracy accuracy, void* workspace,
                                                           std::size_t workspace_bytes) {
  if (!cublas()) return cublas().failure();
  auto handle = std::make_unique<Handle>(*cublas(), accuracy);
  if (auto opened = handle->open(stream, workspace, workspace_bytes); !opened) return opened.failure();
  return std::unique_ptr<CublasHandle>(std::move(handle));
}

}  // namespace tuner

#else

namespace tuner {
namespace {
Failure without_headers() { return {Outcome::rejected, "built without cuBLAS's headers (cublas_v2.h)", {}}; }
}  // namespace

Expected<std::string> cublas_version() { return without_headers(); }
Expected<std::unique_ptr<CublasHandle>> make_cublas_handle(cudaStream_t, Accuracy, void*, std::size_t) {
  return without_headers();
}

}  // namespace tuner
#endif

namespace tuner {

std::vector<std::string> cublas_file_names(std::string_view library) {
  std::vector<std::string> names;
  for (const int major : {CUDART_VERSION / 1000, CUDART_VERSION / 1000 == 13 ? 12 : 13}) {
    names.push_back(fmt::format("lib{}.so.{}", library, major));
    names.push_back(fmt::format("/usr/local/cuda/lib64/lib{}.so.{}", library, major));
  }
  return names;
}

}  // namespace tuner
