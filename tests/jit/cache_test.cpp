#include "tuner/jit/cache.h"

#include <signal.h>

#include <atomic>
#include <random>
#include <thread>

#include "jit_fixture.h"
#include "tuner/core/hash.h"

namespace tuner {
namespace {

using testing::TemporaryFolder;

CompiledUnit facts_numbered(int number) {
  CompiledUnit unit;
  unit.symbols = {{"kernel<1>", "_Z6kernelILi1EEvv"}};
  unit.registers = number;
  unit.spill_bytes = number + 1;
  unit.static_shared_bytes = number + 2;
  unit.barriers = number + 3;
  unit.compile_ms = 12;
  unit.log = "ptxas info \xff (C7512) \"quoted\"\n";
  return unit;
}

std::string artefact_numbered(int number) { return std::string(2000, static_cast<char>('a' + number)) + '\0' + "end"; }

std::string key_numbered(int number) { return sha256("key " + std::to_string(number)); }

class ArtifactCacheTest : public ::testing::Test {
 protected:
  std::filesystem::path manifest(const std::string& key) const { return folder_.path() / "keys" / (key + ".json"); }
  ArtifactCache cache() const { return ArtifactCache(folder_.path(), ".cubin"); }

  TemporaryFolder folder_;
  const std::string key_ = key_numbered(0);
};

TEST_F(ArtifactCacheTest, GivesBackWhatWasPublished) {
  EXPECT_FALSE(cache().find(key_));
  const CompiledUnit published = cache().publish(key_, artefact_numbered(0), facts_numbered(7));
  EXPECT_FALSE(published.from_cache);
  const auto found = cache().find(key_);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->from_cache);
  EXPECT_EQ(found->compile_ms, 0);
  EXPECT_EQ(found->sha256, sha256(artefact_numbered(0)));
  EXPECT_EQ(found->file, published.file);
  EXPECT_EQ(read_file(found->file), artefact_numbered(0));
  EXPECT_EQ(found->symbols, published.symbols);
  EXPECT_EQ(found->registers, 7);
  EXPECT_EQ(found->spill_bytes, 8);
  EXPECT_EQ(found->static_shared_bytes, 9);
  EXPECT_EQ(found->barriers, 10);
  EXPECT_NE(found->log.find("(C7512) \"quoted\""), std::string::npos);
}

TEST_F(ArtifactCacheTest, KeepsTheFirstOfTwoResultsForOneKey) {
  cache().publish(key_, artefact_numbered(0), facts_numbered(1));
  const CompiledUnit second = cache().publish(key_, artefact_numbered(1), facts_numbered(2));
  EXPECT_EQ(second.registers, 1);
  EXPECT_EQ(second.sha256, sha256(artefact_numbered(0)));
}

// H38
TEST_F(ArtifactCacheTest, TreatsAManifestCutAtAnyByteAsAMissAndRepairsIt) {
  cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  const std::string whole = read_file(manifest(key_));
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {  // the last byte is the final newline
    testing::write_text(manifest(key_), whole.substr(0, length));
    ASSERT_FALSE(cache().find(key_)) << "cut to " << length << " bytes";
    if (length % 50 == 0) {
      cache().publish(key_, artefact_numbered(0), facts_numbered(3));
      ASSERT_TRUE(cache().find(key_)) << "after repair of one cut to " << length << " bytes";
    }
  }
}

// H38, the other file of an entry: the artefact itself.
TEST_F(ArtifactCacheTest, TreatsAnArtefactCutAtAnyByteAsAMissAndSaysOnceThatItWasReplaced) {
  const CompiledUnit published = cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  const std::string whole = artefact_numbered(0), note = "the cache held a damaged entry for this unit";
  EXPECT_EQ(published.log.find(note), std::string::npos);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    testing::write_text(published.file, whole.substr(0, length));
    ASSERT_FALSE(cache().find(key_)) << "cut to " << length << " bytes";
    if (length % 100 != 0) continue;
    EXPECT_EQ(cache().publish(key_, whole, facts_numbered(3)).log.find(note), 0u);
    const auto found = cache().find(key_);
    ASSERT_TRUE(found) << "after repair of one cut to " << length << " bytes";
    EXPECT_EQ(found->log.find(note), std::string::npos);
    EXPECT_EQ(read_file(found->file), whole);
  }
  testing::write_text(manifest(key_), "damaged");
  EXPECT_EQ(cache().publish(key_, whole, facts_numbered(3)).log.find(note), 0u);
  EXPECT_EQ(cache().publish(key_, whole, facts_numbered(3)).log.find(note), std::string::npos);
  EXPECT_EQ(cache().find(key_)->log.find(note), std::string::npos);
}

