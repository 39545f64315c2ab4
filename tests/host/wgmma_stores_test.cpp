// The wgmma family's ways to y under Host execution: every output of any stride, in its place, wherever rows begin and
// end and however panels cut channels.
#include <ostream>
#include <string>
#include <tuple>

#include "tests/host/host_fixture.h"
#include "tuner/core/config.h"
#include "tuner/family/family.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using namespace host_test;

const Family& wgmma() { return *find_family("wgmma"); }

/// A stride, a tile that a group's columns fill more than once, and output channels a group.
struct Way {
  int stride;
  int OC_TILE;
  int out_channels;
  int halves;
};
void PrintTo(const Way& way, std::ostream* out) { *out << "stride " << way.stride << ", OC_TILE " << way.OC_TILE; }

const Way kWays[] = {{3, 24, 9, 1},  {5, 40, 11, 1},   {6, 32, 7, 2},    {7, 56, 9, 1},
                     {9, 48, 6, 1},  {10, 40, 5, 1},   {11, 24, 3, 1},   {12, 24, 3, 1},
                     {12, 16, 2, 2}, {20, 120, 13, 1}, {150, 128, 1, 1}, {256, 128, 1, 1}};

/// The default configuration with the way's tile; it must satisfy the constraints.
Configuration configuration_of(const BuildContext& context, const Way& way) {
  Configuration configuration = wgmma().default_configuration(context);
  const auto set = [&](const char* name, std::int64_t value) {
    for (auto& entry : configuration)
      if (entry.first == name) entry.second = value;
  };
  set("OC_TILE", way.OC_TILE);
  if (context.accuracy == Accuracy::fp32) set("halves", way.halves);
  for (const Constraint& c : wgmma().constraints(context)) EXPECT_TRUE(c.holds(configuration)) << c.reason;
  return configuration;
}

Expected<Errors> errors_of(const BuildContext& context, const Program& program, Values values, std::uint64_t seed) {
  const auto unit = kernels(false).compile(program.unit);
  if (!unit) return unit.failure();
  const auto device = make_host_device({seed, 2});
  auto verifier = make_verifier(*device, context.problem, context.accuracy, values, seed);
  if (!verifier) return verifier.failure();
  auto runnable = make_runnable(*device, context.problem, program, *unit, "wgmma");
  if (!runnable) return runnable.failure();
  return (*verifier)->verify(**runnable);
}

class HostWgmmaStores : public testing::TestWithParam<std::tuple<Way, Accuracy>> {};

TEST_P(HostWgmmaStores, EveryOutputIsInItsPlace) {
  const auto& [way, accuracy] = GetParam();
  const std::int64_t s = way.stride;
  // Rows that begin anywhere, in the middle of a tile and before it, that end a little after and before a warp's 32
  // positions, one shorter than these.
  const struct {
    std::int64_t padding, output_padding, length;
    bool bias;
  } ends[] = {{0, 0, 67, true}, {1, 1, 257, false}, {s + 3, s - 1, 130, true}, {s / 2, 0, 9, true}};
  for (const auto& end : ends) {
    const Problem problem{2,        34,        2 * way.out_channels, 2 * s, s, end.padding, end.output_padding, 1, 2,
                          end.bias, end.length};
    ASSERT_FALSE(illegal(problem)) << *illegal(problem);
    const BuildContext context{problem, accuracy, read_profile("h200")};
    const Program program = wgmma().build(context, configuration_of(context, way));
    for (const Values values : {Values::normal, Values::index_coded}) {
      const auto errors = errors_of(context, program, values, static_cast<std::uint64_t>(end.length));
      EXPECT_TRUE(errors) << summary(problem) << ": " << errors.failure().reason;
    }
  }
}

// Rows of one output channel, whose tiles share SMs: eight columns, of which half exist.
TEST(HostWgmma, BlocksThatShareAnSmServeOneOutputChannel) {
  const Problem problem{9, 40, 1, 8, 4, 1, 0, 1, 1, true, 2001};
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::tf32, Accuracy::fp16}) {
    BuildContext context{problem, accuracy, read_profile("h200")};
    context.device.sm_count = 8;  // whose blocks walk several tiles
    const Configuration configuration = wgmma().default_configuration(context);
    const Program program = wgmma().build(context, configuration);
    EXPECT_GE(program.run.front().shape.grid_x, 16u) << to_string(configuration);
    const auto errors = errors_of(context, program, Values::index_coded, 5);
    EXPECT_TRUE(errors) << to_string(accuracy) << ": " << errors.failure().reason;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostWgmmaStores,
                         testing::Combine(testing::ValuesIn(kWays),
                                          testing::Values(Accuracy::fp32, Accuracy::fp16, Accuracy::bf16)),
                         [](const auto& each) {
                           const Way& way = std::get<0>(each.param);
                           return "stride_" + std::to_string(way.stride) + "_tile_" + std::to_string(way.OC_TILE) +
                                  "_" + std::string(to_string(std::get<1>(each.param)));
                         });

}  // namespace
}  // namespace tuner
