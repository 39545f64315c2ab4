#include "tuner/core/result.h"

#include <gmock/gmock.h>

#include "tests/core/samples.h"
#include "tests/core/temporary_folder.h"
#include "tuner/core/json.h"
#include "tuner/core/random.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

RunResult read_text(const TemporaryFolder& folder, const std::string& text) {
  return read_result(folder.write("result.json", text));
}

Json::object_t::key_type first_of(const Json& json) { return json.items().begin().key(); }

TEST(Result, HasTheContractsKeys) {
  const Json json = Json::parse(to_json(measured_result()));
  for (const char* key : {"schema_version", "tool", "config", "config_hash", "environment", "measured", "problems"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"version", "commit"}) EXPECT_TRUE(json.at("tool").contains(key)) << key;
  for (const char* key : {"gpu", "uuid", "sm_count", "arch", "driver", "cuda", "nvrtc", "cudnn", "cublas",
                          "power_limit_w", "clocks", "other_processes", "warnings"})
    EXPECT_TRUE(json.at("environment").contains(key)) << key;
  const Json& problem = json.at("problems").at(0);
  for (const char* key : {"name", "problem", "length_out", "flop", "min_bytes", "classes"})
    EXPECT_TRUE(problem.contains(key)) << key;
  EXPECT_EQ(problem.at("length_out"), 65538);
  EXPECT_EQ(problem.at("flop"), 412316860416.0);
  EXPECT_EQ(problem.at("min_bytes"), 4295229440.0);
  const Json& record = problem.at("classes").at(0);
  for (const char* key :
       {"class", "reference_error_of_plain_sum", "bound", "variants", "baselines", "best", "tie", "ratios"})
    EXPECT_TRUE(record.contains(key)) << key;
  const Json& variant = record.at("variants").at(0);
  for (const char* key : {"family", "tunables", "id", "outcome", "registers", "spill_bytes", "shared_bytes",
                          "occupancy", "cubin_sha256", "compile_ms", "errors", "time_ms", "model"})
    EXPECT_TRUE(variant.contains(key)) << key;
  EXPECT_EQ(variant.at("tunables"), Json::parse(R"({"T": 128, "block": [32, 8], "store": "plain"})"));
  for (const char* key : {"median", "low", "high", "samples", "l2", "regime"})
    EXPECT_TRUE(variant.at("time_ms").contains(key)) << key;
  EXPECT_EQ(variant.at("model").at("lower_bound_ms"), 6.2);
  EXPECT_EQ(record.at("variants").at(2).at("outcome"), "compile_failed");
  EXPECT_EQ(record.at("variants").at(2).at("reason"), "error: x");
  const Json& baseline = record.at("baselines").at(0);
  for (const char* key : {"name", "route", "engine", "knobs", "workspace_bytes", "outcome", "errors", "time_ms"})
    EXPECT_TRUE(baseline.contains(key)) << key;
  for (const char* key : {"baseline", "ratio", "low", "high"})
    EXPECT_TRUE(record.at("ratios").at(0).contains(key)) << key;
  EXPECT_EQ(json.at("config").at("x"), 0.1);
  EXPECT_EQ(first_of(json), "schema_version");
}

TEST(Result, NeverHoldsNanOrInfinityButKeepsTheRow) {
  const Json json = Json::parse(to_json(measured_result()));
  const Json& hasty = json.at("problems").at(0).at("classes").at(0).at("variants").at(1);
  EXPECT_TRUE(hasty.at("errors").at("element").is_null());
  EXPECT_TRUE(hasty.at("time_ms").at("low").is_null());
  EXPECT_EQ(hasty.at("outcome"), "ok");
}

