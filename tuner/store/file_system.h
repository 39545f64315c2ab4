// Which journal a database may use where its folder lies.
#pragma once

#include <filesystem>
#include <string_view>

namespace tuner {

/// "WAL" on file systems of this machine, "DELETE" (a rollback journal) on network and unknown user-space ones, by
/// statfs's f_type: https://www.sqlite.org/wal.html demands shared memory of one host, and locks and fsync that some
/// network file systems only pretend.
std::string_view journal_mode_for(long file_system_magic);
/// Of the file system that holds `folder`; the cautious one where it cannot be told.
std::string_view journal_mode_in(const std::filesystem::path& folder);

}  // namespace tuner
