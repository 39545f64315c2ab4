// The winograd family under Host execution: right on odd shapes and on data that its transforms must not meet, and
// caught when a barrier, a wait or a flag is taken out.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>

#include "tests/host/host_fixture.h"
#include "tuner/core/config.h"
#include "tuner/family/family.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::HasSubstr;

const Family& winograd() { return *find_family("winograd"); }

BuildContext context_of(const Problem& problem) { return {problem, Accuracy::fp32, read_profile("h200")}; }

/// The default configuration with tunables replaced; it must satisfy the constraints.
Configuration with(const BuildContext& context, const std::vector<std::pair<std::string, Value>>& values) {
  Configuration configuration = winograd().default_configuration(context);
  for (const auto& [name, value] : values)
    for (auto& entry : configuration)
      if (entry.first == name) entry.second = value;
  for (const Constraint& c : winograd().constraints(context)) EXPECT_TRUE(c.holds(configuration)) << c.reason;
  return configuration;
}

/// Four points, all kept by every thread; and three stages of them.
Configuration all_held(const BuildContext& context) {
  return with(context, {{"T", std::int64_t{128}},
                        {"OC_TILE", std::int64_t{64}},
                        {"block", Block{16, 8}},
                        {"points", std::int64_t{4}},
                        {"held", std::int64_t{4}},
                        {"warp_t", std::int64_t{8}},
                        {"stages", std::int64_t{3}}});
}

Expected<Errors> verify_on_host(const Problem& problem, const Program& program, const CompiledUnit& unit, Inputs inputs,
                                std::uint64_t seed) {
  const auto device = make_host_device({seed, 2});
  auto verifier = make_verifier(*device, problem, Accuracy::fp32, std::move(inputs));
  if (!verifier) return verifier.failure();
  auto runnable = make_runnable(*device, problem, program, unit, "winograd");
  if (!runnable) return runnable.failure();
  return (*verifier)->verify(**runnable);
}

Expected<Errors> errors_of(const Problem& problem, const Configuration& configuration, const Inputs& inputs) {
  const Program program = winograd().build(context_of(problem), configuration);
  const auto unit = kernels(false).compile(program.unit);
  if (!unit) return unit.failure();
  return verify_on_host(problem, program, *unit, inputs, 1);
}

Inputs normal(const Problem& problem) { return make_inputs(problem, Element::f32, Values::normal, 3); }

