#include "tuner/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/store/file_system.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kApplication = 0x74756e72;  // "tunr"
constexpr std::uint32_t kFormat = 1;

constexpr const char* kSchema = R"(
CREATE TABLE records (
  problem TEXT NOT NULL, class TEXT NOT NULL, stage TEXT NOT NULL, subject TEXT NOT NULL,
  unit TEXT NOT NULL, cubin TEXT NOT NULL, gpu TEXT NOT NULL, sm_count INTEGER NOT NULL, power_limit_w REAL NOT NULL,
  driver_branch TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL, protocol INTEGER NOT NULL,
  elapsed REAL NOT NULL, provenance TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY (problem, class, stage, subject)
) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;)";

// A fact that every transaction writes again beside the number of puts, so that each write-ahead log tells whose it is.
constexpr const char* kIdentity = "SELECT value FROM facts WHERE name = 'identity'";
constexpr const char* kNewIdentity = "REPLACE INTO facts VALUES ('identity', lower(hex(randomblob(16))));";
constexpr const char* kCount =
    "INSERT INTO facts VALUES ('puts', '1') ON CONFLICT (name) DO UPDATE SET value = value + 1";

constexpr const char* kSelect =
    "SELECT unit, cubin, gpu, sm_count, power_limit_w, driver_branch, settings, seed, protocol, elapsed, provenance, "
    "data FROM records WHERE problem = ? AND class = ? ";

constexpr const char* kPut = R"(
REPLACE INTO records (problem, class, stage, subject, unit, cubin, gpu, sm_count, power_limit_w, driver_branch, settings,
                      seed, protocol, elapsed, provenance, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))";

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// A file that ends before its header says, where no journal could hold the rest.
bool cut_short(const fs::path& file, const std::array<char, 100>& header) {
  std::error_code error;
  if (fs::exists(file.string() + "-wal", error) || fs::exists(file.string() + "-journal", error)) return false;
  const bool counts = big_endian(&header[24]) == big_endian(&header[92]);
  const std::uint64_t page = big_endian(&header[16]) >> 16;
  return counts && fs::file_size(file, error) < (page == 1 ? 65536 : page) * big_endian(&header[28]);
}

/// Refuses what is not a store of this format by its header alone (sqlite.org/fileformat), so that a foreign database
/// is never written to, not even by SQLite's own recovery.
void require_ours(const fs::path& file) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::array<char, 100> header{};
  std::error_code error;
  if (const fs::file_status status = fs::status(file, error); fs::exists(status) && !fs::is_regular_file(status))
    throw UsageError(fmt::format("{}: no regular file; move it away, or give another --out", file.string()));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw EnvironmentError(fmt::format("{}: cannot be read", file.string()));
  stream.read(header.data(), header.size());
  const auto got = static_cast<std::size_t>(stream.gcount());
  const std::string_view start(header.data(), std::min(got, kMagic.size()));
  if (start != kMagic.substr(0, start.size()))
    throw UsageError(fmt::format("{}: not a store of tuner; move it away, or give another --out", file.string()));
  if (got < header.size() || (big_endian(&header[68]) == kApplication && cut_short(file, header)))
    throw UsageError(
        fmt::format("{}: damaged (cut short); nothing was changed; move it away to begin anew", file.string()));
  if (big_endian(&header[68]) != kApplication)
    throw UsageError(
        fmt::format("{}: a database of another program; move it away, or give another --out", file.string()));
  if (const std::uint32_t format = big_endian(&header[60]); format != kFormat)
    throw UsageError(
        fmt::format("{}: a store of format {}; this tuner reads and writes format {}: use the {} one that "
                    "wrote it, or give another --out",
                    file.string(), format, kFormat, format > kFormat ? "newer" : "older"));
}

std::optional<StoredRecord> row_of(Statement& select) {
  if (!select.step()) return std::nullopt;
  const Statement& row = select;
  return StoredRecord{{row.text(0), row.text(1), row.text(2), static_cast<int>(row.integer(3)), row.real(4),
                       row.text(5), row.text(6), static_cast<std::uint64_t>(row.integer(7)), row.integer(8)},
                      row.text(11),
                      row.real(9),
                      row.text(10)};
}

