#include "tuner/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "tuner/core/failure.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

std::string error_text(int error) { return std::generic_category().message(error); }

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw EnvironmentError(fmt::format("cannot write {}: {}", path.string(), error_text(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Errors of the network file systems surface here.
  int close() {
    const int status = ::close(fd_);
    fd_ = -1;
    return status;
  }

 private:
  int fd_;
};

/// A file that is removed at the end of its scope unless it was renamed away.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) {
    static std::atomic<unsigned> serial{0};
    path_ = target;
    path_ += fmt::format(".{}.{}.tmp", ::getpid(), serial++);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() { ::unlink(path_.c_str()); }
  const char* c_str() const { return path_.c_str(); }

 private:
  fs::path path_;
};

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) cannot_write(path, errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_durably(const Temporary& temporary, std::string_view content, const fs::path& path) {
  // O_EXCL: a name left over by a killed process of the same id is not written into.
  ::unlink(temporary.c_str());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) cannot_write(path, errno);
  write_all(file.get(), content, path);
  if (::fsync(file.get()) != 0) cannot_write(path, errno);
  if (file.close() != 0) cannot_write(path, errno);
}

/// Makes the rename itself durable; not all file systems allow it, and the content is safe without.
void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0) ::fsync(descriptor.get());
}

void create_folder_of(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) throw EnvironmentError(fmt::format("cannot write {}: {}", path.string(), error.message()));
}

bool usable_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

/// A folder under /tmp that nobody else could have prepared: a real folder, ours, closed to others.
bool usable_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

}  // namespace

std::string read_file(const fs::path& path, std::size_t limit) {
  const auto fail = [&](const std::string& why) -> void {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), why));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(error_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(error_text(errno));
  const auto too_large = [&] { fail(fmt::format("larger than the limit of {} bytes", limit)); };
  if (S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) > limit) too_large();
  std::string content;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(error_text(errno));
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > limit) too_large();
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) cannot_write(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // /dev/stdout, a pipe: nothing to rename
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) cannot_write(path, errno);
    return write_all(file.get(), content, path);
  }
  const fs::path target =
      fs::is_symlink(fs::symlink_status(path, error)) && fs::exists(status) ? fs::canonical(path) : path;
  create_folder_of(target);
  const Temporary temporary(target);
  write_durably(temporary, content, path);
  if (::rename(temporary.c_str(), target.c_str()) != 0) cannot_write(path, errno);
  sync_folder_of(target);
}

bool publish_file(const fs::path& path, std::string_view content) {
  create_folder_of(path);
  const Temporary temporary(path);
  write_durably(temporary, content, path);
  if (::link(temporary.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) return false;
    // Some file systems have no hard links.
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) return false;
      cannot_write(path, errno);
    }
  }
  sync_folder_of(path);
  return true;
}

fs::path choose_cache_folder(std::string_view xdg_cache_home, std::string_view home) {
  const fs::path xdg(xdg_cache_home);  // relative values are to be ignored, says the XDG specification
  if (xdg.is_absolute() && usable_folder(xdg / "tuner")) return xdg / "tuner";
  const fs::path own(home);
  if (own.is_absolute() && usable_folder(own / ".cache" / "tuner")) return own / ".cache" / "tuner";
  const fs::path shared = fs::path("/tmp") / fmt::format("tuner-{}", ::geteuid());
  if (usable_private_folder(shared)) return shared;
  throw EnvironmentError(
      fmt::format("no folder for the cache can be written: tried $XDG_CACHE_HOME ('{}'), "
                  "$HOME/.cache ('{}') and {}; set XDG_CACHE_HOME",
                  xdg_cache_home, home, shared.string()));
}

}  // namespace tuner
