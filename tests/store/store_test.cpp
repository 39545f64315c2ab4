// The store's file: one process at a time, whole or refused, and nothing that is not ours touched.
#include "tuner/store/store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/core/temporary_folder.h"
#include "tuner/core/failure.h"
#include "tuner/core/random.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

RecordKey key_of(int i) { return {"problem", "fp32", "variant", "v" + std::to_string(i)}; }

StoredRecord record_of(int i) {
  StoredRecord record;
  record.valid_for.unit = "unit" + std::to_string(i);
  record.valid_for.gpu = "NVIDIA H200";
  record.valid_for.sm_count = 132;
  record.valid_for.power_limit_w = 700.5;
  record.valid_for.driver_branch = "580";
  record.valid_for.seed = 18446744073709551615u;
  record.data = "{\"text\": \"" + std::string(500, static_cast<char>('a' + i % 26)) + "\"}";
  record.elapsed = 0.1 * i;
  return record;
}

class StoreFile : public testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "store.sqlite"; }
  std::string bytes() const { return TemporaryFolder::content_of(file()); }
  std::string sql(const std::string& statement) const { return Database(file()).text_of(statement); }
  void fill(int records) const {
    Store store(file());
    for (int i = 0; i < records; ++i) store.put(key_of(i), record_of(i));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.push_back(entry.path().filename());
    return found;
  }
  /// The message of the UsageError that opening throws; the folder must not change by it.
  std::string refusal() const {
    const std::string before = bytes();
    const std::vector<std::string> beside = names();
    std::string message;
    try {
      const Store store(file());
    } catch (const UsageError& error) {
      message = error.what();
    }
    EXPECT_EQ(bytes() == before, true) << "the file was changed";
    EXPECT_THAT(names(), testing::UnorderedElementsAreArray(beside));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_THAT(message, HasSubstr(file().string()));
    return message;
  }
  void patch(std::size_t offset, const std::string& with) const {
    std::string content = bytes();
    content.replace(offset, with.size(), with);
    folder_.write("store.sqlite", content);
  }

  TemporaryFolder folder_;
};

/// Exit code of a child that runs `body`: 99 where it throws.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(StoreFile, GivesBackWhatWasPut) {
  fill(3);
  Store store(file());
  EXPECT_EQ(store.size(), 3);
  const auto found = store.find(key_of(2));
  ASSERT_TRUE(found);
  const StoredRecord put = record_of(2);
  EXPECT_EQ(found->data, put.data);
  EXPECT_EQ(found->elapsed, put.elapsed);
  EXPECT_EQ(found->valid_for.unit, put.valid_for.unit);
  EXPECT_EQ(found->valid_for.power_limit_w, put.valid_for.power_limit_w);
  EXPECT_EQ(found->valid_for.seed, put.valid_for.seed);
  EXPECT_EQ(stale(found->valid_for, put.valid_for, Holds::time), std::nullopt);
  EXPECT_EQ(store.find(key_of(3)), std::nullopt);
  EXPECT_EQ(store.find({"problem", "tf32", "variant", "v2"}), std::nullopt);
  EXPECT_EQ(store.latest("problem", "fp32")->data, put.data);
}

TEST_F(StoreFile, HoldsOneRecordOfAKeyTheLastOne) {
  for (const bool better_last : {true, false}) {
    Store store(file());
    StoredRecord partial = record_of(1), complete = record_of(1);
    partial.data = "{\"ms\": 1.0}";
    complete.data = "{\"ms\": 0.9}";
    store.put(key_of(1), better_last ? partial : complete);
    store.put(key_of(1), better_last ? complete : partial);
    EXPECT_EQ(store.size(), 1);
    EXPECT_EQ(store.find(key_of(1))->data, better_last ? complete.data : partial.data);
  }
}

TEST_F(StoreFile, FactsKeepTheirFirstValue) {
  Store store(file());
  EXPECT_EQ(store.fact("started"), "");
  store.set_fact("started", "then");
  store.set_fact("started", "now");
  EXPECT_EQ(store.fact("started"), "then");
}

