#include "tuner/store/file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace tuner {
namespace {

constexpr std::string_view kLocal = "WAL", kShared = "DELETE";

/// linux/magic.h, statfs(2), and the file systems' own sources.
constexpr std::array<unsigned long, 17> kNetworkFileSystems{
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS (Spectrum Scale)
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x73757245,  // Coda
    0x7461636F,  // OCFS2: one disk, several hosts
    0x01161970,  // GFS2: the same
    0x01021997,  // 9P: also how virtual machines see their host's folders
    0xAAD7AAEA,  // PanFS
    0x65735546,  // FUSE: sshfs, gcsfuse, and local ones that cannot be told from them
    0x564C,      // NCP
};

}  // namespace

std::string_view journal_mode_for(long file_system_magic) {
  const auto magic = static_cast<unsigned long>(file_system_magic) & 0xFFFFFFFF;  // sign-extended on some systems
  const bool shared =
      std::find(kNetworkFileSystems.begin(), kNetworkFileSystems.end(), magic) != kNetworkFileSystems.end();
  return shared ? kShared : kLocal;
}

std::string_view journal_mode_in(const std::filesystem::path& folder) {
  struct statfs facts {};
  if (::statfs(folder.empty() ? "." : folder.c_str(), &facts) != 0) return kShared;
  return journal_mode_for(static_cast<long>(facts.f_type));
}

}  // namespace tuner
