// The host form of device sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tuner/device/host_device.h"

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HostSource, DynamicSharedArraysPointToTheBlocksMemory) {
  EXPECT_THAT(host_form_of_source("  extern __shared__ __align__(16) unsigned char s[];"),
              HasSubstr("unsigned char (*const s) = reinterpret_cast<unsigned char (*)>(::ct1d_host::worker()"));
  EXPECT_THAT(host_form_of_source("extern __shared__ float rows[][32];"),
              HasSubstr("float (*const rows)[32] = reinterpret_cast<float (*)[32]>("));
}

TEST(HostSource, StaticSharedArraysAreAskedForByKey) {
  const std::string form = host_form_of_source("__shared__ alignas(16) Pair<int, 4> a[A < B ? 2 : 3][N], b;");
  EXPECT_THAT(form, HasSubstr("typedef Pair<int, 4> ct1d_shared_a[A < B ? 2 : 3][N]; auto& a = "));
  EXPECT_THAT(form, HasSubstr("typedef Pair<int, 4> ct1d_shared_b; auto& b = "));
  EXPECT_THAT(form, Not(HasSubstr("__shared__ ")));
}

TEST(HostSource, EverythingElseStaysAndLinesKeepTheirNumbers) {
  const std::string text = R"(// __shared__ float in_comment[3];
/* extern __shared__ float in_comment[]; */
const char* s = "__shared__ float in_string[3];"; const int million = 1'000'000;
#define TILE __shared__ float in_macro[3]; \
  extern __shared__ float other[];
extern int elsewhere;
)";
  EXPECT_EQ(host_form_of_source(text), text);
  const std::string spread = "extern\n __shared__\n float // floats\n tile[];\nint after;";
  const std::string form = host_form_of_source(spread);
  EXPECT_EQ(std::count(form.begin(), form.end(), '\n'), 4);
  EXPECT_THAT(form, HasSubstr("float (*const tile)"));
  EXPECT_THAT(form, Not(HasSubstr("extern")));
}

TEST(HostSource, DeclarationsItCannotReadFallBackToTheMacro) {
  for (const char* text :
       {"__shared__ struct { int n; } s;", "__shared__", "__shared__ float", "extern __shared__ int one;"})
    EXPECT_EQ(host_form_of_source(text), text);
}

TEST(HostSource, AUnitHasAnEntryForEachKernel) {
  const std::string text = host_translation_unit({"#include \"k.cuh\"\n", {"f<1, float>", "ns::g"}, {}});
  EXPECT_EQ(text.find("#include \"kernels/common/host_runtime.h\""), 0u);
  EXPECT_THAT(text, HasSubstr("ct1d_host::Call<&f<1, float>>::entry(\"f<1, float>\")"));
  EXPECT_THAT(text, HasSubstr("ct1d_host::Call<&ns::g>::entry(\"ns::g\")"));
}

}  // namespace
}  // namespace tuner
