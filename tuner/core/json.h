// The one place that includes nlohmann/json: strict parsing with limits, and typed reads that name the JSON path.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tuner {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 64;
  std::size_t values = 10'000'000;  // bounds the memory of a parsed file
};

/// Parses UTF-8 JSON without duplicate keys. `where` (usually a path) starts every message. Throws UsageError on one
/// line: too large, too deep, too many values, not UTF-8, malformed or truncated (line and column), a key given twice.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});
Json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

/// Two-space indented text with a final newline, arrays of plain values on one line; NaN and infinities become null.
std::string dump_json(const Json& json);

/// A value shortened for messages: at most 60 characters, control characters escaped.
std::string excerpt(const Json& json);

}  // namespace tuner