/// SQLite's own words for this name another cause.
void require_writable(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& [path, mode] : {std::pair(folder, W_OK | X_OK), std::pair(file, R_OK | W_OK)})
    if (::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) != 0)
      throw EnvironmentError(fmt::format("{}: cannot be read or written: {}: {}", file.string(), path.string(),
                                         std::generic_category().message(errno)));
}

/// The path of a store that exists now.
const fs::path& made(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error)))
    // Whole or not at all; where another process was quicker, its file stays.
    publish_file(file, database_image(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; BEGIN;{}{}COMMIT;",
                                                  kApplication, kFormat, kSchema, kNewIdentity)));
  require_ours(file);
  require_writable(file);
  return file;
}

/// Every table, index, view and trigger as it was made.
std::string schema_of(Database& database) {
  std::string text;
  Statement all(database, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name");
  while (all.step()) text += fmt::format("{} {} {}: {}\n", all.text(0), all.text(1), all.text(2), all.text(3));
  return text;
}

std::string own_schema() {
  Database memory(":memory:");
  memory.run(kSchema);
  return schema_of(memory);
}

/// An empty file that is there at the end of the scope and was not at its beginning is removed.
class NoNewEmptyFile {
 public:
  explicit NoNewEmptyFile(fs::path file) : file_(std::move(file)), was_(fs::exists(file_, error_)) {}
  NoNewEmptyFile(const NoNewEmptyFile&) = delete;
  NoNewEmptyFile& operator=(const NoNewEmptyFile&) = delete;
  ~NoNewEmptyFile() {
    if (!was_ && fs::file_size(file_, error_) == 0 && !error_) fs::remove(file_, error_);
  }

 private:
  std::error_code error_;
  fs::path file_;
  bool was_;
};

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The identity that the file has without the write-ahead log beside it; nothing where there is no log, or where it
/// cannot be told. Reads the file, which gives up this process's locks on it.
std::optional<std::string> identity_without_log(const fs::path& file) {
  std::error_code error;
  const auto log = fs::file_size(file.string() + "-wal", error);
  if (error || log == 0) return std::nullopt;
  return text_in_image(content_of(file), kIdentity);
}

/// SQLite takes any log of the right name for the file's own. A file that was put in the place of a killed process's
/// would lose its records to that one's log.
void require_own_log(Database& database, const std::optional<std::string>& identity) {
  if (!identity) return;
  const std::string name = database.file().string();
  std::optional<std::string> with_log;
  try {
    with_log = database.text_of(kIdentity);
  } catch (const UsageError&) {  // pages of two files
  }
  if (with_log != identity)
    throw UsageError(
        fmt::format("{}: {}-wal beside it is not its own but left by a process that was killed while another store had "
                    "this name; nothing was changed; remove that file to go on with this store",
                    name, name));
}

/// The first line of SQLite's findings that names one; others name the database.
std::string finding(const std::string& found) {
  std::size_t start = 0;
  while (found.compare(start, 3, "***") == 0 && found.find('\n', start) != found.npos)
    start = found.find('\n', start) + 1;
  return found.substr(start, found.find('\n', start) - start);
}

/// Refuses one that is damaged or not made as a store is. Leaves it, and what is beside it, as it was.
const fs::path& whole(const fs::path& file) {
  const auto damaged = [&](std::string_view why) {
    return UsageError(fmt::format("{}: damaged ({}); nothing was changed; move it away to begin anew", file.string(),
                                  why.substr(0, why.find('\n'))));
  };
  const NoNewEmptyFile log(file.string() + "-wal");
  const auto identity = identity_without_log(file);
  Database database(file);
  database.checkpoint_when_closing(false);
  database.lock();
  try {
    require_own_log(database, identity);
    if (const std::string found = database.text_of("PRAGMA integrity_check(1)"); found != "ok")
      throw damaged(finding(found));
    if (schema_of(database) != own_schema()) throw damaged("other tables than a store's");
  } catch (const UsageError&) {
    throw;
  } catch (const EnvironmentError&) {
    throw;
  } catch (const std::runtime_error& error) {  // a schema that SQLite itself cannot make out
    throw damaged(error.what());
  }
  return file;
}

/// Where records of the store are set aside: a name that nothing has.
fs::path unused_name(const fs::path& store) {
  const std::string stem = (store.parent_path() / store.stem()).string() + ".previous";
  std::error_code error;
  fs::path name = stem + ".sqlite";
  for (int i = 2; fs::exists(fs::symlink_status(name, error)); ++i) name = fmt::format("{}-{}.sqlite", stem, i);
  return name;
}

void sync(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced && (flags & O_DIRECTORY) == 0)  // not all file systems allow it for folders
    throw EnvironmentError(
        fmt::format("{}: cannot be written: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

Store::Store(const fs::path& file) : database_(whole(made(file))) {
  database_.lock();
  database_.run("PRAGMA synchronous=FULL");
  if (database_.text_of(kIdentity).empty()) {  // of an earlier version
    use_file_alone();
    database_.run(kNewIdentity);
  }
  use_journal();
  find_.emplace(database_, std::string(kSelect) + "AND stage = ? AND subject = ?");
  put_.emplace(database_, kPut);
  count_.emplace(database_, kCount);
}

/// Until use_journal() the file itself has all that was committed.
void Store::use_file_alone() { database_.text_of("PRAGMA journal_mode=DELETE"); }

void Store::use_journal() {
  database_.text_of(fmt::format("PRAGMA journal_mode={}", journal_mode_in(database_.file().parent_path())));
}

std::optional<fs::path> Store::set_aside() {
  if (size() == 0) return std::nullopt;
  const fs::path previous = unused_name(database_.file());
  const fs::path copy = previous.string() + ".tmp";
  std::error_code error;
  fs::remove(copy, error);
  try {
    Statement(database_, "VACUUM INTO ?").bind(copy.string()).step();
    sync(copy, O_RDONLY);
    fs::rename(copy, previous, error);
    if (error) throw EnvironmentError(fmt::format("{}: cannot be written: {}", previous.string(), error.message()));
  } catch (...) {
    fs::remove(copy, error);
    throw;
  }
  sync(previous.parent_path().empty() ? "." : previous.parent_path(), O_RDONLY | O_DIRECTORY);
  use_file_alone();  // so that no log of the new store's can lie beside a file with the old one's identity
  Transaction transaction(database_);
  database_.run(std::string("DELETE FROM records; DELETE FROM facts;") + kNewIdentity);
  transaction.commit();
  use_journal();
  return previous;
}

std::int64_t Store::size() { return database_.number_of("SELECT COUNT(*) FROM records"); }

std::optional<StoredRecord> Store::find(const RecordKey& key) {
  find_->bind(key.problem).bind(key.accuracy).bind(key.stage).bind(key.subject);
  const auto found = row_of(*find_);
  find_->reset();
  return found;
}

std::optional<StoredRecord> Store::latest(const std::string& problem, const std::string& accuracy) {
  Statement statement(database_, std::string(kSelect) + "ORDER BY elapsed DESC LIMIT 1");
  return row_of(statement.bind(problem).bind(accuracy));
}

void Store::put(const RecordKey& key, const StoredRecord& record) {
  const Validity& valid = record.valid_for;
  put_->bind(key.problem).bind(key.accuracy).bind(key.stage).bind(key.subject);
  put_->bind(valid.unit).bind(valid.cubin).bind(valid.gpu).bind(std::int64_t{valid.sm_count});
  put_->bind(valid.power_limit_w).bind(valid.driver_branch).bind(valid.settings);
  put_->bind(static_cast<std::int64_t>(valid.seed)).bind(valid.protocol);
  put_->bind(record.elapsed).bind(record.provenance).bind(record.data);
  Transaction transaction(database_);
  put_->step();
  put_->reset();
  count_->step();
  count_->reset();
  transaction.commit();
  ++puts_;
}

std::string Store::fact(const std::string& name) {
  Statement statement(database_, "SELECT value FROM facts WHERE name = ?");
  statement.bind(name);
  return statement.step() ? statement.text(0) : std::string();
}

void Store::set_fact(const std::string& name, const std::string& value) {
  Statement(database_, "INSERT OR IGNORE INTO facts VALUES (?, ?)").bind(name).bind(value).step();
}

}  // namespace tuner
