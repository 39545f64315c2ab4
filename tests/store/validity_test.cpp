// What a record holds for, and which journal suits which file system.
#include "tuner/store/validity.h"

#include <gmock/gmock.h>

#include "tuner/store/file_system.h"

namespace tuner {
namespace {

using testing::HasSubstr;

Validity h200() {
  Validity validity;
  validity.unit = "a1";
  validity.cubin = "b2";
  validity.gpu = "NVIDIA H200";
  validity.sm_count = 132;
  validity.power_limit_w = 700;
  validity.driver_branch = "580";
  validity.settings = "burst";
  validity.seed = 1;
  return validity;
}

/// One thing that may change, the first kind of record that depends on it, and what is said.
struct Change {
  std::string words;
  Holds first;
  void (*change)(Validity&);
};

const std::vector<Change> kChanges{
    {"unit changed", Holds::compile, [](Validity& v) { v.unit = "a2"; }},
    {"NVIDIA H200, now NVIDIA A100", Holds::compile, [](Validity& v) { v.gpu = "NVIDIA A100"; }},
    {"other machine code", Holds::proof, [](Validity& v) { v.cubin = "b3"; }},
    {"seed 1, now 2", Holds::proof, [](Validity& v) { v.seed = 2; }},
    {"protocol", Holds::proof, [](Validity& v) { ++v.protocol; }},
    {"132 SMs, now 114", Holds::run, [](Validity& v) { v.sm_count = 114; }},
    {"driver branch 580, now 590", Holds::run, [](Validity& v) { v.driver_branch = "590"; }},
    {"power limit 700 W, now 500 W", Holds::time, [](Validity& v) { v.power_limit_w = 500; }},
    {"settings", Holds::time, [](Validity& v) { v.settings = "sustained"; }}};

TEST(Validity, AnotherGpuIsNamedBeforeTheUnitThatItMakesAnother) {
  Validity now = h200();
  now.unit = "a2";
  EXPECT_EQ(stale(h200(), now, Holds::time, "vendor library"), "vendor library changed");
  now.gpu = "NVIDIA A100";
  EXPECT_EQ(stale(h200(), now, Holds::time, "vendor library"), "NVIDIA H200, now NVIDIA A100");
}

TEST(Validity, EachChangeEndsTheRecordsThatDependOnItAndNoOthers) {
  for (const Holds holds : {Holds::compile, Holds::proof, Holds::run, Holds::time}) {
    EXPECT_EQ(stale(h200(), h200(), holds), std::nullopt);
    for (const Change& each : kChanges) {
      Validity now = h200();
      each.change(now);
      const auto why = stale(h200(), now, holds);
      EXPECT_EQ(why.has_value(), holds >= each.first) << each.words;
      if (why) {
        EXPECT_THAT(*why, HasSubstr(each.words));
      }
    }
  }
}

TEST(Validity, MachineCodeThatIsNotKnownYetIsNotCompared) {
  Validity now = h200();
  now.cubin.clear();
  EXPECT_EQ(stale(h200(), now, Holds::time), std::nullopt);
  EXPECT_EQ(stale(now, h200(), Holds::time), std::nullopt);
}

TEST(JournalMode, IsARollbackJournalWhereHostsMayShareTheFile) {
  for (const long network : {0x6969L, 0x517BL, 0xFF534D42L, 0xFE534D42L, 0x0BD00BD0L, 0x47504653L, 0x19830326L,
                             0x00C36400L, 0x5346414FL, 0x01021997L, 0x65735546L})
    EXPECT_EQ(journal_mode_for(network), "DELETE") << std::hex << network;
  for (const long local : {0xEF53L /* ext4 */, 0x58465342L /* XFS */, 0x9123683EL /* Btrfs */, 0x01021994L /* tmpfs */,
                           0x794C7630L /* overlay */, 0x2FC12FC1L /* ZFS */})
    EXPECT_EQ(journal_mode_for(local), "WAL") << std::hex << local;
  EXPECT_EQ(journal_mode_for(static_cast<long>(static_cast<int>(0xFF534D42))), "DELETE") << "sign-extended";
}

TEST(JournalMode, IsTheCautiousOneWhereNothingIsKnown) { EXPECT_EQ(journal_mode_in("/no/such/folder"), "DELETE"); }

}  // namespace
}  // namespace tuner
