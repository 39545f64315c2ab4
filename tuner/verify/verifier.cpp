#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tuner/verify/inputs.h"
#include "tuner/verify/reference.cuh"
#include "tuner/verify/resident.h"

namespace tuner {
namespace {

namespace check = ct1d::check;

std::size_t bytes(std::int64_t count, Element element) {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(bytes_of(element));
}

template <class Element>
Wanted sums_of(const ct1d::Geometry& g, check::Class accuracy, const std::array<const std::byte*, 3>& inputs,
               const std::vector<std::int64_t>& outputs) {
  Wanted wanted;
  for (const std::int64_t output : outputs) {
    const std::int64_t row = output / g.length_out;
    wanted.push_back(check::wanted_at(g, accuracy, reinterpret_cast<const Element*>(inputs[0]),
                                      reinterpret_cast<const Element*>(inputs[1]),
                                      reinterpret_cast<const Element*>(inputs[2]), row / g.out_channels,
                                      row % g.out_channels, output % g.length_out));
  }
  return wanted;
}

class CpuVerifier : public ResidentVerifier {
 public:
  CpuVerifier(Device& device, const Problem& problem, Accuracy accuracy, Inputs inputs)
      : ResidentVerifier(device, problem, accuracy), element_(element_of(accuracy)) {
    round_inputs(inputs, element_);
    reference_ = make_reference(problem, accuracy, inputs);
    for (const auto& [buffer, values] :
         {std::pair{x_.get(), &inputs.x}, {w_.get(), &inputs.w}, {bias_.get(), &inputs.bias}})
      if (buffer) inputs_.emplace_back(buffer, stored(*values, element_));
    for (const auto& [buffer, content] : inputs_) buffer->upload(content.data(), content.size());
  }

  double plain_error() const override { return reference_.plain_error; }
  Reference reference() override { return reference_; }
  std::uint64_t output_bits() override {
    const auto content = download(*y_);
    check::uint64 sum = 0;
    for (std::size_t i = 0; i < content.size(); ++i) sum += check::mix(i << 8 | static_cast<unsigned>(content[i]));
    return sum;
  }

 protected:
  bool inputs_changed() override {
    bool changed = false;
    for (const auto& [buffer, content] : inputs_) {
      if (download(*buffer) == content) continue;
      changed = true;
      buffer->upload(content.data(), content.size());
    }
    return changed;
  }

  Expected<Errors> compare_y() override {
    return compare(problem_, accuracy_, reference_, widened(download(*y_), element_));
  }

  void write_x(std::int64_t place, float value) override {
    const auto bytes = stored({value}, element_);
    std::copy(bytes.begin(), bytes.end(), inputs_.front().second.begin() + place * bytes_of(element_));
    ResidentVerifier::write_x(place, value);
  }

  Wanted wanted(const std::vector<std::int64_t>& outputs) override {
    std::array<const std::byte*, 3> tensors{};
    for (std::size_t i = 0; i < inputs_.size(); ++i) tensors.at(i) = inputs_[i].second.data();
    const ct1d::Geometry g = problem_.geometry();
    const auto accuracy = static_cast<check::Class>(accuracy_);
    switch (element_) {
      case Element::f16:
        return sums_of<check::F16>(g, accuracy, tensors, outputs);
      case Element::bf16:
        return sums_of<check::Bf16>(g, accuracy, tensors, outputs);
      case Element::f32:
        break;
    }
    return sums_of<float>(g, accuracy, tensors, outputs);
  }

  void exchange_reference(const std::vector<std::int64_t>& outputs, Wanted& other) override {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto at = static_cast<std::size_t>(outputs[i]);
      std::swap(reference_.y[at], other[i].y);
      std::swap(reference_.bound[at], other[i].bound);
    }
  }

 private:
  static std::vector<std::byte> download(Buffer& buffer) {
    std::vector<std::byte> content(buffer.size());
    buffer.download(content.data(), content.size());
    return content;
  }

