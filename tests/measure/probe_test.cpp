#include <gtest/gtest.h>

#include "tests/jit/jit_fixture.h"
#include "tuner/measure/measure.h"

namespace tuner {
namespace {

TEST(Probe, CompilesForEveryArchitectureThatTheProjectNames) {
  const testing::TemporaryFolder cache;
  for (const char* arch : {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const auto compiler = make_nvrtc_compiler(testing::nvrtc_options(cache.path(), arch));
    const auto unit = compiler->compile(measure_unit()).get();
    ASSERT_TRUE(unit) << arch << ": " << unit.failure().reason << '\n' << unit.failure().log;
    for (const std::string& kernel : measure_unit().kernels) EXPECT_NE(unit->symbol(kernel), nullptr) << kernel;
    EXPECT_EQ(unit->spill_bytes, 0);
  }
}

}  // namespace
}  // namespace tuner
