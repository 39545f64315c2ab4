#include "tuner/core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/core/json_node.h"

namespace tuner {
namespace {

/// "line 3, column 7" of a byte.
std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  return fmt::format("line {}, column {}", line, before.size() - (newline == before.npos ? 0 : newline + 1) + 1);
}

/// Byte at which `text` stops being UTF-8 (RFC 3629: no overlong forms, no surrogates), nothing if it does not. A null
/// byte counts: JSON has none, and the library takes it for the end of the text.
std::optional<std::size_t> not_utf8(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = at(i);
    const std::size_t length = lead == 0     ? 0
                               : lead < 0x80 ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (length == 0 || (length > 1 && (at(i + 1) < least || at(i + 1) > most))) return i;
    for (std::size_t j = 2; j < length; ++j) {
      if (at(i + j) < 0x80 || at(i + j) > 0xBF) return i;
    }
    i += length;
  }
  return std::nullopt;
}

/// Builds the value while the text is read, and stops at the first limit passed. Nothing recurses, and a long object
/// costs no linear search for each key as ordered_json's own insertion does.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& where, std::string_view text, const JsonLimits& limits)
      : where_(where), text_(text), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (!level.keys->insert(value).second)
      throw UsageError(fmt::format("{}: {}: key {} is given twice", where_, path(), excerpt(value)));
    level.key = value;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    throw UsageError(
        fmt::format("{}: {}: not JSON: {}", where_, position(text_, byte == 0 ? 0 : byte - 1), words(error.what())));
  }

 private:
  struct Level {
    Json* container;
    std::unique_ptr<std::unordered_set<std::string>> keys;  // of an object
    std::string key;                                        // being read
  };

  /// The library's words without its prefixes "[json.exception...] " and "parse error at line 1, column 2: ".
  static std::string words(std::string_view what) {
    if (const std::size_t end = what.find("] "); what.starts_with("[json.") && end != what.npos)
      what.remove_prefix(end + 2);
    if (const std::size_t end = what.find(": "); what.starts_with("parse error") && end != what.npos)
      what.remove_prefix(end + 2);
    return one_line(what, 160);
  }

  std::string path() const {
    std::string text = "$";
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      const Level& level = levels_[i];
      text += level.keys ? member_path(level.key) : fmt::format("[{}]", level.container->size() - 1);
    }
    return text;
  }

  Json* place(Json&& value) {
    if (++count_ > limits_.values) throw UsageError(fmt::format("{}: more than {} values", where_, limits_.values));
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (!level.keys) {
      auto& array = level.container->get_ref<Json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    // Past ordered_map's own search for the key: `keys` has answered that.
    Json::object_t::Container& members = level.container->get_ref<Json::object_t&>();
    members.emplace_back(level.key, std::move(value));
    return &members.back().second;
  }

  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  bool open(Json&& container) {
    if (levels_.size() >= static_cast<std::size_t>(limits_.depth))
      throw UsageError(fmt::format("{}: nested deeper than {} levels", where_, limits_.depth));
    const bool object = container.is_object();
    Json* placed = place(std::move(container));
    levels_.push_back({placed, object ? std::make_unique<std::unordered_set<std::string>>() : nullptr, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  const std::string& where_;
  std::string_view text_;
  JsonLimits limits_;
  Json root_;
  std::vector<Level> levels_;
  std::size_t count_ = 0;
};

std::string scalar(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Arrays without containers in them stay on one line: a result holds thousands of samples.
void write_indented(const Json& json, int indent, std::string& text) {
  if (!json.is_structured() || json.empty()) {
    text += scalar(json);
    return;
  }
  const bool flat =
      json.is_array() && std::none_of(json.begin(), json.end(), [](const Json& e) { return e.is_structured(); });
  const std::string margin = flat ? "" : "\n" + std::string(static_cast<std::size_t>(indent) + 2, ' ');
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (!first) text += flat ? ", " : ",";
    first = false;
    text += margin;
    if (json.is_object()) text += scalar(Json(key)) + ": ";
    write_indented(value, indent + 2, text);
  }
  if (!flat) text += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  text += json.is_object() ? '}' : ']';
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  const std::string place = one_line(where, 4096);
  if (text.size() > limits.bytes)
    throw UsageError(fmt::format("{}: {} bytes, more than the limit of {}", place, text.size(), limits.bytes));
  if (text.empty()) throw UsageError(fmt::format("{}: line 1, column 1: not JSON: the file is empty", place));
  if (const auto byte = not_utf8(text))
    throw UsageError(fmt::format("{}: {}: not UTF-8", place, position(text, *byte)));
  Builder builder(place, text, limits);
  Json::sax_parse(text.begin(), text.end(), &builder);  // strict: throws at trailing bytes as at every other fault
  return builder.take();
}

Json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.bytes), path.string(), limits);
}

std::string dump_json(const Json& json) {
  std::string text;
  write_indented(json, 0, text);
  return text + "\n";
}

std::string excerpt(const Json& json) {
  // Only the head of a long container is written out.
  const bool container = json.is_structured() && json.size() > 30;
  if (container) return fmt::format("{} of {} values", json.is_array() ? "an array" : "an object", json.size());
  return one_line(json.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

}  // namespace tuner
