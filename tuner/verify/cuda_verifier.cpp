// Inputs, reference and comparison on the GPU, by the kernels of verify_kernels.cuh.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tuner/verify/inputs.h"
#include "tuner/verify/resident.h"
#include "tuner/verify/rows.h"
#include "tuner/verify/verify_kernels.cuh"

namespace tuner {
namespace {

namespace check = ct1d::check;

constexpr std::array<const char*, 3> kElements{"float", "ct1d::check::F16", "ct1d::check::Bf16"};

const char* element_name(Accuracy accuracy) { return kElements.at(static_cast<std::size_t>(element_of(accuracy))); }

std::string reference_kernel(Accuracy accuracy) {
  return fmt::format("ct1d::check::reference<{}, {}>", element_name(accuracy), accuracy == Accuracy::tf32);
}

std::string compare_kernel(Accuracy accuracy) {
  return fmt::format("ct1d::check::compare<{}>", element_name(accuracy));
}

std::string wanted_kernel(Accuracy accuracy) { return fmt::format("ct1d::check::wanted<{}>", element_name(accuracy)); }

class CudaVerifier : public ResidentVerifier {
 public:
  CudaVerifier(Device& device, const Problem& problem, Accuracy accuracy, const CompiledUnit& kernels, Values values,
               std::uint64_t seed, const Inputs* inputs)
      : ResidentVerifier(device, problem, accuracy),
        rows_(static_cast<std::size_t>(problem.batch * problem.out_channels)),
        generator_(generator_of(problem, element_of(accuracy), values, seed)) {
    auto module = device.load(kernels);
    if (!module) throw std::runtime_error("the verifier's kernels: " + module.failure().reason);
    module_ = std::move(*module);
    if (inputs) {
      given_ = *inputs;
      round_inputs(*given_, element_of(accuracy));
    }
    want_ = device.allocate(static_cast<std::size_t>(problem.y_count()) * sizeof(double));
    bound_ = device.allocate(static_cast<std::size_t>(problem.y_count()) * sizeof(double));
    verdicts_ = device.allocate(rows_ * sizeof(check::RowVerdict));
    checksum_ = device.allocate(sizeof(check::uint64));
    write_inputs();
    expected_checksum_ = changed_checksum_ = checksum({x_.get(), w_.get(), bias_.get()});
    compute_reference();
  }

  double plain_error() const override { return reference_.plain_error; }
  std::uint64_t output_bits() override { return checksum({y_.get()}); }

  Reference reference() override {
    Reference full = reference_;
    full.y.resize(static_cast<std::size_t>(problem_.y_count()));
    full.bound.resize(full.y.size());
    want_->download(full.y.data(), want_->size());
    bound_->download(full.bound.data(), bound_->size());
    return full;
  }

 protected:
  bool inputs_changed() override {
    const check::uint64 expected = changed_ ? changed_checksum_ : expected_checksum_;
    if (checksum({x_.get(), w_.get(), bias_.get()}) == expected) return false;
    write_inputs();
    return true;
  }

  void remember_changed_inputs() override { changed_checksum_ = checksum({x_.get(), w_.get(), bias_.get()}); }

  Expected<Errors> compare_y() override {
    std::vector<check::RowVerdict> verdicts(rows_);
    if (problem_.y_count() > 0) {
      const check::CompareArguments arguments{y_->data(),
                                              static_cast<const double*>(want_->data()),
                                              static_cast<const double*>(bound_->data()),
                                              static_cast<check::RowVerdict*>(verdicts_->data()),
                                              problem_.length_out(),
                                              generator_.storage};
      run(compare_kernel(accuracy_), static_cast<std::int64_t>(rows_), arguments);
      verdicts_->download(verdicts.data(), verdicts.size() * sizeof(check::RowVerdict));
    }
    return judge_rows(problem_, accuracy_, reference_, verdicts);
  }

  Wanted wanted(const std::vector<std::int64_t>& outputs) override {
    Wanted result(outputs.size());
    if (outputs.empty()) return result;
    const auto list = list_of(outputs);
    const auto target = device_.allocate(result.size() * sizeof result[0]);
    run(wanted_kernel(accuracy_), ct1d::ceil_div(list.count, check::kThreads),
        check::WantedArguments{problem_.geometry(), x_->data(), w_->data(), bias_ ? bias_->data() : nullptr,
                               list.outputs(), list.count, static_cast<check::Wanted*>(target->data()),
                               static_cast<check::Class>(accuracy_)});
    target->download(result.data(), result.size() * sizeof result[0], 0);
    return result;
  }

  void exchange_reference(const std::vector<std::int64_t>& outputs, Wanted& other) override {
    if (outputs.empty()) return;
    const auto list = list_of(outputs);
    const auto exchanged = device_.allocate(other.size() * sizeof other[0]);
    exchanged->upload(other.data(), other.size() * sizeof other[0], 0);
    run("ct1d::check::exchange", ct1d::ceil_div(list.count, check::kThreads),
        check::ExchangeArguments{list.outputs(), list.count, static_cast<check::Wanted*>(exchanged->data()),
                                 static_cast<double*>(want_->data()), static_cast<double*>(bound_->data())});
    exchanged->download(other.data(), other.size() * sizeof other[0], 0);
  }

