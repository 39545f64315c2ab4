// Instructions that round, in their host form.
#include "tests/host/rounding_kernel.h"

namespace tuner {
namespace {

using namespace host_test;

TEST(HostRoundings, HalvesWithTiesAwayFromZeroAreTheInstructions) {
  LoadedKernel kernel(kernel_source(kRounding, kRoundingIncludes));
  const auto y = kernel(shape_of(1, static_cast<unsigned>(kRounded.size())), values_to_round(), kRounded.size());
  ASSERT_TRUE(y) << y.failure().reason;
  EXPECT_EQ(*y, rounded_values());
}

}  // namespace
}  // namespace tuner
