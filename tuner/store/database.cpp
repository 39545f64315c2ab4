#include "tuner/store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "tuner/core/failure.h"

namespace tuner {
namespace {

/// The process that holds SQLite's lock on the file; 0 if unknown (another machine's, or gone meanwhile). Only for a
/// file that this process has not open: closing any descriptor of a file gives up a process's locks on it.
pid_t lock_holder(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start =
      0x40000000;  // the pending byte, the reserved byte, and 510 bytes of shared locks (sqlite.org/fileformat)
  lock.l_len = 512;
  const bool known = ::fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(descriptor);
  return known ? lock.l_pid : 0;
}

}  // namespace

Database::Database(std::filesystem::path file) : file_(std::move(file)) {
  const int code = sqlite3_open_v2(file_.c_str(), &handle_, SQLITE_OPEN_READWRITE, nullptr);
  if (code == SQLITE_OK) {
    sqlite3_extended_result_codes(handle_, 1);
    return;
  }
  const std::string why = sqlite3_errstr(code);
  sqlite3_close_v2(handle_);
  throw EnvironmentError(fmt::format("{}: cannot be opened: {}", file_.string(), why));
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::lock() {
  run("PRAGMA locking_mode=EXCLUSIVE");
  const int code = sqlite3_exec(handle_, "BEGIN EXCLUSIVE; COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return;
  if ((code & 0xff) != SQLITE_BUSY) fail(code);
  sqlite3_close_v2(std::exchange(handle_, nullptr));
  const pid_t holder = lock_holder(file_);
  throw EnvironmentError(fmt::format("{}: in use by another tuner{}; wait for its end, or give another --out",
                                     file_.string(), holder > 0 ? fmt::format(" (process {})", holder) : ""));
}

void Database::fail(int code) const {
  const std::string what = sqlite3_errmsg(handle_), name = file_.string();
  const int system = sqlite3_system_errno(handle_);
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw UsageError(fmt::format("{}: damaged ({}); nothing was changed; move it away to begin anew", name, what));
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      throw EnvironmentError(
          fmt::format("{}: cannot be read or written: {}{}; what it holds is safe, --resume goes on with it", name,
                      what, system != 0 ? fmt::format(" ({})", std::strerror(system)) : ""));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw EnvironmentError(fmt::format("{}: in use by another process", name));
    default:
      throw std::runtime_error(fmt::format("{}: {} (SQLite {})", name, what, code));
  }
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::string Database::text_of(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.text(0) : std::string();
}

std::int64_t Database::number_of(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void Database::checkpoint_when_closing(bool yes) {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, yes ? 0 : 1, nullptr);
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  const int code = sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &handle_, nullptr);
  if (code != SQLITE_OK) database.fail(code);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(handle_, ++bound_, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind(std::int64_t number) {
  sqlite3_bind_int64(handle_, ++bound_, number);
  return *this;
}
Statement& Statement::bind(double number) {
  sqlite3_bind_double(handle_, ++bound_, number);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  reset();
  database_.fail(code);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))) : std::string();
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }

void Statement::reset() {
  sqlite3_reset(handle_);
  bound_ = 0;
}

Transaction::Transaction(Database& database) : database_(database) { database.run("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

std::string database_image(const std::string& sql) {
  Database memory(":memory:");
  memory.run(sql);
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(sqlite3_serialize(memory.get(), "main", &size, 0),
                                                                      sqlite3_free);
  if (!bytes) throw std::bad_alloc();
  return {bytes.get(), bytes.get() + size};
}

std::optional<std::string> text_in_image(std::string image, const std::string& sql) {
  if (image.size() < 100) return std::nullopt;
  image[18] = image[19] = 1;  // "no write-ahead log" (sqlite.org/fileformat): memory has none
  Database memory(":memory:");
  const auto size = static_cast<sqlite3_int64>(image.size());
  if (sqlite3_deserialize(memory.get(), "main", reinterpret_cast<unsigned char*>(image.data()), size, size,
                          SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return std::nullopt;
  try {
    return memory.text_of(sql);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace tuner