TEST(Result, WithoutAGpuHasNoTimesAndNoBest) {
  RunResult result = measured_result();  // even if someone left times in it
  result.measured = false;
  result.environment.device.measured = false;
  result.problems[0].classes[0].shortlist = {result.problems[0].classes[0].variants[0].id};
  for (const std::string& text : {to_json(result), best_to_json(result)}) {
    EXPECT_EQ(text.find("time_ms"), text.npos);
    EXPECT_EQ(text.find("median"), text.npos);
    EXPECT_EQ(text.find("\"best\""), text.npos);
    EXPECT_EQ(text.find("\"ratios\""), text.npos);
    EXPECT_NE(text.find("\"shortlist\""), text.npos);
  }
  const Json json = Json::parse(to_json(result));
  for (const Json& baseline : json.at("problems").at(0).at("classes").at(0).at("baselines"))
    EXPECT_EQ(baseline.at("outcome"), "not run");
  EXPECT_TRUE(json.at("environment").at("gpu").is_null());
}

TEST(Result, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  for (const RunResult& result : {measured_result(), offline_result(), RunResult{}}) {
    const std::string text = to_json(result);
    const RunResult again = read_text(folder, text);
    EXPECT_EQ(to_json(again), text);
    EXPECT_EQ(best_to_json(again), best_to_json(result));
    EXPECT_EQ(again.problems.size(), result.problems.size());
  }
  const RunResult again = read_text(folder, to_json(measured_result()));
  const ClassRecord& record = again.problems[0].classes[0];
  EXPECT_EQ(record.variants[0].variant, measured_result().problems[0].classes[0].variants[0].variant);
  EXPECT_THAT(record.variants[0].time->samples, ElementsAre(8.5, 8.75, 8.75, 8.75, 8.75, 9));
  EXPECT_EQ(record.variants[1].time->ms.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(record.variants[1].time->ms.relative_half_width(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(record.baselines[0].workspace_bytes, std::size_t{5} << 30);
  EXPECT_EQ(record.rejections.at("direct: too many threads"), 12u);
  EXPECT_EQ(again.environment.device.name, "NVIDIA H200");
  EXPECT_TRUE(again.environment.device.measured);
}

TEST(Result, RandomResultsSurviveTheRoundTrip) {
  const TemporaryFolder folder;
  Random random(1);
  const auto number = [&] {
    return std::ldexp(static_cast<double>(random.next() >> 11), static_cast<int>(random.below(200)) - 150);
  };
  for (int i = 0; i < 200; ++i) {
    RunResult result = random.below(3) == 0 ? offline_result() : measured_result();
    ClassRecord& record = result.problems[0].classes[0];
    record.accuracy = kAccuracies[random.below(4)];
    record.plain_error = number();
    record.ratios.clear();
    for (VariantRecord& variant : record.variants) {
      variant.outcome = static_cast<Outcome>(random.below(10));
      variant.registers = static_cast<int>(random.below(256));
      variant.occupancy = std::ldexp(static_cast<double>(random.next() >> 11), -53);
      variant.log = std::string(random.below(50), static_cast<char>(random.below(128)));
      if (variant.time) {
        variant.time->samples.clear();
        for (std::uint64_t n = 1 + random.below(20); n > 0; --n) variant.time->samples.push_back(number() + 0x1p-160);
        variant.time->ms = median_interval(variant.time->samples);
      }
      if (random.below(4) == 0) variant.errors.reset();
    }
    if (random.below(4) == 0) record.variants.pop_back();
    const std::string text = to_json(result);
    ASSERT_EQ(to_json(read_text(folder, text)), text);
  }
}

/// The measured result's file with one value replaced.
std::string with(const std::string& pointer, const Json& value) {
  Json json = Json::parse(to_json(measured_result()));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}
/// With the list's first element once more at its end.
std::string twice(const std::string& list) {
  Json json = Json::parse(to_json(measured_result()));
  Json& elements = json[Json::json_pointer(list)];
  const Json first = elements[0];
  elements.push_back(first);
  return json.dump();
}
std::string without(const std::string& parent, const std::string& key) {
  Json json = Json::parse(to_json(measured_result()));
  json[Json::json_pointer(parent)].erase(key);
  return json.dump();
}

TEST(Result, RefusesWhatIsNoResultInOneLine) {
  const TemporaryFolder folder;
  const std::string variant = "/problems/0/classes/0/variants/0";
  const std::string text = to_json(measured_result());
  Json offline = Json::parse(to_json(offline_result()));
  offline["/problems/0/classes/0/best"_json_pointer] = "x";
  struct Row {
    std::string text, words;
  };
  for (const auto& [hostile, words] : {
           Row{"", "line 1, column 1"},
           Row{"[]", "$: "},
           Row{"{}", "lacks the key 'schema_version'"},
           Row{text.substr(0, text.size() / 2), "not JSON"},
           Row{std::string(100000, '['), "deeper than 64"},
           Row{with("/schema_version", 2), "$.schema_version: results of schema version 2 cannot be read"},
           Row{with("/schema_version", "1"), "$.schema_version"},
           Row{with("/measured", "yes"), "$.measured"},
           Row{with("/config", 3), "$.config"},
           Row{with("/name", Json::array()), "$.name"},
           Row{without("/environment", "driver"), "$.environment: "},
           Row{with("/environment/gpu", 3), "$.environment.gpu"},
           Row{with("/environment/sm_count", 1e300), "$.environment.sm_count"},
           Row{with("/environment/sm_count", -1), "$.environment.sm_count"},
           Row{with("/environment/warnings", "w"), "$.environment.warnings"},
           Row{with("/environment/warnings/0", 7), "$.environment.warnings[0]"},
           Row{with("/problems", Json::object()), "$.problems"},
           Row{with("/problems/0/problem/stride", 0), "$.problems[0].problem.stride"},
           Row{with("/problems/0/problem/length", std::int64_t{1} << 62), "overflows"},
           Row{with("/problems/0/length_out", 7), "$.problems[0].length_out: 7 is not allowed: expected 65538"},
           Row{without("/problems/0", "flop"), "lacks the key 'flop'"},
           Row{with("/problems/0/classes/0/class", "fp64"), "$.problems[0].classes[0].class"},
           Row{with("/problems/0/classes/0/best", "nobody"), "neither a variant nor a baseline"},
           Row{with("/problems/0/classes/0/best", "cudnn: backward data, conversions not counted"),
               "neither a variant"},
           Row{with("/problems/0/classes/0/baselines/2/best_of_its_name", true),
               "conversions not counted\" cannot be the best of \"cudnn\": it is not comparable"},
           Row{with("/problems/0/classes/0/rejections", 1), ".rejections"},
           Row{with(variant + "/outcome", "fine"), "variants[0].outcome: \"fine\" is not allowed"},
           Row{with(variant + "/registers", 1.5), "variants[0].registers"},
           Row{with(variant + "/registers", 99999999999), "variants[0].registers"},
           Row{with(variant + "/tunables/T", -1), "variants[0].tunables.T"},
           Row{with(variant + "/tunables/block", Json::array({1, 2, 3})), "variants[0].tunables.block"},
           Row{with(variant + "/time_ms/median", "fast"), "variants[0].time_ms.median"},
           Row{with(variant + "/time_ms/samples", 1), "variants[0].time_ms.samples"},
           Row{with(variant + "/time_ms", Json::array()), "variants[0].time_ms"},
           Row{with(variant + "/errors/row", Json::object()), "variants[0].errors.row"},
           // Numbers that no measurement gives.
           Row{with("/environment/sm_count", 0), "$.environment.sm_count: 0 is not allowed"},
           Row{with("/environment/device/sm_count", 0), "$.environment.device.sm_count: 0 is not allowed"},
           Row{with("/environment/device/memory_gbps", -1), "$.environment.device.memory_gbps"},
           Row{with("/search_seconds", -1), "$.search_seconds"},
           Row{with(variant + "/time_ms/median", -1), "variants[0].time_ms.median: -1 is not allowed"},
           Row{with(variant + "/time_ms/median", 0), "variants[0].time_ms.median"},
           Row{with(variant + "/time_ms/median", nullptr), "variants[0].time_ms.median: null is not allowed"},
           Row{with(variant + "/time_ms/median", 9.5), "variants[0].time_ms.median"},
           Row{with(variant + "/time_ms/low", 10), "variants[0].time_ms.low: 10 is not allowed"},
           Row{with(variant + "/time_ms/low", -1), "variants[0].time_ms.low"},
           Row{with(variant + "/time_ms/samples/1", nullptr), "variants[0].time_ms.samples[1]"},
           Row{with(variant + "/time_ms/samples/1", -1), "variants[0].time_ms.samples[1]"},
           Row{with(variant + "/other_regimes/0/median", 0), "variants[0].other_regimes[0].median"},
           Row{with(variant + "/time_ms", nullptr), "$.problems[0].classes[0].best"},
           Row{with(variant + "/occupancy", 5), "variants[0].occupancy"},
           Row{with(variant + "/compile_ms", -1), "variants[0].compile_ms"},
           Row{with("/problems/0/classes/0/baselines/0/time_ms/median", -1), "baselines[0].time_ms.median"},
           Row{with("/problems/0/classes/0/ratios/0/ratio", -1), "ratios[0].ratio: -1 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/0/ratio", 0), "ratios[0].ratio"},
           Row{with("/problems/0/classes/0/ratios/0/ratio", nullptr), "ratios[0].ratio"},
           Row{with("/problems/0/classes/0/ratios/0/low", 2), "ratios[0].low: 2 is not allowed"},
           // Numbers that the samples beside them contradict.
           Row{with(variant + "/time_ms/median", 8.6), "variants[0].time_ms.median: 8.6 is not allowed: expected 8.75"},
           Row{with(variant + "/time_ms/low", 8.4), "variants[0].time_ms.low: 8.4 is not allowed"},
           Row{with(variant + "/time_ms/low", nullptr), "variants[0].time_ms.low: null is not allowed"},
           Row{with(variant + "/time_ms/high", 9.1), "variants[0].time_ms.high: 9.1 is not allowed"},
           Row{with(variant + "/time_ms/samples", Json::array()), "variants[0].time_ms.samples"},
           Row{with(variant + "/other_regimes/0/low", 9), "variants[0].other_regimes[0].low: 9 is not allowed"},
           Row{with(variant + "/time_ms/energy_mj/median", 420), "time_ms.energy_mj.median: 420 is not allowed"},
           Row{with("/problems/0/classes/0/baselines/0/time_ms/samples/0", 15.45), "baselines[0].time_ms.low"},
           Row{with("/problems/0/classes/0/best_again/time_ms/median", 8),
               "best_again.time_ms.median: 8 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/0/ratio", 1.75), "ratios[0].ratio: 1.75 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/0/high", 1.85), "ratios[0].high: 1.85 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/1/ratio", 1.8), "ratios[1].ratio: 1.8 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/2/ratio", 1.4), "ratios[2].ratio: 1.4 is not allowed"},
           Row{with("/problems/0/classes/0/ratios/0/baseline", "cublas_shift_add"), "ratios[0]: no samples"},
           Row{with("/problems/0/classes/0/ratios/1/regime", "burst"), "ratios[1].ratio"},
           Row{with("/problems/0/classes/0/best_again/time_ms/median", 0), "best_again.time_ms.median"},
           Row{with("/problems/0/classes/0/search_account/wall_s", -1), "search_account.wall_s"},
           // One thing, twice.
           Row{twice("/problems/0/classes/0/variants"), "$.problems[0].classes[0].variants[3].id"},
           Row{twice("/problems/0/classes"), "$.problems[0].classes[1].class"},
           Row{twice("/problems"), "$.problems[1].name"},
           Row{without(variant, "id"), "lacks the key 'id'"},
           Row{offline.dump(), "'best' cannot stand in a result that was not measured"},
       }) {
    const auto path = folder.write("result.json", hostile);
    EXPECT_THAT([&] { read_result(path); }, ThrowsMessage<UsageError>(AllOf(StartsWith(path.string() + ": "),
                                                                            HasSubstr(words), Not(HasSubstr("\n")))))
        << hostile.substr(0, 100);
  }
}