 private:
  struct Input {
    Buffer* buffer;
    check::Tensor tensor;
    const std::vector<float>* given;
  };
  struct List {
    std::unique_ptr<Buffer> buffer;
    std::int64_t count;
    const ct1d::int64* outputs() const { return static_cast<const ct1d::int64*>(buffer->data()); }
  };
  List list_of(const std::vector<std::int64_t>& outputs) {
    static_assert(sizeof(ct1d::int64) == sizeof(std::int64_t));
    List list{device_.allocate(outputs.size() * sizeof outputs[0]), static_cast<std::int64_t>(outputs.size())};
    list.buffer->upload(outputs.data(), outputs.size() * sizeof outputs[0], 0);
    return list;
  }

  std::array<Input, 3> inputs() const {
    return {{{x_.get(), check::Tensor::x, given_ ? &given_->x : nullptr},
             {w_.get(), check::Tensor::w, given_ ? &given_->w : nullptr},
             {bias_.get(), check::Tensor::bias, given_ ? &given_->bias : nullptr}}};
  }

  template <class Arguments>
  void run(const std::string& kernel, std::int64_t blocks, const Arguments& arguments) {
    if (blocks == 0) return;
    if (blocks > 0x7fffffff) throw std::runtime_error(fmt::format("{} needs {} blocks: too many", kernel, blocks));
    const Launch launch{kernel, {static_cast<unsigned>(blocks), 1, 1, check::kThreads, 1, 1, 0, 1}};
    if (auto launched = module_->launch_with(launch, &arguments, sizeof arguments); !launched)
      throw std::runtime_error(launched.failure().reason);
  }

  void wait() {
    if (auto done = device_.synchronize(); !done)
      throw std::runtime_error("the verifier's kernels: " + done.failure().reason);
  }

  static std::int64_t blocks_for(std::int64_t items) {
    return std::min<std::int64_t>((items + check::kThreads - 1) / check::kThreads, 1 << 14);
  }

  void write_inputs() {
    for (const Input& input : inputs()) {
      if (!input.buffer) continue;
      if (input.given) {
        const auto content = stored(*input.given, element_of(accuracy_));
        input.buffer->upload(content.data(), content.size());
        continue;
      }
      const auto count = static_cast<std::int64_t>(input.buffer->size()) / bytes_of(element_of(accuracy_));
      run("ct1d::check::generate", blocks_for(count),
          check::GenerateArguments{generator_, input.tensor, input.buffer->data(), count});
    }
  }

  check::uint64 checksum(std::initializer_list<Buffer*> buffers) {
    checksum_->fill(0);
    for (Buffer* buffer : buffers) {
      if (!buffer) continue;
      const auto size = static_cast<std::int64_t>(buffer->size());
      run("ct1d::check::checksum", blocks_for((size + 3) / 4),
          check::ChecksumArguments{buffer->data(), size, static_cast<check::uint64*>(checksum_->data())});
    }
    check::uint64 sum = 0;
    checksum_->download(&sum, sizeof sum);
    return sum;
  }

  void compute_reference() {
    std::vector<check::RowSums> sums(rows_);
    const ct1d::Geometry geometry = problem_.geometry();
    if (problem_.y_count() > 0) {
      const std::int64_t tiles = ct1d::ceil_div(geometry.length_out, check::kTile);
      const auto partial = device_.allocate(rows_ * static_cast<std::size_t>(tiles) * sizeof(check::RowSums));
      const auto rows = device_.allocate(rows_ * sizeof(check::RowSums));
      auto* const parts = static_cast<check::RowSums*>(partial->data());
      run(reference_kernel(accuracy_), check::reference_blocks(geometry),
          check::ReferenceArguments{geometry, x_->data(), w_->data(), bias_ ? bias_->data() : nullptr,
                                    static_cast<double*>(want_->data()), static_cast<double*>(bound_->data()), parts,
                                    tiles, static_cast<check::Class>(accuracy_)});
      run("ct1d::check::finish_rows", ct1d::ceil_div(static_cast<std::int64_t>(rows_), check::kThreads),
          check::FinishArguments{parts, static_cast<check::RowSums*>(rows->data()), tiles,
                                 static_cast<std::int64_t>(rows_)});
      wait();
      rows->download(sums.data(), sums.size() * sizeof(check::RowSums));
    }
    bound_rows(accuracy_, sums, reference_);
    if (reference_.nans > 0 && (!given_ || all_finite(*given_))) throw UsageError(kUnexpectedNan);
  }

  std::size_t rows_;
  check::Generator generator_;
  std::optional<Inputs> given_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Buffer> want_, bound_, verdicts_, checksum_;
  check::uint64 expected_checksum_ = 0, changed_checksum_ = 0;
};

}  // namespace

CompileUnit verify_unit() {
  CompileUnit unit;
  unit.source = "#include \"tuner/verify/verify_kernels.cuh\"\n";
  unit.kernels = {"ct1d::check::generate", "ct1d::check::finish_rows", "ct1d::check::exchange",
                  "ct1d::check::checksum"};
  for (const Accuracy accuracy : kAccuracies) unit.kernels.push_back(reference_kernel(accuracy));
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16, Accuracy::bf16})
    for (const auto& kernel : {compare_kernel(accuracy), wanted_kernel(accuracy)}) unit.kernels.push_back(kernel);
  return unit;
}

std::unique_ptr<ResidentVerifier> make_cuda_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                     const CompiledUnit& kernels, Values values, std::uint64_t seed,
                                                     const Inputs* inputs) {
  return std::make_unique<CudaVerifier>(device, problem, accuracy, kernels, values, seed, inputs);
}

}  // namespace tuner
