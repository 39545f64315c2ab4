// When a run's result replaces the one that is there.
#include "tuner/commands/result_file.h"

#include <gmock/gmock.h>

#include "tests/core/samples.h"
#include "tests/core/temporary_folder.h"
#include "tuner/core/failure.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

class TheResultFile : public testing::Test {
 protected:
  /// The offline result with its first `count` variants.
  static RunResult with_variants(std::size_t count) {
    RunResult result = offline_result();
    ClassRecord& record = result.problems[0].classes[0];
    record.variants.resize(count);
    record.baselines.clear();
    record.shortlist.clear();
    return result;
  }
  /// A config that asks for the sample's problem in its class, or for another length.
  static Config asking(bool same = true) {
    const ProblemRecord sample = offline_result().problems[0];
    Config config;
    config.problems = {{"renamed", sample.problem}};
    if (!same) config.problems[0].problem.length += 1;
    config.classes = {sample.classes[0].accuracy};
    return config;
  }
  std::size_t variants() const {
    return read_result(folder_.path() / "result.json").problems.at(0).classes.at(0).variants.size();
  }
  void find_something() { store_.put({"p", "fp32", "variant", "v"}, {}); }

  TemporaryFolder folder_;
  Store store_{folder_.path() / "store.sqlite"};
};

TEST_F(TheResultFile, IsWrittenBetweenPairsWhereSomethingIsNew) {
  ResultFile file(folder_.path(), store_, asking());
  file.keep(with_variants(1));
  EXPECT_FALSE(fs::exists(file.result()));
  find_something();
  file.keep(with_variants(1));
  EXPECT_EQ(variants(), 1u);
  file.keep(with_variants(2));
  EXPECT_EQ(variants(), 1u) << "the store has nothing new";
  find_something();
  file.keep(with_variants(2));
  EXPECT_EQ(variants(), 2u);
  EXPECT_TRUE(fs::exists(file.best()));
}

TEST_F(TheResultFile, IsReplacedByNoLessUntilTheEnd) {
  write_result(with_variants(2), folder_.path());
  ResultFile file(folder_.path(), store_, asking());
  find_something();
  file.keep(with_variants(1));
  EXPECT_EQ(variants(), 2u);
  EXPECT_FALSE(file.keep_last(with_variants(1), false));
  EXPECT_EQ(variants(), 2u);
  file.keep(with_variants(3));
  EXPECT_EQ(variants(), 3u);
  EXPECT_TRUE(file.keep_last(with_variants(1), true)) << "the run has come to its end: the config asks for no more";
  EXPECT_EQ(variants(), 1u);
}

TEST_F(TheResultFile, OfOtherProblemsIsReplacedAsSoonAsThereIsSomething) {
  write_result(with_variants(2), folder_.path());
  ResultFile file(folder_.path(), store_, asking(false));
  EXPECT_FALSE(file.keep_last(with_variants(0), false));
  EXPECT_EQ(variants(), 2u);
  find_something();
  EXPECT_TRUE(file.keep_last(with_variants(1), false));
  EXPECT_EQ(variants(), 1u);
}

TEST_F(TheResultFile, IsReplacedByNoMoreThatLacksOneOfItsPairs) {
  RunResult two = with_variants(1);
  two.problems.push_back(two.problems[0]);
  two.problems[1].name = "second";
  two.problems[1].problem.length += 1;
  write_result(two, folder_.path());
  Config config = asking();
  config.problems.push_back({"second", two.problems[1].problem});
  ResultFile file(folder_.path(), store_, config);
  find_something();
  file.keep(with_variants(3));
  EXPECT_FALSE(file.keep_last(with_variants(3), false));
  EXPECT_EQ(variants(), 1u);
  two.problems[0] = with_variants(3).problems[0];
  EXPECT_TRUE(file.keep_last(two, false));
  EXPECT_EQ(variants(), 3u);
}

TEST_F(TheResultFile, ThatIsNoneIsNoLoss) {
  folder_.write("result.json", "not a result");
  ResultFile file(folder_.path(), store_, asking());
  EXPECT_TRUE(file.keep_last(with_variants(0), false));
  EXPECT_EQ(variants(), 0u);
}

TEST_F(TheResultFile, ThatCannotBeReplacedIsSaidToBeAtTheStart) {
  fs::create_directory(folder_.path() / "best.json");
  EXPECT_THROW(ResultFile(folder_.path(), store_, asking()), EnvironmentError);
  EXPECT_THROW(require_replaceable(folder_.path() / "no/folder"), EnvironmentError);
  EXPECT_NO_THROW(require_replaceable("/dev/null"));
}

}  // namespace
}  // namespace tuner