TEST(Result, CutAtAnyByteIsRefusedWithoutACrash) {
  const TemporaryFolder folder;
  const std::string text = Json::parse(to_json(measured_result())).dump();
  for (std::size_t length = 0; length < text.size(); length += 7)
    EXPECT_THROW(read_text(folder, text.substr(0, length)), UsageError) << length;
}

TEST(Result, KeysOfALaterProgramAreNoFault) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_text(folder, with("/environment/moon_phase", "full")).name, "seed-h200");
}

TEST(Result, IsWrittenAsTwoFiles) {
  const TemporaryFolder folder;
  const auto [result_path, best_path] = write_result(measured_result(), folder.path() / "seed");
  EXPECT_EQ(result_path, folder.path() / "seed/result.json");
  EXPECT_EQ(TemporaryFolder::content_of(result_path), to_json(measured_result()));
  const Json best = Json::parse(TemporaryFolder::content_of(best_path));
  const Json& record = best.at("problems").at(0).at("classes").at(0);
  EXPECT_EQ(record.at("family"), "tiled");
  EXPECT_EQ(record.at("tunables").at("T"), 128);
  EXPECT_EQ(record.at("cubin_sha256"), std::string(64, 'a'));
  EXPECT_EQ(record.at("median_ms"), 8.75);
  EXPECT_EQ(record.at("ratios").at(0).at("ratio"), 15.5 / 8.75);
  EXPECT_EQ(best.at("reproduce"), "tuner --config configs/h200.json");
}

