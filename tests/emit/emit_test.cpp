#include "tuner/emit/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emit/sample_results.h"
#include "tuner/emit/choose.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string refusal(const std::vector<RunResult>& results, const EmitOptions& options = {}) {
  try {
    emit_header(results, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Emit, GivesTheSameBytesForTheSameResults) {
  EXPECT_EQ(emit_header({seed_result()}, {}), emit_header({seed_result()}, {}));
  EXPECT_NE(emit_header({seed_result()}, {}), emit_header({seed_result(8.5)}, {}))
      << "the banner holds the result's hash";
}

TEST(Emit, SaysInItsBannerWhatMadeItAndFromWhat) {
  EmitOptions options;
  options.command = "tuner emit r.json -o x.hpp";
  const std::string header = emit_header({seed_result()}, options);
  const std::string banner = header.substr(0, header.find("#pragma once"));
  EXPECT_THAT(banner, AllOf(HasSubstr("do not edit"), HasSubstr("tuner emit r.json -o x.hpp"), HasSubstr("NVIDIA H200"),
                            HasSubstr("result sha256 "), HasSubstr("seed fp32"), HasSubstr("median 8.8 ms"),
                            HasSubstr("any other problem in fp32")));
  EXPECT_THAT(banner, Not(HasSubstr("UNMEASURED")));
  for (std::size_t at = 0; at < banner.size(); at = banner.find('\n', at) + 1)
    ASSERT_EQ(banner.compare(at, 2, "//"), 0) << banner.substr(at, 80);
}

TEST(Emit, KeepsWhatAResultSaysInsideItsComments) {
  RunResult result = seed_result();
  result.name = "evil\n#error out of the comment\\";
  result.problems[0].name = "p\r\nint injected;";
  result.environment.device.name = "NVIDIA \"H200\"\\";
  const std::string header = emit_header({result}, {});
  EXPECT_THAT(header, Not(HasSubstr("\n#error out")));
  EXPECT_THAT(header, Not(HasSubstr("\nint injected")));
  EXPECT_THAT(header, HasSubstr(R"({"NVIDIA \"H200\"\\", 9,)"));
}

TEST(Emit, IsOneFileWithOnlyTheFamiliesItNeeds) {
  const std::string header = emit_header({direct_result()}, {});
  EXPECT_EQ(count_of(header, "#pragma once"), 1u);
  EXPECT_THAT(header, Not(HasSubstr("#include \"")));
  EXPECT_THAT(header, Not(HasSubstr("HOST_EXECUTION")));
  EXPECT_THAT(header, HasSubstr("namespace ct1d::direct"));
  EXPECT_THAT(header, Not(HasSubstr("namespace ct1d::tiled")));
  EXPECT_EQ(count_of(header, "struct Geometry {"), 1u) << "each file once";
  const std::string both = emit_header({direct_result(), seed_result()}, {});
  EXPECT_EQ(count_of(both, "struct Geometry {"), 1u);
  EXPECT_THAT(both, HasSubstr("namespace ct1d::tiled"));
  EXPECT_THAT(both, HasSubstr("#undef CT1D_HD\n")) << "macros do not leak";
}

TEST(Emit, LaunchesAllKernelsThatPrepareWeightsInTheirOrder) {
  const std::string header = emit_header({upsampling_result()}, {});
  const auto place = [&](const std::string& text) {
    EXPECT_EQ(count_of(header, text), 1u) << text;
    return header.find(text);
  };
  const std::size_t scale = place("if (step == 0) return reinterpret_cast<const void*>(&ct1d::winograd::scale<"),
                    weigh = place("if (step == 1) return reinterpret_cast<const void*>(&ct1d::winograd::weigh<"),
                    pack = place("    return reinterpret_cast<const void*>(&ct1d::winograd::pack<");
  EXPECT_LT(scale, weigh);
  EXPECT_LT(weigh, pack);
  EXPECT_THAT(header, HasSubstr("ct1d::winograd::prepare_shape(tunables(), g, 4, step)"));
  EXPECT_THAT(header, HasSubstr("3, Kernels0::prepare_shape, Kernels0::prepare_kernel}"));
  EXPECT_THAT(header, HasSubstr("kMostSteps = 3;"));
}

TEST(Emit, TakesEveryFamilyInEveryClassThatItServes) {
  const Problem dense{2, 64, 64, 3, 1, 1, 0, 1, 1, true, 500}, depthwise{2, 64, 64, 12, 2, 5, 0, 1, 64, true, 500};
  for (const Family* family : families()) {
    std::size_t emitted = 0;
    for (const Problem& problem : {dense, depthwise})
      for (const Accuracy accuracy : kAccuracies) {
        const BuildContext context{problem, accuracy, sample_h200()};
        if (family->refuses(context)) continue;
        VariantRecord variant = sample_variant("direct", problem, 1);
        variant.variant = {std::string(family->name()), family->default_configuration(context)};
        variant.id = id_of(variant.variant);
        RunResult result = sample_result("one", problem, {variant});
        result.problems[0].classes[0].accuracy = accuracy;
        EXPECT_EQ(refusal({result}), "accepted") << family->name() << " " << to_string(accuracy);
        ++emitted;
      }
    EXPECT_GT(emitted, 0u) << family->name();
  }
}

TEST(Emit, RefusesUnmeasuredResultsUnlessToldOtherwise) {
  EXPECT_THAT(refusal({unmeasured_result()}),
              AllOf(HasSubstr("offline"), HasSubstr("holds no times"), HasSubstr("--unmeasured")));
  EXPECT_THAT(refusal({seed_result(), unmeasured_result()}), HasSubstr("holds no times"));
  EmitOptions options;
  options.unmeasured = true;
  const std::string header = emit_header({unmeasured_result()}, options);
  EXPECT_THAT(header.substr(0, header.find("#pragma once")), HasSubstr("UNMEASURED"));
  EXPECT_THAT(header, HasSubstr("(not measured)"));
}

TEST(Emit, RefusesWhatItCannotUse) {
  EXPECT_THAT(refusal({}), HasSubstr("no results"));
  RunResult none = seed_result();
  none.problems[0].classes[0].variants.clear();
  EXPECT_THAT(refusal({none}), HasSubstr("no valid variant"));
  RunResult foreign = seed_result();
  for (VariantRecord& variant : foreign.problems[0].classes[0].variants) variant.variant.family = "imaginary";
  EXPECT_THAT(refusal({foreign}), HasSubstr("a family imaginary"));
  RunResult renamed = seed_result();
  for (VariantRecord& variant : renamed.problems[0].classes[0].variants) variant.variant.tunables[0].first = "TT";
  EXPECT_THAT(refusal({renamed}), HasSubstr("a tunable TT"));
  const std::vector<std::pair<Value, std::string>> unfit_values{{std::int64_t{0}, "from 1 to"},
                                                                {std::int64_t{1} << 31, "from 1 to"},
                                                                {std::string("x"), "expected a value as"},
                                                                {Block{8, 8}, "expected a value as"},
                                                                {std::int64_t{3}, "is refused by this program: "}};
  for (const auto& [value, words] : unfit_values) {
    RunResult unfit = seed_result();
    for (VariantRecord& variant : unfit.problems[0].classes[0].variants) variant.variant.tunables[0].second = value;
    EXPECT_THAT(refusal({unfit}), HasSubstr(words));
  }
  for (const char* name : {"", "1a", "a::", "::a", "a b", "a:b", "a;b", "a::1", "a:::b", "int", "a::class", "std"}) {
    EmitOptions options;
    options.name_space = name;
    EXPECT_THAT(refusal({seed_result()}, options), HasSubstr("is no C++ namespace")) << name;
  }
}

TEST(Choose, TakesTheRunOffsWinnerElseOurFastestValidOne) {
  RunResult result = seed_result();
  ClassRecord& record = result.problems[0].classes[0];
  EXPECT_EQ(choose({result})[0].variant, record.variants[1].variant) << "named by the run-off";
  record.best = "cudnn: forward, flipped kernel";
  record.variants[0].time->ms.median = 8.0;
  auto chosen = choose({result});
  EXPECT_EQ(chosen[0].variant, record.variants[0].variant);
  EXPECT_EQ(chosen[0].note, "cudnn: forward, flipped kernel was faster");
  record.variants[0].outcome = Outcome::wrong_result;
  EXPECT_EQ(choose({result})[0].variant, record.variants[1].variant) << "however fast, a wrong one is none";
}

TEST(Choose, KeepsTheFasterOfTwoResultsAndOneRowForEachDevice) {
  RunResult a100 = seed_result(20);
  a100.environment.device.name = "NVIDIA A100-SXM4-80GB";
  const auto chosen = choose({seed_result(8.8), a100, seed_result(8.6), seed_result(9.9)});
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].context.device.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(chosen[1].median_ms, 8.6);
}

TEST(Choose, FindsAGeneralConfigurationForEveryClassInUse) {
  const auto chosen = choose({seed_result()});
  const auto general = choose_general(Accuracy::fp32, chosen);
  ASSERT_TRUE(general);
  EXPECT_EQ(general->variant.family, "tiled") << "the family in use is tried first";
  EXPECT_FALSE(choose_general(Accuracy::fp16, chosen)) << "nothing was tuned in it";
}

}  // namespace
}  // namespace tuner
