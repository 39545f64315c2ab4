#include "tuner/jit/includes.h"

#include <map>
#include <optional>

#include "tuner/core/hash.h"
#include "tuner/jit/cache.h"
#include "tuner/jit/jit.h"

namespace tuner {
namespace {

/// To be raised whenever the same fields come to mean something else.
constexpr int kKeyScheme = 1;

std::string_view without_leading_blanks(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view{} : text.substr(start);
}

/// What an #include line names.
std::optional<std::string_view> include_of(std::string_view line) {
  line = without_leading_blanks(line);
  if (line.empty() || line[0] != '#') return std::nullopt;
  line = without_leading_blanks(line.substr(1));
  constexpr std::string_view kDirective = "include";
  if (line.substr(0, kDirective.size()) != kDirective) return std::nullopt;
  line = without_leading_blanks(line.substr(kDirective.size()));
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return std::nullopt;
  const std::size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(1, end - 1);
}

void collect(std::string_view source, const HeaderLookup& lookup, std::map<std::string, std::string_view>& found) {
  while (!source.empty()) {
    const std::size_t end = source.find('\n');
    const auto name = include_of(source.substr(0, end));
    source = end == std::string_view::npos ? std::string_view{} : source.substr(end + 1);
    if (!name || found.count(std::string(*name)) != 0) continue;
    const std::string_view content = lookup(*name);
    if (content.empty()) continue;
    found.emplace(*name, content);
    collect(content, lookup, found);
  }
}

}  // namespace

std::string_view embedded_source(std::string_view path) {
  for (const auto& [name, content] : embedded_sources())
    if (name == path) return content;
  return {};
}

Headers included_files(std::string_view source, const HeaderLookup& lookup) {
  std::map<std::string, std::string_view> found;
  collect(source, lookup, found);
  return {found.begin(), found.end()};
}

Headers included_files(std::string_view source) { return included_files(source, embedded_source); }

std::string compile_key(const CompileUnit& unit, const Headers& headers, std::string_view arch,
                        std::string_view compiler_identity, std::string_view extra) {
  std::string text;
  const auto add = [&](std::string_view field) { (text += std::to_string(field.size()) += ':') += field; };
  const auto add_list = [&](const std::vector<std::string>& list) {
    add(std::to_string(list.size()));
    for (const std::string& item : list) add(item);
  };
  add(std::to_string(kKeyScheme));
  add(arch);
  add(compiler_identity);
  add(extra);
  add(unit.source);
  add_list(unit.kernels);
  add_list(unit.options);
  for (const auto& [name, content] : headers) {
    add(name);
    add(content);
  }
  return sha256(text);
}

std::string compile_key(const CompileUnit& unit, std::string_view arch, std::string_view compiler_identity,
                        std::string_view extra) {
  return compile_key(unit, included_files(unit.source), arch, compiler_identity, extra);
}

}  // namespace tuner
