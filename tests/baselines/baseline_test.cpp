// What holds for every baseline without a GPU: names, empty batches, libraries that are missing, the TF32 override.
#include "baselines/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "baselines/library.h"
#include "tuner/jit/jit.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

/// A device that must not be touched.
class Untouchable : public Device {
 public:
  const Environment& environment() const override { throw std::logic_error("environment"); }
  bool is_cuda() const override { throw std::logic_error("is_cuda"); }
  std::unique_ptr<Buffer> allocate(std::size_t) override { throw std::logic_error("allocate"); }
  Expected<std::unique_ptr<Module>> load(const CompiledUnit&) override { throw std::logic_error("load"); }
  Expected<bool> synchronize() override { throw std::logic_error("synchronize"); }
};

Problem c20() {
  Problem p;
  p.batch = 0;
  p.in_channels = 1;
  p.out_channels = 16;
  p.length = 7;
  p.kernel_size = 5;
  p.stride = 2;
  return p;
}

TEST(Baselines, AreFoundByTheNamesTheyGive) {
  EXPECT_THAT(baseline_names(), ::testing::ElementsAre("cudnn", "cublas_shift_add"));
  for (const std::string_view name : baseline_names()) {
    ASSERT_NE(find_baseline(name), nullptr);
    EXPECT_EQ(find_baseline(name)->name(), name);
  }
  EXPECT_EQ(find_baseline("cublas"), nullptr);
}

TEST(Baselines, LeaveTheLibraryAndTheDeviceAloneForAnEmptyBatch) {
  ASSERT_EQ(c20().length_out(), 17);
  Untouchable device;
  for (const std::string_view name : baseline_names()) {
    const auto routes = find_baseline(name)->routes(device, c20(), Accuracy::fp32, {}, {});
    ASSERT_TRUE(routes);
    ASSERT_EQ(routes->size(), 1u);
    Runnable& runnable = *routes->front().runnable;
    EXPECT_TRUE(runnable.bind({}));
    EXPECT_TRUE(runnable.launch());
    EXPECT_EQ(runnable.work().bytes, 0);
  }
}

TEST(Baselines, SayThatTheyNeedACudaDevice) {
  Problem p = c20();
  p.batch = 1;
  Untouchable device;
  for (const std::string_view name : baseline_names()) {
    const auto routes = find_baseline(name)->routes(device, p, Accuracy::fp32, {}, {});
    ASSERT_FALSE(routes);
    EXPECT_EQ(routes.failure().outcome, Outcome::rejected);
    EXPECT_THAT(routes.failure().reason, ::testing::AnyOf(HasSubstr("CUDA device"), HasSubstr("built without")));
  }
}

TEST(Baselines, TellTheLibrarysVersionOrWhyThereIsNone) {
  for (const std::string_view name : baseline_names()) {
    const auto version = find_baseline(name)->version();
    if (version)
      EXPECT_THAT(*version, ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+ \\(.*lib.*\\.so\\..*\\)"));
    else
      EXPECT_THAT(version.failure().reason, ::testing::AnyOf(HasSubstr("looked for"), HasSubstr("built without")));
  }
}

TEST(Baselines, CarryTheSourcesOfTheirKernels) {
  const CompileUnit unit = baseline_unit();
  EXPECT_THAT(unit.source, HasSubstr("baselines/kernels.cuh"));
  for (const char* file : {"baselines/kernels.cuh", "baselines/elements.cuh", "baselines/transpose.cuh"})
    EXPECT_FALSE(embedded_source(file).empty());
  EXPECT_THAT(unit.kernels, ::testing::Contains("ct1d::baseline::gather<float, int>"));
}

TEST(SharedLibrary, SaysWhatWasLookedForAndWhatTheLoaderSaid) {
  const std::array<std::string, 2> names{"libcudnn_of_no_machine.so.9", "/nowhere/libcudnn.so.9"};
  const auto library = SharedLibrary::open("cuDNN", names);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.failure().outcome, Outcome::rejected);
  EXPECT_THAT(library.failure().reason,
              HasSubstr("cuDNN is not available: looked for libcudnn_of_no_machine.so.9, /nowhere/libcudnn.so.9"));
  EXPECT_THAT(library.failure().reason, HasSubstr("cannot open shared object file"));
  EXPECT_THAT(library.failure().log, HasSubstr("/nowhere/libcudnn.so.9: "));
}

TEST(SharedLibrary, FallsBackToTheNextNameAndFindsFunctions) {
  const std::array<std::string, 2> names{"libabsent_for_sure.so", "libm.so.6"};
  const auto library = SharedLibrary::open("the maths library", names);
  ASSERT_TRUE(library);
  EXPECT_EQ(library->name(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->find(cosine, "cos"));
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_FALSE(library->find(cosine, "no_such_function"));
}

TEST(Tf32Override, WarnsWhereItContradictsTheClass) {
  EXPECT_EQ(tf32_override_warning(std::nullopt, Accuracy::tf32), std::nullopt);
  EXPECT_EQ(tf32_override_warning("", Accuracy::tf32), std::nullopt);
  EXPECT_EQ(tf32_override_warning("0", Accuracy::fp32), std::nullopt);
  EXPECT_EQ(tf32_override_warning("1", Accuracy::tf32), std::nullopt);
  EXPECT_EQ(tf32_override_warning("1", Accuracy::fp16), std::nullopt);
  EXPECT_THAT(tf32_override_warning("0", Accuracy::tf32).value_or(""), HasSubstr("NVIDIA_TF32_OVERRIDE=0"));
  EXPECT_THAT(tf32_override_warning("1", Accuracy::fp32).value_or(""), HasSubstr("NVIDIA_TF32_OVERRIDE=1"));
}

}  // namespace
}  // namespace tuner
