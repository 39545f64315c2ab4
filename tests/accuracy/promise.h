// Runs what computes y on every trial of a shape, and which families there are to run.
#pragma once

#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/accuracy/trials.h"
#include "tests/families/each.h"
#include "tuner/core/random.h"
#include "tuner/family/family.h"
#include "tuner/jit/jit.h"
#include "tuner/space/space.h"

namespace tuner::accuracy_test {

using namespace each_family;

struct Subject {
  std::string name;
  std::unique_ptr<Runnable> runnable;
};

struct Verdict {
  std::string trial, subject;
  Expected<Errors> errors;
  bool exact = false;  // wanted
  bool right() const { return errors && (!exact || errors->element == 0); }
  std::string reason() const {
    return errors ? "integers are off by " + std::to_string(errors->element) + " of the bound"
                  : errors.failure().reason;
  }
};

/// Every subject on every trial. `kernels` as in make_verifier.
inline std::vector<Verdict> judge(Device& device, const CompiledUnit* kernels, const Problem& problem,
                                  Accuracy accuracy, const std::vector<Trial>& trials,
                                  const std::vector<Subject>& subjects) {
  std::vector<Verdict> verdicts;
  for (const Trial& trial : trials) {
    auto verifier = make_verifier(device, problem, accuracy, trial.inputs, kernels);
    if (!verifier) throw std::runtime_error(trial.name + ": " + verifier.failure().reason);
    for (const Subject& subject : subjects)
      verdicts.push_back({trial.name, subject.name, (*verifier)->verify(*subject.runnable),
                          trial.exact && accuracy == Accuracy::fp32});
  }
  return verdicts;
}

/// Whether what the subject computes is refused when the weights of each group's last channel, 1e-8 of the first one's,
/// are off by 1e-3 of themselves (by what clearly shows where 16 bits are stored).
inline bool refuses_a_small_row(Device& device, const CompiledUnit* kernels, const Problem& problem, Accuracy accuracy,
                                Runnable& runnable) {
  Inputs inputs = make_inputs(problem, element_of(accuracy), Values::wide_channels, 7);
  std::fill(inputs.bias.begin(), inputs.bias.end(), 0.0f);  // a larger one would hide the row
  const double off = accuracy == Accuracy::bf16 ? 0x1p-6 : accuracy == Accuracy::fp16 ? 0x1p-8 : 1e-3;
  const auto channels = static_cast<std::size_t>(problem.out_channels / problem.groups);
  Inputs other = inputs;
  for (std::size_t i = 0; i < other.w.size(); ++i)
    if (i / static_cast<std::size_t>(problem.kernel_size) % channels == channels - 1)
      other.w[i] = static_cast<float>(other.w[i] * (1 + off));
  auto right = make_verifier(device, problem, accuracy, inputs, kernels);
  auto wrong = make_verifier(device, problem, accuracy, other, kernels);
  if (!right || !wrong || !(*right)->verify(runnable)) return false;
  Runnable::Tensors tensors = (*right)->tensors();
  tensors.w = (*wrong)->tensors().w;
  if (!runnable.bind(tensors) || !runnable.launch()) return false;
  const auto errors = (*right)->check_again(runnable);
  return !errors && errors.failure().outcome == Outcome::wrong_result;
}

/// The general and the default configuration, and `drawn` valid ones of the family's space.
inline std::vector<Configuration> configurations_of(const Family& family, const BuildContext& context, int drawn) {
  std::vector<Configuration> all{family.general_configuration(context)};
  const auto add = [&all](const Configuration& one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  };
  add(family.default_configuration(context));
  if (drawn == 0) return all;
  const Space space(family.tunables(), family.constraints(context), {.sample = 1000});
  Random random(11);
  for (int i = 0; i < drawn && space.size() > 0; ++i)
    add(space.at(static_cast<std::size_t>(random.below(space.size()))));
  return all;
}

/// What a family is asked to hold: on `device`, over `shapes`, in one class.
struct Trying {
  const Family& family;
  Accuracy accuracy;
  Device& device;
  Compiler& compiler;
  const CompiledUnit* kernels;  // the verifier's
  DeviceFacts facts;
  /// Configurations to draw for a problem.
  int (*drawn)(const Problem& problem);
};

/// Tries all that the family serves; what it refuses is printed, by reason. Returns runs made: 0 if it refuses all.
inline int hold_the_promise(const Trying& trying, const std::vector<Shape>& shapes) {
  struct Started {
    const Shape* shape;
    Program program;
    std::string name;
    std::future<Expected<CompiledUnit>> unit;
  };
  std::vector<Started> started;  // all compiles first, so that they overlap
  std::map<std::string, int> refusals;
  for (const Shape& shape : shapes) {
    const BuildContext context{shape.problem, trying.accuracy, trying.facts};
    if (const auto refusal = trying.family.refuses(context)) {
      ++refusals[*refusal];
      continue;
    }
    for (const Configuration& configuration : configurations_of(trying.family, context, trying.drawn(shape.problem))) {
      Program program = trying.family.build(context, configuration);
      auto unit = trying.compiler.compile(program.unit);
      started.push_back({&shape, std::move(program), to_string(configuration), std::move(unit)});
    }
  }
  for (const auto& [reason, count] : refusals)
    std::printf("%d of %zu shapes refused: %s\n", count, shapes.size(), reason.c_str());
  int runs = 0;
  for (const Shape& shape : shapes) {
    std::vector<Subject> subjects;
    for (Started& one : started) {
      if (one.shape != &shape) continue;
      const auto unit = one.unit.get();
      if (!unit) {
        ADD_FAILURE() << shape.name << " " << one.name << ": " << unit.failure().reason << "\n" << unit.failure().log;
        continue;
      }
      auto runnable = make_runnable(trying.device, shape.problem, one.program, *unit, one.name);
      if (runnable)
        subjects.push_back({one.name, std::move(*runnable)});
      else
        ADD_FAILURE() << shape.name << " " << one.name << ": " << runnable.failure().reason;
    }
    if (subjects.empty()) continue;
    const auto verdicts = judge(trying.device, trying.kernels, shape.problem, trying.accuracy,
                                trials_of(shape.problem, trying.accuracy), subjects);
    for (const Verdict& verdict : verdicts)
      EXPECT_TRUE(verdict.right()) << shape.name << ", " << verdict.trial << ", " << trying.family.name() << " "
                                   << verdict.subject << ": " << verdict.reason();
    runs += static_cast<int>(verdicts.size());
    for (const Subject& subject : subjects)
      EXPECT_TRUE(refuses_a_small_row(trying.device, trying.kernels, shape.problem, trying.accuracy, *subject.runnable))
          << shape.name << ", " << subject.name;
  }
  return runs;
}

}  // namespace tuner::accuracy_test
