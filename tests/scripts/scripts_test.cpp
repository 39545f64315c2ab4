// Runs the checks of tests/scripts/checks.sh, one test each.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

class Scripts : public testing::TestWithParam<const char*> {};

TEST_P(Scripts, Keep) {
  const std::string command =
      std::string("bash '" TUNER_SOURCE_DIR "/tests/scripts/checks.sh' ") + GetParam() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << output;
}

INSTANTIATE_TEST_SUITE_P(Checks, Scripts,
                         testing::Values("arguments_pass_through", "help_needs_no_build",
                                         "configures_once_until_something_changes", "a_failed_build_says_why_and_where",
                                         "an_old_toolkit_is_not_used",
                                         "missing_libraries_are_named_where_nothing_can_install_them",
                                         "an_old_compiler_is_refused", "a_folder_that_cannot_be_written_is_named",
                                         "the_summary_counts", "wheels_are_pinned_by_hash",
                                         "wheels_stay_in_their_folder", "plots_take_measured_results", "scripts_parse"),
                         [](const auto& check) { return std::string(check.param); });

}  // namespace
