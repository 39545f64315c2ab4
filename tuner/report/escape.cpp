#include "tuner/report/escape.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>

namespace tuner {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8 here
};

CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (bytes == 0 || first >= 0xf5 || at + bytes > text.size()) return {};
  std::uint32_t value = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(at + i) & 0x3fu);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, bytes};
}

bool reorders_text(std::uint32_t c) {
  return c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}
bool is_control(std::uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029; }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode(text, at);
    if (c.bytes == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    else if (c.value == '\n' || c.value == '\r' || c.value == '\t')
      out += ' ';
    else if (is_control(c.value) && c.value < 0x100)
      out += fmt::format("\\x{:02x}", c.value);
    else if (is_control(c.value) || reorders_text(c.value) || (c.value & 0xfffe) == 0xfffe)
      out += fmt::format("\\u{{{:x}}}", c.value);
    else
      out += text.substr(at, c.bytes);
    at += c.bytes == 0 ? 1 : c.bytes;
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  const std::string line = printable(text);
  const auto word = [&](std::size_t i) {
    return i < line.size() && (std::isalnum(static_cast<unsigned char>(line[i])) || (line[i] & 0x80) != 0);
  };
  std::string out = "<code>";
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool plain = word(i) || c == ' ' || c == '=' || c == ',' || c == '-' || c == '(' || c == ')' ||
                       (c == '_' && i > 0 && word(i - 1) && word(i + 1)) ||  // inside a word it marks nothing
                       (c == '.' && (i == 0 || line[i - 1] != 'w'));         // "www." would become a link
    out += plain ? std::string(1, c) : fmt::format("&#{};", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return out + "</code>";
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

}  // namespace tuner
