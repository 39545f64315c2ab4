// What every family's own test asks of its configurations.
#pragma once

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/family/family.h"

namespace tuner {

/// The configuration has the family's tunables in their order, each at a value that the family lists.
inline void expect_listed(const Family& family, const Configuration& configuration, const Problem& problem) {
  const std::vector<Tunable> tunables = family.tunables();
  ASSERT_LE(configuration.size(), tunables.size());
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    EXPECT_EQ(tunables[i].name, configuration[i].first);
    EXPECT_THAT(tunables[i].values, ::testing::Contains(configuration[i].second))
        << tunables[i].name << ", " << summary(problem);
  }
}

/// Kernels of the general configuration over all of the problems, in class fp32 on an H200.
template <class Problems>
std::set<std::vector<std::string>> general_kernels(const Family& family, const Problems& problems) {
  std::set<std::vector<std::string>> kernels;
  for (const Problem& problem : problems) {
    const BuildContext context{problem, Accuracy::fp32, read_profile("h200")};
    kernels.insert(family.build(context, family.general_configuration(context)).unit.kernels);
  }
  return kernels;
}

}  // namespace tuner
