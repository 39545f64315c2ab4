// Files: whole reads with limits, atomic writes, the cache folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace tuner {

/// Whole file. Throws UsageError naming the path when it cannot be read or is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30);
/// Temporary file in the same folder, fsync, rename: a reader sees the old file or the new one. Throws
/// EnvironmentError.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// Same, but an existing file stays (link without replacing): false if it was there already.
bool publish_file(const std::filesystem::path& path, std::string_view content);
/// `xdg_cache_home`/tuner, else `home`/.cache/tuner, else a folder of this user's own under /tmp. Created, and
/// writable, or EnvironmentError. The two are the variables' values, empty where unset: only the command line reads the
/// environment.
std::filesystem::path choose_cache_folder(std::string_view xdg_cache_home, std::string_view home);

}  // namespace tuner