  Element element_;
  std::vector<std::pair<Buffer*, std::vector<std::byte>>> inputs_;  // x, w, bias if there is one
};

/// What `make` makes; a Failure in place of the exceptions that stand for a lack of memory or bad data, and for data
/// that proves nothing.
template <class Make>
Expected<std::unique_ptr<Verifier>> guarded(const Device& device, const Problem& problem, Accuracy accuracy,
                                            Outcome useless, const Make& make) {
  try {
    std::unique_ptr<ResidentVerifier> verifier = make();
    if (problem.max_products() > 0 && verifier->proves_nothing())
      return Failure{useless, "the reference is zero throughout: such data proves nothing", {}};
    return std::unique_ptr<Verifier>(std::move(verifier));
  } catch (const std::bad_alloc&) {
    return Failure{Outcome::launch_failed,
                   memory_in_words(problem, accuracy, device.environment().device) + ", not all of it free",
                   {}};
  } catch (const UsageError& error) {
    return Failure{Outcome::wrong_result, error.what(), {}};
  }
}

}  // namespace

ResidentVerifier::ResidentVerifier(Device& device, const Problem& problem, Accuracy accuracy)
    : device_(device), problem_(problem), accuracy_(accuracy) {
  const Element element = element_of(accuracy);
  x_ = device.allocate(bytes(problem.x_count(), element));
  w_ = device.allocate(bytes(problem.w_count(), element));
  if (problem.bias) bias_ = device.allocate(bytes(problem.out_channels, element));
  y_ = device.allocate(bytes(problem.y_count(), element));
}

bool ResidentVerifier::proves_nothing() const { return zero_throughout(reference_); }

Runnable::Tensors ResidentVerifier::tensors() const {
  return {x_->data(), w_->data(), bias_ ? bias_->data() : nullptr, y_->data()};
}

Expected<Errors> ResidentVerifier::verify(Runnable& runnable) {
  if (changed_) change_inputs();
  y_->fill(kNanWord);
  if (auto bound = runnable.bind(tensors()); !bound) return bound.failure();
  if (auto launched = runnable.launch(); !launched) return launched.failure();
  return check_again(runnable);
}

Expected<Errors> ResidentVerifier::check_again(Runnable& runnable) {
  if (auto done = device_.synchronize(); !done) return done.failure();
  const auto wrong = [](std::string reason) { return Failure{Outcome::wrong_result, std::move(reason), {}}; };
  for (const auto& [name, buffer] : {std::pair{"x", x_.get()}, {"w", w_.get()}, {"bias", bias_.get()}, {"y", y_.get()}})
    if (const std::size_t violated = buffer ? buffer->guard_violations() : 0)
      return wrong(fmt::format("wrote outside {}: {} bytes of its guard bands changed", name, violated));
  if (const std::size_t violated = runnable.guard_violations())
    return wrong(
        fmt::format("wrote outside its packed weights or workspace: {} bytes of guard bands changed", violated));
  if (inputs_changed()) {
    if (changed_) write_places();
    return wrong("changed its inputs");
  }
  const auto errors = compare_y();
  if (!errors && is_for_other_inputs())
    return wrong("y is the output for inputs of an earlier launch, kept instead of computed: " +
                 errors.failure().reason);
  return errors;
}

std::unique_ptr<ResidentVerifier> make_cpu_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                    Inputs inputs) {
  return std::make_unique<CpuVerifier>(device, problem, accuracy, std::move(inputs));
}

bool zero_throughout(const Reference& reference) {
  const auto& norms = reference.row_norm;  // of what is finite: infinities are no zeros
  return !norms.empty() && reference.outside == 0 &&
         std::all_of(norms.begin(), norms.end(), [](double norm) { return norm == 0; });
}

Expected<std::unique_ptr<Verifier>> make_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                  Values values, std::uint64_t seed, const CompiledUnit* kernels) {
  return guarded(device, problem, accuracy, Outcome::wrong_result, [&] {
    return device.is_cuda() && kernels
               ? make_cuda_verifier(device, problem, accuracy, *kernels, values, seed, nullptr)
               : make_cpu_verifier(device, problem, accuracy, make_inputs(problem, element_of(accuracy), values, seed));
  });
}

Expected<std::unique_ptr<Verifier>> make_verifier(Device& device, const Problem& problem, Accuracy accuracy,
                                                  Inputs inputs, const CompiledUnit* kernels) {
  return guarded(device, problem, accuracy, Outcome::rejected, [&] {
    return device.is_cuda() && kernels
               ? make_cuda_verifier(device, problem, accuracy, *kernels, Values::normal, 0, &inputs)
               : make_cpu_verifier(device, problem, accuracy, std::move(inputs));
  });
}

}  // namespace tuner