TEST_F(StoreFile, RecordsAreSetAsideWholeAndTheEarlierOnesStay) {
  {
    Store store(file());
    EXPECT_EQ(store.set_aside(), std::nullopt) << "nothing to keep";
  }
  EXPECT_EQ(names(), std::vector<std::string>{"store.sqlite"});
  for (const auto& [records, name] : {std::pair(5, "store.previous.sqlite"), std::pair(2, "store.previous-2.sqlite"),
                                      std::pair(7, "store.previous-3.sqlite")}) {
    const fs::path previous = folder_.path() / name;
    fill(records);
    Store store(file());
    store.set_fact("started", "then");
    EXPECT_EQ(store.set_aside(), previous);
    EXPECT_EQ(store.size(), 0);
    EXPECT_EQ(store.fact("started"), "");
    Store kept(previous);
    EXPECT_EQ(kept.size(), records);
    EXPECT_EQ(kept.find(key_of(1))->data, record_of(1).data);
  }
  EXPECT_EQ(Store(folder_.path() / "store.previous.sqlite").size(), 5);
  EXPECT_EQ(Store(folder_.path() / "store.previous-2.sqlite").size(), 2);
}

TEST_F(StoreFile, PutBackBesideTheLogOfAKilledProcessIsRefusedUntilTheLogIsGone) {
  for (const int puts : {0, 1, 500}) {  // 500: the log was taken into the file and begun anew meanwhile
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove(entry);
    fill(20);
    EXPECT_EQ(in_child([&] {
                Store store(file());
                store.set_aside();
                store.set_fact("started", "now");
                for (int i = 0; i < puts; ++i) store.put(key_of(100 + i), record_of(i));
                return kill(getpid(), SIGKILL);
              }),
              -SIGKILL);
    const fs::path log = file().string() + "-wal";
    ASSERT_GT(fs::file_size(log), 0u);
    fs::rename(folder_.path() / "store.previous.sqlite", file());
    const std::string log_before = TemporaryFolder::content_of(log);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(log.string() + " beside it is not its own"), HasSubstr("remove that file")));
    EXPECT_EQ(TemporaryFolder::content_of(log) == log_before, true);
    fs::remove(log);
    Store store(file());
    EXPECT_EQ(store.size(), 20) << puts;
    EXPECT_EQ(store.find(key_of(19))->data, record_of(19).data);
  }
}

TEST_F(StoreFile, OfAnEarlierVersionIsTakenWithItsLogAndThenTellsItsOwn) {
  fill(3);
  sql("DELETE FROM facts");
  EXPECT_EQ(in_child([&] {
              Store store(file());
              store.put(key_of(3), record_of(3));
              return kill(getpid(), SIGKILL);
            }),
            -SIGKILL);
  EXPECT_GT(fs::file_size(file().string() + "-wal"), 0u);
  Store store(file());
  EXPECT_EQ(store.size(), 4);
  EXPECT_EQ(store.fact("identity").size(), 32u);
}

TEST_F(StoreFile, ASecondProcessIsRefusedAtOnceAndToldByWhom) {
  const Store store(file());
  const pid_t holder = getpid();
  EXPECT_EQ(in_child([&] {
              try {
                const Store second(file());
              } catch (const EnvironmentError& error) {
                const std::string text = error.what();
                const bool named = text.find("process " + std::to_string(holder)) != std::string::npos;
                return named && text.find('\n') == std::string::npos ? 0 : 2;
              }
              return 1;
            }),
            0);
}

