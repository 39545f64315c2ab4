// Problems drawn at random, every parameter, its edges favoured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "tuner/core/problem.h"
#include "tuner/core/random.h"

namespace tuner::problems_test {

class ProblemDrawer {
 public:
  /// `most_products`: of a whole problem, so that a CPU can sum them.
  ProblemDrawer(std::uint64_t seed, double most_products) : random_(seed), most_products_(most_products) {}

  /// A legal one.
  Problem next() {
    while (true) {
      const Problem problem = any();
      if (!illegal(problem) && problem.flop() / 2 <= most_products_ && problem.y_count() <= kMostOutputs)
        return problem;
    }
  }

 private:
  static constexpr std::int64_t kMostOutputs = 200'000;

  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[random_.below(values.size())];
  }
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most) + 1));
  }

  Problem any() {
    Problem p;
    p.batch = one_of({1, 1, 2, 3});
    p.groups = one_of({1, 1, 1, 2, 3, 5});
    const std::int64_t in = one_of({1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 65});
    const std::int64_t out = one_of({1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 32, 33, 64, 72, 129});
    if (random_.below(6) == 0) {  // depthwise, and its multiples
      p.groups = 1 + up_to(40);
      p.in_channels = p.groups;
      p.out_channels = p.groups * one_of({1, 1, 1, 2, 3});
    } else {
      p.in_channels = in * p.groups;
      p.out_channels = out * p.groups;
    }
    p.stride = one_of({1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 12, 16, 1 + up_to(70)});
    p.dilation = one_of({1, 1, 1, 1, 2, 3, p.stride, 2 * p.stride, 1 + up_to(20)});
    p.kernel_size =
        one_of({1, 2, 3, 3, 4, 5, p.stride, 2 * p.stride, 2 * p.stride, 2 * p.stride + 1, p.stride + 1, 1 + up_to(60)});
    p.length = one_of(
        {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 1 + up_to(400), 1 + up_to(1500)});
    const std::int64_t reach = p.dilation * (p.kernel_size - 1);
    p.padding = one_of({0, 0, 0, 1, (p.kernel_size - p.stride) / 2, reach / 2, reach, up_to(reach + p.stride)});
    p.output_padding = one_of({0, 0, 0, 1, std::max(p.stride, p.dilation) - 1});
    p.bias = random_.below(2) == 1;
    return p;
  }

  Random random_;
  double most_products_;
};

}  // namespace tuner::problems_test
