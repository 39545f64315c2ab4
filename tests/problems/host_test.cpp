// Every family on problems drawn at random, in every class that it serves, by Host execution: 2,000 and more in all.
#include "tests/problems/trial.h"
#include "tuner/core/config.h"

namespace tuner {
namespace {

using namespace problems_test;

constexpr int kProblems = 70;  // of a family and class

class HostProblems : public HostTrial {};

TEST_P(HostProblems, DrawnAtRandomAreRight) {
  const int right = try_drawn_problems(on_host(3e5, kProblems, 50));
  if (right == 0) GTEST_SKIP() << name << " serves no problem of this class";
  EXPECT_EQ(right, kProblems);
}

INSTANTIATE_TEST_SUITE_P(All, HostProblems,
                         testing::Combine(testing::ValuesIn(family_names()), testing::ValuesIn(kAccuracies)), name_of);

TEST(ProblemsCoverage, EnoughFamiliesAndClassesAreServed) {
  int served = 0;
  for (const Family* family : families())
    for (const Accuracy accuracy : kAccuracies) {
      ProblemDrawer drawer(1, 3e5);
      bool any = false;
      for (int i = 0; i < 500 && !any; ++i) any = !family->refuses({drawer.next(), accuracy, read_profile("h200")});
      served += any ? 1 : 0;
    }
  EXPECT_GE(served * kProblems, 2000);
}

TEST(ProblemsCoverage, EdgesAreDrawn) {
  ProblemDrawer drawer(3, 3e5);
  int gaps = 0, factors = 0, depthwise = 0, cut = 0, single = 0, longer = 0;
  for (int i = 0; i < 1000; ++i) {
    const Problem p = drawer.next();
    gaps += p.kernel_size < p.stride ? 1 : 0;
    factors += p.stride > 1 && p.dilation % p.stride == 0 ? 1 : 0;
    depthwise += p.groups > 1 && p.groups == p.in_channels ? 1 : 0;
    cut += p.padding > p.dilation * (p.kernel_size - 1) ? 1 : 0;
    single += p.length == 1 ? 1 : 0;
    longer += p.output_padding > 0 ? 1 : 0;
  }
  for (const int count : {gaps, factors, depthwise, cut, single, longer}) EXPECT_GE(count, 30);
}

}  // namespace
}  // namespace tuner
