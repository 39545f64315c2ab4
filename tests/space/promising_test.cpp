// What searches try first: every family's promising configurations.
#include <gmock/gmock.h>

#include <set>

#include "tests/families/each.h"
#include "tuner/core/config.h"
#include "tuner/family/cheapest.h"

namespace tuner {
namespace {

TEST(CheapestByKind, KeepsTheCheapestOfEachKindAndOfEqualCostsTheFirst) {
  CheapestByKind<char, int> candidates;
  candidates.offer(1, 5, 'a');
  candidates.offer(2, 3, 'b');
  candidates.offer(1, 4, 'c');
  candidates.offer(1, 4, 'd');
  candidates.offer(3, 3, 'e');
  EXPECT_EQ(candidates.least(1), 4);
  EXPECT_EQ(candidates.least(7), std::numeric_limits<double>::infinity());
  EXPECT_THAT(candidates.cheapest(9), testing::ElementsAre('b', 'e', 'c'));
  EXPECT_THAT(candidates.cheapest(1), testing::ElementsAre('b'));
}

/// B, IC, OC, K, stride, padding, output_padding, dilation, groups, bias, L.
const std::vector<Problem> kProblems{
    {64, 128, 128, 3, 1, 0, 0, 1, 1, false, 65536}, {16, 128, 64, 6, 3, 2, 1, 1, 1, true, 15000},
    {64, 48, 1, 8, 4, 0, 0, 1, 1, true, 64084},     {4, 512, 256, 16, 10, 3, 0, 1, 1, true, 40},
    {1, 384, 384, 12, 2, 0, 0, 1, 384, false, 999}, {64, 256, 128, 25, 4, 11, 1, 1, 1, true, 1024},
    {2, 3, 4, 5, 2, 1, 1, 3, 1, true, 77}};

TEST(Families, PromisingConfigurationsBeginWithTheDefaultDifferAndSatisfyTheConstraints) {
  for (const Family* family : families())
    for (const Problem& problem : kProblems)
      for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16, Accuracy::bf16}) {
        const BuildContext context{problem, accuracy, read_profile("h200")};
        if (family->refuses(context)) continue;
        const std::vector<Configuration> promising = family->promising_configurations(context);
        ASSERT_FALSE(promising.empty());
        EXPECT_EQ(promising.front(), family->default_configuration(context));
        std::set<std::string> texts;
        for (const Configuration& each : promising) texts.insert(to_string(each));
        EXPECT_EQ(texts.size(), promising.size()) << family->name() << ' ' << summary(problem);
        for (const Configuration& each : promising)
          for (const Constraint& c : family->constraints(context))
            EXPECT_TRUE(c.holds(each)) << family->name() << ' ' << summary(problem) << ' ' << to_string(each) << ": "
                                       << c.reason;
      }
}

}  // namespace
}  // namespace tuner
