#include "tuner/core/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/core/failure.h"

namespace tuner {
namespace {

bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
  });
}

std::string range(const std::string& what, const std::string& least, const std::string& most, bool has_least,
                  bool has_most) {
  if (has_least && has_most) return fmt::format("{} from {} to {}", what, least, most);
  if (has_least) return fmt::format("{} of at least {}", what, least);
  if (has_most) return fmt::format("{} of at most {}", what, most);
  return what;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t limit) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
    if (line.size() > limit) break;
  }
  if (line.size() <= limit) return line;
  std::size_t cut = limit < 3 ? 0 : limit - 3;
  while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80) --cut;
  return line.substr(0, cut) + "...";
}

std::string member_path(std::string_view name) {
  if (plain_name(name)) return "." + std::string(name);
  return fmt::format("[{}]",
                     one_line(Json(std::string(name)).dump(-1, ' ', false, Json::error_handler_t::replace), 60));
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += fmt::format("'{}'", one_line(names[i], 60));
  }
  return text;
}

void Node::refuse(const std::string& allowed) const {
  fail(fmt::format("{} is not allowed: expected {}", excerpt(*json_), allowed));
}

void Node::fail(const std::string& words) const {
  throw UsageError(one_line(fmt::format("{}: {}: {}", file_, path_, words), 1000));
}

void Node::expect_object() const {
  if (!json_->is_object()) refuse("an object");
}

void Node::expect_keys(std::initializer_list<std::string_view> allowed) const {
  expect_object();
  for (const auto& [key, value] : json_->get_ref<const Json::object_t&>()) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    Node(value, file_, path_ + member_path(key))
        .fail(fmt::format("unknown key {} with value {}: allowed here are {}", excerpt(key), excerpt(value),
                          fmt::join(allowed, ", ")));
  }
}

bool Node::has(std::string_view key) const { return json_->is_object() && json_->contains(key); }

Node Node::at(std::string_view key) const {
  expect_object();
  const auto member = json_->find(key);
  if (member == json_->end()) fail(fmt::format("{} lacks the key '{}'", excerpt(*json_), key));
  return {*member, file_, path_ + member_path(key)};
}

std::optional<Node> Node::find(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return at(key);
}

std::vector<Node> Node::elements(std::size_t least, std::size_t most) const {
  if (!json_->is_array()) refuse("an array");
  if (json_->size() < least || json_->size() > most)
    refuse(least == most ? fmt::format("an array of {} elements", least)
                         : fmt::format("an array of at least {} element{}", least, least == 1 ? "" : "s"));
  std::vector<Node> nodes;
  nodes.reserve(json_->size());
  for (std::size_t i = 0; i < json_->size(); ++i)
    nodes.emplace_back((*json_)[i], file_, fmt::format("{}[{}]", path_, i));
  return nodes;
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  expect_object();
  std::vector<std::pair<std::string, Node>> nodes;
  for (const auto& [key, value] : json_->get_ref<const Json::object_t&>())
    nodes.emplace_back(key, Node(value, file_, path_ + member_path(key)));
  return nodes;
}

bool Node::boolean() const {
  if (!json_->is_boolean()) refuse("true or false");
  return json_->get<bool>();
}

std::int64_t Node::integer(std::int64_t least, std::int64_t most) const {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::string allowed = range("a whole number", std::to_string(least), std::to_string(most),
                                    least != Limits::min(), most != Limits::max());
  std::optional<std::int64_t> value;
  if (json_->is_number_unsigned()) {
    const auto whole = json_->get<std::uint64_t>();
    if (whole <= static_cast<std::uint64_t>(Limits::max())) value = static_cast<std::int64_t>(whole);
  } else if (json_->is_number_integer()) {
    value = json_->get<std::int64_t>();
  } else if (json_->is_number_float()) {
    const auto real = json_->get<double>();
    if (real == std::trunc(real) && real >= -0x1p63 && real < 0x1p63) value = static_cast<std::int64_t>(real);
  }
  if (!value || *value < least || *value > most) refuse(allowed);
  return *value;
}

double Node::number(double least, double most) const {
  using Limits = std::numeric_limits<double>;
  const std::string allowed = range("a number", fmt::format("{}", least), fmt::format("{}", most),
                                    least != Limits::lowest(), most != Limits::max());
  if (!json_->is_number()) refuse(allowed);
  const auto value = json_->get<double>();
  if (!(value >= least && value <= most)) refuse(allowed);
  return value;
}

double Node::positive(double most) const {
  const double value = number();
  if (!(value > 0 && value <= most))
    refuse(most == std::numeric_limits<double>::max() ? "a number above 0"
                                                      : fmt::format("a number above 0, at most {}", most));
  return value;
}

std::string Node::string() const {
  if (!json_->is_string()) refuse("a string");
  return json_->get<std::string>();
}

std::string Node::one_of(const std::vector<std::string>& names) const {
  if (!json_->is_string() || std::find(names.begin(), names.end(), json_->get<std::string>()) == names.end())
    refuse(alternatives(names));
  return json_->get<std::string>();
}

}  // namespace tuner
