// SQLite behind owning types; its errors as the exceptions of core/failure.h, one line each with the file's name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tuner {

/// UsageError for a damaged file, EnvironmentError for one that is locked or cannot be read or written.
class Database {
 public:
  /// An existing file. Nothing is read or written yet.
  explicit Database(std::filesystem::path file);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  /// Takes the file for this process until the end of the object, or refuses at once, naming the process that has it.
  void lock();
  /// One or more statements without results.
  void run(const std::string& sql);
  /// First column of the first row; empty if there is none.
  std::string text_of(const std::string& sql);
  std::int64_t number_of(const std::string& sql);
  /// Whether closing moves what is in the write-ahead log into the file.
  void checkpoint_when_closing(bool yes);

  [[noreturn]] void fail(int code) const;
  sqlite3* get() const { return handle_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement: bind in order, step, read, and reset at the end of the scope that uses it.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& bind(std::string_view text);
  Statement& bind(std::int64_t number);
  Statement& bind(double number);
  /// True while there is a row. An error ends the statement and throws.
  bool step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  void reset();

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

/// All or nothing: undone unless commit() returned.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

/// The bytes of a database file that `sql` makes.
std::string database_image(const std::string& sql);
/// First column of the first row of `sql` in the database that these bytes alone are, without any journal; nothing
/// where they are none.
std::optional<std::string> text_in_image(std::string image, const std::string& sql);

}  // namespace tuner