// H38
TEST_F(ArtifactCacheTest, NeverBelievesAManifestWithADamagedByte) {
  const CompiledUnit published = cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  const std::string whole = read_file(manifest(key_));
  std::mt19937 random(1);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(random());
    testing::write_text(manifest(key_), damaged);
    const auto found = cache().find(key_);
    if (!found) continue;
    // White space between tokens may change without changing what is said.
    EXPECT_EQ(found->registers, 3) << "byte " << at;
    EXPECT_EQ(found->symbols, published.symbols) << "byte " << at;
    EXPECT_EQ(found->sha256, published.sha256) << "byte " << at;
  }
  std::string noise(whole.size(), '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  testing::write_text(manifest(key_), noise);
  EXPECT_FALSE(cache().find(key_));
  cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  EXPECT_TRUE(cache().find(key_));
}

TEST_F(ArtifactCacheTest, RefusesAManifestUnderAnotherKeysName) {
  cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  std::filesystem::copy_file(manifest(key_), manifest(key_numbered(1)));
  EXPECT_FALSE(cache().find(key_numbered(1)));
}

TEST_F(ArtifactCacheTest, RepairsALostOrDamagedArtefact) {
  const CompiledUnit unit = cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  testing::write_text(unit.file, "short");
  EXPECT_FALSE(cache().find(key_));
  cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  EXPECT_TRUE(cache().find(key_));
  std::filesystem::remove(unit.file);
  EXPECT_FALSE(cache().find(key_));
  // The recompile came out differently: the manifest that points to nothing gives way.
  const CompiledUnit other = cache().publish(key_, artefact_numbered(1), facts_numbered(4));
  EXPECT_EQ(other.registers, 4);
  const auto found = cache().find(key_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sha256, sha256(artefact_numbered(1)));
}

// H21
TEST_F(ArtifactCacheTest, ReadersSeeMatchingPairsWhileTwoWritersRace) {
  constexpr int kKeys = 40;
  const auto writer = [&](int number) {
    for (int key = 0; key < kKeys; ++key)
      cache().publish(key_numbered(key), artefact_numbered(number), facts_numbered(number));
    return 0;
  };
  std::vector<pid_t> writers;
  for (int number : {0, 1}) writers.push_back(testing::start_process([&] { return writer(number); }));
  int seen = 0;
  for (int round = 0; round < 2000 || seen == 0; ++round) {
    const auto found = cache().find(key_numbered(round % kKeys));
    if (!found) continue;
    ++seen;
    ASSERT_EQ(found->sha256, sha256(artefact_numbered(found->registers)));
    ASSERT_EQ(read_file(found->file), artefact_numbered(found->registers));
  }
  for (const pid_t process : writers) EXPECT_EQ(testing::end_of(process), 0);
  EXPECT_GT(seen, 0);
}

// H22
TEST_F(ArtifactCacheTest, SixteenProcessesShareAColdCache) {
  constexpr int kRounds = 50, kKeys = 8;
  for (int round = 0; round < kRounds; ++round) {
    const std::filesystem::path cold = folder_.path() / std::to_string(round);
    const auto ends = testing::run_processes(16, [&](int process) {
      const ArtifactCache shared(cold, ".cubin");
      for (int i = 0; i < kKeys; ++i) {
        const int key = (i + process) % kKeys;
        if (!shared.find(key_numbered(key)))
          // Each process made something else: all must come to agree on one.
          shared.publish(key_numbered(key), artefact_numbered(process), facts_numbered(process));
      }
      return 0;
    });
    ASSERT_EQ(ends, std::vector<int>(16, 0)) << "round " << round;
    const ArtifactCache shared(cold, ".cubin");
    for (int key = 0; key < kKeys; ++key) {
      const auto found = shared.find(key_numbered(key));
      ASSERT_TRUE(found) << "round " << round << ", key " << key;
      EXPECT_EQ(read_file(found->file), artefact_numbered(found->registers));
    }
  }
}

TEST_F(ArtifactCacheTest, ConcurrentRepairsAgreeOnOneResult) {
  for (int round = 0; round < 10; ++round) {
    testing::write_text(manifest(key_), "{damaged");
    std::filesystem::create_directories(folder_.path() / "seen");
    const auto ends = testing::run_processes(8, [&](int process) {
      const CompiledUnit unit = cache().publish(key_, artefact_numbered(process), facts_numbered(process));
      testing::write_text(folder_.path() / "seen" / std::to_string(process), std::to_string(unit.registers));
      return 0;
    });
    ASSERT_EQ(ends, std::vector<int>(8, 0));
    const auto found = cache().find(key_);
    ASSERT_TRUE(found);
    for (int process = 0; process < 8; ++process)
      EXPECT_EQ(read_file(folder_.path() / "seen" / std::to_string(process)), std::to_string(found->registers));
  }
}

