#include "tuner/core/file.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/core/temporary_folder.h"
#include "tuner/core/failure.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(File, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n\xff", 5);
  const fs::path path = folder.path() / "deep" / "er" / "file";
  write_file_atomically(path, content);
  EXPECT_EQ(read_file(path), content);
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(entries(path.parent_path()), 1u) << "a temporary file was left";
}

TEST(File, RefusesWhatCannotBeReadByName) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("file", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_THAT([&] { read_file(path, 4); },
              ThrowsMessage<UsageError>(HasSubstr(path.string() + ": larger than the limit of 4 bytes")));
  EXPECT_THAT([&] { read_file(folder.path() / "none"); }, ThrowsMessage<UsageError>(HasSubstr("none: No such file")));
  EXPECT_THAT([&] { read_file(folder.path()); }, ThrowsMessage<UsageError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { read_file("/dev/zero", 1 << 20); }, ThrowsMessage<UsageError>(HasSubstr("limit")));
}

TEST(File, RefusesWhatCannotBeWrittenByName) {
  const TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT([&] { write_file_atomically(folder.path() / "file" / "x", "y"); },
              ThrowsMessage<EnvironmentError>(HasSubstr("file/x")));
  EXPECT_THAT([&] { write_file_atomically(folder.path(), "y"); },
              ThrowsMessage<EnvironmentError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { write_file_atomically("/proc/none/x", "y"); },
              ThrowsMessage<EnvironmentError>(HasSubstr("/proc/none/x")));
}

TEST(File, WritesThroughASymbolicLink) {
  const TemporaryFolder folder;
  folder.write("target", "old");
  fs::create_symlink("target", folder.path() / "link");
  write_file_atomically(folder.path() / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(TemporaryFolder::content_of(folder.path() / "target"), "new");
}

TEST(File, IsOldOrNewButNeverTornWhenItsWriterIsKilled) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "best.json";
  const std::string a(20000, 'a');
  const std::string b(30000, 'b');
  write_file_atomically(path, a);
  for (int round = 0; round < 25; ++round) {
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      while (true) {
        write_file_atomically(path, b);
        write_file_atomically(path, a);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300 + 700 * round));
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
    const std::string content = read_file(path);
    ASSERT_TRUE(content == a || content == b) << content.size() << " bytes";
  }
}

TEST(File, PublishingKeepsTheFirst) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "cache" / "key";
  EXPECT_TRUE(publish_file(path, "first"));
  EXPECT_FALSE(publish_file(path, "second"));
  EXPECT_EQ(read_file(path), "first");
  EXPECT_EQ(entries(path.parent_path()), 1u);
}

TEST(File, OneOfManyPublishersWins) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "key";
  std::vector<pid_t> publishers;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(publish_file(path, std::string(10000, static_cast<char>('a' + i))) ? 1 : 0);
    publishers.push_back(child);
  }
  int winners = 0;
  for (const pid_t child : publishers) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    winners += WEXITSTATUS(status);
  }
  EXPECT_EQ(winners, 1);
  const std::string content = read_file(path);
  EXPECT_EQ(content, std::string(10000, content.at(0)));
}

TEST(File, CacheFolderFollowsTheXdgSpecification) {
  const TemporaryFolder folder;
  const std::string xdg = (folder.path() / "xdg").string();
  const std::string home = (folder.path() / "home").string();
  EXPECT_EQ(choose_cache_folder(xdg, home), fs::path(xdg) / "tuner");
  EXPECT_EQ(choose_cache_folder("", home), fs::path(home) / ".cache" / "tuner");
  EXPECT_EQ(choose_cache_folder("relative", home), fs::path(home) / ".cache" / "tuner")
      << "relative values are ignored";
  EXPECT_TRUE(fs::is_directory(fs::path(home) / ".cache" / "tuner"));
}

TEST(File, CacheFolderFallsBackToOneOfTheUsersOwn) {
  const fs::path chosen = choose_cache_folder("/proc/none", "/proc/none");
  EXPECT_EQ(chosen, fs::path("/tmp") / ("tuner-" + std::to_string(::geteuid())));
  EXPECT_EQ(fs::status(chosen).permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

}  // namespace
}  // namespace tuner