TEST(Result, TheSmallFileBesideItIsNamedWhereItIsGiven) {
  const TemporaryFolder folder;
  const auto best = write_result(measured_result(), folder.path()).second;
  EXPECT_THAT([&] { read_result(best); },
              ThrowsMessage<UsageError>(HasSubstr("this is a best.json; give the result.json beside it")));
}

TEST(Result, BestIsTheVendorWhereNothingOfOursIsFaster) {
  RunResult result = measured_result();
  result.problems[0].classes[0].best = "cudnn: backward data";
  const Json record = Json::parse(best_to_json(result)).at("problems").at(0).at("classes").at(0);
  EXPECT_EQ(record.at("best"), "cudnn: backward data");
  EXPECT_FALSE(record.contains("family"));
  EXPECT_EQ(record.at("fastest_variant").at("median_ms"), 8.75);
  const TemporaryFolder folder;
  EXPECT_EQ(read_text(folder, to_json(result)).problems[0].classes[0].best, "cudnn: backward data");
}

TEST(Result, NoBestIsWrittenWhereNothingWasValid) {
  RunResult result = measured_result();
  result.problems[0].classes[0].best.clear();
  EXPECT_FALSE(Json::parse(to_json(result)).at("problems").at(0).at("classes").at(0).contains("best"));
  const Json record = Json::parse(best_to_json(result)).at("problems").at(0).at("classes").at(0);
  EXPECT_FALSE(record.contains("best"));
  EXPECT_TRUE(record.contains("why_none"));
}

TEST(Result, VariantsAreFoundByIdOrUniquePrefix) {
  const RunResult result = measured_result();
  const ClassRecord& record = result.problems[0].classes[0];
  EXPECT_EQ(find_variant(record, record.variants[0].id), &record.variants[0]);
  EXPECT_EQ(find_variant(record, "direct"), &record.variants[2]);
  EXPECT_EQ(find_variant(record, "tiled-"), nullptr) << "two have it";
  EXPECT_EQ(find_variant(record, "none"), nullptr);
}

}  // namespace
}  // namespace tuner
