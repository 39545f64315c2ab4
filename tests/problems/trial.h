// Drawn problems, data that shows what is wrong with them, and what computes them.
#pragma once

#include <gmock/gmock.h>

#include <cstdio>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/families/each.h"
#include "tests/problems/drawn_problem.h"
#include "tuner/core/config.h"
#include "tuner/core/problem_json.h"
#include "tuner/device/host_device.h"
#include "tuner/family/family.h"
#include "tuner/jit/jit.h"
#include "tuner/verify/inputs.h"
#include "tuner/verify/verify.h"

namespace tuner::problems_test {

using namespace each_family;

/// Normal values, codes of each element's place (a swapped index shows), all alike (a tap too many or too few shows),
/// and non-finite ones among normal values, in turn.
inline Inputs inputs_of(const Problem& problem, Accuracy accuracy, int turn) {
  const Element element = element_of(accuracy);
  const auto seed = static_cast<std::uint64_t>(turn) + 1;
  if (turn % 4 == 1) return make_inputs(problem, element, Values::index_coded, seed);
  Inputs inputs = make_inputs(problem, element, Values::normal, seed);
  if (turn % 4 == 2) {
    std::fill(inputs.x.begin(), inputs.x.end(), 1.0f);
    std::fill(inputs.w.begin(), inputs.w.end(), 0.5f);
  }
  if (turn % 4 == 3) {
    Random random(seed);
    const float specials[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(), 0.0f};
    for (auto* values : {&inputs.x, &inputs.w})
      for (int i = 0; i < 2; ++i) (*values)[random.below(values->size())] = specials[random.below(4)];
  }
  return inputs;
}

/// What is tried: a family in a class, on a device.
struct Trying {
  const Family& family;
  Accuracy accuracy;
  Device& device;
  Compiler& compiler;
  const CompiledUnit* kernels;  // the verifier's
  DeviceFacts facts;
  double most_products;  // of a problem
  int problems;          // that the family serves
  int specialised_each;  // of so many problems one also by the family's default configuration
};

/// A problem that the family serves, its place among them, and the programs that are to compute it, being compiled.
struct Task {
  Problem problem;
  int turn;
  struct Way {
    Configuration configuration;
    Program program;
    std::shared_future<Expected<CompiledUnit>> unit;
  };
  std::vector<Way> ways;
};

/// The outcome of one problem and configuration, empty if right.
inline std::string fault_of(const Trying& t, const Problem& problem, Task::Way& way, const Inputs& inputs) {
  const auto unit = way.unit.get();
  if (!unit) return unit.failure().reason + "\n" + unit.failure().log;
  auto verifier = make_verifier(t.device, problem, t.accuracy, inputs, t.kernels);
  if (!verifier && verifier.failure().outcome == Outcome::rejected) return {};  // zeros alone, in this class
  if (!verifier) return verifier.failure().reason;
  auto runnable = make_runnable(t.device, problem, way.program, *unit, std::string(t.family.name()));
  if (!runnable) return runnable.failure().reason;
  const auto errors = (*verifier)->verify(**runnable);
  return errors ? std::string() : errors.failure().reason;
}

/// `from` with some of its values changed.
inline Configuration changed(const Configuration& from,
                             const std::vector<std::pair<std::string, std::int64_t>>& changes) {
  Configuration to = from;
  for (auto& [key, value] : to)
    for (const auto& [name, by] : changes)
      if (key == name) value = by;
  return to;
}

/// The programs are handed to the compiler.
inline Task task_of(const Trying& t, const Problem& problem, int turn,
                    const std::vector<Configuration>& configurations) {
  Task task{problem, turn, {}};
  for (const Configuration& configuration : configurations) {
    Program program = t.family.build({problem, t.accuracy, t.facts}, configuration);
    auto unit = t.compiler.compile(program.unit);
    task.ways.push_back({configuration, std::move(program), std::move(unit)});
  }
  return task;
}

/// Every way of every task is right on the data of each turn; without turns on those of the task's own.
inline void expect_right(const Trying& t, std::vector<Task>& tasks, const std::vector<int>& turns = {}) {
  for (Task& task : tasks)
    for (const int turn : turns.empty() ? std::vector<int>{task.turn} : turns) {
      const Inputs inputs = inputs_of(task.problem, t.accuracy, turn);
      for (Task::Way& way : task.ways)
        EXPECT_EQ(fault_of(t, task.problem, way, inputs), "")
            << problem_json(task.problem).dump() << ", data " << turn % 4 << ", " << to_string(way.configuration);
    }
}

/// Problems that the family serves, drawn: the same for every class of a family, others for every family. All of their
/// programs are handed to the compiler at once.
inline std::vector<Task> drawn_tasks(const Trying& t) {
  std::uint64_t seed = 1;
  for (const char c : t.family.name()) seed = mix64(seed + static_cast<unsigned char>(c));
  ProblemDrawer drawer(seed, t.most_products);
  std::map<std::string, int> refusals;
  std::vector<Task> tasks;
  for (int drawn = 0; static_cast<int>(tasks.size()) < t.problems && drawn < 50 * t.problems; ++drawn) {
    const Problem problem = drawer.next();
    const BuildContext context{problem, t.accuracy, t.facts};
    if (const auto refusal = t.family.refuses(context)) {
      ++refusals[*refusal];
      continue;
    }
    const int turn = static_cast<int>(tasks.size());
    std::vector<Configuration> configurations{t.family.general_configuration(context)};
    if (turn % t.specialised_each == 0) configurations.push_back(t.family.default_configuration(context));
    tasks.push_back(task_of(t, problem, turn, configurations));
  }
  for (const auto& [reason, count] : refusals) std::printf("%d refused: %s\n", count, reason.c_str());
  return tasks;
}

/// How many problems were right; failures are reported as they are found, at most ten.
inline int try_drawn_problems(const Trying& t) {
  int right = 0, faults = 0;
  for (Task& task : drawn_tasks(t)) {
    if (faults >= 10) break;
    const Inputs inputs = inputs_of(task.problem, t.accuracy, task.turn);
    for (Task::Way& way : task.ways) {
      const std::string fault = fault_of(t, task.problem, way, inputs);
      if (fault.empty()) continue;
      ++faults;
      ADD_FAILURE() << problem_json(task.problem).dump() << ", data " << task.turn % 4 << ", "
                    << to_string(way.configuration) << ": " << fault;
    }
    right += 1;
  }
  std::printf("%d problems\n", right);
  return right - faults;
}

/// Tests of a family in a class under Host execution, on the H200's facts.
class HostTrial : public ::testing::TestWithParam<FamilyAndClass> {
 protected:
  void SetUp() override {
    ASSERT_NE(family, nullptr);
    ASSERT_NE(compiler, nullptr) << "the compiler that built this test is gone";
  }
  Trying on_host(double most_products = 0, int problems = 0, int specialised_each = 0) const {
    return {*family, accuracy, *device, *compiler, nullptr, facts, most_products, problems, specialised_each};
  }

  const std::string name = std::get<0>(GetParam());
  const Accuracy accuracy = std::get<1>(GetParam());
  const Family* const family = find_family(name);
  const DeviceFacts facts = read_profile("h200");
  const std::unique_ptr<Device> device = make_host_device({1, 2});
  const std::unique_ptr<Compiler> compiler = host_compiler("problems");
};

}  // namespace tuner::problems_test
