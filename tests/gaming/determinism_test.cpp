// C47: what is declared to give the same bits on every call is held to it.
#include <gmock/gmock.h>

#include "baselines/baseline.h"
#include "tests/device/gpu.h"
#include "tests/gaming/cheats.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using namespace tuner::testing;

constexpr int kRepeats = 20;

class DeterminismGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!device_) return;
    context_ = {{1, 128, 128, 4, 2, 0, 0, 1, 1, false, 8}, Accuracy::fp32, device_->environment().device};
    const CompiledUnit kernels = compile(verify_unit());
    auto made = make_verifier(*device_, context_.problem, Accuracy::fp32, Values::normal, 1, &kernels);
    ASSERT_TRUE(made) << made.failure().reason;
    verifier_ = std::move(*made);
  }
  /// Whether all repeats of a launch give the bits of the first.
  bool repeats(Runnable& runnable) {
    const std::uint64_t first = verifier_->output_bits();
    for (int i = 1; i < kRepeats; ++i) {
      EXPECT_TRUE(runnable.launch());
      EXPECT_TRUE(device_->synchronize());
      if (verifier_->output_bits() != first) return false;
    }
    return true;
  }
  std::unique_ptr<Runnable> runnable_of(const Variant& variant) {
    const Program program = find_family(variant.family)->build(context_, variant.tunables);
    auto made = make_runnable(*device_, context_.problem, program, compile(program.unit), id_of(variant));
    if (!made) throw std::runtime_error(made.failure().reason);
    return std::move(*made);
  }

  BuildContext context_;
  std::unique_ptr<Verifier> verifier_;
};

TEST_F(DeterminismGpu, C47VariantsRepeatTheirBitsAndTheSaltedOneDoesNot) {
  for (const Family* family : families()) {
    if (family->refuses(context_)) continue;
    const auto runnable = runnable_of({std::string(family->name()), family->default_configuration(context_)});
    ASSERT_TRUE(verifier_->verify(*runnable)) << family->name();
    EXPECT_TRUE(repeats(*runnable)) << family->name();
  }
  const auto salted = runnable_of(cheat("nondeterministic"));
  ASSERT_TRUE(verifier_->verify(*salted));
  EXPECT_FALSE(repeats(*salted));
}

TEST_F(DeterminismGpu, C47RoutesOfVendorsThatSayTheyAreDeterministicAre) {
  const CompiledUnit kernels = compile(baseline_unit());
  for (const std::string_view name : baseline_names()) {
    auto routes = find_baseline(name)->routes(*device_, context_.problem, Accuracy::fp32, {}, kernels);
    ASSERT_TRUE(routes) << routes.failure().reason;
    int held = 0;
    for (BaselineRoute& route : *routes) {
      if (!route.deterministic || !verifier_->verify(*route.runnable)) continue;
      EXPECT_TRUE(repeats(*route.runnable)) << name << ": " << route.route << ", " << route.engine;
      ++held;
    }
    EXPECT_GT(held, 0) << name;
  }
}

}  // namespace
}  // namespace tuner
