// Typed reads from parsed JSON that name file and JSON path in every refusal. Used by the readers of core.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/json.h"

namespace tuner {

/// `text` with control characters escaped and cut to `limit` bytes at a character's boundary, "..." appended.
std::string one_line(std::string_view text, std::size_t limit);
/// ".name", or "[\"odd name\"]".
std::string member_path(std::string_view name);

/// A JSON value, the file it is from and its path in it. The root Json must outlive it.
class Node {
 public:
  Node(const Json& json, std::string file, std::string path = "$")
      : json_(&json), file_(std::move(file)), path_(std::move(path)) {}

  const Json& json() const { return *json_; }
  const std::string& path() const { return path_; }

  /// UsageError "FILE: PATH: VALUE is not allowed here: ALLOWED".
  [[noreturn]] void refuse(const std::string& allowed) const;
  /// UsageError "FILE: PATH: WORDS" without the value.
  [[noreturn]] void fail(const std::string& words) const;

  /// An object with no keys but these; the first other one is named with the nearest allowed.
  void expect_keys(std::initializer_list<std::string_view> allowed) const;
  void expect_object() const;
  bool has(std::string_view key) const;
  /// The member, refused if it is missing.
  Node at(std::string_view key) const;
  std::optional<Node> find(std::string_view key) const;
  /// Elements of an array of `least` to `most` elements.
  std::vector<Node> elements(std::size_t least = 0, std::size_t most = std::numeric_limits<std::size_t>::max()) const;
  /// Members of an object in file order.
  std::vector<std::pair<std::string, Node>> members() const;

  bool boolean() const;
  /// A whole number; 64.0 and 1e3 are whole, as JSON Schema has it.
  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number(double least = std::numeric_limits<double>::lowest(),
                double most = std::numeric_limits<double>::max()) const;
  /// A number above 0 and at most `most`.
  double positive(double most = std::numeric_limits<double>::max()) const;
  std::string string() const;
  /// One of these names.
  std::string one_of(const std::vector<std::string>& names) const;

 private:
  const Json* json_;
  std::string file_;
  std::string path_;
};

/// "'fp32', 'tf32' or 'fp16'".
std::string alternatives(const std::vector<std::string>& names);

}  // namespace tuner
