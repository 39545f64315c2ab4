// Cheats that no family can make, since they call CUDA themselves: a stream of their own, lines of L2 that persist.
#include <gmock/gmock.h>

#include "tests/device/gpu.h"
#include "tests/gaming/cheats.h"
#include "tuner/device/cuda_module.h"
#include "tuner/measure/measure.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace tuner::testing;

/// The same GPU, but what is loaded runs on a stream of its own that waits for none.
class SideStreamDevice : public Device {
 public:
  explicit SideStreamDevice(CudaDevice& device) : device_(device), driver_(find_cuda_driver()) {
    TUNER_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~SideStreamDevice() override { cudaStreamDestroy(stream_); }
  SideStreamDevice(const SideStreamDevice&) = delete;
  SideStreamDevice& operator=(const SideStreamDevice&) = delete;

  const Environment& environment() const override { return device_.environment(); }
  bool is_cuda() const override { return true; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return device_.allocate(bytes); }
  Expected<std::unique_ptr<Module>> load(const CompiledUnit& unit) override {
    return load_cuda_module(driver_, environment().device, stream_, unit);
  }
  Expected<bool> synchronize() override { return device_.synchronize(); }
  cudaStream_t stream() const { return stream_; }

 private:
  CudaDevice& device_;
  CudaDriver driver_;
  cudaStream_t stream_ = nullptr;
};

/// Does something before each launch of a right kernel.
class Wrapped : public Runnable {
 public:
  Wrapped(std::unique_ptr<Runnable> inside, std::function<void(const Tensors&)> at_bind,
          std::function<void()> at_launch)
      : inside_(std::move(inside)), at_bind_(std::move(at_bind)), at_launch_(std::move(at_launch)) {}
  std::string name() const override { return "wrapped"; }
  Work work() const override { return inside_->work(); }
  Expected<bool> bind(const Tensors& tensors) override {
    at_bind_(tensors);
    return inside_->bind(tensors);
  }
  Expected<bool> launch() override {
    at_launch_();
    return inside_->launch();
  }

 private:
  std::unique_ptr<Runnable> inside_;
  std::function<void(const Tensors&)> at_bind_;
  std::function<void()> at_launch_;
};

class CheatingRunnableGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!device_) return;
    context_ = {{8, 128, 128, 3, 1, 0, 0, 1, 1, false, 4096}, Accuracy::fp32, device_->environment().device};
    auto made = make_verifier(*device_, context_.problem, Accuracy::fp32, Values::normal, 1, nullptr);
    ASSERT_TRUE(made) << made.failure().reason;
    verifier_ = std::move(*made);
  }
  std::unique_ptr<Runnable> honest_on(Device& device) {
    const Family* family = find_family("direct");
    const Program program = family->build(context_, family->default_configuration(context_));
    auto made = make_runnable(device, context_.problem, program, compile(program.unit), "direct");
    if (!made) throw std::runtime_error(made.failure().reason);
    return std::move(*made);
  }
  Expected<Proof> timed(Runnable& runnable) {
    return prove(*verifier_, runnable, [&]() -> std::optional<Failure> {
      const auto timing = measure(*device_, runnable, {});
      return timing ? std::nullopt : std::optional(timing.failure());
    });
  }
  void expect_implausible(Runnable& runnable, const std::string& reason) {
    const auto proof = timed(runnable);
    ASSERT_FALSE(proof);
    EXPECT_EQ(proof.failure().outcome, Outcome::implausible) << proof.failure().reason;
    EXPECT_THAT(proof.failure().reason, ContainsRegex(reason));
  }

  BuildContext context_;
  std::unique_ptr<Verifier> verifier_;
};

TEST_F(CheatingRunnableGpu, TheHonestOnePasses) {
  const auto proof = timed(*honest_on(*device_));
  EXPECT_TRUE(proof) << proof.failure().reason;
}

// G03, H06: right in the end, since a proof waits for the whole device; but the events saw nothing of it.
TEST_F(CheatingRunnableGpu, G03H06WorkOnAnotherStreamIsImplausible) {
  SideStreamDevice side(*device_);
  cudaEvent_t before = nullptr;
  TUNER_CUDA(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
  Wrapped cheat(
      honest_on(side), [](const Runnable::Tensors&) {},
      [&] {
        TUNER_CUDA(cudaEventRecord(before, device_->stream()));
        TUNER_CUDA(cudaStreamWaitEvent(side.stream(), before, 0));
      });
  EXPECT_TRUE(verifier_->verify(cheat)) << "the work itself was meant to be right";
  expect_implausible(cheat, "work outside the timed stream|need at least");
  cudaEventDestroy(before);
}

class PersistingL2Gpu : public CheatingRunnableGpu {
 protected:
  void SetUp() override {
    CheatingRunnableGpu::SetUp();
    if (!device_) return;
    int most = 0;
    TUNER_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, 0));
    if (most == 0) GTEST_SKIP() << "this GPU sets no L2 aside";
    window_bytes_ = static_cast<std::size_t>(most);
  }
  void set_aside() { TUNER_CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, window_bytes_)); }
  /// x as lines that persist, on the stream that is timed.
  void set_window(const Runnable::Tensors& tensors) {
    cudaStreamAttrValue value{};
    value.accessPolicyWindow.base_ptr = tensors.x;
    value.accessPolicyWindow.num_bytes =
        std::min(window_bytes_, static_cast<std::size_t>(context_.problem.x_count()) * 4);
    value.accessPolicyWindow.hitRatio = 1;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    TUNER_CUDA(cudaStreamSetAttribute(device_->stream(), cudaStreamAttributeAccessPolicyWindow, &value));
  }
  std::size_t window_bytes_ = 0;
};

TEST_F(PersistingL2Gpu, H09LinesSetAsideBeforeTimingDoNotOutliveItsStart) {
  Wrapped cheat(
      honest_on(*device_),
      [&](const Runnable::Tensors& tensors) {
        set_aside();
        set_window(tensors);
      },
      [] {});
  const auto proof = timed(cheat);
  std::size_t left = 1;
  TUNER_CUDA(cudaDeviceGetLimit(&left, cudaLimitPersistingL2CacheSize));
  EXPECT_EQ(left, 0u);
  EXPECT_TRUE(proof) << proof.failure().reason;
}

TEST_F(PersistingL2Gpu, H09LinesSetAsideByTheTimedLaunchesAreImplausible) {
  Wrapped cheat(
      honest_on(*device_), [&](const Runnable::Tensors& tensors) { set_window(tensors); }, [&] { set_aside(); });
  expect_implausible(cheat, "of L2 aside|need at least");
}

}  // namespace
}  // namespace tuner
