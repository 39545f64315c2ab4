// Text of a unit as the host compiler needs it. Lines are kept, so that reports point into the file as its author knows
// it.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/device/host_device.h"

namespace tuner {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string trim(std::string_view text) {
  const std::string_view blank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blank) - first + 1));
}

/// Position after the comment, literal or preprocessor line that starts at `at`; `at` itself if none does.
std::size_t skip_opaque(std::string_view text, std::size_t at, bool line_start) {
  if (text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  if (text[at] == '#' && line_start) {
    std::size_t end = at;
    do end = std::min(text.find('\n', end + 1), text.size());
    while (end < text.size() && text[end - 1] == '\\');
    return end;
  }
  // A digit separator is no literal.
  if (text[at] == '"' || (text[at] == '\'' && (at == 0 || !in_word(text[at - 1])))) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  return at;
}

/// The declaration from `at` to its ';' without comments; `at` moves past the ';'. Empty if there is none.
std::string take_declaration(std::string_view text, std::size_t& at) {
  std::string declaration;
  for (std::size_t i = at; i < text.size();) {
    const std::size_t next = skip_opaque(text, i, false);
    if (next != i) {
      i = next;
      continue;
    }
    if (text[i] == ';') {
      at = i + 1;
      return declaration;
    }
    declaration += text[i++];
  }
  return {};
}

/// Removes alignment attributes: shared arrays of Host execution are aligned beyond any of them.
std::string without_alignment(std::string text) {
  for (const std::string_view word : {"__align__", "alignas", "__attribute__"}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      std::size_t end = text.find('(', at);
      if (end == std::string::npos) return text;
      int depth = 0;
      do depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      while (++end < text.size() && depth > 0);
      text.erase(at, end - at);
    }
  }
  return text;
}

struct Declarator {
  std::string name;
  std::string extents;  // "[32][33]", empty for a scalar
};

/// Splits "Type name[3], other" into type and declarators. False if it is more than that.
bool parse(const std::string& declaration, std::string& type, std::vector<Declarator>& declarators) {
  if (declaration.find_first_of("{}=*&") != std::string::npos) return false;
  std::vector<std::string> parts(1);
  int depth = 0;
  bool in_extents = false;  // where '<' compares instead of opening template arguments
  for (const char c : declaration) {
    if (c == '[') in_extents = true;
    if (c == '(' || c == '[' || (c == '<' && !in_extents)) ++depth;
    if (c == ')' || c == ']' || (c == '>' && !in_extents)) --depth;
    if (c == ']' && depth == 0) in_extents = false;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t depth_angle = 0;
    std::size_t bracket = std::string::npos;
    for (std::size_t k = 0; k < parts[i].size() && bracket == std::string::npos; ++k) {
      if (parts[i][k] == '<') ++depth_angle;
      if (parts[i][k] == '>') --depth_angle;
      if (parts[i][k] == '[' && depth_angle == 0) bracket = k;
    }
    const std::string head = trim(std::string_view(parts[i]).substr(0, bracket));
    std::size_t name_at = head.size();
    while (name_at > 0 && in_word(head[name_at - 1])) --name_at;
    if (i == 0) type = trim(std::string_view(head).substr(0, name_at));
    if (name_at == head.size() || (i == 0) == trim(head.substr(0, name_at)).empty()) return false;
    declarators.push_back({head.substr(name_at), bracket == std::string::npos
                                                     ? std::string()
                                                     : trim(std::string_view(parts[i]).substr(bracket))});
  }
  return true;
}

/// The host form of a __shared__ declaration, on one line; empty if it has to stay as it is.
std::string host_form(const std::string& declaration, bool is_extern) {
  std::string type;
  std::vector<Declarator> declarators;
  if (!parse(without_alignment(declaration), type, declarators)) return {};
  std::string text;
  for (const auto& [name, extents] : declarators) {
    if (is_extern) {
      const std::size_t first = extents.find(']');
      if (first == std::string::npos) return {};
      const std::string row = trim(std::string_view(extents).substr(first + 1));
      text += type + " (*const " + name + ")" + row + " = reinterpret_cast<" + type + " (*)" + row +
              ">(::ct1d_host::worker()->dynamic_shared); ";
    } else {
      const std::string alias = "ct1d_shared_" + name;
      text += "typedef " + type + " " + alias + extents + "; auto& " + name + " = ::ct1d_host::static_shared<" + alias +
              ">([] { static char key; return static_cast<const void*>(&key); }()); ";
    }
  }
  return text;
}

}  // namespace

std::string host_form_of_source(std::string_view content) {
  std::string out;
  std::size_t extern_at = std::string::npos;  // in `out`: an `extern` that only blanks have followed
  bool line_start = true;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t opaque = skip_opaque(content, at, line_start);
    if (opaque != at) {
      out += content.substr(at, opaque - at);
      at = opaque;
      continue;
    }
    std::size_t end = at;
    while (end < content.size() && in_word(content[end])) ++end;
    const std::string_view word = content.substr(at, std::max(end - at, std::size_t{1}));
    const bool blank = std::isspace(static_cast<unsigned char>(content[at])) != 0;
    line_start = content[at] == '\n' || (line_start && blank);
    if (word == "__shared__") {
      std::size_t after = end;
      const bool is_extern = extern_at != std::string::npos;
      const std::string replaced = host_form(take_declaration(content, after), is_extern);
      if (!replaced.empty()) {
        const auto lines = std::count(content.begin() + static_cast<std::ptrdiff_t>(at),
                                      content.begin() + static_cast<std::ptrdiff_t>(after), '\n');
        if (is_extern) out.replace(extern_at, 6, "");
        out += replaced + std::string(static_cast<std::size_t>(lines), '\n');
        at = after;
        extern_at = std::string::npos;
        continue;
      }
    }
    if (word == "extern") {
      extern_at = out.size();
    } else if (!blank) {
      extern_at = std::string::npos;
    }
    out += word;
    at += word.size();
  }
  return out;
}

std::string host_translation_unit(const CompileUnit& unit) {
  std::string text = "#include \"kernels/common/host_runtime.h\"\n#line 1 \"unit\"\n";
  text += host_form_of_source(unit.source);
  text += "\nstatic const ct1d_host::Entry ct1d_host_entries[] = {\n";
  for (const std::string& kernel : unit.kernels)
    text += "    ct1d_host::Call<&" + kernel + ">::entry(\"" + kernel + "\"),\n";
  text += "};\nextern \"C\" __attribute__((visibility(\"default\"))) const ct1d_host::Unit ct1d_host_unit;\n";
  text += "const ct1d_host::Unit ct1d_host_unit = {ct1d_host::kAbiVersion, " + std::to_string(unit.kernels.size()) +
          ", ct1d_host_entries};\n";
  return text;
}

}  // namespace tuner