struct Shape {
  const char* name;
  Problem problem;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

const Shape kShapes[] = {
    {"seed_cut_short", {2, 40, 136, 3, 1, 1, 0, 1, 1, true, 203}},
    {"five_taps", {1, 34, 8, 5, 1, 0, 0, 1, 1, true, 150}},
    {"seven_taps_odd_channels", {1, 67, 12, 7, 1, 3, 0, 1, 1, false, 257}},
    {"upsample_by_2", {1, 36, 20, 4, 2, 1, 0, 1, 1, true, 130}},
    {"vocoder", {2, 33, 17, 16, 8, 4, 0, 1, 1, true, 37}},
    {"phases_of_two_taps_and_of_one", {1, 33, 5, 6, 4, 0, 3, 1, 1, false, 41}},
    {"grouped_and_dilated", {1, 96, 18, 5, 2, 3, 1, 3, 3, false, 50}},
    {"dilation_shares_a_factor_with_stride", {1, 32, 6, 4, 4, 5, 1, 6, 1, true, 41}},
    {"dilation_beyond_the_input", {1, 32, 4, 3, 1, 0, 0, 50, 1, true, 20}},
    {"padding_eats_the_ends", {2, 32, 5, 7, 1, 6, 0, 1, 1, true, 19}},
    {"one_sample_in", {2, 32, 4, 11, 1, 0, 0, 1, 1, true, 1}},
};

class HostWinograd : public testing::TestWithParam<Shape> {};

TEST_P(HostWinograd, ComputesTheTransposedConvolution) {
  const Problem& problem = GetParam().problem;
  const BuildContext context = context_of(problem);
  ASSERT_FALSE(winograd().refuses(context)) << *winograd().refuses(context);
  for (const Configuration& configuration :
       {winograd().default_configuration(context), winograd().general_configuration(context)}) {
    const auto errors = errors_of(problem, configuration, normal(problem));
    EXPECT_TRUE(errors) << to_string(configuration) << ": " << errors.failure().reason;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostWinograd, testing::ValuesIn(kShapes),
                         [](const auto& each) { return std::string(each.param.name); });

constexpr Problem kSubject{1, 40, 72, 3, 1, 1, 0, 1, 1, true, 300};

TEST(HostWinogradData, MeetsClassFp32OnEveryKindOfData) {
  const BuildContext context = context_of(kSubject);
  for (const Configuration& configuration : {winograd().default_configuration(context), all_held(context)})
    for (const Values values : {Values::normal, Values::positive, Values::large_mean, Values::spike,
                                Values::wide_channels, Values::integers, Values::index_coded}) {
      const auto errors = errors_of(kSubject, configuration, make_inputs(kSubject, Element::f32, values, 5));
      EXPECT_TRUE(errors) << to_string(values) << ", " << to_string(configuration) << ": " << errors.failure().reason;
    }
}

/// What transforms would spoil: it is computed directly.
TEST(HostWinogradData, ComputesDirectlyWhatATransformWouldSpoil) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto changed = [](const std::function<void(Inputs&)>& change) {
    Inputs inputs = normal(kSubject);
    change(inputs);
    return inputs;
  };
  const auto scaled = [](std::vector<float>& values, float by) {
    for (float& v : values) v *= by;
  };
  const std::pair<const char*, Inputs> cases[] = {
      {"infinities and NaN",
       changed([&](Inputs& in) { in.x[100] = kInf, in.x[700] = -kInf, in.x[3001] = std::nanf(""), in.x[0] = kInf; })},
      {"near the largest float", changed([](Inputs& in) { in.x[1234] = 4e37f, in.x[1235] = -4e37f; })},
      {"an infinite weight", changed([&](Inputs& in) { in.w[77] = kInf; })},
      {"weights far apart", changed([](Inputs& in) {
         for (std::size_t i = 0; i < in.w.size(); i += 5) in.w[i] *= 1e-33f;
       })},
      {"silence beside sound", changed([](Inputs& in) {
         for (std::size_t i = 0; i < in.x.size(); ++i)
           if (i % 300 / 37 % 2 == 1) in.x[i] = 0;
       })},
      {"1 beside 1e-9", changed([](Inputs& in) {
         for (std::size_t i = 0; i < in.x.size(); ++i)
           if (i % 300 / 37 % 2 == 1) in.x[i] *= 1e-9f;
       })},
      {"taps of scales 1 to 2^-26, silence", changed([](Inputs& in) {
         for (std::size_t i = 0; i < in.w.size(); ++i) in.w[i] *= std::exp2(-13.0f * static_cast<float>(i % 3));
         for (std::size_t i = 0; i < in.x.size(); ++i)
           if (i % 300 % 37 < 5) in.x[i] = 0;
         std::fill(in.bias.begin(), in.bias.end(), 0.0f);
       })},
      {"a tap of zeros", changed([](Inputs& in) {
         for (std::size_t i = 2; i < in.w.size(); i += 3) in.w[i] = 0;
       })},
      {"denormal x", changed([&](Inputs& in) { scaled(in.x, 1e-40f), scaled(in.bias, 0); })},
      {"denormal weights", changed([&](Inputs& in) { scaled(in.w, 1e-40f), scaled(in.x, 1e3f), scaled(in.bias, 0); })},
      {"times 1e30", changed([&](Inputs& in) { scaled(in.x, 1e30f); })},
      {"times 1e-30", changed([&](Inputs& in) { scaled(in.x, 1e-30f), scaled(in.bias, 0); })},
      {"large weights, small x", changed([&](Inputs& in) { scaled(in.w, 1e36f), scaled(in.x, 1e-30f); })},
  };
  const BuildContext context = context_of(kSubject);
  for (const Configuration& configuration : {winograd().default_configuration(context), all_held(context)})
    for (const auto& [name, inputs] : cases) {
      const auto errors = errors_of(kSubject, configuration, inputs);
      EXPECT_TRUE(errors) << name << ", " << to_string(configuration) << ": " << errors.failure().reason;
    }
}

/// Five taps in chunks of three and two, of scales 1 to 2^-26 in either order, over silence and ends.
TEST(HostWinogradData, LooksAtEveryChunkOfUnevenTaps) {
  const Problem problem{1, 96, 20, 5, 1, 1, 0, 1, 1, false, 200};
  const BuildContext context = context_of(problem);
  for (const bool rising : {false, true})
    for (const Configuration& configuration :
         {winograd().default_configuration(context), winograd().general_configuration(context)}) {
      Inputs inputs = normal(problem);
      for (std::size_t i = 0; i < inputs.w.size(); ++i)
        inputs.w[i] *= std::exp2(-6.5f * static_cast<float>(rising ? 4 - i % 5 : i % 5));
      for (std::size_t i = 0; i < inputs.x.size(); ++i)
        if (i % 200 % 37 < 7) inputs.x[i] = 0;
      const auto errors = errors_of(problem, configuration, inputs);
      EXPECT_TRUE(errors) << rising << ", " << to_string(configuration) << ": " << errors.failure().reason;
    }
}

TEST(HostWinogradData, FourPointsComputeIntegersExactly) {
  const Problem problem{1, 40, 20, 3, 1, 0, 0, 1, 1, false, 100};
  const BuildContext context = context_of(problem);
  const auto errors = errors_of(problem, winograd().general_configuration(context),
                                make_inputs(problem, Element::f32, Values::integers, 5));
  ASSERT_TRUE(errors) << errors.failure().reason;
  EXPECT_EQ(errors->element, 0);
}

/// The kernel with something taken out or replaced, over several tiles a block.
class Fault {
 public:
  explicit Fault(const std::function<void(Inputs&)>& change = {}) : source_(embedded_source(kFile)) {
    const BuildContext context = context_of(problem_);
    // Two passes of the exchange, over the buffer that the last of an odd number of stages is read from.
    program_ = winograd().build(context, with(context, {{"T", std::int64_t{64}},
                                                        {"OC_TILE", std::int64_t{32}},
                                                        {"block", Block{8, 16}},
                                                        {"points", std::int64_t{4}},
                                                        {"taps", std::int64_t{3}},
                                                        {"held", std::int64_t{1}},
                                                        {"warp_t", std::int64_t{8}},
                                                        {"min_blocks", std::int64_t{2}}}));
    program_.run.front().shape.grid_x = 2;
    inputs_ = normal(problem_);
    if (change) change(inputs_);
  }
  /// Replaces the n-th `what` for all runs that follow.
  Fault& replace(const std::string& what, const std::string& by, int occurrence = 0) {
    std::size_t at = source_.find(what);
    while (occurrence-- > 0 && at != std::string::npos) at = source_.find(what, at + 1);
    EXPECT_NE(at, std::string::npos) << what;
    if (at != std::string::npos) source_.replace(at, what.size(), by);
    return *this;
  }
  int count(const std::string& what) const {
    int found = 0;
    for (std::size_t at = source_.find(what); at != std::string::npos; at = source_.find(what, at + 1)) ++found;
    return found;
  }
  /// Whether a run is right; in a process of its own, since garbage out of a race may be used as an address.
  bool right(std::uint64_t seed) const {
    CompileUnit unit = program_.unit;
    const std::string include = std::string("#include \"") + kFile + "\"";
    unit.source.replace(unit.source.find(include), include.size(), source_);
    const auto compiled = kernels(false).compile(unit);
    EXPECT_TRUE(compiled) << compiled.failure().reason << "\n" << compiled.failure().log;
    if (!compiled) return true;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(verify_on_host(problem_, program_, *compiled, inputs_, seed) ? 3 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 3;
  }

 private:
  static constexpr const char* kFile = "kernels/winograd/kernel.cuh";
  Problem problem_{2, 40, 20, 3, 1, 1, 0, 1, 1, true, 300};
  std::string source_;
  Program program_;
  Inputs inputs_;
};

constexpr const char* kBarrier = "__syncthreads();";
constexpr const char* kRepair = "repair<I>(a, tile, flags);";

/// Of output channel 18, which the last pass of the exchange stores.
void infinite_weight(Inputs& inputs) { inputs.w[114] = std::numeric_limits<float>::infinity(); }

/// Poison that is read too early ends as a result that is not finite, which would be computed again: not here.
TEST(HostWinogradFaults, EveryRemovedBarrierOfThePipelineIsCaughtWithEverySeed) {
  const Fault whole = Fault().replace(kRepair, "");
  for (std::uint64_t seed = 1; seed <= 3; ++seed) EXPECT_TRUE(whole.right(seed));
  ASSERT_EQ(whole.count(kBarrier), 7);
  for (const int i : {0, 1, 2, 3, 6})
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_FALSE(Fault(whole).replace(kBarrier, "", i).right(seed)) << "barrier " << i << ", seed " << seed;
}

TEST(HostWinogradFaults, OutputsThatMayBeWrittenAfterTheirRepairAreCaught) {
  const Fault whole(infinite_weight);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_TRUE(whole.right(seed));
    EXPECT_FALSE(Fault(whole).replace(kBarrier, "", 5).right(seed)) << seed;
  }
}

TEST(HostWinogradFaults, AMissingOrLateWaitForCopiesIsCaught) {
  for (const char* by : {"", "copy_wait<STAGES - 1>();"})
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_FALSE(Fault().replace(kRepair, "").replace("copy_wait<STAGES - 2>();", by).right(seed)) << by << seed;
}

TEST(HostWinogradFaults, ResultsThatAreNotFiniteAndSpikesHaveToBeComputedAgain) {
  EXPECT_FALSE(Fault(infinite_weight).replace("if (!(finite == 0.0f)) flags[segment] = 1;", "(void)finite;").right(1));
  const Fault spike([](Inputs& inputs) { inputs.x[5000] = 1e6f; });
  EXPECT_TRUE(spike.right(1));
  EXPECT_FALSE(Fault(spike).replace("if (!even) flags[thread] = 1;", "(void)even;").right(1));
}

/// Taps of scales 1, 2^-13 and 2^-26, no bias.
void uneven_taps(Inputs& inputs) {
  for (std::size_t i = 0; i < inputs.w.size(); ++i) inputs.w[i] *= std::exp2(-13.0f * static_cast<float>(i % 3));
  std::fill(inputs.bias.begin(), inputs.bias.end(), 0.0f);
}

TEST(HostWinogradFaults, UnevenTapsHaveToBeSeenAndTheirChunksLookedAt) {
  const Fault whole([](Inputs& inputs) {
    uneven_taps(inputs);
    for (std::size_t i = 0; i < inputs.x.size(); i += 6) inputs.x[i] = 0;  // outputs that only small taps meet
  });
  EXPECT_TRUE(whole.right(1));
  EXPECT_FALSE(Fault(whole).replace("if (unit < 0.0f) tile.check_at = tile.chunk_steps;", "").right(1));
  EXPECT_FALSE(Fault(whole).replace("least * largest <= smallest", "true").right(1));
}

TEST(HostWinogradFaults, ChunksThatMayBeLookedAtBeforeTheirSizesAreCompleteAreCaught) {
  // x in two channels of the last stage, which other threads transform than those that flag.
  const Fault whole = Fault([](Inputs& inputs) {
                        uneven_taps(inputs);
                        for (std::size_t i = 0; i < inputs.x.size(); ++i) {
                          const std::size_t ic = i / 300 % 40;
                          if ((ic != 35 && ic != 39) || i % 300 % 3 == 0) inputs.x[i] = 0;
                        }
                      }).replace("flag_segments<I>(flags, sizes, a.geometry, common, 0.0f);", "(void)common;");
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_TRUE(whole.right(seed));
    EXPECT_FALSE(Fault(whole).replace(kBarrier, "", 4).right(seed)) << seed;
  }
}

}  // namespace
}  // namespace tuner
