#include "baselines/cublaslt_library.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "baselines/cublas_arithmetic.h"
#include "baselines/library.h"

namespace tuner {
namespace {

struct Library {
  SharedLibrary library;
  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtGetStatusString)* status_string = nullptr;
  decltype(cublasLtMatmulDescCreate)* desc_create = nullptr;
  decltype(cublasLtMatmulDescDestroy)* desc_destroy = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* desc_set = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* layout_create = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* layout_destroy = nullptr;
  decltype(cublasLtMatrixLayoutSetAttribute)* layout_set = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* preference_create = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* preference_destroy = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* preference_set = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
  decltype(cublasLtMatmulAlgoConfigGetAttribute)* config_get = nullptr;
  decltype(cublasLtMatmul)* matmul = nullptr;
};

Expected<Library> open_library() {
  auto opened = SharedLibrary::open("cublasLt", cublas_file_names("cublasLt"));
  if (!opened) return opened.failure();
  Library l{*opened};
  const SharedLibrary& from = l.library;
  const bool found =
      from.find(l.create, "cublasLtCreate") && from.find(l.destroy, "cublasLtDestroy") &&
      from.find(l.status_string, "cublasLtGetStatusString") && from.find(l.desc_create, "cublasLtMatmulDescCreate") &&
      from.find(l.desc_destroy, "cublasLtMatmulDescDestroy") &&
      from.find(l.desc_set, "cublasLtMatmulDescSetAttribute") &&
      from.find(l.layout_create, "cublasLtMatrixLayoutCreate") &&
      from.find(l.layout_destroy, "cublasLtMatrixLayoutDestroy") &&
      from.find(l.layout_set, "cublasLtMatrixLayoutSetAttribute") &&
      from.find(l.preference_create, "cublasLtMatmulPreferenceCreate") &&
      from.find(l.preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
      from.find(l.preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
      from.find(l.heuristic, "cublasLtMatmulAlgoGetHeuristic") &&
      from.find(l.config_get, "cublasLtMatmulAlgoConfigGetAttribute") && from.find(l.matmul, "cublasLtMatmul");
  if (!found)
    return Failure{Outcome::rejected, fmt::format("{} lacks functions of cublasLt 12 or newer", from.name()), {}};
  return l;
}

const Expected<Library>& library() {
  static const Expected<Library> opened = open_library();
  return opened;
}

/// Becomes a Failure before it leaves this file.
struct LtError {
  Failure failure;
};
void check(const Library& lib, cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LtError{{Outcome::launch_failed, fmt::format("{}: {}", call, lib.status_string(status)), {}}};
}

/// Owning description of one product: operation and layouts.
class Product {
 public:
  Product(const Library& lib, const GemmShape& shape, const CublasArithmetic& arithmetic) : lib_(lib) {
    try {
      make(shape, arithmetic);
    } catch (const LtError&) {
      destroy();
      throw;
    }
  }
  ~Product() { destroy(); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;

 private:
  void make(const GemmShape& s, const CublasArithmetic& arithmetic) {
    check(lib_, lib_.desc_create(&operation, arithmetic.compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(lib_, lib_.desc_set(operation, CUBLASLT_MATMUL_DESC_TRANSB, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    layout(a, arithmetic.element, s.m, s.k, s.lda, s.stride_a, s.batch);
    layout(b, arithmetic.element, s.b_transposed ? s.n : s.k, s.b_transposed ? s.k : s.n, s.ldb, s.stride_b, s.batch);
    layout(c, arithmetic.sum, s.m, s.n, s.ldc, s.stride_c, s.batch);
  }
  void layout(cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows, std::int64_t columns,
              std::int64_t leading, std::int64_t stride, std::int64_t batch) {
    check(
        lib_,
        lib_.layout_create(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), leading),
        "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(batch);
    check(lib_, lib_.layout_set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "cublasLtMatrixLayoutSetAttribute");
    check(lib_, lib_.layout_set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
          "cublasLtMatrixLayoutSetAttribute");
  }
  void destroy() noexcept {
    if (operation) lib_.desc_destroy(operation);
    for (const cublasLtMatrixLayout_t made : {a, b, c})
      if (made) lib_.layout_destroy(made);
  }

  const Library& lib_;
};

/// What all ways of one stream and class share.
struct Context {
  Context(const Library& on, Accuracy in) : lib(on), accuracy(in), arithmetic(cublas_arithmetic(in)) {}
  ~Context() {
    if (handle) lib.destroy(handle);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Library& lib;
  Accuracy accuracy;
  CublasArithmetic arithmetic;
  cublasLtHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

struct Chosen {
  std::shared_ptr<Product> product;
  cublasLtMatmulAlgo_t algorithm{};
};

class LtCalls : public GemmCalls {
 public:
  LtCalls(std::shared_ptr<Context> context, std::map<GemmShape, Chosen> chosen)
      : context_(std::move(context)), chosen_(std::move(chosen)) {}

  Expected<bool> gemm(const GemmStep& step, const void* a, const void* b, void* c) override {
    const Context& on = *context_;
    const auto found = chosen_.find(gemm_shape(step, on.accuracy));
    if (found == chosen_.end()) return Failure{Outcome::launch_failed, "a product that was not planned for", {}};
    const Product& product = *found->second.product;
    const float alpha = 1.0f, beta = static_cast<float>(step.beta);
    const cublasStatus_t status =
        on.lib.matmul(on.handle, product.operation, &alpha, a, product.a, b, product.b, &beta, c, product.c, c,
                      product.c, &found->second.algorithm, on.workspace, on.workspace_bytes, on.stream);
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    return Failure{Outcome::launch_failed, fmt::format("cublasLtMatmul: {}", on.lib.status_string(status)), {}};
  }

 private:
  std::shared_ptr<Context> context_;
  std::map<GemmShape, Chosen> chosen_;
};

std::string describe(const Library& lib, const cublasLtMatmulAlgo_t& algorithm) {
  const auto value = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto narrow) -> std::int64_t {
    std::size_t written = 0;
    if (lib.config_get(&algorithm, attribute, &narrow, sizeof narrow, &written) != CUBLAS_STATUS_SUCCESS) return -1;
    return static_cast<std::int64_t>(narrow);
  };
  return fmt::format(
      "algorithm {}, tile {}, stages {}, split-k {}, swizzle {}, cluster {}",
      value(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{}), value(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{}),
      value(CUBLASLT_ALGO_CONFIG_STAGES_ID, std::uint32_t{}), value(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{}),
      value(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, std::uint32_t{}),
      value(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{}));
}

class Preference {
 public:
  Preference(const Context& context, const GemmShape& shape) : lib_(context.lib) {
    check(lib_, lib_.preference_create(&handle_), "cublasLtMatmulPreferenceCreate");
    try {
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{context.workspace_bytes});
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.align_a);
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.align_b);
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.align_c);
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.align_c);
    } catch (const LtError&) {
      lib_.preference_destroy(handle_);
      throw;
    }
  }
  ~Preference() { lib_.preference_destroy(handle_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return handle_; }

 private:
  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
    check(lib_, lib_.preference_set(handle_, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  }

  const Library& lib_;
  cublasLtMatmulPreference_t handle_ = nullptr;
};

/// A product and what the heuristics offer for it, one at least.
struct Offer {
  std::shared_ptr<Product> product;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;
};

Offer offer_for(const Context& context, const GemmShape& shape) {
  Offer offer{std::make_shared<Product>(context.lib, shape, context.arithmetic), {}};
  const Preference preference(context, shape);
  offer.algorithms.resize(kMostLtAlgorithms);
  const Product& p = *offer.product;
  int count = 0;
  check(context.lib,
        context.lib.heuristic(context.handle, p.operation, p.a, p.b, p.c, p.c, preference.get(), kMostLtAlgorithms,
                              offer.algorithms.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic");
  offer.algorithms.resize(static_cast<std::size_t>(count));
  std::erase_if(offer.algorithms, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  if (offer.algorithms.empty())
    throw LtError{{Outcome::rejected, "cublasLt's heuristics name no algorithm for one of the products", {}}};
  return offer;
}

CublasLtWay way_of(const std::shared_ptr<Context>& context, const std::map<GemmShape, Offer>& offers,
                   std::size_t rank) {
  CublasLtWay way;
  std::vector<std::string> texts;
  std::map<GemmShape, Chosen> chosen;
  for (const auto& [shape, offer] : offers) {
    const auto& result = offer.algorithms[std::min(rank, offer.algorithms.size() - 1)];
    way.workspace_bytes = std::max(way.workspace_bytes, result.workspaceSize);
    chosen[shape] = {offer.product, result.algo};
    std::string text = describe(context->lib, result.algo);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  way.engine = fmt::format("cublasLt {}, {}", context->arithmetic.compute_name, fmt::join(texts, "; "));
  way.knobs = fmt::format("(heuristic #{})", rank + 1);
  way.calls = std::make_shared<LtCalls>(context, std::move(chosen));
  return way;
}

class Lt : public CublasLt {
 public:
  explicit Lt(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  Expected<std::vector<CublasLtWay>> ways(const ShiftAddPlan& plan) override {
    try {
      std::map<GemmShape, Offer> offers;
      std::size_t ranks = 0;
      for (const GemmShape& shape : gemm_shapes(plan, context_->accuracy)) {
        if (offers.size() == kMostLtProducts)
          return Failure{
              Outcome::rejected,
              fmt::format("more than {} different products: cublasLt is not asked for each", kMostLtProducts),
              {}};
        const Offer& offer = offers[shape] = offer_for(*context_, shape);
        ranks = std::max(ranks, offer.algorithms.size());
      }
      std::vector<CublasLtWay> ways;
      for (std::size_t rank = 0; rank < ranks; ++rank) ways.push_back(way_of(context_, offers, rank));
      return ways;
    } catch (const LtError& error) {
      return error.failure;
    }
  }

 private:
  std::shared_ptr<Context> context_;
};

}  // namespace

Expected<std::shared_ptr<CublasLt>> make_cublaslt(cudaStream_t stream, Accuracy accuracy, void* workspace,
                                                  std::size_t workspace_bytes) {
  if (!library()) return library().failure();
  auto context = std::make_shared<Context>(*library(), accuracy);
  context->stream = stream;
  context->workspace = workspace;
  context->workspace_bytes = workspace_bytes;
  try {
    check(context->lib, context->lib.create(&context->handle), "cublasLtCreate");
  } catch (const LtError& error) {
    return error.failure;
  }
  return std::shared_ptr<CublasLt>(std::make_shared<Lt>(std::move(context)));
}

}  // namespace tuner

#else

namespace tuner {

Expected<std::shared_ptr<CublasLt>> make_cublaslt(cudaStream_t, Accuracy, void*, std::size_t) {
  return Failure{Outcome::rejected, "built without cublasLt's header (cublasLt.h)", {}};
}

}  // namespace tuner
#endif