TEST_F(StoreFile, IsFreeAsSoonAsItsProcessIsKilledThoughAChildLivesOn) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    Store store(file());
    store.put(key_of(1), record_of(1));
    const pid_t child = fork();
    if (child == 0) {  // inherits the descriptors and closes none
      pause();
      _exit(0);
    }
    [[maybe_unused]] const auto told = write(ready[1], &child, sizeof child);
    pause();
    _exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(read(ready[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(kill(child, 0), 0) << "the child is to live on";
  Store store(file());
  EXPECT_EQ(store.find(key_of(1))->data, record_of(1).data);
  kill(child, SIGKILL);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(StoreFile, ARecordIsOnDiskWhenPutReturns) {
  EXPECT_EQ(in_child([&] {
              Store store(file());
              for (int i = 0; i < 4; ++i) store.put(key_of(i), record_of(i));
              return kill(getpid(), SIGKILL);
            }),
            -SIGKILL);
  Store store(file());
  EXPECT_EQ(store.size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(store.find(key_of(i))->data, record_of(i).data);
}

TEST_F(StoreFile, CutAnywhereIsRefusedAndLeftAsItIs) {
  fill(200);
  const std::string whole = bytes();
  Random random(1);
  std::vector<std::size_t> sizes{0, 1, 16, 50, 99, 100, 512, 4095, 4096, 8192, whole.size() - 4096, whole.size() - 1};
  for (int i = 0; i < 30; ++i) sizes.push_back(static_cast<std::size_t>(random.below(whole.size())));
  for (const std::size_t size : sizes) {
    folder_.write("store.sqlite", whole.substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr("damaged")) << size;
    EXPECT_EQ(fs::directory_iterator(folder_.path())->path(), file()) << "a file was added";
  }
  folder_.write("store.sqlite", whole);
  EXPECT_EQ(Store(file()).size(), 200);
}

TEST_F(StoreFile, OverwrittenPagesAreRefused) {
  fill(200);
  const std::string whole = bytes();
  for (std::size_t page = 1; page < 8; ++page) {
    folder_.write("store.sqlite", whole);
    patch(page * 4096, std::string(4096, '\xa5'));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("damaged ("), testing::Not(HasSubstr("***")))) << page;
  }
}

TEST_F(StoreFile, WhatIsNotAStoreIsRefused) {
  Random random(2);
  std::string noise(5000, '\0');
  for (char& c : noise) c = static_cast<char>(random.next());
  folder_.write("store.sqlite", noise);
  EXPECT_THAT(refusal(), HasSubstr("not a store of tuner"));
  folder_.write("store.sqlite", "hello");
  EXPECT_THAT(refusal(), HasSubstr("not a store of tuner"));
  folder_.write("store.sqlite", database_image("CREATE TABLE records (a); INSERT INTO records VALUES (1);"));
  EXPECT_THAT(refusal(), HasSubstr("another program"));
}

TEST_F(StoreFile, OneWithOtherTablesIsRefused) {
  for (const std::string change :
       {"DROP TABLE records", "DROP TABLE facts", "ALTER TABLE records RENAME COLUMN data TO date",
        "ALTER TABLE records RENAME TO others; CREATE VIEW records AS SELECT * FROM others",
        "CREATE TRIGGER t BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'no'); END",
        "PRAGMA writable_schema=1; UPDATE sqlite_master SET sql = 'CREATE TABLE records (' WHERE name = 'records'"}) {
    fs::remove(file());
    fill(2);
    Database(file()).run(change);
    EXPECT_THAT(refusal(), HasSubstr("damaged (")) << change;
  }
}

TEST_F(StoreFile, WhatIsNoFileIsRefusedAtOnce) {
  fs::create_directory(file());
  EXPECT_THAT(refusal(), HasSubstr("no regular file"));
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  try {
    const Store store(file());
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no regular file"));
  }
}

TEST_F(StoreFile, RecordsThatCannotBeSetAsideStay) {
  fill(3);
  folder_.write("store.previous.sqlite.tmp/in the way", "");
  Store store(file());
  EXPECT_THROW(store.set_aside(), EnvironmentError);
  EXPECT_EQ(store.size(), 3);
  EXPECT_FALSE(fs::exists(folder_.path() / "store.previous.sqlite"));
}

TEST_F(StoreFile, AnotherFormatIsRefusedWithBothNumbers) {
  fill(1);
  for (const auto& [number, word] : {std::pair('\x02', "newer"), std::pair('\x00', "older")}) {
    patch(60, std::string("\0\0\0", 3) + number);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("format " + std::to_string(number)), HasSubstr("format 1"), HasSubstr(word)));
  }
}

TEST_F(StoreFile, WithoutSpaceThePutFailsAndTheRestIsSafe) {
  // The size limit stands for the full disk.
  const int put = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    Store store(file());
    const rlimit limit{60000, 60000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 90; ++i) {
      try {
        store.put(key_of(i), record_of(i));
      } catch (const EnvironmentError& error) {
        return std::string(error.what()).find("cannot be read or written") != std::string::npos ? i : 98;
      }
    }
    return 97;
  });
  ASSERT_GT(put, 0);
  ASSERT_LT(put, 90) << "it did not fail, or otherwise";
  Store store(file());
  EXPECT_EQ(store.size(), put);
  for (int i = 0; i < put; ++i) EXPECT_EQ(store.find(key_of(i))->data, record_of(i).data);
}

TEST_F(StoreFile, AFolderThatIsReadOnlyIsAnErrorOfTheEnvironment) {
  fill(1);
  fs::permissions(folder_.path(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(file(), fs::perms::owner_read | fs::perms::others_read);
  const fs::path other = folder_.path() / "new.sqlite";
  for (const fs::path& each : {file(), other})
    EXPECT_EQ(in_child([&] {
                if (geteuid() == 0 && seteuid(65534) != 0) return 98;  // root may write anywhere
                try {
                  Store store(each);
                  store.put(key_of(2), record_of(2));
                } catch (const EnvironmentError& error) {
                  const std::string words = error.what();
                  return words.find(each.string()) != words.npos && words.find("ermission denied") != words.npos ? 0
                                                                                                                 : 97;
                }
                return 96;
              }),
              0)
        << each;
  fs::permissions(folder_.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace tuner