// H23
TEST_F(ArtifactCacheTest, AProcessKilledWhilePublishingLeavesNothingHalfDone) {
  ArtifactCache(folder_.path(), ".cubin");
  for (int round = 0; round < 40; ++round) {
    const pid_t writer = testing::start_process([&] {
      for (int key = 0;; ++key)
        cache().publish(key_numbered(1000 * round + key), artefact_numbered(key % 20), facts_numbered(key % 20));
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 731 * round));
    ::kill(writer, SIGKILL);
    ASSERT_EQ(testing::end_of(writer), -SIGKILL);
  }
  int manifests = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "keys")) {
    if (entry.path().extension() != ".json") continue;
    ++manifests;
    ASSERT_TRUE(cache().find(entry.path().stem().string())) << entry.path();
  }
  EXPECT_GT(manifests, 0);
  // Leftovers of the killed do not stand in anyone's way.
  cache().publish(key_, artefact_numbered(0), facts_numbered(3));
  EXPECT_TRUE(cache().find(key_));
}

// H23: the same key by all of them, and one that does not live to publish it.
TEST_F(ArtifactCacheTest, OneOfEightIsKilledWhilePublishingTheSameKey) {
  std::string large(std::size_t{1} << 22, 'x');  // so that the kill falls among writes
  for (int round = 0; round < 20; ++round) {
    const std::string key = key_numbered(round);
    large.back() = static_cast<char>('a' + round);
    std::vector<pid_t> processes;
    for (int process = 0; process < 8; ++process)
      processes.push_back(testing::start_process([&] {
        cache().publish(key, large, facts_numbered(process));
        return 0;
      }));
    std::this_thread::sleep_for(std::chrono::microseconds(500 * round));
    ::kill(processes.front(), SIGKILL);
    testing::end_of(processes.front());
    for (int process = 1; process < 8; ++process)
      ASSERT_EQ(testing::end_of(processes[static_cast<std::size_t>(process)]), 0);
    const auto found = cache().find(key);
    ASSERT_TRUE(found);
    EXPECT_EQ(read_file(found->file), large);
  }
}

/// Everything that a cache gives while its folder is unfit; nothing is left of what it wrote elsewhere.
void expect_that_it_goes_on(const std::filesystem::path& folder, const std::string& named) {
  std::filesystem::path elsewhere;
  {
    const ArtifactCache cache(folder, ".cubin");
    for (const std::string key : {"a", "b"}) {
      const CompiledUnit unit = cache.publish(key, "artefact of " + key, facts_numbered(7));
      EXPECT_EQ(read_file(unit.file), "artefact of " + key);
      const auto found = cache.find(key);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->sha256, unit.sha256);
      EXPECT_EQ(read_file(found->file), "artefact of " + key);
      elsewhere = unit.file;
    }
    ASSERT_EQ(cache.warnings().size(), 1u) << "said once";
    EXPECT_NE(cache.warnings()[0].find(named), std::string::npos) << cache.warnings()[0];
    EXPECT_EQ(cache.warnings()[0].find('\n'), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST(ArtifactCache, GoesOnWhereItsFolderCannotBeCreated) {
  const TemporaryFolder folder;
  testing::write_text(folder.path() / "file", "");
  expect_that_it_goes_on(folder.path() / "file" / "cache", "file/cache");
}

TEST(ArtifactCache, GoesOnWherePartOfItCannotBeWritten) {
  for (const std::string part : {"objects", "keys"}) {
    const TemporaryFolder folder;
    testing::write_text(folder.path() / part, "");
    expect_that_it_goes_on(folder.path(), part);
  }
}

TEST(ArtifactCache, GoesOnWhereAnEntryCannotBeReplaced) {
  const TemporaryFolder folder;
  const ArtifactCache cache(folder.path(), ".cubin");
  const CompiledUnit unit = cache.publish("key", "artefact", facts_numbered(7));
  EXPECT_TRUE(cache.warnings().empty());
  std::filesystem::remove(unit.file);
  std::filesystem::create_directory(unit.file);
  EXPECT_FALSE(cache.find("key"));
  const CompiledUnit again = cache.publish("key", "artefact", facts_numbered(7));
  EXPECT_NE(again.file, unit.file);
  EXPECT_EQ(again.sha256, unit.sha256);
  EXPECT_EQ(read_file(again.file), "artefact");
  ASSERT_EQ(cache.warnings().size(), 1u);
  EXPECT_NE(cache.warnings()[0].find(unit.file.string()), std::string::npos) << cache.warnings()[0];
}

}  // namespace
}  // namespace tuner
