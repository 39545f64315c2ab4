// kernels/README.md, followed to the letter: a copied and renamed folder is a family of the program.
#include <gmock/gmock.h>

#include "tests/commands/program.h"

namespace tuner {
namespace {

using testing::HasSubstr;

/// The first block of shell in kernels/README.md: copy, rename, then the build and what to run.
std::vector<std::string> readme_commands() {
  const std::string text = TemporaryFolder::content_of(fs::path(TUNER_SOURCE_DIR) / "kernels/README.md");
  const auto start = text.find("```sh\n") + 6;
  return lines_of(text.substr(start, text.find("```", start) - start));
}

Ended shell(const std::string& command, const fs::path& folder) {
  ProgramOptions options;
  options.folder = folder;
  options.program = "/bin/sh";
  return run_to_end({"-c", command}, options);
}

/// A source tree with the families `direct` and what the README's commands make of it.
class AddedFamily : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path source = TUNER_SOURCE_DIR, kernels = tree_.path() / "kernels";
    fs::create_directories(kernels);
    fs::copy(source / "kernels/common", kernels / "common", fs::copy_options::recursive);
    fs::copy(source / "kernels/direct", kernels / "direct", fs::copy_options::recursive);
    fs::copy(source / "kernels/CMakeLists.txt", kernels);
    fs::copy(data_file("added_family") / "CMakeLists.txt", tree_.path());
    for (const char* folder : {"cmake", "tuner", "baselines"})
      fs::create_directory_symlink(source / folder, tree_.path() / folder);
    const auto commands = readme_commands();
    ASSERT_EQ(commands.size(), 3u);
    for (const std::size_t step : {0, 1}) {
      const Ended ended = shell(commands[step], tree_.path());
      ASSERT_EQ(ended.code, 0) << commands[step] << ended.err;
    }
    ASSERT_THAT(commands[2], testing::AllOf(HasSubstr("list families"), HasSubstr("verify --family mine")));
    build("cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-g0 -DBUILD=" +
          fs::path(TUNER_PROGRAM).parent_path().parent_path().string());
    build("cmake --build build");
  }

  void build(const std::string& command) const {
    const Ended ended = shell(command, tree_.path());
    ASSERT_EQ(ended.code, 0) << command << "\n" << ended.out << ended.err;
  }

  Ended run(const std::string& program, const std::vector<std::string>& arguments) const {
    ProgramOptions options;
    options.program = tree_.path() / "build" / program;
    return run_to_end(arguments, options);
  }

  TemporaryFolder tree_;
};

TEST_F(AddedFamily, IsListedDescribedTestedAndProven) {
  EXPECT_THAT(run("tuner", {"list", "families"}).out, testing::ContainsRegex("direct .*\nmine "));
  EXPECT_EQ(run("tuner", {"describe", "mine"}).code, 0);
  const Ended tests = run("kernels_test", {});
  EXPECT_EQ(tests.code, 0) << tests.out;
  EXPECT_THAT(tests.out, HasSubstr("MineFamily"));
  const Ended proven = run("tuner", {"verify", "--family", "mine", "--device", "offline"});
  EXPECT_EQ(proven.code, 0) << proven.out << proven.err;
  EXPECT_THAT(proven.out, testing::ContainsRegex("mine +[1-9][0-9]* +0 +0\n"));
}

}  // namespace
}  // namespace tuner
